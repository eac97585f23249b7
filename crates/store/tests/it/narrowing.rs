//! Buffers made smaller: nothing goes before its turn, nothing more comes behind the new end, and once around the file is cut.

use std::path::Path;
use std::sync::Arc;

use newsreel_host::{Disk as _, FaultyDisk, MemoryDisk, OpenMode};
use newsreel_store::conformance::Rig;
use newsreel_store::{Access, ScanRange, Scanned, Store};
use newsreel_wire::Token;

use crate::common::{FILE, alive, feed, place, recovered, resize, sized, walked};

const LARGE: u64 = 4 << 20;
/// Its bitmap would take a page less.
const SMALL: u64 = 1 << 20;
/// What is fed between two looks.
const STEP: u64 = 100_000;
/// So many steps take a buffer around twice.
const STEPS_MAX: u64 = 2 * LARGE / STEP + 20;

fn len(rig: &Rig) -> u64 {
    let file = rig.disk.open(Path::new(FILE), OpenMode::Read).unwrap();
    file.len().unwrap()
}

fn octets(rig: &Rig) -> u64 {
    rig.reader.facts()[0].octets
}

/// All that should be there is, by tokens and by a walk, and nothing else.
fn look(rig: &Rig, what: &str) {
    assert_eq!(rig.read_all().corrupt, 0, "{what}");
    assert_eq!(walked(rig), alive(rig), "{what}");
}

/// Feeds until the file is cut; how many steps that took.
fn come_around(rig: &mut Rig, smaller: u64, what: &str) -> u64 {
    for step in 0..STEPS_MAX {
        rig.checkpoint().unwrap();
        look(rig, what);
        if octets(rig) == smaller {
            rig.checkpoint().unwrap();
            return step;
        }
        feed(rig, STEP);
    }
    panic!("{what}: it has {} octets", octets(rig));
}

/// What lies behind the new end takes no more articles: the newest there is as old as it was.
fn beyond(rig: &Rig, end: u64) -> Vec<Token> {
    let tokens = alive(rig).into_iter();
    tokens
        .filter(|token| token.position().offset() >= end)
        .collect()
}

#[test]
fn a_buffer_becomes_smaller_when_it_has_come_around_wherever_it_stands() {
    // Nothing in it, the first round on either side of the new end, and later rounds.
    for fed in [0, 5, 22, 30, 42, 55] {
        for smaller in [SMALL, SMALL * 5 / 2] {
            let what = format!("{fed} {smaller}");
            let (before, after) = (sized(LARGE), sized(smaller));
            let mut rig = Rig::new(Arc::new(MemoryDisk::new()), &before).unwrap();
            feed(&mut rig, fed * LARGE / 20);
            let tokens = alive(&rig);
            // One is on its way.
            rig.place(1_000_000, 500).unwrap();
            resize(&mut rig, &after).unwrap();
            resize(&mut rig, &after).unwrap();
            // Nothing goes for that alone.
            assert!(
                tokens.iter().all(|token| rig.reader.is_live(token)),
                "{what}"
            );
            assert_eq!((octets(&rig), len(&rig)), (LARGE, LARGE), "{what}");
            rig.commit().unwrap();
            look(&rig, &what);
            let facts = &rig.reader.facts()[0];
            let (old, cycle) = (beyond(&rig, smaller), facts.cycle);
            let promised = facts.becomes_after_octets.unwrap();
            let state = facts.state();
            assert!(
                state.starts_with("narrowing: it becomes smaller"),
                "{state}"
            );
            let steps = come_around(&mut rig, smaller, &what);
            // What is reserved goes earlier, and pages are filled up.
            let came = steps * STEP;
            let slack = LARGE / 8 + STEP;
            assert!(
                promised <= came + slack && came <= promised + slack,
                "{what}: {came} of {promised}"
            );
            assert_eq!(rig.reader.facts()[0].state(), "ok", "{what}");
            // Where nothing came so far yet there is nothing to wait for.
            assert!(steps > 0 || fed * LARGE / 20 < smaller, "{what}");
            assert!(rig.reader.facts()[0].cycle <= cycle + 2, "{what}");
            assert!(old.iter().all(|token| !rig.reader.is_live(token)), "{what}");
            assert_eq!(len(&rig), smaller, "{what}");
            feed(&mut rig, 3 * smaller);
            rig.checkpoint().unwrap();
            look(&rig, &what);
            let tokens = alive(&rig);
            let octets: u64 = tokens.iter().map(|token| u64::from(token.len())).sum();
            assert!(octets > smaller * 7 / 10, "{what}: {octets} octets");
            let mut rig = recovered(&rig, &after).unwrap();
            assert_eq!(walked(&rig), tokens, "{what}");
            // And larger again: what lay there before is not taken for anything.
            resize(&mut rig, &before).unwrap();
            look(&rig, &what);
            feed(&mut rig, 2 * LARGE);
            rig.checkpoint().unwrap();
            look(&rig, &what);
            assert_eq!(len(&rig), LARGE, "{what}");
        }
    }
}

/// It was killed over and over; each start goes on, and none of them begins anew.
#[test]
fn a_buffer_becomes_smaller_through_any_number_of_starts() {
    let (before, after) = (sized(LARGE), sized(SMALL));
    let mut rig = Rig::new(Arc::new(MemoryDisk::new()), &before).unwrap();
    feed(&mut rig, LARGE * 3 / 2);
    resize(&mut rig, &after).unwrap();
    let mut steps = 0;
    while octets(&rig) > SMALL {
        feed(&mut rig, STEP);
        steps += 1;
        if steps % 2 == 0 {
            rig.checkpoint().unwrap();
        }
        rig = recovered(&rig, &after).unwrap();
        look(&rig, &format!("step {steps}"));
        assert!(steps < STEPS_MAX, "{} octets", octets(&rig));
    }
    let file_octets = len(&rig);
    assert!(file_octets == SMALL || file_octets == LARGE);
    feed(&mut rig, STEP);
    rig.checkpoint().unwrap();
    assert_eq!(len(&rig), SMALL);
}

/// Its disk fails, or its power is cut, at any step of the beginning and of the end.
#[test]
fn nothing_is_lost_whatever_fails_on_the_way() {
    let (before, after) = (sized(LARGE), sized(SMALL));
    for is_end in [false, true] {
        let (mut nth, mut is_done) = (0, false);
        while !is_done {
            nth += 1;
            let what = format!("step {nth} {is_end}");
            let memory = MemoryDisk::new();
            let faulty = FaultyDisk::new(Arc::new(memory.clone()));
            let mut rig = Rig::new(Arc::new(faulty.clone()), &before).unwrap();
            feed(&mut rig, LARGE * 5 / 4);
            if is_end {
                resize(&mut rig, &after).unwrap();
                // Up to where only a checkpoint is missing.
                while rig.reader.facts()[0].cycle < 4 {
                    feed(&mut rig, STEP);
                }
                assert_eq!(octets(&rig), LARGE);
            }
            let tokens = alive(&rig);
            faulty.stop_at_change(faulty.counts().changes() + nth);
            is_done = match is_end {
                true => {
                    let file = memory.open(Path::new(FILE), OpenMode::Read);
                    rig.checkpoint().is_ok() && file.unwrap().len().unwrap() == SMALL
                }
                false => resize(&mut rig, &after).is_ok(),
            };
            for (left, goes_on) in [
                (memory.crash(nth), false),
                (memory.crash_losing_all(), true),
            ] {
                rig.disk = Arc::new(left);
                let there = recovered(&rig, &after);
                // Before the header says so the old size is the right one.
                let mut there = match there {
                    Ok(there) => there,
                    Err(_) if !is_end && !is_done => {
                        let mut there = recovered(&rig, &before).unwrap();
                        resize(&mut there, &after).unwrap();
                        there
                    }
                    Err(error) => panic!("{what}: {error}"),
                };
                assert_eq!(walked(&there), tokens, "{what}");
                feed(&mut there, STEP);
                look(&there, &what);
                if !goes_on {
                    continue;
                }
                come_around(&mut there, SMALL, &what);
                assert_eq!(len(&there), SMALL, "{what}");
                look(&recovered(&there, &after).unwrap(), &what);
            }
        }
        assert!(nth >= 4, "{nth} steps");
    }
}

#[test]
fn whoever_thinks_better_of_it_has_the_size_that_was() {
    let (before, after) = (sized(LARGE), sized(SMALL));
    let mut rig = Rig::new(Arc::new(MemoryDisk::new()), &before).unwrap();
    feed(&mut rig, LARGE / 2);
    resize(&mut rig, &after).unwrap();
    assert_eq!(rig.reader.facts()[0].becomes, Some(SMALL));
    rig.checkpoint().unwrap();
    // By a start with the old configuration, or with another one while it is in use.
    for is_start in [true, false] {
        let mut there = recovered(&rig, if is_start { &before } else { &after }).unwrap();
        resize(&mut there, &before).unwrap();
        assert_eq!(there.reader.facts()[0].becomes, None);
        // That is durable before anything comes behind what was to be the end.
        assert!(recovered(&there, &after).is_err());
        feed(&mut there, LARGE / 4);
        assert!(there.reader.facts()[0].free_offset > LARGE / 2);
        there.checkpoint().unwrap();
        look(&recovered(&there, &before).unwrap(), "with the old size");
        rig.disk = Arc::new(MemoryDisk::new());
        rig = Rig::new(Arc::clone(&rig.disk), &before).unwrap();
        feed(&mut rig, LARGE / 2);
        resize(&mut rig, &after).unwrap();
    }
    // Any other size than these two is refused, and what can be done about it is said.
    let error = recovered(&rig, &sized(LARGE / 2)).unwrap_err().to_string();
    assert!(
        error.contains("or make it smaller: `newsreel store resize C0`"),
        "{error}"
    );
}

#[test]
fn a_buffer_that_nobody_has_open_becomes_smaller_when_it_is_used_again() {
    let (before, after) = (sized(LARGE), sized(SMALL));
    let mut rig = Rig::new(Arc::new(MemoryDisk::new()), &before).unwrap();
    feed(&mut rig, LARGE * 3 / 2);
    rig.checkpoint().unwrap();
    let tokens = alive(&rig);
    for _ in 0..2 {
        Store::resize(&rig.disk, place(), &after, "C0", &mut |_, _, _| {}).unwrap();
    }
    let error = recovered(&rig, &sized(LARGE / 2)).unwrap_err().to_string();
    assert!(error.contains("the configuration says 2097152"), "{error}");
    let mut rig = recovered(&rig, &after).unwrap();
    assert_eq!(walked(&rig), tokens);
    feed(&mut rig, STEP);
    come_around(&mut rig, SMALL, "closed");
    assert_eq!(len(&rig), SMALL);
}

/// Both copies of its header are lost on the way, or when it is there: the start was refused, with a size that was wrong.
#[test]
fn a_header_that_is_lost_twice_costs_nothing_on_the_way() {
    let (before, after) = (sized(LARGE), sized(SMALL));
    // Begun in the first round on either side of the new end, and in a later one.
    for fed in [LARGE / 8, LARGE / 2, LARGE * 3 / 2, LARGE * 17 / 8] {
        for steps in [0, 3, 12, 25, 38] {
            let what = format!("{fed}, {steps} steps");
            let mut rig = Rig::new(Arc::new(MemoryDisk::new()), &before).unwrap();
            feed(&mut rig, fed);
            resize(&mut rig, &after).unwrap();
            for _ in 0..steps {
                feed(&mut rig, STEP);
                rig.checkpoint().unwrap();
            }
            let (tokens, file_octets) = (alive(&rig), len(&rig));
            let file = rig.disk.open(Path::new(FILE), OpenMode::ReadWrite).unwrap();
            file.write_at(&[0xff; 8192], 0).unwrap();
            let (disk, log) = (Arc::clone(&rig.disk), rig.log.clone());
            let looking = Rig::recover(disk, &after, log, Access::ReadOnly).unwrap();
            assert_eq!(walked(&looking), tokens, "{what}");
            let mut rig = recovered(&rig, &after).unwrap();
            let state = rig.reader.facts()[0].state();
            assert!(state.contains("it was made again"), "{what}: {state}");
            look(&rig, &what);
            assert_eq!(alive(&rig), tokens, "{what}");
            feed(&mut rig, STEP);
            // The next start is one like any other.
            rig.checkpoint().unwrap();
            let mut rig = recovered(&rig, &after).unwrap();
            come_around(&mut rig, SMALL, &what);
            assert!(len(&rig) == SMALL && file_octets >= SMALL, "{what}");
            feed(&mut rig, 3 * SMALL);
            look(&recovered(&rig, &after).unwrap(), &what);
        }
    }
}

/// Whoever walks over it had begun before, and where the walk comes there is no file any more.
#[test]
fn a_walk_goes_on_when_the_file_is_cut() {
    let (before, after) = (sized(LARGE), sized(SMALL));
    let mut rig = Rig::new(Arc::new(MemoryDisk::new()), &before).unwrap();
    feed(&mut rig, LARGE * 3 / 2);
    let buffer = rig.reader.buffers()[0].id();
    let mut scan = rig.reader.scan(buffer, ScanRange::Live).unwrap();
    assert!(scan.step().unwrap().is_some());
    resize(&mut rig, &after).unwrap();
    feed(&mut rig, STEP);
    come_around(&mut rig, SMALL, "walked");
    assert_eq!(len(&rig), SMALL);
    while let Some(scanned) = scan.step().unwrap() {
        assert!(!matches!(scanned, Scanned::Damaged { .. }), "{scanned:?}");
    }
}

/// A log from before the file was cut tells of places behind its end.
#[test]
fn an_old_log_is_understood() {
    let (before, after) = (sized(LARGE), sized(SMALL));
    let mut rig = Rig::new(Arc::new(MemoryDisk::new()), &before).unwrap();
    feed(&mut rig, LARGE * 3 / 4);
    resize(&mut rig, &after).unwrap();
    feed(&mut rig, STEP);
    let old = rig.log.clone();
    assert!(old.marks()[0].reserved.offset() > SMALL);
    come_around(&mut rig, SMALL, "before");
    let there = Rig::recover(Arc::clone(&rig.disk), &after, old, Access::Write);
    let mut there = there.unwrap();
    feed(&mut there, 3 * SMALL);
    assert_eq!(there.read_all().corrupt, 0);
    let octets: u64 = alive(&there)
        .iter()
        .map(|token| u64::from(token.len()))
        .sum();
    assert!(octets > SMALL / 2, "{octets} octets");
}

#[test]
fn a_size_without_room_is_refused() {
    let mut rig = Rig::new(Arc::new(MemoryDisk::new()), &sized(LARGE)).unwrap();
    feed(&mut rig, LARGE);
    let error = resize(&mut rig, &sized(12_288)).unwrap_err().to_string();
    assert!(error.contains("have no room for its bitmap"), "{error}");
    assert_eq!(rig.reader.facts()[0].becomes, None);
}
