//! Trouble from outside: a clock that jumped unseen, an old log put back, servers without durability that fall; and many
//! small groups.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use newsreel_engine::{Durability, EngineConfig, GroupSpec};
use newsreel_host::{Disk, MemoryDisk, OpenMode, WallTime};
use newsreel_service::Outcome;

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

fn all(outcomes: &[Outcome], wanted: Outcome) -> bool {
    outcomes.iter().all(|outcome| *outcome == wanted)
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
