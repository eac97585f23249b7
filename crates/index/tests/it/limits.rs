//! What groups and entries may cost, and what is said when the disk would have to be asked.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use newsreel_host::{Disk, Effect, Fault, FaultyDisk, MemoryDisk, Op};
use newsreel_index::{Error, IndexConfig, Population, Result, Views, Wait};
use newsreel_wire::{ArticleNumber, BufferId, GroupId, UnixTime};

use crate::world::{DIR, Record, World, hash, small};

const ALL: (ArticleNumber, ArticleNumber) = (ArticleNumber(0), ArticleNumber(u64::MAX));

#[test]
fn nothing_waits_that_was_told_not_to() {
    let memory = Arc::new(MemoryDisk::new());
    let faulty = Arc::new(FaultyDisk::new(Arc::clone(&memory) as Arc<dyn Disk>));
    let disk: Arc<dyn Disk> = Arc::clone(&faulty) as _;
    let mut world = World::with_groups(&disk, small(), 1);
    world.articles(40, 1);
    world.checkpoint();
    world.marks.raise(0, 15);
    world.reopen(&disk);
    faulty.add(Fault::new(Op::Read, "", Effect::Cold).forever());
    let (views, group, mut id) = (Arc::clone(&world.views), GroupId(0), Vec::new());
    let overview = views.overview();
    let would_block = |error: Option<Error>| {
        assert!(matches!(error, Some(Error::WouldBlock)), "{error:?}");
    };
    would_block(views.history().lookup_now(&hash(1)).err());
    would_block(views.group_facts(group, Wait::No).err());
    would_block(
        overview
            .column(group, ArticleNumber(20), Wait::No, &mut id)
            .err(),
    );
    would_block(
        overview
            .next_live(group, ArticleNumber(20), Wait::No, &mut id)
            .err(),
    );
    let mut lines = Vec::new();
    would_block(overview.lines(group, ALL, 1, Wait::No, &mut lines).err());
    assert_eq!(views.damaged(), []);
    // What was read while waiting is in memory from then on.
    let facts = views.group_facts(group, Wait::Yes).unwrap();
    assert_eq!(views.group_facts(group, Wait::No).unwrap(), facts);
    let entry = views.history().lookup(&hash(1)).unwrap();
    assert!(entry.is_some());
    assert_eq!(views.history().lookup_now(&hash(1)).unwrap(), entry);
    overview
        .column(group, ArticleNumber(20), Wait::Yes, &mut id)
        .unwrap();
    assert!(
        overview
            .column(group, ArticleNumber(20), Wait::No, &mut id)
            .unwrap()
            .is_some()
    );
    faulty.clear();
    world.check();
}

/// Takes a listing of group 0 that begins in memory in pieces, and whole.
fn pieces<T: PartialEq>(
    (world, disk, faulty): (&mut World, &Arc<dyn Disk>, &FaultyDisk),
    list: impl Fn(&Views, ArticleNumber, usize, Wait, &mut Vec<T>) -> Result<Option<ArticleNumber>>,
) {
    let (begin, most, mut whole) = (ArticleNumber(0), usize::MAX, Vec::new());
    list(&world.views, begin, most, Wait::Yes, &mut whole).unwrap();
    world.reopen(disk);
    faulty.add(Fault::new(Op::Read, "", Effect::Cold).forever());
    let (views, mut out) = (&world.views, Vec::new());
    list(views, begin, 1, Wait::Yes, &mut out).unwrap();
    out.clear();
    let next = list(views, begin, most, Wait::No, &mut out).unwrap();
    let len = out.len();
    assert!(0 < len && len < whole.len());
    let stuck = list(views, next.unwrap(), most, Wait::No, &mut Vec::new());
    assert!(matches!(stuck, Err(Error::WouldBlock)), "{stuck:?}");
    let end = list(views, next.unwrap(), most, Wait::Yes, &mut out).unwrap();
    assert!(end.is_none() && out == whole);
    faulty.clear();
}

/// Whoever must not wait gets what is in memory, and goes on behind it.
#[test]
fn a_listing_ends_where_it_would_have_to_wait() {
    let faulty = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    let disk: Arc<dyn Disk> = Arc::new(faulty.clone());
    let mut world = World::with_groups(&disk, small(), 1);
    world.articles(60, 1);
    world.checkpoint();
    // Of more than one block a part is alive, so that its numbers are not known without it.
    world.marks.raise(0, 130);
    let group = GroupId(0);
    pieces(
        (&mut world, &disk, &faulty),
        |views, from, most, wait, out| {
            let range = (from, ArticleNumber(u64::MAX));
            views.overview().lines(group, range, most, wait, out)
        },
    );
    pieces(
        (&mut world, &disk, &faulty),
        |views, from, most, wait, out| {
            let range = (from, ArticleNumber(u64::MAX));
            views.overview().numbers(group, range, most, wait, out)
        },
    );
}

/// DESIGN section 4: an idle group costs at most 200 octets of memory.
#[test]
fn idle_groups_cost_little_memory() {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let mut world = World::new(&disk, IndexConfig::default());
    let count = 5000;
    for id in 0..count {
        world.record(Record::Make(id, format!("comp.somewhere.else.n{id:06}")));
    }
    for _ in 0..3 {
        for id in 0..count {
            world.article(&[id], 0);
        }
        world.applier.publish().unwrap();
    }
    world.checkpoint();
    let facts = world.views.facts();
    let per_group = (facts.groups_bytes + facts.overview.block_list_bytes) / u64::from(count);
    assert!(per_group <= 200, "{per_group} octets: {facts:?}");
    assert_eq!(facts.overview.memory_rows, 0);
}

#[test]
fn a_checkpoint_is_due_when_memory_says_so() {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let rows = IndexConfig {
        history_rows_max: 50,
        ..small()
    };
    let texts = IndexConfig {
        tail_bytes_max: 20_000,
        ..small()
    };
    for config in [rows, texts] {
        let disk = Arc::clone(&disk);
        let mut world = World::new(&disk, config);
        if world.views.groups().is_empty() {
            world.record(Record::Make(0, "a.group".to_owned()));
        }
        assert!(!world.views.checkpoint_due());
        world.articles(200, 1);
        assert!(world.views.checkpoint_due());
        world.freeze();
        assert!(!world.views.checkpoint_due(), "one is under way");
        for file in disk.list(Path::new(DIR)).unwrap() {
            disk.remove(&Path::new(DIR).join(file.name)).unwrap();
        }
    }
}

/// A clock that stood ten years ahead for a while: arrivals do not make anything forgotten, only the time that is
/// told does.
#[test]
fn arrivals_from_the_future_make_nothing_forgotten() {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let mut world = World::with_groups(&disk, small(), 1);
    world.articles(30, 1);
    let now = world.time;
    world.time += 10 * 365 * 86_400;
    world.articles(30, 1);
    world.time = now;
    world.articles(30, 1);
    world.checkpoint();
    (0..3).for_each(|buffer| world.marks.raise(buffer, u64::MAX));
    world.views.set_time(UnixTime(now));
    world.compact();
    world.check();
    for key in 1..=90 {
        assert!(
            world.views.history().lookup(&hash(key)).unwrap().is_some(),
            "key {key}"
        );
    }
}

/// Of a large history a part is looked at, whose entries are anywhere: in memory, in buckets, withdrawn or overwritten since.
#[test]
fn what_buffers_have_is_estimated_from_a_part_of_the_history() {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let mut world = World::with_groups(&disk, small(), 3);
    for _ in 0..3 {
        let before: Vec<_> = (0..2000).map(|nth| world.article(&[0], nth % 3)).collect();
        world.checkpoint();
        for article in before.into_iter().step_by(4) {
            world.record(Record::Withdraw(article));
        }
        world.articles(1000, 3);
        let floor = world.marks_of(1) + 1500;
        world.marks.raise(1, floor);
    }
    let expect = world.population();
    assert_eq!(expect.len(), 3);
    let history = world.views.history();
    assert!(history.census(20_000).unwrap().is_exact);
    for rows_max in [6000, 3000] {
        let census = history.census(rows_max).unwrap();
        assert!(!census.is_exact);
        let in_all = |of: &BTreeMap<BufferId, Population>| of.values().map(|it| it.articles).sum();
        let (seen, right): (u64, u64) = (in_all(&census.buffers), in_all(&expect));
        assert!(seen.abs_diff(right) < right / 12, "{seen} of {right}");
        for (buffer, right) in &expect {
            let seen = census.buffers[buffer];
            let difference = seen.articles.abs_diff(right.articles);
            assert!(difference < right.articles / 5, "{seen:?} of {right:?}");
            assert_eq!(seen.octets, 500 * seen.articles);
        }
    }
}
