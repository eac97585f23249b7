//! Buffers made larger: what is in them stays, what is added takes articles, and nothing is lost on the way.

use std::path::Path;
use std::sync::Arc;

use newsreel_host::{Disk, FaultyDisk, MemoryDisk, OpenMode};
use newsreel_store::conformance::{Rig, article};
use newsreel_store::{Access, Result, Store, StoreConfig};

use crate::common::{FILE, alive, feed, place, recovered, resize, sized, walked};

const ROOM: u64 = 1 << 20;
/// Its bitmap would take a page more.
const LARGE: u64 = 4 << 20;

/// Places what fits exactly before the end.
fn fill(rig: &mut Rig) {
    let left = |rig: &Rig| usize::try_from(ROOM - rig.reader.facts()[0].free_offset).unwrap();
    let mut number = rig.log.articles().count() as u64;
    // No article may be larger than a quarter.
    while left(rig) > 200_000 {
        rig.place(number, 90_000).unwrap();
        rig.commit().unwrap();
        number += 1;
    }
    let left = left(rig);
    let fits = |len: &usize| (64 + article(number, *len).0.len()).next_multiple_of(64) == left;
    let len = (0..left).rev().find(fits).unwrap();
    rig.place(number, len).unwrap();
    rig.commit().unwrap();
}

fn enlarge(disk: &Arc<dyn Disk>, config: &StoreConfig) -> Result<()> {
    Store::resize(disk, place(), config, "C0", &mut |_, _, _| {})
}

#[test]
fn a_buffer_in_use_becomes_larger_wherever_it_stands() {
    for (fed, is_full) in [(0, false), (10, true), (21, false), (27, true), (45, false)] {
        for (larger, sparse) in [(ROOM * 3 / 2, false), (LARGE, true)] {
            let what = format!("{fed} {is_full} {larger} {sparse}");
            let (mut before, mut after) = (sized(ROOM), sized(larger));
            before.buffers[0].sparse = sparse;
            after.buffers[0].sparse = sparse;
            let memory = MemoryDisk::new();
            let mut rig = Rig::new(Arc::new(memory.clone()), &before).unwrap();
            feed(&mut rig, fed * ROOM / 20);
            if is_full {
                fill(&mut rig);
            }
            let (tally, tokens) = (rig.read_all(), alive(&rig));
            // One is on its way.
            rig.place(1_000_000, 500).unwrap();
            resize(&mut rig, &after).unwrap();
            resize(&mut rig, &after).unwrap();
            assert_eq!(rig.reader.facts()[0].octets, larger);
            assert_eq!(rig.read_all(), tally, "{what}");
            assert_eq!(walked(&rig), tokens, "{what}");
            rig.commit().unwrap();
            feed(&mut rig, ROOM / 2);
            assert_eq!(rig.read_all().corrupt, 0, "{what}");
            assert_eq!(walked(&rig), alive(&rig), "{what}");
            // Nobody wrote a checkpoint since, and the power is cut.
            let disk = Arc::new(memory.crash_losing_all()) as Arc<dyn Disk>;
            let log = rig.log.clone();
            let there = Rig::recover(disk, &after, log, Access::Write).unwrap();
            assert_eq!(there.read_all(), rig.read_all(), "{what}");
            assert_eq!(walked(&there), alive(&there), "{what}");
            feed(&mut rig, 3 * larger);
            let tokens = alive(&rig);
            assert_eq!(
                (rig.read_all().corrupt, walked(&rig)),
                (0, tokens.clone()),
                "{what}"
            );
            let octets: u64 = tokens.iter().map(|token| u64::from(token.len())).sum();
            assert!(octets > larger * 8 / 10, "{what}: {octets} octets");
            rig.checkpoint().unwrap();
            assert_eq!(walked(&recovered(&rig, &after).unwrap()), tokens, "{what}");
        }
    }
}

/// Its disk fails, or its power is cut, at any step of it.
#[test]
fn a_buffer_in_use_has_one_size_or_the_other_whatever_fails() {
    let (before, after) = (sized(ROOM), sized(LARGE));
    let (mut nth, mut old, mut new) = (0, 0, 0);
    let mut is_done = false;
    while !is_done {
        nth += 1;
        let memory = MemoryDisk::new();
        let faulty = FaultyDisk::new(Arc::new(memory.clone()));
        let mut rig = Rig::new(Arc::new(faulty.clone()), &before).unwrap();
        feed(&mut rig, ROOM * 3 / 2);
        let tokens = alive(&rig);
        faulty.stop_at_change(faulty.counts().changes() + nth);
        is_done = resize(&mut rig, &after).is_ok();
        for left in [memory.crash(nth), memory.crash_losing_all()] {
            rig.disk = Arc::new(left);
            let (with_old, with_new) = (recovered(&rig, &before), recovered(&rig, &after));
            assert!(with_old.is_ok() != with_new.is_ok(), "step {nth}");
            assert!(with_new.is_ok() || !is_done, "step {nth}");
            old += u32::from(with_old.is_ok());
            new += u32::from(with_new.is_ok());
            let config = if with_old.is_ok() { &before } else { &after };
            let mut there = with_old.or(with_new).unwrap();
            assert_eq!(walked(&there), tokens, "step {nth}");
            feed(&mut there, 2 * LARGE);
            assert_eq!(there.read_all().corrupt, 0, "step {nth}");
            resize(&mut there, &after).unwrap();
            assert_eq!(walked(&there), alive(&there), "step {nth}");
            let there = recovered(&there, &after).unwrap();
            assert_eq!(
                walked(&there),
                alive(&there),
                "step {nth} {}",
                config.buffers[0].octets
            );
        }
    }
    assert!(old >= 4 && new >= 2, "{old} and {new}");
}

#[test]
fn what_is_in_a_buffer_stays_and_more_fits_wherever_it_stood() {
    // Nothing, the first round, behind the first end, the middle of a later round; and whether it ends exactly at the end.
    for (fed, is_full) in [
        (0, false),
        (10, false),
        (10, true),
        (21, false),
        (27, true),
        (45, false),
    ] {
        for (larger, sparse) in [(ROOM * 3 / 2, false), (LARGE, false), (LARGE, true)] {
            let what = format!("{fed} {is_full} {larger} {sparse}");
            let (mut before, mut after) = (sized(ROOM), sized(larger));
            before.buffers[0].sparse = sparse;
            after.buffers[0].sparse = sparse;
            let mut rig = Rig::new(Arc::new(MemoryDisk::new()), &before).unwrap();
            feed(&mut rig, fed * ROOM / 20);
            if is_full {
                fill(&mut rig);
            }
            rig.checkpoint().unwrap();
            let (tally, tokens) = (rig.read_all(), alive(&rig));
            enlarge(&rig.disk, &after).unwrap();
            enlarge(&rig.disk, &after).unwrap();
            let error = recovered(&rig, &before).unwrap_err().to_string();
            assert!(error.contains("the configuration says 1048576"), "{error}");
            let mut rig = recovered(&rig, &after).unwrap();
            assert_eq!(rig.read_all(), tally, "{what}");
            assert_eq!(walked(&rig), tokens, "{what}");
            // Until it comes around nothing more goes.
            feed(&mut rig, ROOM / 2);
            assert_eq!(rig.read_all().corrupt, 0, "{what}");
            assert_eq!(walked(&rig), alive(&rig), "{what}");
            feed(&mut rig, 3 * larger);
            rig.checkpoint().unwrap();
            let (tally, tokens) = (rig.read_all(), alive(&rig));
            assert_eq!(tally.corrupt, 0, "{what}");
            let octets: u64 = tokens.iter().map(|token| u64::from(token.len())).sum();
            assert!(octets > larger * 8 / 10, "{what}: {octets} octets");
            let rig = recovered(&rig, &after).unwrap();
            assert_eq!(rig.read_all(), tally, "{what}");
            assert_eq!(walked(&rig), tokens, "{what}");
        }
    }
}

/// What somebody had left behind the buffer on its device looked like damage.
#[test]
fn what_lies_behind_the_old_end_is_not_taken_for_articles() {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let mut config = sized(ROOM);
    config.buffers[0].sparse = true;
    let mut rig = Rig::new(Arc::clone(&disk), &config).unwrap();
    feed(&mut rig, ROOM * 3 / 2);
    fill(&mut rig);
    feed(&mut rig, ROOM / 4);
    rig.checkpoint().unwrap();
    let file = disk.open(Path::new(FILE), OpenMode::ReadWrite).unwrap();
    file.write_at(&vec![b'N'; 1 << 20], ROOM).unwrap();
    config.buffers[0].octets = LARGE;
    enlarge(&disk, &config).unwrap();
    let rig = recovered(&rig, &config).unwrap();
    assert_eq!(walked(&rig), alive(&rig));
}

#[test]
fn a_power_cut_at_any_step_leaves_a_buffer_of_one_size_or_the_other() {
    let (before, after) = (sized(ROOM), sized(LARGE));
    let (mut nth, mut old, mut new) = (0, 0, 0);
    loop {
        nth += 1;
        let memory = MemoryDisk::new();
        let faulty = FaultyDisk::new(Arc::new(memory.clone()));
        let mut rig = Rig::new(Arc::new(faulty.clone()), &before).unwrap();
        feed(&mut rig, ROOM * 3 / 2);
        rig.checkpoint().unwrap();
        let tokens = alive(&rig);
        faulty.stop_at_change(faulty.counts().changes() + nth);
        let is_done = enlarge(&rig.disk, &after).is_ok();
        for left in [memory.crash(nth), memory.crash_losing_all()] {
            rig.disk = Arc::new(left);
            let (with_old, with_new) = (recovered(&rig, &before), recovered(&rig, &after));
            assert!(with_old.is_ok() != with_new.is_ok(), "step {nth}");
            assert!(with_new.is_ok() || !is_done, "step {nth}");
            old += u32::from(with_old.is_ok());
            new += u32::from(with_new.is_ok());
            let there = with_old.or(with_new).unwrap();
            assert_eq!(walked(&there), tokens, "step {nth}");
            drop(there);
            enlarge(&rig.disk, &after).unwrap();
            let mut there = recovered(&rig, &after).unwrap();
            assert_eq!(walked(&there), tokens, "step {nth}");
            feed(&mut there, 2 * LARGE);
            assert_eq!(there.read_all().corrupt, 0, "step {nth}");
        }
        if is_done {
            break;
        }
    }
    // Zeros, the mark, both headers.
    assert!(old >= 4 && new >= 4, "{old} and {new}");
}

/// With both headers gone only the records tell where they begin.
#[test]
fn the_lost_headers_of_an_enlarged_buffer_are_made_again() {
    let memory = MemoryDisk::new();
    let mut rig = Rig::new(Arc::new(memory.clone()), &sized(ROOM)).unwrap();
    feed(&mut rig, ROOM * 3 / 2);
    rig.checkpoint().unwrap();
    let after = sized(LARGE);
    enlarge(&rig.disk, &after).unwrap();
    let mut rig = recovered(&rig, &after).unwrap();
    feed(&mut rig, 2 * LARGE);
    rig.checkpoint().unwrap();
    let (tally, tokens) = (rig.read_all(), alive(&rig));
    for at in [80, 4096 + 80] {
        memory.flip_bit(Path::new(FILE), at, 3).unwrap();
    }
    let mut rig = recovered(&rig, &after).unwrap();
    assert_eq!(rig.read_all(), tally);
    assert_eq!(walked(&rig), tokens);
    rig.checkpoint().unwrap();
    assert_eq!(recovered(&rig, &after).unwrap().read_all(), tally);
}

#[test]
fn what_cannot_be_enlarged_is_left_as_it_is() {
    let memory = MemoryDisk::with_capacity(3 << 20);
    let sized = |octets| {
        let mut config = sized(octets);
        config.buffers[0].sparse = false;
        config
    };
    let mut rig = Rig::new(Arc::new(memory.clone()), &sized(2 * ROOM)).unwrap();
    feed(&mut rig, 3 * ROOM);
    rig.checkpoint().unwrap();
    let tally = rig.read_all();
    let refused = |config: &StoreConfig| {
        let refused = enlarge(&rig.disk, config);
        refused.unwrap_err().to_string()
    };
    let mut config = sized(LARGE);
    config.buffers[0].read_only = true;
    assert!(refused(&config).contains("`read_only` forbids"));
    config.buffers[0].read_only = false;
    config.buffers[0].octets = u64::MAX;
    assert!(refused(&config).contains("are no buffer"));
    config.buffers[0].name = "C7".to_owned();
    assert!(refused(&config).contains("there are C7"));
    let file = Path::new(FILE);
    memory.flip_bit(file, 4096 + 80, 3).unwrap();
    assert!(refused(&sized(LARGE)).contains("one copy of its header is damaged"));
    memory.flip_bit(file, 4096 + 80, 3).unwrap();
    let error = refused(&sized(LARGE));
    assert!(error.contains("more, /spool/buffers has"), "{error}");
    assert_eq!(recovered(&rig, &sized(2 * ROOM)).unwrap().read_all(), tally);
}
