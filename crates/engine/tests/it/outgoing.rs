//! What outgoing feeds read: every article once, in order, from where they stopped, and what the log keeps for them.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use newsreel_engine::{Engine, FeedRead, GroupSpec, UnknownGroups};
use newsreel_host::{Disk as _, MemoryDisk, OpenMode};
use newsreel_service::Outcome;
use newsreel_wire::Sequence;

use crate::world::{World, article, config, open_on};

/// Everything from a place on, at most so many at a time; and what was missed.
fn read(engine: &Engine, from: Sequence, at_once: usize) -> (Vec<String>, Vec<FeedRead>, Sequence) {
    let (mut seen, mut missed) = (Vec::new(), Vec::new());
    let mut cursor = engine.feed_from(from);
    let mut last = Sequence(0);
    loop {
        let mut left = at_once;
        let step = cursor.read(|article| {
            if left == 0 {
                return ControlFlow::Break(());
            }
            left -= 1;
            assert!(article.sequence > last, "in order, each once");
            last = article.sequence;
            let text = |octets: &[u8]| String::from_utf8(octets.to_vec()).unwrap();
            seen.push(format!(
                "{} {} [{}] {} {}{}",
                text(article.id),
                text(article.groups.newsgroups),
                text(article.distribution),
                text(article.path),
                u8::from(article.is_posted),
                u8::from(article.is_control),
            ));
            ControlFlow::Continue(())
        });
        match step.unwrap() {
            FeedRead::More => {}
            FeedRead::End => return (seen, missed, cursor.position()),
            lost @ FeedRead::Missed { .. } => missed.push(lost),
        }
    }
}

fn with(n: usize, groups: &str, fields: &str) -> (String, Vec<u8>) {
    let (id, text) = article(n, groups);
    let text = String::from_utf8(text).unwrap();
    let text = text.replacen("Subject:", &format!("{fields}Subject:"), 1);
    (id, text.into_bytes())
}

#[tokio::test]
async fn feeds_see_what_came_since_they_are_there() {
    let world = World::new(config(8 << 20));
    world.send(&[article(1, "misc.test")]).await;
    let start = world.engine.watch_commits().borrow().next();
    world.engine.keep_for_feeds(Some(start));
    let expires = "Expires: Tue, 14 Nov 2028 22:00:00 +0000\r\n";
    let some = [
        with(2, "misc.test,not.here", "Distribution: world,na\r\n"),
        with(3, "misc.other", expires),
        with(4, "misc.test", "Control: checkgroups\r\n"),
    ];
    assert_eq!(world.send(&some).await, [Outcome::Accepted; 3]);
    let expected = [
        "<2@t.example> misc.test,not.here [world,na] news.example!feeder.example!not-for-mail 00",
        "<3@t.example> misc.other [] news.example!feeder.example!not-for-mail 00",
        "<4@t.example> misc.test [] news.example!feeder.example!not-for-mail 01",
    ];
    for at_once in [1, 2, 9] {
        let (seen, missed, end) = read(&world.engine, start, at_once);
        assert_eq!(seen, expected, "{at_once} at a time");
        assert_eq!(missed, []);
        assert_eq!(end, world.engine.watch_commits().borrow().next());
    }
    // What came before there were feeds is not for them, and nothing is written for them when they are gone.
    assert_eq!(read(&world.engine, Sequence(1), 9).0, expected);
    world.engine.keep_for_feeds(None);
    world.send(&[article(5, "misc.test")]).await;
    let world = world.restart();
    assert_eq!(read(&world.engine, start, 9).0, expected);
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// A feed chooses by `control.*` and `junk`, too: it is told what is filed there, also where the group has gone since.
#[tokio::test]
async fn feeds_see_what_is_filed_apart() {
    let mut config = config(8 << 20);
    config.articles.unknown_groups = UnknownGroups::Junk;
    let world = World::new(config);
    let apart = ["junk", "control", "control.cancel"].map(GroupSpec::new);
    world.engine.add_groups(apart.to_vec()).unwrap();
    world.engine.keep_for_feeds(Some(Sequence(1)));
    let some = [
        article(1, "misc.test,no.such"),
        article(2, "no.such"),
        with(3, "misc.test", "Control: cancel <9@t.example>\r\n"),
        with(
            4,
            "no.such",
            "Control: newgroup no.such\r\nApproved: a@b.example\r\n",
        ),
    ];
    assert_eq!(world.send(&some).await, [Outcome::Accepted; 4]);
    let filed = |world: &World| {
        let (mut seen, mut cursor) = (Vec::new(), world.engine.feed_from(Sequence(1)));
        while cursor.position() < world.engine.watch_commits().borrow().next() {
            let step = cursor.read(|article| {
                let groups = &article.groups;
                seen.push((groups.filed_in.map(str::to_owned), groups.is_strange));
                ControlFlow::Continue(())
            });
            step.unwrap();
        }
        seen
    };
    let apart = |name: &str, is_strange| (Some(name.to_owned()), is_strange);
    let mut expected = vec![
        (None, false),
        apart("junk", true),
        apart("control.cancel", false),
        apart("control", false),
    ];
    assert_eq!(filed(&world), expected);
    world.engine.remove_group("control.cancel").unwrap();
    expected[2] = (None, false);
    assert_eq!(filed(&world), expected);
}

/// A commit whose frame never reached the log is filed at the next start, and whoever gave its articles is told then that they are here:
/// so feeds see them, as they would have.
#[tokio::test]
async fn what_is_found_in_the_store_alone_goes_out_as_well() {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), config(8 << 20));
    world.engine.keep_for_feeds(Some(Sequence(1)));
    world.send(&[article(1, "misc.test")]).await;
    let expires = "Expires: Tue, 14 Nov 2028 22:00:00 +0000\r\n";
    let some = [
        with(2, "misc.test,not.here", "Distribution: world,na\r\n"),
        with(3, "misc.other", expires),
        with(4, "misc.test", "Control: checkgroups\r\n"),
        article(5, "misc.test"),
    ];
    assert_eq!(world.send(&some).await, [Outcome::Accepted; 4]);
    let (expected, _, _) = read(&world.engine, Sequence(1), 9);
    assert_eq!(expected.len(), 5);
    let left = memory.crash_losing_all();
    let log = Path::new("/spool/log");
    let segment = log.join(&left.list(log).unwrap()[0].name);
    let file = left.open(&segment, OpenMode::Read).unwrap();
    let mut octets = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut octets, 0).unwrap();
    let mut frames = (4096..octets.len()).step_by(4096);
    let last = frames.rfind(|at| octets[*at..].starts_with(b"NRFR"));
    let id = octets
        .windows(13)
        .rposition(|octets| octets == b"<5@t.example>");
    let at = last.unwrap().min(id.unwrap() / 4096 * 4096);
    left.corrupt(&segment, at as u64, &vec![0; octets.len() - at])
        .unwrap();
    let world = open_on(Arc::new(left), &world.config, &world.clock);
    assert!(world.by_id("<5@t.example>").await.is_some());
    assert_eq!(read(&world.engine, Sequence(1), 9).0, expected);
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// The log stays for the slowest feed, up to its limit and no longer than it is needed; what a feed missed is said.
#[tokio::test]
async fn the_log_is_kept_for_feeds_as_far_as_it_may_be() {
    for (keep_octets, is_kept) in [(64 << 20, true), (1 << 20, false)] {
        let mut config = config(16 << 20);
        config.sequencer.log_keep_octets = keep_octets;
        config.sequencer.checkpoint_log_octets = 1 << 20;
        let world = World::new(config);
        let start = world.engine.watch_commits().borrow().next();
        world.engine.keep_for_feeds(Some(start));
        for from in (0..12_000).step_by(1000) {
            let some: Vec<_> = (from..from + 1000)
                .map(|n| article(n, "misc.test"))
                .collect();
            world.send(&some).await;
        }
        // What is too much by the first checkpoint goes with the second.
        for n in [12_000, 12_001] {
            world.send(&[article(n, "misc.test")]).await;
            world.seal();
        }
        world.wait_until("what is too much to go", |world| {
            world.engine.status().log.oldest >= world.engine.feeds_lose_before().0
        });
        let (seen, missed, end) = read(&world.engine, start, 100_000);
        let first = format!("<{}@t.example> ", 12_002 - seen.len());
        assert!(seen.first().is_some_and(|line| line.starts_with(&first)));
        match missed.as_slice() {
            [] => assert!(is_kept && seen.len() == 12_002, "{} seen", seen.len()),
            [FeedRead::Missed { from, before, .. }] => {
                assert!(!is_kept && *from == start && before > from, "{missed:?}");
                assert!(seen.len() < 12_000);
            }
            _ => panic!("{missed:?}"),
        }
        world.engine.keep_for_feeds(Some(end));
        world.send(&[article(20_000, "misc.test")]).await;
        world.seal();
        world.wait_until("the log before to go", |world| {
            world.engine.status().log.segments <= 2
        });
    }
}

/// A command that changed a spool without its server dropped at its first checkpoint what feeds had not come to.
#[tokio::test]
async fn the_log_is_held_for_feeds_that_are_not_here() {
    for is_held in [false, true] {
        let mut config = config(16 << 20);
        config.sequencer.log_keep_octets = 1 << 20;
        let world = World::new(config);
        let start = world.engine.watch_commits().borrow().next();
        world.engine.keep_for_feeds(Some(start));
        for from in (0..12_000).step_by(1000) {
            let some: Vec<_> = (from..from + 1000)
                .map(|n| article(n, "misc.test"))
                .collect();
            world.send(&some).await;
        }
        world.engine.keep_for_feeds(None);
        if is_held {
            world.engine.hold_log(start);
        }
        // It goes out by nobody.
        world.send(&[article(12_000, "misc.test")]).await;
        world.seal();
        if !is_held {
            world.wait_until("what is too much to go", |world| {
                world.engine.status().log.oldest > start.0
            });
        }
        let (seen, missed, _) = read(&world.engine, start, 100_000);
        assert_eq!(missed.is_empty(), is_held);
        assert_eq!(seen.len() == 12_000, is_held, "{} seen", seen.len());
    }
}
