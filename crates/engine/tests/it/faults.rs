//! Failing disks: EIO at every sync, rot in the log, two peers and a commit that fails, and what must not hang.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use newsreel_engine::{Engine, EngineConfig, GroupSpec};
use newsreel_host::disk::{Effect, Fault, FaultyDisk};
use newsreel_host::{Clock, Disk, FakeClock, MemoryDisk, Op, OpenMode};
use newsreel_service::{Connection, ConnectionId, Outcome};

use crate::files::files_config;
use crate::segments::segments;
use crate::world::{NOW, World, article, config, open_on};

const GROUPS: [&str; 3] = ["misc.test", "misc.other", "misc.test,misc.other"];

fn batch(from: usize, len: usize) -> Vec<(String, Vec<u8>)> {
    (from..from + len)
        .map(|at| article(at, GROUPS[at % 3]))
        .collect()
}

/// What each number showed, by group.
#[derive(Default, Clone)]
struct Seen(BTreeMap<(String, String), String>);

impl Seen {
    async fn look(&mut self, world: &World, what: &str) {
        for group in ["misc.test", "misc.other"] {
            for line in world.lines(group).await {
                let (number, rest) = line.split_once('\t').unwrap();
                let key = (group.to_owned(), number.to_owned());
                let before = self.0.insert(key, rest.to_owned());
                assert!(
                    before.as_ref().is_none_or(|before| before == rest),
                    "{what}: {group}:{number} shows another article, {rest} for {before:?}"
                );
            }
        }
    }
}

/// Feeds, counting as acknowledged what was; a server that cannot take articles may put them off, and no more.
async fn feed(world: &World, rounds: std::ops::Range<usize>, acknowledged: &mut Vec<String>) {
    for round in rounds {
        let articles = batch(round * 100, 10);
        let outcomes = world.send(&articles).await;
        for ((id, _), outcome) in articles.into_iter().zip(outcomes) {
            match outcome {
                Outcome::Accepted => acknowledged.push(id),
                Outcome::Failed | Outcome::Deferred(_) => {}
                other => panic!("{id}: {other:?} for a failure of ours"),
            }
        }
    }
}

async fn assert_sound(world: &World, acknowledged: &[String], what: &str) {
    for id in acknowledged {
        assert!(world.by_id(id).await.is_some(), "{what}: {id} is lost");
    }
    assert_eq!(world.problems(), Vec::<String>::new(), "{what}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eio_at_every_sync_then_a_restart_loses_nothing_and_reuses_no_number() {
    fail_at_every_sync(config(4 << 20)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eio_at_every_sync_of_segments_loses_nothing() {
    fail_at_every_sync(segments(|_| {})).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eio_at_every_sync_of_files_loses_nothing() {
    for method in ["tradspool", "timehash", "md5spool"] {
        fail_at_every_sync(files_config(method, |_| {})).await;
    }
}

async fn fail_at_every_sync(mut config: EngineConfig) {
    config.sequencer.checkpoint_log_octets = 10_000;
    for op in [Op::Sync, Op::SyncDir] {
        let mut nth = 1;
        loop {
            let memory = MemoryDisk::new();
            let faulty = FaultyDisk::new(Arc::new(memory.clone()));
            let world = World::on(Arc::new(faulty.clone()), config.clone());
            let before = faulty.counts().of(op);
            faulty.add(Fault::new(op, "", Effect::Medium).nth(nth));
            let what = format!("{op} {nth}");
            let (mut acknowledged, mut seen) = (Vec::new(), Seen::default());
            feed(&world, 0..3, &mut acknowledged).await;
            seen.look(&world, &what).await;
            feed(&world, 3..6, &mut acknowledged).await;
            seen.look(&world, &what).await;
            let is_struck = || faulty.counts().of(op) - before >= nth;
            // One more than the feeds had made; where none can be asked for the fault has struck.
            let made = world.engine.status().counters.checkpoints;
            let _ = world.engine.checkpoint();
            world.wait_until("a checkpoint, or the fault", |world| {
                is_struck() || world.engine.status().counters.checkpoints > made
            });
            let struck = is_struck();
            let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
            // A power cut, worst and middling, and a plain restart on what memory shows.
            for left in [memory.crash_losing_all(), memory.crash(nth)] {
                let after = open_on(Arc::new(left), &config, &clock);
                seen.clone()
                    .look(&after, &format!("{what}, after a power cut"))
                    .await;
                assert_sound(&after, &acknowledged, &what).await;
            }
            drop(world);
            let world = open_on(Arc::new(memory), &config, &clock);
            seen.look(&world, &what).await;
            feed(&world, 6..8, &mut acknowledged).await;
            seen.look(&world, &what).await;
            assert_sound(&world, &acknowledged, &what).await;
            if !struck {
                break;
            }
            nth += 1;
        }
        assert!(nth > 1, "{op} never failed");
    }
}

/// The first commit of a spool has its hash key: without it nothing could ever be opened again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_commit_that_fails_is_said_again() {
    let mut opened = 0;
    for nth in 1..12 {
        let memory = MemoryDisk::new();
        let faulty = FaultyDisk::new(Arc::new(memory.clone()));
        faulty.add(Fault::new(Op::Sync, "/log/", Effect::Medium).nth(nth));
        let (config, clock) = (config(4 << 20), Arc::new(FakeClock::new(NOW)));
        let disk: Arc<dyn Disk> = Arc::new(faulty);
        let own = Arc::clone(&clock) as Arc<dyn Clock>;
        let Ok(engine) = Engine::open(config.clone(), disk, own, &mut |_, _, _| {}) else {
            continue;
        };
        let groups = ["misc.test", "misc.other"].map(GroupSpec::new).to_vec();
        let mut made = engine.add_groups(groups.clone());
        for _ in 0..100 {
            if made.is_ok() {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
            made = engine.add_groups(groups.clone());
        }
        made.unwrap();
        let after = open_on(Arc::new(memory.crash_losing_all()), &config, &clock);
        assert_eq!(after.engine.groups().len(), 2, "sync {nth}");
        assert_eq!(after.send(&batch(0, 3)).await, [Outcome::Accepted; 3]);
        opened += 1;
    }
    assert!(opened > 3);
}

/// 439 means "forget it": nobody may be told so of an article that no commit has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_peers_one_id_and_a_commit_that_fails() {
    let mut failed = 0;
    for round in 0..20u64 {
        let faulty = FaultyDisk::new(Arc::new(MemoryDisk::new()));
        let world = World::on(Arc::new(faulty.clone()), config(4 << 20));
        // The first commit takes its time, so that the second copy comes while it is under way; then it fails.
        let slow = Effect::Slow(Duration::from_millis(5));
        faulty.add(Fault::new(Op::Write, "/log/", slow).forever());
        faulty.add(Fault::new(Op::Sync, "/log/", Effect::Medium).nth(1 + round % 2));
        let other = Arc::new(Connection::new(ConnectionId(2), None, None));
        let one = [article(1, "misc.test")];
        let second = async {
            tokio::time::sleep(Duration::from_millis(round % 5)).await;
            world.send_by(&other, &one).await[0]
        };
        let (first, second) = tokio::join!(async { world.send(&one).await[0] }, second);
        let both = [first, second];
        let what = format!("round {round}: {both:?}");
        let is_ours = |o: &Outcome| {
            matches!(
                o,
                Outcome::Accepted | Outcome::Duplicate | Outcome::Failed | Outcome::Deferred(_)
            )
        };
        assert!(both.iter().all(is_ours), "{what}");
        assert!(
            !both.contains(&Outcome::Duplicate) || both.contains(&Outcome::Accepted),
            "{what}"
        );
        failed += u32::from(!both.contains(&Outcome::Accepted));
        faulty.clear();
        world.wait_until("the log", |world| world.engine.status().paused.is_none());
        let again = world.send(&one).await[0];
        let is_here = both.contains(&Outcome::Accepted);
        let wanted = if is_here {
            Outcome::Duplicate
        } else {
            Outcome::Accepted
        };
        assert_eq!(again, wanted, "{what}");
        assert_eq!(world.lines("misc.test").await.len(), 1, "{what}");
    }
    assert!(failed > 0, "no commit failed");
}

/// Where some octets lie in the log.
fn find_in_log(disk: &dyn Disk, what: &[u8]) -> (PathBuf, u64) {
    let log = Path::new("/spool/log");
    for entry in disk.list(log).unwrap() {
        let path = log.join(&entry.name);
        let file = disk.open(&path, OpenMode::Read).unwrap();
        let mut octets = vec![0; entry.len as usize];
        file.read_exact_at(&mut octets, 0).unwrap();
        if let Some(at) = octets.windows(what.len()).position(|octets| octets == what) {
            return (path, at as u64);
        }
    }
    panic!("the log does not have {:?}", String::from_utf8_lossy(what));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rot_in_a_log_batch_that_is_not_the_last_costs_nothing() {
    let memory = MemoryDisk::new();
    let world = World::on(Arc::new(memory.clone()), config(4 << 20));
    world.send(&batch(0, 10)).await;
    // The only articles of this group that the log has, in a batch of their own.
    let rotten: Vec<_> = (100..105).map(|n| article(n, "misc.other")).collect();
    let lone: Vec<_> = (200..205).map(|n| article(n, "misc.test")).collect();
    world.send(&rotten).await;
    world.send(&lone).await;
    world.send(&lone[..1]).await;
    let high = world.high("misc.other");
    let (before, others) = (
        world.lines("misc.test").await,
        world.lines("misc.other").await,
    );
    let left = memory.crash_losing_all();
    let (path, at) = find_in_log(&left, b"<102@t.example>");
    left.flip_bit(&path, at + 2, 3).unwrap();
    let world = open_on(Arc::new(left), &world.config, &world.clock);
    // The log was not cut there: what came behind is here.  What was in the batch lies in the buffers.
    assert_eq!(world.lines("misc.test").await, before);
    assert_eq!(world.lines("misc.other").await, others);
    assert!(world.by_id("<204@t.example>").await.is_some());
    assert!(world.by_id("<102@t.example>").await.is_some());
    let problems = world.problems();
    assert!(
        problems.iter().any(|problem| problem.contains("are lost")),
        "{problems:?}"
    );
    // Nothing is known of what else was in it: no number that readers saw is given again.
    assert_eq!(world.send(&rotten).await, [Outcome::Duplicate; 5]);
    let outcomes = world.send(&[article(300, "misc.other")]).await;
    assert_eq!(outcomes, [Outcome::Accepted]);
    let lines = world.lines("misc.other").await;
    let number = |line: &str| line.split('\t').next().unwrap().parse::<u64>().unwrap();
    assert!(number(lines.last().unwrap()) > high, "{lines:?}");
    world.seal();
    let world = world.restart();
    assert_eq!(world.lines("misc.other").await, lines);
    assert_eq!(world.send(&rotten).await, [Outcome::Duplicate; 5]);
}

/// A buffer fails while an article waits for room to be reserved in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_article_that_waits_for_room_in_a_buffer_that_fails_is_answered() {
    for nth in 1..30 {
        let faulty = FaultyDisk::new(Arc::new(MemoryDisk::new()));
        let world = World::on(Arc::new(faulty.clone()), config(1 << 20));
        faulty.add(Fault::new(Op::Write, "buffers/C0", Effect::Medium).nth(nth));
        faulty.add(Fault::new(Op::Write, "buffers/C1", Effect::Medium).nth(nth + 3));
        let mut taken = 0;
        for round in 0..12 {
            let articles: Vec<_> = (0..40)
                .map(|at| {
                    let (id, mut text) = article(round * 40 + at, "misc.test");
                    let end = text.split_off(text.len() - 3);
                    text.extend_from_slice("x".repeat(9000).as_bytes());
                    text.extend_from_slice(b"\r\n");
                    text.extend_from_slice(&end);
                    (id, text)
                })
                .collect();
            let sent = tokio::time::timeout(Duration::from_secs(20), world.send(&articles));
            let outcomes = sent
                .await
                .unwrap_or_else(|_| panic!("nth {nth}: no answer"));
            taken += outcomes
                .iter()
                .filter(|outcome| **outcome == Outcome::Accepted)
                .count();
        }
        assert!(taken > 0 || nth < 3, "nth {nth}");
    }
}

/// Whoever hands over an article while the server stops is told to keep it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[expect(
    clippy::disallowed_methods,
    reason = "a test's runtime ends all its tasks"
)]
async fn nobody_waits_for_ever_for_a_server_that_stops() {
    for round in 0..30u64 {
        let world = Arc::new(World::new(config(4 << 20)));
        let feeders: Vec<_> = (0..3u64)
            .map(|peer| {
                let world = Arc::clone(&world);
                tokio::spawn(async move {
                    let connection = Arc::new(Connection::new(ConnectionId(10 + peer), None, None));
                    for at in 0.. {
                        let n = (peer as usize + 1) * 100_000 + at;
                        let one = [article(n, "misc.test")];
                        match world.send_by(&connection, &one).await[0] {
                            Outcome::Accepted => {}
                            Outcome::Deferred(_) => break,
                            other => panic!("{other:?}"),
                        }
                    }
                })
            })
            .collect();
        tokio::time::sleep(Duration::from_micros(round * 300)).await;
        let stopping = Arc::clone(&world);
        let stopped = tokio::task::spawn_blocking(move || stopping.engine.shutdown());
        for feeder in feeders {
            let ended = tokio::time::timeout(Duration::from_secs(20), feeder).await;
            ended.expect("no answer").unwrap();
        }
        stopped.await.unwrap().unwrap();
        assert!(world.engine.checkpoint().is_err(), "it has stopped");
    }
}
