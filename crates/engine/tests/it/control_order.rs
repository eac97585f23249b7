//! What messages about groups say is worked out in the order in which they are taken, for the groups as they are then: whatever else
//! is on its way, whichever rules came since, and whoever approves it.

use std::sync::Arc;
use std::time::Duration;

use newsreel_engine::{ASKS_COUNTED_MAX, ASKS_LISTED_MAX, ArticleRef, EngineConfig, GroupSpec};
use newsreel_host::disk::{Effect, Fault, FaultyDisk};
use newsreel_host::{MemoryDisk, Op};
use newsreel_service::{Outcome, Reject};

use crate::control_groups::{ADMIN, Article, groups, message, send};
use crate::control_newest::{at, list, of, waiting, world_of};
use crate::damage::spoil_record;
use crate::world::{World, between_runs, config, open_on};

fn say(name: &str, control: &str) -> Article {
    message(name, ADMIN, control, "")
}

/// The configuration with other rules.
fn with_rules(world: &World, rules: &[&str]) {
    let mut config: EngineConfig = world.config.clone();
    config.control.rules = rules.iter().map(|rule| (*rule).to_owned()).collect();
    world.engine.reload(&config).unwrap();
}

fn approve(world: &World, name: &str) {
    let which = ArticleRef::Id(format!("<{name}@t.example>"));
    world.engine.control_approve(&which).unwrap();
}

/// What a message asks for was worked out when it was read: of two about one group in one write the second found nothing to do, counted
/// as heeded, and was lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_in_one_go_the_second_is_done_behind_the_first() {
    let world = world_of(&["all:*:*:doit"], |_| {});
    let there = ["alt.there", "alt.moderated"].map(GroupSpec::new).to_vec();
    world.engine.add_groups(there).unwrap();
    let text = "For your newsgroups file:\nalt.there\tIt is there.\n";
    let sent = [
        say("1", "newgroup alt.gone"),
        say("2", "rmgroup alt.gone"),
        say("3", "rmgroup alt.there"),
        message("4", ADMIN, "newgroup alt.there moderated", text),
        say("5", "newgroup alt.moderated moderated"),
        say("6", "newgroup alt.moderated"),
        say("7", "newgroup alt.made moderated"),
        say("8", "newgroup alt.made"),
    ];
    send(&world, &sent).await;
    let made = ["alt.made y", "alt.moderated y", "alt.there m It is there."];
    assert_eq!(groups(&world)[..3], made);
    // Of lists, too, and beside newgroup and rmgroup.
    let sent = [
        list("11", ADMIN, "de #2", &["de.a", "de.b"]),
        list("12", ADMIN, "de #3", &["de.b", "de.c"]),
        say("13", "newgroup de.d"),
        say("14", "rmgroup de.c"),
        list("15", ADMIN, "de #4", &["de.b", "de.c"]),
        list("16", ADMIN, "fr #4", &["fr.a"]),
    ];
    send(&world, &sent).await;
    assert_eq!(of(&world, "de."), ["de.b", "de.c"]);
    assert_eq!(of(&world, "fr."), ["fr.a"]);
    assert_eq!(waiting(&world), [""; 0]);
    let world = world.restart();
    assert_eq!(of(&world, "de."), ["de.b", "de.c"]);
    assert_eq!(world.problems(), [""; 0]);
}

/// One that is older and comes in the same write waits, as it does when it comes later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_in_one_go_the_older_one_is_left() {
    let world = world_of(&["all:*:*:doit"], |_| {});
    let sent = [
        at("22:05:00", say("1", "newgroup alt.new")),
        at("22:04:00", say("2", "rmgroup alt.new")),
        list("3", ADMIN, "de #3", &["de.a"]),
        list("4", ADMIN, "de #2", &["de.b"]),
    ];
    send(&world, &sent).await;
    assert_eq!(of(&world, "alt."), ["alt.new"]);
    assert_eq!(of(&world, "de."), ["de.a"]);
    assert_eq!(waiting(&world), ["<2@t.example>", "<4@t.example>"]);
    approve(&world, "2");
    assert_eq!(of(&world, "alt."), [""; 0]);
}

/// What waits behind a message that makes something of it was not listed, and what a list would change too much behind one was done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_is_listed_for_what_is_done_in_the_same_go() {
    let rules = ["all:*:*:doit", "rmgroup:*:alt.*:log", "all:*:x.*:drop"];
    let world = world_of(&rules, |config| config.control.checkgroups_changes_max = 2);
    let sent = [
        say("1", "newgroup alt.new"),
        say("2", "rmgroup alt.new"),
        say("3", "rmgroup x.none"),
        say("4", "newgroup de.a"),
        say("5", "newgroup de.b"),
        list("6", ADMIN, "de", &["de.c"]),
    ];
    send(&world, &sent).await;
    assert_eq!(
        of(&world, ""),
        ["alt.new", "de.a", "de.b", "misc.other", "misc.test"]
    );
    assert_eq!(waiting(&world), ["<2@t.example>", "<6@t.example>"]);
}

/// A group that was made again in the same write as it was removed gave the numbers again that it had given just before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_that_is_made_again_in_one_go_goes_on_above() {
    let world = world_of(&["all:*:*:doit"], |_| {});
    world
        .engine
        .add_groups(vec![GroupSpec::new("alt.new")])
        .unwrap();
    let article = |n: usize| crate::world::article(n, "alt.new");
    let sent = [
        article(1),
        article(2),
        say("3", "rmgroup alt.new"),
        say("4", "newgroup alt.new"),
    ];
    send(&world, &sent).await;
    assert_eq!(world.send(&[article(5)]).await, [Outcome::Accepted]);
    assert_eq!(world.high("alt.new"), 3);
    assert_eq!(world.lines("alt.new").await.len(), 1);
    let world = world.restart();
    assert_eq!(world.high("alt.new"), 3);
    assert_eq!(world.problems(), [""; 0]);
}

/// A list that waits was hidden by an older one that came behind it and was heeded.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_list_hides_no_newer_one_that_waits() {
    let world = world_of(&["all:*:*:doit"], |config| {
        config.control.checkgroups_changes_max = 1;
    });
    send(&world, &[list("1", ADMIN, "de #6", &["de.a", "de.b"])]).await;
    send(&world, &[list("2", ADMIN, "de #5", &["de.a"])]).await;
    assert_eq!(of(&world, "de."), ["de.a"]);
    assert_eq!(waiting(&world), ["<1@t.example>"]);
    let world = world.restart();
    assert_eq!(waiting(&world), ["<1@t.example>"]);
    // A newer one that is heeded settles it.
    send(&world, &[list("3", ADMIN, "de #7", &["de.a"])]).await;
    assert_eq!(waiting(&world), [""; 0]);
}

/// What a list did to groups outside the hierarchies that it names was done and not remembered: an older message undid it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_says_nothing_of_groups_outside_its_hierarchies() {
    let world = world_of(&["all:*:*:doit"], |_| {});
    let listed = ["alt.sub.a", "alt.x", "misc.new"];
    send(&world, &[list("1", ADMIN, "alt.sub #5", &listed)]).await;
    assert_eq!(of(&world, "alt."), ["alt.sub.a"]);
    assert_eq!(of(&world, "misc."), ["misc.other", "misc.test"]);
    // One with none of its own is malformed: it would empty them.
    send(&world, &[list("2", ADMIN, "alt.sub #6", &["alt.x"])]).await;
    assert_eq!(of(&world, "alt."), ["alt.sub.a"]);
    let which = ArticleRef::Id("<2@t.example>".to_owned());
    let shown = world.engine.control_message(&which).unwrap().unwrap();
    assert_eq!(shown.problem, Some("it lists no group of its hierarchies"));
}

/// What a list keeps back was asked of the rules in force: with other rules an older list undid it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_rules_forget_nothing_of_what_was_heeded() {
    const OTHER: &str = "other@a.example";
    let world = world_of(&["checkgroups:admin@a.example:alt.*:doit"], |_| {});
    send(&world, &[list("1", ADMIN, "alt #9", &["alt.a"])]).await;
    assert_eq!(of(&world, "alt."), ["alt.a"]);
    with_rules(&world, &["all:other@a.example:alt.*|de.*:doit"]);
    let older = [
        list("2", OTHER, "alt #8", &["alt.old"]),
        at("21:00:00", message("3", OTHER, "newgroup alt.gone", "")),
    ];
    for one in &older {
        send(&world, std::slice::from_ref(one)).await;
    }
    assert_eq!(of(&world, "alt."), ["alt.a"]);
    assert_eq!(waiting(&world), ["<2@t.example>", "<3@t.example>"]);
    // After a start, too.
    send(&world, &[list("4", OTHER, "de #1", &["de.a"])]).await;
    let world = world.restart();
    with_rules(&world, &["all:*:*:doit"]);
    send(&world, &[list("5", ADMIN, "de #2", &["de.a", "de.b"])]).await;
    assert_eq!(of(&world, "de."), ["de.a", "de.b"]);
    send(&world, &[list("6", ADMIN, "alt #8", &["alt.older"])]).await;
    assert_eq!(of(&world, "alt."), ["alt.a"]);
}

/// What was approved when it asked for nothing any more, as somebody had made its group by hand, was not remembered.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_approved_counts_though_nothing_is_left_to_do() {
    let world = world_of(&[], |_| {});
    send(&world, &[list("1", ADMIN, "alt #5", &["alt.a"])]).await;
    send(&world, &[say("2", "newgroup de.a")]).await;
    let made = ["alt.a", "de.a"].map(|name| GroupSpec {
        description: format!("Of {name}"),
        ..GroupSpec::new(name)
    });
    world.engine.add_groups(made.to_vec()).unwrap();
    assert_eq!(waiting(&world), [""; 0]);
    approve(&world, "1");
    approve(&world, "2");
    let world = world.restart();
    with_rules(&world, &["all:*:*:doit"]);
    send(&world, &[list("3", ADMIN, "alt #4", &["alt.old"])]).await;
    send(&world, &[at("21:00:00", say("4", "rmgroup de.a"))]).await;
    assert_eq!(of(&world, "alt."), ["alt.a"]);
    assert_eq!(of(&world, "de."), ["de.a"]);
}

/// Who listed what waits while a message was on its way to the disk had it forgotten, for good with the next checkpoint.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_lists_what_waits_forgets_nothing_that_is_under_way() {
    let faulty = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    let world = World::on(Arc::new(faulty.clone()), config(4 << 20));
    faulty.add(Fault::new(
        Op::Sync,
        "/log/",
        Effect::Slow(Duration::from_millis(500)),
    ));
    let sent = [say("1", "newgroup alt.new")];
    let listed = async {
        while world.engine.status().control_waiting == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        waiting(&world);
    };
    tokio::join!(send(&world, &sent), listed);
    assert_eq!(waiting(&world), ["<1@t.example>"]);
    world.seal();
    let world = world.restart();
    assert_eq!(waiting(&world), ["<1@t.example>"]);
    // What is gone is forgotten all the same.
    let gone = [ArticleRef::Id("<1@t.example>".to_owned())];
    let reason = newsreel_engine::Reason::Cancelled;
    world.engine.withdraw(&gone, reason).unwrap();
    assert_eq!(waiting(&world), [""; 0]);
    assert_eq!(world.engine.status().control_waiting, 0);
}

/// Who approved the newest message and then the oldest no longer saw the one between the two.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_approves_an_older_one_still_sees_a_newer_one() {
    let world = world_of(&[], |_| {});
    let there = vec![GroupSpec::new("alt.a")];
    world.engine.add_groups(there).unwrap();
    let text = "For your newsgroups file:\nalt.a\tA group.\n";
    let sent = [
        list("1", ADMIN, "de #9", &["de.a"]),
        list("2", ADMIN, "de #5", &["de.a", "de.five"]),
        list("3", ADMIN, "de #3", &["de.a", "de.three"]),
        at("22:09:00", say("4", "newgroup alt.a moderated")),
        at("22:05:00", say("5", "rmgroup alt.a")),
        at("22:03:00", message("6", ADMIN, "newgroup alt.a", text)),
    ];
    for one in &sent {
        send(&world, std::slice::from_ref(one)).await;
    }
    for name in ["1", "3", "4", "6"] {
        approve(&world, name);
    }
    assert_eq!(of(&world, "de."), ["de.a", "de.three"]);
    let expected = ["<2@t.example>", "<5@t.example>"];
    assert_eq!(waiting(&world), expected);
    let world = world.restart();
    assert_eq!(waiting(&world), expected);
    // Nor do those come back that were approved before.
    approve(&world, "2");
    approve(&world, "5");
    assert_eq!(of(&world, "de."), ["de.a", "de.five"]);
    assert_eq!(waiting(&world), [""; 0]);
}

/// Of a list of 66,000 hierarchies that was approved the log said another number of them, so that behind a start it was another list.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_that_cannot_be_remembered_is_not_approved() {
    let world = world_of(&[], |_| {});
    let named = |name: &str, count: usize| {
        let listed: Vec<String> = (0..count).map(|n| format!("h{n}.a")).collect();
        let listed: Vec<&str> = listed.iter().map(String::as_str).collect();
        list(name, ADMIN, "", &listed)
    };
    send(&world, &[named("1", 10_000), named("2", 1000)]).await;
    let which = ArticleRef::Id("<1@t.example>".to_owned());
    let refused = world
        .engine
        .control_approve(&which)
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("more hierarchies than can be"),
        "{refused}"
    );
    assert_eq!(of(&world, "h"), [""; 0]);
    // One that waits as a rule would not do it, as it names many, can be approved.
    approve(&world, "2");
    assert_eq!(of(&world, "h").len(), 1000);
    let world = world.restart();
    with_rules(&world, &["all:*:*:doit"]);
    let older = at("21:00:00", say("3", "newgroup h999.older"));
    send(&world, &[older]).await;
    assert_eq!(of(&world, "h").len(), 1000);
}

/// A list was held against the limit with the groups that were here before the write: behind newgroups of its groups in the same write it
/// waited, and an older one undid it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_list_changes_is_counted_when_its_turn_comes() {
    let world = world_of(&["all:*:*:doit"], |config| {
        config.control.checkgroups_changes_max = 2;
    });
    let made = |name: &str, group: &str| {
        let text = format!("For your newsgroups file:\n{group}\tOf {group}\n");
        message(name, ADMIN, &format!("newgroup {group}"), &text)
    };
    let all = ["de.a", "de.b", "de.c", "de.d"];
    let sent = [
        made("1", all[0]),
        made("2", all[1]),
        list("3", ADMIN, "de #5", &all),
    ];
    send(&world, &sent).await;
    assert_eq!(of(&world, "de."), all);
    assert_eq!(waiting(&world), [""; 0]);
    send(&world, &[list("4", ADMIN, "de #4", &all[..3])]).await;
    assert_eq!(of(&world, "de."), all);
    let more = ["de.a", "de.b", "de.c", "de.d", "de.e", "de.f", "de.g"];
    let sent = [made("5", "de.e"), list("6", ADMIN, "de #6", &more)];
    send(&world, &sent).await;
    assert_eq!(of(&world, "de."), more);
    assert_eq!(waiting(&world), [""; 0]);
    // One of which too much is left waits.
    send(&world, &[list("7", ADMIN, "de #7", &all)]).await;
    assert_eq!(of(&world, "de."), more);
    assert_eq!(waiting(&world), ["<7@t.example>"]);
}

/// Articles were judged with the groups that were here before the write: behind the newgroup of their group they were refused for good, and
/// behind one that made it moderated they were filed without Approved.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_article_behind_a_message_is_judged_with_the_groups_as_that_leaves_them() {
    let world = world_of(&["all:*:*:doit"], |_| {});
    let article = |n: usize| crate::world::article(n, "alt.new");
    let sent = [
        article(1),
        say("2", "newgroup alt.new"),
        article(3),
        article(4),
        say("5", "newgroup alt.new moderated"),
        article(6),
        list("7", ADMIN, "alt", &["alt.other"]),
        article(8),
        crate::world::article(9, "alt.other"),
    ];
    let taken = Outcome::Accepted;
    let (unknown, unapproved) = (
        Outcome::Rejected(Reject::UnknownGroups),
        Outcome::Rejected(Reject::NotApproved),
    );
    assert_eq!(
        world.send(&sent).await,
        [
            unknown, taken, taken, taken, taken, unapproved, taken, unknown, taken
        ]
    );
    assert_eq!(of(&world, "alt."), ["alt.other"]);
    assert_eq!(world.high("alt.other"), 1);
    // What waits for approval holds nobody up.
    with_rules(&world, &[]);
    let sent = [say("10", "newgroup alt.more"), article(11)];
    assert_eq!(world.send(&sent).await, [taken, unknown]);
    assert_eq!(world.problems(), [""; 0]);
}

/// Each list that waits was held against all groups of its hierarchies, also where a newer one had settled all that it says: with 20,000 of
/// them and 3,000 groups that took four minutes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_list_that_waits_asks_for_is_counted_no_further_than_need_be() {
    let world = world_of(&[], |_| {});
    let names: Vec<String> = (0..150).map(|n| format!("de.g{n}")).collect();
    let there = names.iter().map(|name| GroupSpec::new(name)).collect();
    world.engine.add_groups(there).unwrap();
    send(&world, &[list("1", ADMIN, "de #1", &["de.one"])]).await;
    let listed = world.engine.control_waiting().unwrap();
    assert_eq!(listed[0].asks.len(), ASKS_LISTED_MAX);
    assert_eq!(listed[0].more, ASKS_COUNTED_MAX + 1 - ASKS_LISTED_MAX);
    let which = ArticleRef::Id("<1@t.example>".to_owned());
    let shown = world.engine.control_message(&which).unwrap().unwrap();
    assert_eq!((shown.asks.len(), shown.more), (names.len() + 1, 0));
    // A newer one settles it, but for what is done to the group that is called as the hierarchy.
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    send(&world, &[list("2", ADMIN, "de #2", &names)]).await;
    approve(&world, "2");
    assert_eq!(of(&world, "de."), {
        let mut names = names.clone();
        names.sort_unstable();
        names
    });
    assert_eq!(waiting(&world), [""; 0]);
    with_rules(&world, &["checkgroups:admin@a.example:fr.*:doit"]);
    let groups = ["fr", "fr.a"].map(GroupSpec::new).to_vec();
    world.engine.add_groups(groups).unwrap();
    let other = "other@a.example";
    send(&world, &[list("3", other, "fr #1", &["fr.b"])]).await;
    send(&world, &[list("4", ADMIN, "fr #2", &["fr.a"])]).await;
    let left = world.engine.control_waiting().unwrap();
    let left: Vec<_> = left
        .iter()
        .map(|it| (&*it.message_id, it.asks[0].asked.name()))
        .collect();
    assert_eq!(left, [("<3@t.example>", "fr"), ("<4@t.example>", "fr")]);
}

/// In a log of small segments a list was half done: its groups were changed, and for those to be made there was no room; of two in
/// one write, which had room one by one, the second waited.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_is_done_whole_or_not_at_all() {
    // With room for the articles, so that no commit ends for their sake.
    let mut config = config(64 << 20);
    config.control.rules = vec!["all:*:*:doit".to_owned()];
    config.control.checkgroups_changes_max = 100_000;
    let world = World::on(Arc::new(MemoryDisk::new()), config);
    let list = |name: &str, hierarchy: &str, serial: u32, letter: &str, count: usize| {
        let line = |n: usize| format!("{hierarchy}.g{n:04}\t{}\n", letter.repeat(180));
        let lines: String = (0..count).map(line).collect();
        let control = format!("checkgroups {hierarchy} #{serial}");
        message(name, ADMIN, &control, &lines)
    };
    let count = |hierarchy: &str, letter: &str| {
        let of = |line: &&String| line.starts_with(hierarchy) && line.ends_with(letter);
        groups(&world).iter().filter(of).count()
    };
    send(&world, &[list("1", "de", 1, "a", 2500)]).await;
    assert_eq!(count("de.", "a"), 2500);
    send(&world, &[list("2", "de", 2, "b", 5000)]).await;
    assert_eq!((count("de.", "a"), count("de.", "")), (2500, 2500));
    assert_eq!(waiting(&world), ["<2@t.example>"]);
    let which = ArticleRef::Id("<2@t.example>".to_owned());
    let refused = world.engine.control_approve(&which).unwrap_err();
    assert!(
        refused.to_string().contains("log.segment_octets"),
        "{refused}"
    );
    assert_eq!((count("de.", "a"), count("de.", "")), (2500, 2500));
    let both = [
        list("3", "fr", 1, "c", 1500),
        list("4", "es", 1, "c", 3200),
        list("5", "de", 3, "b", 2500),
    ];
    send(&world, &both).await;
    assert_eq!((count("fr.", "c"), count("es.", "c")), (1500, 3200));
    assert_eq!(count("de.", "b"), 2500);
    assert_eq!(waiting(&world), [""; 0]);
    assert_eq!(world.problems(), [""; 0]);
}

/// One message that was damaged had `control list` fail, and `status` with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_damaged_hides_nothing_else() {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), config(4 << 20));
    let sent = [say("1", "newgroup alt.a"), say("2", "newgroup alt.b")];
    send(&world, &sent).await;
    let world = between_runs(world, |_| spoil_record(&memory, 1));
    for _ in 0..2 {
        let listed = world.engine.control_waiting().unwrap();
        assert_eq!(listed.len(), 2);
        assert_eq!(listed[0].message_id, "<2@t.example>");
        assert!(listed[1].problem.unwrap().contains("cannot be read"));
        assert!(!listed[1].message_id.is_empty());
    }
}

/// Of a hierarchy whose sender had used a number that is too large each list had to be approved, for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_heeded_of_a_hierarchy_can_be_forgotten() {
    let memory = MemoryDisk::new();
    let mut config = config(4 << 20);
    config.control.rules = vec!["all:*:*:doit".to_owned()];
    let world = World::on(Arc::new(memory.clone()), config);
    let sent = [
        list("1", ADMIN, "de #20990101", &["de.a"]),
        say("2", "newgroup de.b"),
        list("3", ADMIN, "fr #20990101", &["fr.a"]),
    ];
    send(&world, &sent).await;
    send(&world, &[list("4", ADMIN, "de #5", &["de.c"])]).await;
    assert_eq!(of(&world, "de."), ["de.a", "de.b"]);
    let forget = |world: &World, dry_run| world.engine.control_forget("de", dry_run).unwrap();
    let told = forget(&world, true);
    assert_eq!(told.groups, ["de.b"]);
    assert_eq!(told.lists.len(), 1);
    assert_eq!(told.lists[0].serial, Some(20_990_101));
    assert_eq!(forget(&world, false), told);
    assert_eq!(forget(&world, false), newsreel_engine::Forgotten::default());
    // A list of several hierarchies is forgotten of the one alone.
    send(
        &world,
        &[list("7", ADMIN, "it nl #20990101", &["it.a", "nl.a"])],
    )
    .await;
    let told = world.engine.control_forget("it", false).unwrap();
    assert_eq!(told.lists[0].hierarchies, ["it"]);
    assert_eq!(told.lists[0].stays, ["nl"]);
    let refused = world.engine.control_forget("de..x", false).unwrap_err();
    assert!(refused.to_string().contains("de..x"), "{refused}");
    // After a crash, too, and of no other hierarchy.
    let crashed = Arc::new(memory.crash_losing_all());
    let world = open_on(crashed, &world.config, &world.clock);
    let sent = [
        list("5", ADMIN, "de #6", &["de.c"]),
        list("6", ADMIN, "fr #6", &["fr.c"]),
        list("8", ADMIN, "it nl #6", &["it.c", "nl.c"]),
    ];
    send(&world, &sent).await;
    assert_eq!(of(&world, "de."), ["de.c"]);
    assert_eq!(of(&world, "fr."), ["fr.a"]);
    assert_eq!(
        (of(&world, "it."), of(&world, "nl.")),
        (vec!["it.c".to_owned()], vec!["nl.a".to_owned()])
    );
    assert_eq!(world.problems(), [""; 0]);
}
