//! What checkpoints and compaction promise one by one.

use std::path::Path;
use std::sync::Arc;

use newsreel_host::{Disk, Effect, Fault, FaultyDisk, MemoryDisk, Op};
use newsreel_index::{Error, IndexConfig, Liveness, Views, Wait};
use newsreel_wire::{GroupId, Sequence};

use crate::world::{Article, DIR, Marks, Record, SPOOL, World, hash, small};

fn disk() -> Arc<dyn Disk> {
    Arc::new(MemoryDisk::new())
}

fn file_octets(disk: &Arc<dyn Disk>, stem: &str) -> u64 {
    let files = disk.list(Path::new(DIR)).unwrap().into_iter();
    files
        .filter(|file| file.name.starts_with(stem))
        .map(|file| file.len)
        .sum()
}

#[test]
fn there_is_one_checkpoint_at_a_time() {
    let disk = disk();
    let mut world = World::with_groups(&disk, small(), 3);
    world.articles(50, 3);
    world.freeze();
    let sequence = world.sequence();
    let second = world.applier.freeze(sequence);
    assert!(matches!(second, Err(Error::Busy)));
    world.articles(20, 3);
    world.check();
    let unwritten = world.frozen.take().unwrap();
    assert_eq!(unwritten.sequence(), sequence);
    assert!(matches!(world.views.install(unwritten), Err(Error::Busy)));
}

#[test]
fn the_checkpoint_says_what_the_log_need_not_keep() {
    let disk = disk();
    let mut world = World::with_groups(&disk, small(), 3);
    assert_eq!(world.views.checkpoint(), None);
    world.articles(50, 3);
    world.freeze();
    let at = world.sequence();
    world.articles(50, 3);
    assert_eq!(world.views.checkpoint(), None);
    world.install();
    assert_eq!(world.views.checkpoint(), Some(at));
    world.reopen(&disk);
    assert_eq!(world.views.checkpoint(), Some(at));
    world.check();
}

#[test]
fn the_generation_changes_with_entries_that_leave_memory() {
    let disk = disk();
    let mut world = World::with_groups(&disk, small(), 3);
    world.articles(50, 3);
    let history = Arc::clone(&world.views);
    let before = history.history().generation();
    world.freeze();
    assert!(history.history().lookup_recent(&hash(1)).is_some());
    assert_eq!(history.history().generation(), before, "it is in memory");
    world.install();
    assert!(history.history().lookup_recent(&hash(1)).is_none());
    assert_ne!(history.history().generation(), before);
    assert!(history.history().lookup(&hash(1)).unwrap().is_some());
}

#[test]
fn disk_use_follows_what_is_alive() {
    let disk = disk();
    let mut world = World::with_groups(&disk, small(), 3);
    let mut largest = 0;
    for round in 0..60 {
        world.articles(100, 3);
        world.pass(50);
        // Each buffer holds the last two hundred articles or so.
        for buffer in 0..3 {
            let floor = world.positions[usize::from(buffer)].saturating_sub(2000);
            world.marks.raise(buffer, floor);
        }
        world.checkpoint();
        world.compact();
        if round == 30 {
            largest = file_octets(&disk, "");
        }
        world.check();
    }
    let now = file_octets(&disk, "");
    assert!(now <= largest * 5 / 4, "{now} octets now, {largest} then");
    let facts = world.views.facts().overview;
    let live: usize = world
        .model
        .groups
        .values()
        .map(|group| world.live(group).len())
        .sum();
    assert!(
        facts.sealed_rows as usize * 10 <= live * 13,
        "{facts:?}, {live} alive"
    );
}

/// How many articles of each buffer are kept: expiry is ragged in every group.
const KEPT: [u64; 3] = [600, 2500, 8000];

/// What the overview takes when a checkpoint writes what is alive, and nothing else, in one go.
fn octets_of_the_live(world: &World) -> u64 {
    let disk = disk();
    let mut fresh = World::new(&disk, world.config.clone());
    let lives = |article: &Article| {
        let token = &article.token;
        token.position() >= world.marks.floor(token.buffer())
    };
    for record in &world.log {
        match record {
            Record::Article(article) if !lives(article) => {}
            record => fresh.record(record.clone()),
        }
    }
    fresh.checkpoint();
    file_octets(&disk, "overview")
}

/// DESIGN.md, section 4: disk use stays under 1.3 times what is alive, at every checkpoint, also where every group has
/// articles that live long and articles that do not.  What is compressed in the background is counted as it is, what is
/// alive as a checkpoint writes it: compressing comes on top.
#[test]
fn overview_stays_under_1_3_times_what_is_alive() {
    let disk = disk();
    let mut world = World::with_groups(&disk, IndexConfig::default(), 40);
    let mut measured = 0;
    for round in 0..60 {
        world.articles(600, 40);
        world.pass(50);
        for (buffer, kept) in (0..).zip(KEPT) {
            let floor = world.positions[usize::from(buffer)].saturating_sub(10 * kept);
            world.marks.raise(buffer, floor);
        }
        world.checkpoint();
        world.compact();
        // From here on every buffer loses as much as it gets.
        if round < 42 {
            continue;
        }
        let groups = world.model.groups.values();
        let live: usize = groups.map(|group| world.live(group).len()).sum();
        let facts = world.views.facts().overview;
        let (octets, alive) = (file_octets(&disk, "overview"), octets_of_the_live(&world));
        assert!(
            facts.sealed_rows as usize * 10 < live * 13,
            "round {round}: {facts:?}, {live} alive"
        );
        assert!(
            octets * 10 < alive * 13,
            "round {round}: {octets} octets, those alive take {alive}"
        );
        measured += 1;
    }
    assert_eq!(measured, 18);
    world.check();
}

/// The history of a full feed always has something to merge; overview and groups were not compacted meanwhile.
#[test]
fn compaction_of_one_kind_does_not_wait_for_the_others() {
    let disk = disk();
    let mut world = World::with_groups(&disk, small(), 3);
    for _ in 0..30 {
        world.articles(60, 3);
        world.checkpoint();
    }
    let facts = || world.views.facts();
    let groups = || {
        let files = disk.list(Path::new(DIR)).unwrap();
        let groups = files.iter().filter(|file| file.name.starts_with("groups"));
        groups.count()
    };
    let before = (facts().overview.packs, groups());
    let wanted = world.config.runs_max;
    while facts().history.buckets > wanted {
        assert!(world.views.compact_step().unwrap());
    }
    let after = (facts().overview.packs, groups());
    assert!(
        after.0 < before.0 && after.1 < before.1,
        "{before:?}, {after:?}"
    );
    world.compact();
    world.check();
}

/// One kind failed at every step and the others were never asked.
#[test]
fn a_kind_that_cannot_be_compacted_does_not_hold_the_others_up() {
    for (failing, others) in [
        ("history-", ["overview-", "groups-"]),
        ("groups-", ["history-", "overview-"]),
    ] {
        let faulty = Arc::new(FaultyDisk::new(disk()));
        let disk: Arc<dyn Disk> = Arc::clone(&faulty) as _;
        let mut world = World::with_groups(&disk, small(), 3);
        for _ in 0..30 {
            world.articles(60, 3);
            world.checkpoint();
        }
        let count = |stem: &str| {
            let files = disk.list(Path::new(DIR)).unwrap();
            files
                .iter()
                .filter(|file| file.name.starts_with(stem))
                .count()
        };
        let before = others.map(count);
        faulty.add(Fault::new(Op::Open, failing, Effect::Full).forever());
        for _ in 0..1000 {
            let _ = world.views.compact_step();
        }
        let after = others.map(count);
        assert!(
            after[0] < before[0] / 3 && after[1] < before[1] / 3,
            "{failing}: {before:?}, {after:?}"
        );
        faulty.clear();
        world.compact();
        world.check();
    }
}

/// What is dead goes at once and together, also while something else is being merged.
#[test]
fn dead_runs_do_not_wait_for_a_merge() {
    let disk = disk();
    let mut world = World::with_groups(&disk, small(), 3);
    for _ in 0..30 {
        world.articles(60, 3);
        world.checkpoint();
    }
    assert!(world.views.is_compaction_behind());
    let packs = || world.views.facts().overview.packs;
    assert!(packs() >= 30);
    // The first step begins to merge history, which is asked first.
    assert!(world.views.compact_step().unwrap());
    for buffer in 0..3 {
        world.marks.raise(buffer, u64::MAX);
    }
    assert!(world.views.compact_step().unwrap());
    assert_eq!(packs(), 0);
    world.compact();
    assert!(!world.views.is_compaction_behind());
    world.check();
}

#[test]
fn what_is_forgotten_goes_and_what_lives_stays() {
    let disk = disk();
    let mut world = World::with_groups(&disk, small(), 2);
    for _ in 0..6 {
        world.articles(60, 2);
        world.checkpoint();
    }
    world.marks.raise(0, u64::MAX);
    world.marks.raise(1, u64::MAX);
    world.checkpoint();
    world.pass(5000);
    world.compact();
    world.check();
    let facts = world.views.facts().history;
    let live = world
        .model
        .history
        .values()
        .filter(|(token, _)| token.is_some_and(|token| token.buffer().0 == 2));
    let live = live.count() as u64;
    assert!(facts.sealed_rows < live * 2, "{facts:?}, {live} alive");
    world.marks.raise(2, u64::MAX);
    world.checkpoint();
    world.pass(1001);
    world.compact();
    assert_eq!(world.views.facts().history.buckets, 0);
    assert_eq!(world.views.facts().overview.packs, 0);
    world.check();
}

/// However long it had been there: from its arrival on is too short for what stays long.
#[test]
fn what_was_overwritten_is_remembered_from_then_on() {
    let disk = disk();
    let mut world = World::with_groups(&disk, small(), 1);
    let article = world.article(&[0], 0);
    world.checkpoint();
    world.pass(5000);
    world.marks.raise(0, u64::MAX);
    world.checkpoint();
    let known = |world: &World| {
        world.compact();
        let history = world.views.history();
        history.lookup(&hash(article.key)).unwrap().is_some()
    };
    world.pass(1000);
    assert!(known(&world));
    world.reopen(&disk);
    assert!(known(&world), "the manifest tells it, not the memory");
    world.pass(1);
    assert!(!known(&world));
    world.check();
}

#[test]
fn another_spools_manifest_is_not_touched() {
    let disk = disk();
    let mut world = World::with_groups(&disk, small(), 2);
    world.articles(10, 2);
    world.checkpoint();
    let marks = Arc::new(Marks::default());
    let other = Views::open(Arc::clone(&disk), Path::new(DIR), small(), [8; 16], marks);
    assert!(matches!(other, Err(Error::Manifest { .. })));
    assert_ne!(SPOOL, [8; 16]);
    world.reopen(&disk);
    world.check();
}

#[test]
fn a_dead_group_answers_empty_above_its_mark() {
    let disk = disk();
    let mut world = World::with_groups(&disk, small(), 1);
    world.articles(30, 1);
    world.checkpoint();
    (0..3).for_each(|buffer| world.marks.raise(buffer, u64::MAX));
    let facts = world.views.group_facts(GroupId(0), Wait::Yes).unwrap();
    assert_eq!((facts.low.0, facts.high.0, facts.count), (31, 30, 0));
    world.compact();
    world.reopen(&disk);
    world.check();
    assert_eq!(world.views.checkpoint(), Some(Sequence(31)));
}

/// The entry that says "cancelled" must not be forgotten before the article it hides is gone: a small, newer bucket
/// was once dropped by age while an older, larger one still had the live token, and the article was back.
#[test]
fn what_was_withdrawn_stays_so_while_its_buffer_has_it() {
    let disk = disk();
    let mut world = World::with_groups(&disk, small(), 1);
    world.articles(40, 1);
    world.checkpoint();
    let article = world.article(&[0], 0);
    world.articles(10, 1);
    world.checkpoint();
    world.record(Record::Withdraw(article.clone()));
    world.checkpoint();
    world.pass(5000);
    world.compact();
    world.check();
    let entry = world.views.history().lookup(&hash(article.key)).unwrap();
    assert!(
        entry.is_some_and(|entry| entry.token.is_none()),
        "{entry:?}"
    );
    world.reopen(&disk);
    world.check();
}
