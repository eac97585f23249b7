//! Messages about groups that are newer than one that is approved: whoever approves that is told of them, whatever they asked for
//! when they came.

use std::sync::Arc;

use newsreel_engine::{ArticleRef, ControlReport, GroupSpec};
use newsreel_host::disk::{Effect, Fault, FaultyDisk};
use newsreel_host::{MemoryDisk, Op};
use newsreel_service::Outcome;

use crate::control_groups::{ADMIN, Article, message, send};
use crate::control_newest::{at, list, of, waiting, world_of};
use crate::world::{World, config};

fn say(time: &str, name: &str, control: &str) -> Article {
    at(time, message(name, ADMIN, control, ""))
}

fn which(name: &str) -> ArticleRef {
    ArticleRef::Id(format!("<{name}@t.example>"))
}

fn shown(world: &World, name: &str) -> ControlReport {
    let shown = world.engine.control_message(&which(name)).unwrap();
    shown.unwrap()
}

/// What is told when this is approved; what it was said to be before is the same.
fn approve(world: &World, name: &str) -> Vec<String> {
    let before = shown(world, name);
    let report = world.engine.control_approve(&which(name)).unwrap();
    assert_eq!((&report.newer, &report.asks), (&before.newer, &before.asks));
    report.newer
}

/// A message that had nothing to ask for when it came was forgotten: who approved an older one that had come behind it, or waited, saw
/// nothing of it any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_approves_an_older_message_is_told_of_a_newer_one() {
    let world = world_of(&[], |_| {});
    let there = ["alt.b", "alt.c"].map(GroupSpec::new).to_vec();
    world.engine.add_groups(there).unwrap();
    let sent = [
        say("22:05:00", "1", "rmgroup alt.a"),
        say("22:03:00", "2", "newgroup alt.a"),
        say("22:05:00", "3", "newgroup alt.b"),
        say("22:03:00", "4", "rmgroup alt.b"),
        // What agrees is nothing to be told of, nor what is older.
        say("22:06:00", "5", "newgroup alt.a"),
        say("22:01:00", "6", "newgroup alt.c"),
        say("22:03:00", "7", "rmgroup alt.c"),
        // Of two with one Date the one that comes behind is the newer one.
        say("22:03:00", "8", "newgroup alt.d"),
        say("22:03:00", "9", "rmgroup alt.d"),
    ];
    for one in &sent {
        send(&world, std::slice::from_ref(one)).await;
    }
    let expected = ["2", "4", "5", "7", "8"].map(|name| format!("<{name}@t.example>"));
    assert_eq!(waiting(&world), expected);
    assert_eq!(world.engine.status().control_waiting, 5);
    assert_eq!(world.engine.control_remembered(), 9);
    let world = world.restart();
    assert_eq!(waiting(&world), expected);
    assert_eq!(world.engine.status().control_waiting, 5);
    assert_eq!(approve(&world, "2"), ["<1@t.example>"]);
    assert_eq!(approve(&world, "4"), ["<3@t.example>"]);
    assert_eq!(approve(&world, "7"), [""; 0]);
    assert_eq!(approve(&world, "8"), ["<9@t.example>"]);
    assert_eq!(of(&world, "alt."), ["alt.a", "alt.d"]);
    let expected = ["1", "3", "9"].map(|name| format!("<{name}@t.example>"));
    assert_eq!(waiting(&world), expected);
    world.seal();
    let world = world.restart();
    assert_eq!(waiting(&world), expected);
    for (name, newer) in [("1", &["<5@t.example>"][..]), ("3", &[]), ("9", &[])] {
        assert_eq!(approve(&world, name), newer, "{name}");
    }
    assert_eq!(of(&world, "alt."), ["alt.b"]);
    assert_eq!(waiting(&world), ["<5@t.example>"]);
    assert_eq!(world.problems(), [""; 0]);
}

/// The same of lists, and of what a list leaves to others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_that_is_newer_is_told_of_too() {
    let rules = ["all:*:*:log", "checkgroups:*:fr.a:doit"];
    let world = world_of(&rules, |_| {});
    let there = ["de.a", "fr.a"].map(|name| GroupSpec {
        description: format!("Of {name}"),
        ..GroupSpec::new(name)
    });
    world.engine.add_groups(there.to_vec()).unwrap();
    let sent = [
        list("1", ADMIN, "de #5", &["de.a"]),
        list("2", ADMIN, "de #4", &["de.a", "de.b"]),
        // Done of one group, and of the others nothing is to be done yet.
        at("22:05:00", list("3", ADMIN, "fr #5", &["fr.a"])),
        say("22:03:00", "4", "newgroup fr.b"),
    ];
    for one in &sent {
        send(&world, std::slice::from_ref(one)).await;
    }
    assert_eq!(waiting(&world), ["<2@t.example>", "<4@t.example>"]);
    assert_eq!(approve(&world, "2"), ["<1@t.example>"]);
    assert_eq!(approve(&world, "4"), ["<3@t.example>"]);
    assert_eq!(of(&world, "de."), ["de.a", "de.b"]);
    let world = world.restart();
    assert_eq!(waiting(&world), ["<1@t.example>", "<3@t.example>"]);
    approve(&world, "1");
    approve(&world, "3");
    assert_eq!(of(&world, "de."), ["de.a"]);
    assert_eq!(of(&world, "fr."), ["fr.a"]);
    assert_eq!(waiting(&world), [""; 0]);
}

/// Nothing said that what was to be approved is older than what a rule had let be done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_older_than_what_was_heeded_says_so() {
    let rules = ["all:*:*:log", "rmgroup:*:*:doit", "all:*:x.*:drop"];
    let world = world_of(&rules, |_| {});
    let sent = [
        say("22:05:00", "1", "rmgroup alt.a"),
        say("22:03:00", "2", "newgroup alt.a"),
        say("22:06:00", "3", "newgroup alt.b"),
        // What a rule drops, and what it did, is not remembered as waiting.
        say("22:05:00", "4", "newgroup x.a"),
        say("22:05:00", "5", "rmgroup x.a"),
    ];
    for one in &sent {
        send(&world, std::slice::from_ref(one)).await;
    }
    let late = |name: &str| shown(&world, name).asks[0].late;
    assert!(late("2") && !late("3"));
    let listed = world.engine.control_waiting().unwrap();
    let listed: Vec<_> = listed
        .iter()
        .map(|it| (&*it.message_id, it.asks[0].late))
        .collect();
    assert_eq!(listed, [("<2@t.example>", true), ("<3@t.example>", false)]);
    assert_eq!(world.engine.control_remembered(), 2);
}

/// What somebody approved while the log failed was listed no more, and kept back what is older, though it was not done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_approved_in_vain_waits_as_before() {
    let faulty = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    let world = World::on(Arc::new(faulty.clone()), config(4 << 20));
    let mut number = 0;
    // Something else of the log may be synced just then, as its next segment, without which it is short of room a while.
    loop {
        number += 1;
        assert!(number < 20, "no commit failed");
        let one = say(
            "22:05:00",
            &number.to_string(),
            &format!("newgroup alt.n{number}"),
        );
        let told = world.send_until_answered(&one).await;
        assert_eq!(told, Outcome::Accepted);
        faulty.add(Fault::new(Op::Sync, "/log/", Effect::Medium));
        if world
            .engine
            .control_approve(&which(&number.to_string()))
            .is_err()
        {
            break;
        }
        assert_eq!(waiting(&world), [""; 0]);
    }
    world.wait_until("the log", |world| world.engine.status().paused.is_none());
    let expected = [format!("<{number}@t.example>")];
    assert_eq!(waiting(&world), expected);
    let group = format!("alt.n{number}");
    let told = || world.engine.control_forget(&group, true).unwrap();
    assert_eq!(told(), newsreel_engine::Forgotten::default());
    world.seal();
    let world = world.restart();
    assert_eq!(waiting(&world), expected);
    world
        .engine
        .control_approve(&which(&number.to_string()))
        .unwrap();
    assert_eq!(of(&world, &group), [group.as_str()]);
    let told = world.engine.control_forget(&group, true).unwrap();
    assert_eq!(told.groups, [group]);
    assert_eq!(waiting(&world), [""; 0]);
}
