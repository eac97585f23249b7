//! A full disk: accepting stops in time, readers and administrators go on, and room lets it go on by itself.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use newsreel_engine::GroupSpec;
use newsreel_host::disk::{Effect, Fault, FaultyDisk};
use newsreel_host::{Disk, MemoryDisk, Op, OpenMode};
use newsreel_service::{Connection, ConnectionId, Defer, NewsService, Offer, Outcome};
use newsreel_wire::MessageId;

use crate::world::{World, article, config, open_on};

fn batch(from: usize, len: usize) -> Vec<(String, Vec<u8>)> {
    (from..from + len)
        .map(|at| article(at, "misc.test"))
        .collect()
}

fn all(outcomes: &[Outcome], wanted: Outcome) -> bool {
    outcomes.iter().all(|outcome| *outcome == wanted)
}

/// What peers are told while there is no room: never to forget an article.
async fn assert_puts_off(world: &World) {
    let outcomes = world.send(&batch(900_000, 3)).await;
    assert!(
        all(&outcomes, Outcome::Deferred(Defer::Full)),
        "{outcomes:?}"
    );
    let peer = Arc::new(Connection::new(ConnectionId(9), None, None));
    let id = MessageId::parse(b"<900001@t.example>").unwrap();
    let offer = world.service.offer(id, &peer).await;
    assert_eq!(offer, Offer::Later(Defer::Full));
}

fn is_paused(world: &World) -> bool {
    world.engine.status().paused.is_some()
}

/// What is told at a start agrees with what is taken behind it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_room_that_is_said_to_be_needed_is_enough() {
    let open = |octets: u64| {
        let memory = MemoryDisk::with_capacity(octets);
        World::on(Arc::new(memory), config(4 << 20))
    };
    let room = open(300 << 20).engine.disk_room().unwrap();
    let used = (300 << 20) - room.free - room.log;
    let enough = open(used + room.needed() + (4 << 20));
    let there = enough.engine.disk_room().unwrap();
    assert!(there.free >= there.needed(), "{there:?}");
    assert!(all(&enough.send(&batch(0, 5)).await, Outcome::Accepted));
    let small = open(used + room.needed() - (8 << 20));
    let there = small.engine.disk_room().unwrap();
    assert!(there.free < there.needed(), "{there:?}");
    small.wait_until("the stop", is_paused);
    assert_puts_off(&small).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_stops_accepting_at_a_mark_and_room_lets_it_go_on() {
    let memory = MemoryDisk::with_capacity(300 << 20);
    let world = World::on(Arc::new(memory.clone()), config(4 << 20));
    assert!(all(&world.send(&batch(0, 50)).await, Outcome::Accepted));
    let ballast = Path::new("/spool/ballast");
    let file = memory.open(ballast, OpenMode::CreateNew).unwrap();
    let free = memory.free_bytes(ballast).unwrap();
    file.reserve(0, free - (20 << 20)).unwrap();
    world.wait_s(1);
    world.wait_until("the stop", is_paused);
    assert_puts_off(&world).await;
    assert!(
        world.by_id("<7@t.example>").await.is_some(),
        "readers go on"
    );
    let groups = vec![GroupSpec::new("misc.more")];
    world.engine.add_groups(groups).unwrap();
    world.seal();
    assert_eq!(world.engine.status().counters.full, 1);
    memory.remove(ballast).unwrap();
    drop(file);
    memory.sync_dir(Path::new("/spool")).unwrap();
    world.wait_s(1);
    world.wait_until("room", |world| !is_paused(world));
    assert!(all(&world.send(&batch(100, 50)).await, Outcome::Accepted));
    assert_eq!(world.problems(), Vec::<String>::new());
    let world = world.restart();
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// The octets that a text ends with, such as `80.5 MiB`.
fn octets(text: &str) -> u64 {
    let mut words = text.rsplit(' ');
    let (unit, figure) = (words.next().unwrap(), words.next().unwrap());
    assert_eq!(unit, "MiB", "{text}");
    figure.parse::<u64>().unwrap() << 20
}

/// A feed took the disk's last octets between two looks, a second apart; then no checkpoint had room, for good.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_feed_does_not_run_over_the_mark_and_a_checkpoint_has_room() {
    let memory = MemoryDisk::with_capacity(120 << 20);
    let world = World::on(Arc::new(memory.clone()), config(4 << 20));
    let long = |at: usize| {
        let (id, text) = article(at, "misc.test");
        let text = String::from_utf8(text).unwrap();
        let subject = format!("Subject: {}", "words of a long subject ".repeat(60));
        (id, text.replace("Subject:", &subject).into_bytes())
    };
    // The clock stands still, so that no time passes between looks.
    let (mut sent, mut was_full) = (0, false);
    let why = loop {
        match world.engine.status().paused {
            Some(why) if why.contains(" left, ") => break why,
            // Checkpoints cannot keep up, on a busy machine.
            Some(_) => {
                was_full = true;
                std::thread::sleep(Duration::from_millis(1));
            }
            None => was_full = false,
        }
        let articles: Vec<_> = (sent..sent + 500).map(long).collect();
        for outcome in world.send(&articles).await {
            assert!(
                matches!(outcome, Outcome::Accepted | Outcome::Deferred(Defer::Full)),
                "{outcome:?}"
            );
        }
        sent += 500;
        assert!(sent < 200_000, "{:?}", world.engine.disk_room());
    };
    // As the look had it: the checkpoint that it called for uses the disk already.
    let (free, kept) = why.split_once(" left, ").unwrap();
    let (free, kept) = (octets(free), octets(kept.split(" are ").next().unwrap()));
    // Who takes nothing already, for that, wants a quarter more before it takes anything: the feed ended before.
    let kept = if was_full { kept / 5 * 4 } else { kept };
    // What one look may miss, and the segment that is made ahead; the figures are whole MiB, rounded.
    let missed = (8 << 20) + (2 << 20) + (1 << 20);
    assert!(free + missed >= kept, "{why} after {sent}");
    world.seal();
    assert_eq!(world.engine.status().counters.disk_errors, 0);
    assert_eq!(world.problems(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_without_room_stops_accepting_before_a_commit_fails() {
    let memory = MemoryDisk::new();
    let faulty = FaultyDisk::new(Arc::new(memory.clone()));
    let world = World::on(Arc::new(faulty.clone()), config(8 << 20));
    // The next segment is made in the background: the trouble is to begin with the one behind it.
    world.wait_until("the second segment", |_| {
        faulty.counts().of(Op::ZeroFill) >= 2
    });
    faulty.add(Fault::new(Op::ZeroFill, "/log/", Effect::Full).forever());
    let mut acknowledged = Vec::new();
    let mut sent = 0;
    while !is_paused(&world) {
        let articles = batch(sent, 200);
        sent += 200;
        let outcomes = world.send(&articles).await;
        for ((id, _), outcome) in articles.into_iter().zip(outcomes) {
            match outcome {
                Outcome::Accepted => acknowledged.push(id),
                Outcome::Deferred(Defer::Full) => {}
                other => panic!("{other:?} after {} articles", acknowledged.len()),
            }
        }
    }
    assert!(acknowledged.len() > 400);
    assert_puts_off(&world).await;
    let why = world.engine.status().paused.unwrap();
    assert!(why.contains("no space left"), "{why}");
    let groups = vec![GroupSpec::new("misc.more")];
    world.engine.add_groups(groups).unwrap();
    assert_eq!(world.engine.status().counters.disk_errors, 0);
    faulty.clear();
    world.wait_until("room", |world| !is_paused(world));
    assert!(all(&world.send(&batch(sent, 50)).await, Outcome::Accepted));
    let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
    let left = memory.crash_losing_all();
    drop(world);
    let world = open_on(Arc::new(left), &config, &clock);
    for id in &acknowledged {
        assert!(world.by_id(id).await.is_some(), "{id}");
    }
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// Control may use up the last octet of the log; then it fails, says so, and has changed nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frame_without_room_is_given_up_and_what_it_held_can_be_done_later() {
    let memory = MemoryDisk::new();
    let faulty = FaultyDisk::new(Arc::new(memory.clone()));
    let world = World::on(Arc::new(faulty.clone()), config(4 << 20));
    assert!(all(&world.send(&batch(0, 20)).await, Outcome::Accepted));
    faulty.add(Fault::new(Op::ZeroFill, "/log/", Effect::Full).forever());
    // Without checkpoints no old segment is used again.
    faulty.add(Fault::new(Op::Write, "/index/", Effect::Full).forever());
    let groups = |round: usize| -> Vec<GroupSpec> {
        (0..2000)
            .map(|at| GroupSpec::new(&format!("alt.g{round}.n{at}")))
            .collect()
    };
    let mut round = 0;
    let error = loop {
        match world.engine.add_groups(groups(round)) {
            Ok(()) => round += 1,
            Err(error) => break error.to_string(),
        }
        assert!(round < 100, "the log has no end");
    };
    assert!(
        error.contains("no space left") && error.contains("nothing was changed"),
        "{error}"
    );
    assert!(is_paused(&world));
    let removed = world.engine.remove_group("misc.other").unwrap_err();
    assert!(
        removed.to_string().contains("nothing was changed"),
        "{removed}"
    );
    faulty.clear();
    // The log's next try is due so long after the last one failed, and that may end just now.
    world.wait_until("room", |world| {
        world.wait_s(1);
        !is_paused(world)
    });
    world.engine.add_groups(groups(round)).unwrap();
    let both = [article(700, "misc.test,misc.other")];
    assert_eq!(world.send(&both).await, [Outcome::Accepted]);
    assert_eq!(world.engine.groups().len(), 2 + 2000 * (round + 1));
    assert_eq!(world.problems(), Vec::<String>::new());
    let world = world.restart();
    assert_eq!(world.high("misc.other"), 1);
    assert_eq!(world.problems(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checkpoints_that_fail_stop_accepting_before_memory_fills_and_are_made_later() {
    let memory = MemoryDisk::new();
    let faulty = FaultyDisk::new(Arc::new(memory.clone()));
    let mut config = config(8 << 20);
    config.index.history_rows_max = 1 << 10;
    let world = World::on(Arc::new(faulty.clone()), config);
    faulty.add(Fault::new(Op::Write, "/index/overview", Effect::Full).forever());
    let mut sent = 0;
    while !is_paused(&world) {
        let outcomes = world.send(&batch(sent, 100)).await;
        sent += 100;
        let fits = |o: &Outcome| matches!(o, Outcome::Accepted | Outcome::Deferred(Defer::Full));
        assert!(outcomes.iter().all(fits), "{outcomes:?}");
        world.wait_s(1);
        assert!(sent < 50_000, "memory has no end");
    }
    assert!(world.engine.status().history.recent < 6 << 10);
    assert!(world.by_id("<7@t.example>").await.is_some());
    faulty.clear();
    world.wait_s(20);
    world.wait_until("room", |world| {
        world.wait_s(1);
        !is_paused(world)
    });
    assert!(all(
        &world.send(&batch(90_000, 50)).await,
        Outcome::Accepted
    ));
    world.seal();
    assert_eq!(world.problems(), Vec::<String>::new());
}

/// The fault is over before the next try is due, and then the server is stopped: it tries before it goes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_checkpoint_that_failed_is_made_at_the_stop() {
    let faulty = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    let world = World::on(Arc::new(faulty.clone()), config(8 << 20));
    assert!(all(&world.send(&batch(0, 50)).await, Outcome::Accepted));
    faulty.add(Fault::new(Op::Write, "/index/overview", Effect::Full).forever());
    world.engine.checkpoint().unwrap();
    // Long enough for it to fail; if not, it is made at once, and this shows nothing.
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(world.engine.status().counters.checkpoints, 0);
    faulty.clear();
    let upto = world.engine.status().sequence;
    let world = world.restart();
    assert!(world.engine.status().checkpoint >= upto);
}
