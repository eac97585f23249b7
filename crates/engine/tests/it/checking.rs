//! `check` compares everything that is stored, whatever the log still names.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_engine::{ArticleRef, CheckReport, EngineConfig, GroupSpec, Reason, Withdrawal};
use newsreel_host::disk::FaultyDisk;
use newsreel_host::{Disk as _, MemoryDisk};
use newsreel_index::{Liveness, Views};
use newsreel_service::{Outcome, Part};
use newsreel_store::SetConfig;
use newsreel_wire::{BufferId, Position};

use crate::damage::{files, wait_for_repair};
use crate::world::{World, article, config, open_on};

/// Everything is alive.
#[derive(Debug)]
struct Alive;

impl Liveness for Alive {
    fn floor(&self, _: BufferId) -> Position {
        Position(0)
    }

    fn cycle_octets(&self, _: BufferId) -> u64 {
        1 << 20
    }

    fn epoch(&self) -> u64 {
        0
    }
}

/// A log that is retired as soon as the views have it.
fn short_log() -> EngineConfig {
    let mut config = config(4 << 20);
    config.journal.segment_octets = 64 << 10;
    config.sequencer.log_keep_octets = 0;
    config
}

/// A spool whose log has forgotten the first articles: `rounds` of a hundred.
async fn forgetful(memory: &MemoryDisk, rounds: usize) -> World {
    let world = World::on(Arc::new(memory.clone()), short_log());
    for round in 0..rounds {
        let articles: Vec<_> = (0..100)
            .map(|at| article(round * 100 + at, "misc.test,misc.other"))
            .collect();
        let outcomes = world.send(&articles).await;
        assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Accepted));
        world.seal();
    }
    world
}

fn check(world: &World) -> CheckReport {
    world.engine.check(&mut |_, _| {}).unwrap()
}

/// The files of the oldest run of a view: one, or two with the same octets.
fn oldest_files(memory: &MemoryDisk, stem: &str) -> Vec<PathBuf> {
    let index = Path::new("/spool/index");
    let files = memory.list(index).unwrap().into_iter();
    let mut names: Vec<_> = files
        .map(|file| file.name)
        .filter(|name| name.starts_with(stem))
        .collect();
    names.sort();
    let (oldest, _) = names[0].split_once('.').unwrap();
    let oldest = names.iter().filter(|name| name.starts_with(oldest));
    oldest.map(|name| index.join(name)).collect()
}

/// Takes the oldest file of these views out and puts sound ones with no rows in its place; how many rows it had.
pub(crate) fn lose(memory: &MemoryDisk, config: &EngineConfig, spool_id: &str, stem: &str) -> u64 {
    for path in oldest_files(memory, stem) {
        memory.remove(&path).unwrap();
    }
    let octet = |at: usize| u8::from_str_radix(&spool_id[2 * at..2 * at + 2], 16).unwrap();
    let (views, _) = Views::open(
        Arc::new(memory.clone()),
        Path::new("/spool/index"),
        config.index.clone(),
        std::array::from_fn(octet),
        Arc::new(Alive),
    )
    .unwrap();
    let [damaged] = &views.damaged()[..] else {
        panic!("{:?}", views.damaged());
    };
    views.rebuild(damaged.run).unwrap().finish().unwrap();
    damaged.rows
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn articles_that_the_log_forgot_are_compared_from_the_store() {
    let memory = MemoryDisk::new();
    let world = forgetful(&memory, 6).await;
    let oldest = world.engine.status().log.oldest;
    assert!(oldest > 200, "the log goes back to {oldest}");
    let report = check(&world);
    assert_eq!(report.problems, Vec::<String>::new());
    assert_eq!((report.articles, report.rows), (600, 1200));
    assert_eq!(report.uncompared, []);
    // A group made again, and one that is gone, have nothing of the former ones.
    world.engine.remove_group("misc.other").unwrap();
    world.engine.remove_group("misc.test").unwrap();
    let again = vec![GroupSpec::new("misc.test")];
    world.engine.add_groups(again).unwrap();
    let report = check(&world);
    assert_eq!(report.problems, Vec::<String>::new());
    assert_eq!(report.articles, 600);
}

/// A set written in front of the others in the configuration made strangers of articles: tokens have the number that their set had
/// when they came.  Check complained, cancels did nothing, a lost file of the overview was made again without them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sets_may_be_written_in_another_order() {
    let memory = MemoryDisk::new();
    let mut world = forgetful(&memory, 2).await;
    let some: Vec<_> = (200..210).map(|n| article(n, "misc.test")).collect();
    world.send(&some).await;
    let files_of_articles = SetConfig {
        name: "files".to_owned(),
        method: "tradspool".to_owned(),
        ..SetConfig::default()
    };
    world.config.store.sets.insert(0, files_of_articles);
    let mut world = world.restart();
    let report = check(&world);
    assert_eq!(report.problems, Vec::<String>::new());
    assert_eq!((report.articles, report.rows), (210, 410));
    let gone = ArticleRef::Id("<7@t.example>".to_owned());
    let report = world.engine.article(&gone).unwrap().unwrap();
    assert_eq!(report.set, "main");
    let gone = [report.token.parse().unwrap()];
    let outcomes = world.engine.withdraw(&gone, Reason::Cancelled).unwrap();
    assert_eq!(outcomes, [Withdrawal::Done]);
    assert_eq!(world.by_id("<7@t.example>").await, None);
    let mut lines = world.lines("misc.test").await;
    assert_eq!(lines.len(), 209);
    world.seal();
    for path in files(&memory, "overview") {
        memory.remove(&path).unwrap();
    }
    world = world.restart();
    wait_for_repair(&world);
    assert_eq!(world.lines("misc.test").await, lines);
    // Its rows have another number now than the history.
    let gone = [ArticleRef::Id("<0@t.example>".to_owned())];
    world.engine.withdraw(&gone, Reason::Cancelled).unwrap();
    lines.remove(0);
    assert_eq!(world.lines("misc.test").await, lines);
    assert_eq!(check(&world).problems, Vec::<String>::new());
}

/// A check of a busy server failed, because a checkpoint had retired the log that it was about to read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_is_retired_while_a_check_reads_it_is_compared_from_the_store() {
    let world = World::on(Arc::new(MemoryDisk::new()), short_log());
    for round in 0..12 {
        let numbers = round * 100..round * 100 + 100;
        let articles: Vec<_> = numbers.map(|at| article(at, "misc.test")).collect();
        let outcomes = world.send(&articles).await;
        assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Accepted));
    }
    let begun = world.engine.status().log.oldest;
    let mut is_retired = false;
    let report = world.engine.check(&mut |_, _| {
        if !std::mem::replace(&mut is_retired, true) {
            world.seal();
            // A moment behind the checkpoint.
            world.wait_until("the retirement of the log", |world| {
                world.engine.status().log.oldest > begun + 1
            });
        }
    });
    let report = report.unwrap();
    assert!(is_retired);
    assert_eq!(report.problems, Vec::<String>::new());
    assert_eq!((report.articles, report.rows), (1200, 1200));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_tells_how_far_it_is_in_the_log_and_in_the_buffers() {
    let world = forgetful(&MemoryDisk::new(), 4).await;
    let mut told = Vec::new();
    let report = world
        .engine
        .check(&mut |done, total| told.push((done, total)));
    assert_eq!(report.unwrap().problems, Vec::<String>::new());
    let octets: u64 = world
        .engine
        .status()
        .buffers
        .iter()
        .filter_map(|buffer| buffer.octets)
        .sum();
    let (records, buffers): (Vec<_>, Vec<_>) = told.iter().partition(|(_, total)| *total < 1 << 20);
    assert!(records.is_sorted() && buffers.is_sorted(), "{told:?}");
    assert_eq!(buffers.last(), Some(&(octets, octets)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_and_ids_that_are_missing_are_found_though_the_log_forgot_them() {
    for (stem, complaint) in [
        ("overview", "does not have it as number"),
        ("history", "the history does not lead to it"),
    ] {
        let memory = MemoryDisk::new();
        let world = forgetful(&memory, 6).await;
        let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
        let spool_id = world.engine.status().spool_id;
        drop(world);
        let lost = lose(&memory, &config, &spool_id, stem);
        assert!(lost >= 100, "{lost}");
        let world = open_on(Arc::new(memory.clone()), &config, &clock);
        assert_eq!(world.engine.status().damaged, Vec::<String>::new());
        let report = check(&world);
        let found = report.problems.iter().filter(|p| p.contains(complaint));
        assert!(found.count() > 90, "{stem}: {report:?}");
        assert!(!report.is_clean());
    }
}

/// What no view knows at all is told of once, because the log that could say why is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn articles_that_no_view_knows_are_told_of() {
    let memory = MemoryDisk::new();
    let world = forgetful(&memory, 6).await;
    let (config, clock) = (world.config.clone(), Arc::clone(&world.clock));
    let spool_id = world.engine.status().spool_id;
    drop(world);
    lose(&memory, &config, &spool_id, "overview");
    let lost = lose(&memory, &config, &spool_id, "history");
    let world = open_on(Arc::new(memory.clone()), &config, &clock);
    let report = check(&world);
    let [problem] = &report.problems[..] else {
        panic!("{report:?}");
    };
    assert!(problem.starts_with(&format!("{lost} articles of the store are in no view, <")));
    assert_eq!(report.articles + lost, 600);
    let query = world.numbered("misc.test", 600).await;
    assert!(world.read(query, Part::Head).await.is_some());
}

/// A commit that failed leaves its articles in the store.  The log says that they are nobody's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn articles_of_a_commit_that_failed_are_counted() {
    let faulty = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    let world = World::on(Arc::new(faulty.clone()), config(4 << 20));
    let batch = |from: usize| {
        (from..from + 30)
            .map(|at| article(at, "misc.test"))
            .collect()
    };
    let sent: Vec<_> = batch(0);
    world.send(&sent).await;
    let (_, outcomes) = world
        .until_a_commit_fails(&faulty, |nth| batch(1000 * nth))
        .await;
    let is_lost = |it: &&Outcome| **it == Outcome::Failed;
    let lost = outcomes.iter().filter(is_lost).count() as u64;
    let sent: Vec<_> = batch(200);
    world.send(&sent).await;
    let report = check(&world);
    assert_eq!(report.problems, Vec::<String>::new());
    let [uncompared] = &report.uncompared[..] else {
        panic!("{report:?}");
    };
    assert_eq!(uncompared.why, "never committed");
    assert!((1..=lost).contains(&uncompared.articles), "{report:?}");
}
