//! Trouble from outside: a full disk, a clock that jumps, an old log put back, and servers without durability that fall.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use newsreel_engine::{Durability, EngineConfig, GroupSpec};
use newsreel_host::disk::{Effect, Fault, FaultyDisk};
use newsreel_host::{Disk, MemoryDisk, Op, OpenMode, WallTime};
use newsreel_service::{Outcome, Reject};

use crate::world::{NOW, World, article, config, open_on};

const DAY: u64 = 86_400;

fn articles(from: usize, len: usize) -> Vec<(String, Vec<u8>)> {
    (from..from + len)
        .map(|at| article(at, "misc.test"))
        .collect()
}

fn numbers(lines: &[String]) -> Vec<u64> {
    let number = |line: &String| line.split('\t').next().unwrap().parse().unwrap();
    lines.iter().map(number).collect()
}

/// Copies a directory of the disk elsewhere.
fn copy(disk: &dyn Disk, from: &str, to: &str) {
    disk.create_dir_all(Path::new(to)).unwrap();
    for entry in disk.list(Path::new(to)).unwrap() {
        disk.remove(&Path::new(to).join(entry.name)).unwrap();
    }
    for entry in disk.list(Path::new(from)).unwrap() {
        let file = disk
            .open(&Path::new(from).join(&entry.name), OpenMode::Read)
            .unwrap();
        let mut octets = vec![0; file.len().unwrap() as usize];
        file.read_exact_at(&mut octets, 0).unwrap();
        let copy = disk
            .open(&Path::new(to).join(&entry.name), OpenMode::CreateNew)
            .unwrap();
        copy.write_at(&octets, 0).unwrap();
        copy.sync_all().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_log_puts_articles_off_and_takes_them_when_there_is_room() {
    let faulty = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    let world = World::on(Arc::new(faulty.clone()), config(4 << 20));
    assert!(all(&world.send(&articles(0, 20)).await, Outcome::Accepted));
    let before = world.lines("misc.test").await;
    // New segments have no room, and without checkpoints no old one comes free.
    for op in [Op::ZeroFill, Op::Reserve, Op::SetLen] {
        faulty.add(Fault::new(op, "/log/", Effect::Full).forever());
    }
    faulty.add(Fault::new(Op::Write, "/index/", Effect::Full).forever());
    let mut taken = Vec::new();
    let mut put_off = 0;
    for round in 1..400 {
        let batch = articles(round * 100, 50);
        let outcomes = world.send(&batch).await;
        for ((id, _), outcome) in batch.iter().zip(outcomes) {
            match outcome {
                Outcome::Accepted => taken.push(id.clone()),
                Outcome::Failed | Outcome::Deferred(_) => put_off += 1,
                other => panic!("a peer would drop its copy: {other:?}"),
            }
        }
        if put_off > 200 {
            break;
        }
    }
    assert!(put_off > 200, "it never ran out of room");
    assert!(world.engine.status().paused.is_some());
    let late = vec![GroupSpec::new("misc.late")];
    world
        .engine
        .add_groups(late)
        .expect("room is kept for control");
    assert_eq!(world.lines("misc.test").await[..20], before[..]);
    for id in &taken {
        assert!(world.by_id(id).await.is_some(), "{id} was acknowledged");
    }
    faulty.clear();
    world.clock.advance(Duration::from_secs(10));
    world.wait_until("room", |world| world.engine.status().paused.is_none());
    assert!(all(
        &world.send(&articles(90_000, 20)).await,
        Outcome::Accepted
    ));
    let world = world.restart();
    assert_eq!(world.problems(), Vec::<String>::new());
    for id in &taken {
        assert!(world.by_id(id).await.is_some(), "{id} was acknowledged");
    }
}

fn all(outcomes: &[Outcome], wanted: Outcome) -> bool {
    outcomes.iter().all(|outcome| *outcome == wanted)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_ten_years_ahead_and_back_refuses_and_forgets_nothing() {
    let world = World::new(config(4 << 20));
    let set = |secs| world.clock.set(WallTime { secs, nanos: 0 });
    assert!(all(&world.send(&articles(0, 5)).await, Outcome::Accepted));
    set(NOW + 3650 * DAY);
    let mut ahead = articles(5, 5);
    assert!(
        all(&world.send(&ahead).await, Outcome::Accepted),
        "nobody knows how old they are"
    );
    world.wait_until("the alarm", |world| world.engine.status().clock.is_some());
    world.seal();
    assert!(all(&world.send(&articles(0, 5)).await, Outcome::Duplicate));
    set(NOW + 60);
    world.wait_until("the end of the alarm", |world| {
        world.engine.status().clock.is_none()
    });
    assert!(all(&world.send(&ahead).await, Outcome::Duplicate));
    ahead.clear();
    // Confirmed, the new time counts.
    set(NOW + 3650 * DAY);
    world.wait_until("the alarm", |world| world.engine.status().clock.is_some());
    world.engine.confirm_clock().unwrap();
    assert_eq!(world.engine.status().clock, None);
    let late = world.send(&articles(20, 2)).await;
    assert!(all(&late, Outcome::Rejected(Reject::TooOld)), "{late:?}");
    let lines = world.lines("misc.test").await;
    assert_eq!(numbers(&lines), (1..=10).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_clock_that_jumped_while_the_server_was_down_is_not_trusted() {
    let world = World::new(config(4 << 20));
    world.send(&articles(0, 5)).await;
    let clock = Arc::clone(&world.clock);
    let (disk, config) = (Arc::clone(&world.disk), world.config.clone());
    drop(world);
    clock.set(WallTime {
        secs: NOW + 3650 * DAY,
        nanos: 0,
    });
    let world = open_on(disk, &config, &clock);
    assert!(world.engine.status().clock.is_some());
    assert!(all(&world.send(&articles(5, 1)).await, Outcome::Accepted));
}

fn volatile() -> EngineConfig {
    let mut config = config(4 << 20);
    config.sequencer.durability = Durability::None;
    config
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_durability_no_number_is_used_twice() {
    for seed in 0..12 {
        let mut memory = MemoryDisk::new();
        let mut world = World::on(Arc::new(memory.clone()), volatile());
        let mut seen = BTreeSet::new();
        for round in 0..4 {
            assert!(all(
                &world.send(&articles(round * 50, 50)).await,
                Outcome::Accepted
            ));
            let lines = world.lines("misc.test").await;
            let highest = numbers(&lines).into_iter().max().unwrap();
            for line in lines {
                seen.insert(line);
            }
            if round == 1 {
                world.seal();
            }
            let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
            let after = memory.crash(seed * 4 + round as u64);
            drop(world);
            world = open_on(Arc::new(after.clone()), &config, &clock);
            assert_eq!(world.problems(), Vec::<String>::new(), "seed {seed}");
            world.send(&articles(1000 + round, 1)).await;
            let lines = world.lines("misc.test").await;
            let newest = lines.last().unwrap().clone();
            assert!(
                seen.contains(&newest) || numbers(&[newest]).first().unwrap() > &highest,
                "seed {seed}: a number was given twice"
            );
            memory = after;
        }
        // One number never shows two articles.
        let mut texts = std::collections::BTreeMap::new();
        for line in seen {
            let (number, text) = line.split_once('\t').unwrap();
            let text = text.to_owned();
            let other = texts.insert(number.to_owned(), text.clone());
            assert!(
                other.is_none_or(|other| other == text),
                "seed {seed}, {number}"
            );
        }
    }
}

/// What was written after the copy of the log was made goes on being read, as far as the views have it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_log_beside_newer_views_and_buffers_reuses_no_number_and_mixes_nothing() {
    const EACH: usize = 5000;
    let world = World::new(config(8 << 20));
    assert!(all(
        &world.send(&articles(0, EACH)).await,
        Outcome::Accepted
    ));
    let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
    let disk = Arc::clone(&world.disk);
    drop(world);
    copy(disk.as_ref(), "/spool/log", "/old");
    let world = open_on(Arc::clone(&disk), &config, &clock);
    assert!(all(
        &world.send(&articles(EACH, EACH)).await,
        Outcome::Accepted
    ));
    let lines = world.lines("misc.test").await;
    drop(world);
    copy(disk.as_ref(), "/old", "/spool/log");
    let world = open_on(Arc::clone(&disk), &config, &clock);
    // The last checkpoint, made when it stopped, has everything.
    assert!(world.lines("misc.test").await == lines);
    assert!(all(
        &world.send(&articles(2 * EACH, 100)).await,
        Outcome::Accepted
    ));
    let after = world.lines("misc.test").await;
    let (old, new) = after.split_at(after.len() - 100);
    assert!(
        numbers(new)[0] > 2 * EACH as u64 + 1000,
        "a number may be given twice"
    );
    // The new ones begin another round of the buffer, at the cost of the oldest.
    assert!(old.len() > EACH / 2, "{} left", old.len());
    let known: BTreeSet<&String> = lines.iter().collect();
    assert!(old.iter().all(|line| known.contains(line)));
    for line in after.iter().step_by(97) {
        let n = line.split('\t').nth(1).unwrap();
        let n = n.strip_prefix("number ").unwrap();
        let text = world.by_id(&format!("<{n}@t.example>")).await;
        assert!(text.is_some_and(|text| text.contains(&format!("Body of {n}\r\n"))));
    }
    let world = world.restart();
    assert!(world.lines("misc.test").await == after);
    assert_eq!(world.problems(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_small_groups_cost_little_log_and_little_memory() {
    const GROUPS: usize = 5000;
    let mut config = config(16 << 20);
    config.journal.segment_octets = 16 << 20;
    let world = World::new(config);
    let specs = (0..GROUPS).map(|n| GroupSpec::new(&format!("small.g{n}")));
    for specs in specs.collect::<Vec<_>>().chunks(1000) {
        world.engine.add_groups(specs.to_vec()).unwrap();
    }
    for round in 0..3 {
        let batch: Vec<_> = (0..GROUPS)
            .map(|n| article(round * GROUPS + n, &format!("small.g{n}")))
            .collect();
        for part in batch.chunks(500) {
            assert!(all(&world.send(part).await, Outcome::Accepted));
        }
        world.seal();
    }
    let status = world.engine.status();
    let octets = status.overview.memory_octets;
    assert!(
        octets < 200 * GROUPS as u64,
        "{octets} octets, {}",
        status.history.memory_octets
    );
    assert!(status.counters.log_octets < 15_000 * 600);
    let world = world.restart();
    for n in [0, 1234, GROUPS - 1] {
        let lines = world.lines(&format!("small.g{n}")).await;
        assert_eq!(numbers(&lines), [1, 2, 3]);
    }
    assert_eq!(world.problems(), Vec::<String>::new());
}
