//! What is older does not undo what is newer: lists of groups, newgroup and rmgroup, in whichever order they come, and whatever
//! became of the messages since.

use std::sync::Arc;

use newsreel_engine::ArticleRef;
use newsreel_host::MemoryDisk;
use newsreel_service::Outcome;

use crate::control_groups::{ADMIN, Article, groups, message, send};
use crate::world::{World, article, between_runs, config, open_on};

/// A world with these rules and no group of control messages.
pub(crate) fn world_of(
    rules: &[&str],
    change: impl FnOnce(&mut newsreel_engine::EngineConfig),
) -> World {
    let mut config = config(4 << 20);
    config.control.rules = rules.iter().map(|rule| (*rule).to_owned()).collect();
    change(&mut config);
    World::on(Arc::new(MemoryDisk::new()), config)
}

/// The same written at another time of that day.
pub(crate) fn at(time: &str, article: Article) -> Article {
    let text = String::from_utf8(article.1).unwrap();
    assert!(text.contains("22:00:00"));
    (article.0, text.replace("22:00:00", time).into_bytes())
}

pub(crate) fn list(name: &str, from: &str, arguments: &str, listed: &[&str]) -> Article {
    let lines = listed.iter().map(|group| format!("{group}\tOf {group}\n"));
    let lines: String = lines.collect();
    message(name, from, &format!("checkgroups {arguments}"), &lines)
}

/// The groups of this hierarchy.
pub(crate) fn of(world: &World, hierarchy: &str) -> Vec<String> {
    let names = groups(world).into_iter();
    let names = names.filter_map(|line| line.split(' ').next().map(str::to_owned));
    names.filter(|name| name.starts_with(hierarchy)).collect()
}

pub(crate) fn waiting(world: &World) -> Vec<String> {
    let waiting = world.engine.control_waiting().unwrap().into_iter();
    waiting.map(|it| it.message_id).collect()
}

/// The serial number of a list was looked up in the stored messages: an older one undid a newer one where there was no group of control
/// messages, or the newer article had been cancelled or overwritten.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_list_undoes_nothing_though_the_newer_one_is_gone() {
    let memory = MemoryDisk::new();
    let mut config = config(1 << 20);
    config.control.rules = vec![
        "all:*:*:log".to_owned(),
        "checkgroups:*:alt.*:doit".to_owned(),
    ];
    config.control.cancels = newsreel_engine::Cancels::Auth;
    config.sequencer.log_keep_octets = 0;
    let world = World::on(Arc::new(memory.clone()), config);
    let older = |name: &str| list(name, ADMIN, "alt #1", &["alt.one"]);
    send(&world, &[list("new", ADMIN, "alt #2", &["alt.two"])]).await;
    let is_as_it_was = async |world: &World, name: &str| {
        send(world, &[older(name)]).await;
        assert_eq!(of(world, "alt."), ["alt.two"], "{name}");
    };
    is_as_it_was(&world, "at-once").await;
    let cancel = message("c", "eve@a.example", "cancel <new@t.example>", "x\n");
    let text = String::from_utf8(cancel.1).unwrap();
    let text = text.replace("Newsgroups: alt.new", "Newsgroups: misc.test");
    send(&world, &[(cancel.0, text.into_bytes())]).await;
    assert_eq!(world.by_id("<new@t.example>").await, None);
    is_as_it_was(&world, "cancelled").await;
    // The power is cut.
    let cut = open_on(
        Arc::new(memory.crash_losing_all()),
        &world.config,
        &world.clock,
    );
    is_as_it_was(&cut, "cut").await;
    drop(cut);
    // The log of then is gone, and so are the articles.
    let world = world.restart();
    is_as_it_was(&world, "restarted").await;
    for some in 0..40 {
        let flood: Vec<_> = (0..100)
            .map(|n| article(some * 100 + n, "misc.test"))
            .collect();
        assert!(
            world
                .send(&flood)
                .await
                .iter()
                .all(|it| *it == Outcome::Accepted)
        );
        world.seal();
    }
    let world = world.restart();
    assert_eq!(
        world.by_id("<at-once@t.example>").await,
        None,
        "it is overwritten"
    );
    is_as_it_was(&world, "overwritten").await;
    // Files of the views are lost, and made again.
    let index = world.config.spool.join("index");
    let world = between_runs(world, |disk| {
        for file in disk.list(&index).unwrap() {
            if file.name.starts_with("overview") || file.name.starts_with("history") {
                disk.remove(&index.join(file.name)).unwrap();
            }
        }
    });
    world.wait_until("the rebuild", |world| {
        world.engine.status().damaged.is_empty()
    });
    is_as_it_was(&world, "views").await;
    assert_eq!(world.problems(), [""; 0]);
    // A newer one is heeded as before.
    send(&world, &[list("next", ADMIN, "alt #3", &["alt.one"])]).await;
    assert_eq!(of(&world, "alt."), ["alt.one"]);
}

/// A newgroup or rmgroup that came behind one that was written after it was heeded: an old message could be kept back and sent later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_about_a_group_are_heeded_in_the_order_of_their_dates() {
    let world = world_of(&["all:*:*:doit"], |_| {});
    let group = ["alt.new"];
    let say = |time: &str, name: &str, control: &str| at(time, message(name, ADMIN, control, ""));
    // Of a group that is not here, which changes nothing and counts all the same.
    send(&world, &[say("22:05:00", "1", "rmgroup alt.new")]).await;
    send(&world, &[say("22:04:00", "2", "newgroup alt.new")]).await;
    assert_eq!(of(&world, "alt."), [""; 0]);
    assert_eq!(waiting(&world), ["<2@t.example>"]);
    let which = ArticleRef::Id("<2@t.example>".to_owned());
    let shown = world.engine.control_message(&which).unwrap().unwrap();
    assert_eq!(
        (&*shown.asks[0].rule, &*shown.asks[0].becomes),
        ("doit", "log")
    );
    let world = world.restart();
    send(&world, &[say("22:05:01", "3", "newgroup alt.new")]).await;
    assert_eq!(of(&world, "alt."), group);
    assert_eq!(waiting(&world), [""; 0], "it is settled");
    send(&world, &[say("22:05:00", "4", "rmgroup alt.new")]).await;
    assert_eq!(of(&world, "alt."), group);
    // Lists count as well, in both directions.
    send(
        &world,
        &[at("22:04:00", list("5", ADMIN, "alt", &["alt.list"]))],
    )
    .await;
    assert_eq!(of(&world, "alt."), ["alt.list", "alt.new"]);
    send(
        &world,
        &[at("22:06:00", list("6", ADMIN, "alt", &["alt.list"]))],
    )
    .await;
    assert_eq!(of(&world, "alt."), ["alt.list"]);
    send(&world, &[say("22:05:30", "7", "newgroup alt.new")]).await;
    assert_eq!(of(&world, "alt."), ["alt.list"]);
    // What is written ahead of time keeps nothing back that is written until then.
    send(&world, &[say("23:30:00", "8", "newgroup alt.new")]).await;
    world.wait_s(1800);
    send(&world, &[say("22:30:00", "9", "rmgroup alt.new")]).await;
    assert_eq!(of(&world, "alt."), ["alt.list"]);
    assert_eq!(waiting(&world), ["<2@t.example>"; 0]);
}

/// A list was taken for heeded if any of its groups was somebody's to change, so who held a part of a hierarchy kept back the
/// lists of the whole; and one that only waited kept others back, while one that was approved did not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_counts_where_it_was_heeded_and_nowhere_else() {
    const SUB: &str = "sub@a.example";
    let rules = [
        "all:*:*:drop",
        "checkgroups:admin@a.example:alt.*:doit",
        "checkgroups:sub@a.example:alt.sub.*:doit",
        "checkgroups:*:log.*:log",
    ];
    let world = world_of(&rules, |config| config.control.checkgroups_changes_max = 3);
    send(&world, &[list("1", SUB, "alt #99999999", &["alt.sub.one"])]).await;
    assert_eq!(of(&world, "alt."), ["alt.sub.one"]);
    send(
        &world,
        &[list("2", ADMIN, "alt #5", &["alt.two", "alt.sub.one"])],
    )
    .await;
    assert_eq!(of(&world, "alt."), ["alt.sub.one", "alt.two"]);
    // Of its own groups it counts.
    send(&world, &[list("3", ADMIN, "alt #6", &["alt.two"])]).await;
    assert_eq!(of(&world, "alt."), ["alt.sub.one", "alt.two"]);
    assert_eq!(waiting(&world), ["<3@t.example>"]);
    // One that is too much, and so waits, is no reason against another.
    let many = ["alt.sub.one", "alt.a", "alt.b", "alt.c", "alt.d"];
    send(&world, &[list("4", ADMIN, "alt #100", &many)]).await;
    send(
        &world,
        &[list("5", ADMIN, "alt #7", &["alt.sub.one", "alt.five"])],
    )
    .await;
    assert_eq!(of(&world, "alt."), ["alt.five", "alt.sub.one"]);
    // One that was approved counts, for all that it is about.
    let approve = |id: &str| {
        let which = ArticleRef::Id(format!("<{id}@t.example>"));
        world.engine.control_approve(&which).unwrap();
    };
    send(&world, &[list("6", "x@b.example", "log #2", &["log.two"])]).await;
    send(&world, &[list("7", "x@b.example", "log #1", &["log.one"])]).await;
    assert_eq!(of(&world, "log."), [""; 0]);
    approve("6");
    approve("4");
    assert_eq!(of(&world, "log."), ["log.two"]);
    send(&world, &[list("8", ADMIN, "alt #8", &["alt.eight"])]).await;
    assert_eq!(of(&world, "alt.").len(), many.len());
    // Both tell the same.
    for report in world.engine.control_waiting().unwrap() {
        let which = ArticleRef::Id(report.message_id.clone());
        let shown = world.engine.control_message(&which).unwrap().unwrap();
        let of_list = |it| shown.asks.contains(it);
        assert!(report.asks.iter().all(of_list), "{report:?} {shown:?}");
    }
    let world = world.restart();
    send(&world, &[list("9", ADMIN, "alt #9", &["alt.nine"])]).await;
    assert_eq!(of(&world, "alt.").len(), many.len());
}

/// Messages that waited were looked for among all in the groups of control messages: where there was no such group nothing was listed, and
/// 100,000 that a rule drops hid them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_is_listed_whatever_else_comes() {
    let memory = MemoryDisk::new();
    let mut config = config(16 << 20);
    let rules = ["all:*:*:drop", "all:admin@a.example:*:log"];
    config.control.rules = rules.map(str::to_owned).to_vec();
    config.sequencer.log_keep_octets = 0;
    let world = World::on(Arc::new(memory.clone()), config);
    let sent = [
        message("1", ADMIN, "newgroup alt.new", ""),
        message("2", ADMIN, "rmgroup misc.other", ""),
        list(
            "3",
            ADMIN,
            "alt",
            &["alt.a", "alt.b", "alt.c", "alt.d", "alt.e"],
        ),
    ];
    send(&world, &sent).await;
    for some in 0..20 {
        let forged: Vec<_> = (0..100)
            .map(|n| {
                message(
                    &format!("f{some}-{n}"),
                    "eve@a.example",
                    &format!("newgroup x.y{n}"),
                    "",
                )
            })
            .collect();
        send(&world, &forged).await;
        world.seal();
    }
    let expected = ["<1@t.example>", "<2@t.example>", "<3@t.example>"];
    assert_eq!(waiting(&world), expected);
    let long = &world.engine.control_waiting().unwrap()[2];
    assert_eq!((long.asks.len(), long.more), (3, 2));
    let cut = open_on(
        Arc::new(memory.crash_losing_all()),
        &world.config,
        &world.clock,
    );
    assert_eq!(waiting(&cut), expected);
    drop(cut);
    let world = world.restart();
    assert_eq!(waiting(&world), expected);
    let which = ArticleRef::Id(expected[0].to_owned());
    world.engine.control_approve(&which).unwrap();
    assert_eq!(waiting(&world), expected[1..]);
    // One that is gone asks for nothing.
    let gone = [ArticleRef::Id(expected[1].to_owned())];
    world
        .engine
        .withdraw(&gone, newsreel_engine::Reason::Cancelled)
        .unwrap();
    assert_eq!(waiting(&world), expected[2..]);
    let world = world.restart();
    assert_eq!(waiting(&world), expected[2..]);
    assert_eq!(world.problems(), [""; 0]);
}

/// A list was not remembered for the groups that it leaves out where all that it lists were held back, or not its sender's to change: an
/// older message made them again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_is_remembered_for_what_it_leaves_out() {
    let rules = ["all:*:*:drop", "all:*:alt.*:doit", "all:*:de.x.*:doit"];
    let world = world_of(&rules, |_| {});
    let say = |time: &str, name: &str, control: &str| at(time, message(name, ADMIN, control, ""));
    let list = |time: &str, name: &str, arguments: &str, listed: &[&str]| {
        at(time, list(name, ADMIN, arguments, listed))
    };
    send(&world, &[say("22:08:00", "1", "newgroup alt.a")]).await;
    send(&world, &[list("22:05:00", "2", "alt #5", &["alt.a"])]).await;
    assert_eq!(waiting(&world), ["<2@t.example>"]);
    let older = |name: &str| say("22:04:00", name, "newgroup alt.b");
    send(&world, &[older("3")]).await;
    let both = ["alt.a", "alt.b"];
    send(&world, &[list("22:06:00", "4", "alt #4", &both)]).await;
    assert_eq!(of(&world, "alt."), ["alt.a"]);
    // Of a hierarchy of which only a part is the sender's.
    send(&world, &[list("22:05:00", "5", "de #5", &["de.y.a"])]).await;
    send(&world, &[say("22:04:00", "6", "newgroup de.x.gone")]).await;
    let together = [
        say("22:06:00", "7", "newgroup de.x.gone"),
        list("22:07:00", "8", "de #6", &["de.y.a"]),
    ];
    send(&world, &together).await;
    assert_eq!(of(&world, "de."), [""; 0]);
    // After a start, too.
    let world = world.restart();
    send(&world, &[older("9")]).await;
    send(&world, &[say("22:06:30", "10", "newgroup de.x.gone")]).await;
    assert_eq!(of(&world, "alt."), ["alt.a"]);
    assert_eq!(of(&world, "de."), [""; 0]);
    // What is newer is heeded as before.
    send(&world, &[say("22:05:30", "11", "newgroup alt.b")]).await;
    assert_eq!(of(&world, "alt."), both);
}
