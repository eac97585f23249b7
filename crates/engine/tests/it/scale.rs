//! Many small groups are as natural as few large ones: what a hundred thousand of them cost in log, checkpoints and
//! memory of the overview (a server's as a whole: `many_groups` of the program's tests).  A twentieth of them in the
//! daily run, all in CI (`NEWSREEL_TEST_SCALE=full`).

use std::path::Path;
use std::sync::Arc;

use newsreel_engine::{EngineConfig, GroupSpec, Status};
use newsreel_host::disk::FaultyDisk;
use newsreel_host::{FakeClock, RealDisk};
use newsreel_service::Outcome;

use crate::world::{NOW, World, article, config, open_on};

const ROUNDS: usize = 3;

/// One in so many groups gets an article between two checkpoints at the end.
const FEW: usize = 1000;

fn is_full() -> bool {
    std::env::var_os("NEWSREEL_TEST_SCALE").is_some_and(|scale| scale == "full")
}

/// What a spool with its groups and articles cost.
#[derive(Debug, Default)]
struct Cost {
    /// Octets of log that making the groups took.
    groups_log: u64,
    /// Octets of log of each round, and written to `index/` by the checkpoint behind it.
    rounds: Vec<(u64, u64)>,
    /// The same of a round that brings few articles.
    few: (u64, u64),
    /// How it stood at the end.
    status: Option<Status>,
}

fn spool_config(spool: &Path) -> EngineConfig {
    let mut config = EngineConfig {
        spool: spool.to_path_buf(),
        ..config(if is_full() { 256 << 20 } else { 16 << 20 })
    };
    config.journal.segment_octets = 16 << 20;
    // Only what is asked for: no checkpoint by size or time, no compaction.
    config.sequencer.checkpoint_log_octets = 1 << 40;
    config.sequencer.log_keep_octets = 0;
    config.index.tail_bytes_max = 1 << 30;
    config.index.history_rows_max = 1 << 24;
    config.index.runs_max = 1 << 10;
    config.index.dead_percent_max = 90;
    config
}

fn world(disk: &FaultyDisk, spool: &Path) -> World {
    let clock = Arc::new(FakeClock::new(NOW));
    open_on(Arc::new(disk.clone()), &spool_config(spool), &clock)
}

/// So many writes of a checkpoint may lie apart, however many groups: headers that are known at the end only.
const APART_MAX: u64 = 4;

/// One article into each of these groups, and a checkpoint, which is written front to back: what log and checkpoint took.
async fn round(
    world: &World,
    disk: &FaultyDisk,
    first: usize,
    articles: impl Iterator<Item = usize>,
) -> (u64, u64) {
    let log = world.engine.status().counters.log_octets;
    let index = disk.octets_written("/index/");
    let groups: Vec<usize> = articles.collect();
    let mut n = first;
    for part in groups.chunks(2000) {
        let batch: Vec<_> = part
            .iter()
            .map(|group| {
                n += 1;
                article(n, &format!("small.g{group}"))
            })
            .collect();
        let outcomes = world.send(&batch).await;
        assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Accepted));
    }
    let took = world.engine.status().counters.log_octets - log;
    let apart = disk.writes_apart("/index/");
    world.seal();
    let apart = disk.writes_apart("/index/") - apart;
    assert!(apart < APART_MAX, "{apart} writes were not sequential");
    (took, disk.octets_written("/index/") - index)
}

/// `articles` in so many groups, in three rounds with a checkpoint behind each.
async fn fill(spool: &Path, groups: usize, articles: usize) -> Cost {
    let disk = FaultyDisk::new(Arc::new(RealDisk));
    let world = world(&disk, spool);
    let mut cost = Cost::default();
    for first in (0..groups).step_by(1000) {
        let names = (first..groups.min(first + 1000)).map(|n| format!("small.g{n}"));
        let specs = names.map(|name| GroupSpec::new(&name)).collect();
        world.engine.add_groups(specs).unwrap();
    }
    cost.groups_log = world.engine.status().counters.log_octets;
    world.seal();
    for nth in 0..ROUNDS {
        let each = articles / ROUNDS;
        let into = (0..each).map(|at| at % groups);
        cost.rounds
            .push(round(&world, &disk, nth * each, into).await);
    }
    let into = (0..articles / ROUNDS / FEW).map(|at| at * FEW % groups);
    cost.few = round(&world, &disk, articles, into).await;
    cost.status = Some(world.engine.status());
    let world = world.restart();
    for n in [1, groups / 2, groups - 1] {
        let lines = world.lines(&format!("small.g{n}")).await;
        assert!(lines.len() >= ROUNDS, "small.g{n}: {} lines", lines.len());
    }
    if groups > FEW {
        assert_eq!(world.engine.groups().len(), groups);
        assert_eq!(world.lines("small.g1").await.len(), ROUNDS);
        assert_eq!(world.problems(), Vec::<String>::new());
    }
    cost
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_thousand_groups_of_three_articles_cost_little() {
    let groups = if is_full() { 100_000 } else { 5000 };
    let articles = groups * ROUNDS;
    let folder = tempfile::tempdir().unwrap();
    let few = fill(&folder.path().join("few"), 10, articles).await;
    let many = fill(&folder.path().join("many"), groups, articles).await;
    let (few_end, many_end) = (few.status.unwrap(), many.status.unwrap());
    println!(
        "{groups} groups: {} octets of log each, rounds {:?}, then {:?}, overview {} octets",
        many.groups_log / groups as u64,
        many.rounds,
        many.few,
        many_end.overview.memory_octets
    );
    println!(
        "10 groups: rounds {:?}, then {:?}, overview {} octets",
        few.rounds, few.few, few_end.overview.memory_octets
    );
    let each = groups as u64;
    assert!(many.groups_log < 100 * each);
    for ((log, index), (log_of_few, index_of_few)) in many.rounds.iter().zip(&few.rounds) {
        // An article costs the same log wherever it goes, and a group of its own less than a second row.
        assert!(*log < 300 * each && *log * 10 < *log_of_few * 11);
        assert!(*index < 450 * each && *index < *index_of_few * 2);
    }
    // What is there already is not written again.
    assert!(many.rounds[2].1 * 10 < many.rounds[0].1 * 11);
    let articles_at_the_end = (articles / ROUNDS / FEW) as u64;
    assert!(many.few.0 < 4096 + 300 * articles_at_the_end);
    assert!(many.few.1 < (48 << 10) + 1000 * articles_at_the_end);
    // Checkpoints let the log go.
    assert!(many_end.log.segments <= 3, "{:?}", many_end.log);
    assert!(many_end.overview.memory_octets < 200 * each);
}
