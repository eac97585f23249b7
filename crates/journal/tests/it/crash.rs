//! Power cuts at every moment: what was synced is there, a frame is whole or gone, nothing old comes back.

use std::sync::Arc;

use newsreel_host::{Disk, FaultyDisk, MemoryDisk};
use newsreel_wire::Sequence;

use crate::support::{Dice, Log, Model, as_disk, assert_same, contents, read_from};

/// One life: some commits until the machine stops; returns what was synced and what was tried.
fn live(disk: &FaultyDisk, life: u64, dice: &mut Dice, frames: u64, sync_every: u64) -> Life {
    let mut result = Life::default();
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let from = 1;
    let Ok((mut log, found)) = Log::open_from(&disk, life, from, |_| true) else {
        return result;
    };
    result.found = Some(found);
    let mut synced_before = log.writer.next().0;
    let mut since_sync = Model::new();
    for n in 1..=frames {
        let (model, written) = log.write(1 + dice.roll(12), synced_before);
        result.tried.extend(model.clone());
        since_sync.extend(model);
        if written.is_err() {
            return result;
        }
        if n % sync_every == 0 {
            if log.writer.sync().is_err() {
                return result;
            }
            synced_before = log.writer.next().0;
            result.synced.append(&mut since_sync);
        }
    }
    result
}

#[derive(Debug, Default)]
struct Life {
    /// What recovery found, if it came so far.
    found: Option<Model>,
    synced: Model,
    tried: Model,
}

/// After a crash: all that was durable before, what was synced, and of what was tried whole frames from the front.
#[track_caller]
fn check_after(found: &Model, before: &Model, life: &Life, context: &str) {
    let mut least = before.clone();
    least.extend(life.synced.clone());
    for (sequence, octets) in &least {
        assert!(
            found.get(sequence) == Some(octets),
            "{context}: lost {sequence}"
        );
    }
    let last = found.keys().next_back().copied().unwrap_or(0);
    let mut wanted = least;
    wanted.extend(life.tried.range(..=last).map(|(k, v)| (*k, v.clone())));
    assert_same(found, &wanted, context);
}

/// Lives one behind the other on one disk, each ended by a stop and a power cut; every promise is checked after each.
/// Returns how many records are there in the end.
fn lives(seed: u64, sync_every: u64, stop: impl Fn(&FaultyDisk, &mut Dice)) -> usize {
    let mut dice = Dice(seed);
    let mut memory = MemoryDisk::new();
    let mut durable = Model::new();
    for life in 1..=5 {
        let context = format!("seed {seed}, life {life}");
        let faulty = FaultyDisk::new(Arc::new(memory.clone()));
        stop(&faulty, &mut dice);
        let result = live(&faulty, life, &mut dice, 40, sync_every);
        if let Some(found) = &result.found {
            assert_same(found, &durable, &format!("{context}, what it found"));
        }
        memory = match dice.roll(5) {
            0 => memory.crash_losing_all(),
            // The process was killed, the machine goes on.
            1 => memory,
            _ => memory.crash(dice.roll(u64::MAX)),
        };
        let (found, recovered) = contents(&memory);
        check_after(&found, &durable, &result, &context);
        assert_eq!(recovered.damage, [], "{context}");
        // What a recovery accepted is durable when it is finished.
        let (mut log, again) = Log::open(&as_disk(&memory), 50 + life).unwrap();
        assert_same(&again, &found, &format!("{context}, recovered"));
        assert_same(
            &read_from(&log.journal, 1).0,
            &found,
            &format!("{context}, read"),
        );
        let worst = memory.crash_losing_all();
        assert_same(
            &contents(&worst).0,
            &found,
            &format!("{context}, made fast"),
        );
        durable = found;
        durable.extend(log.commit_all([1 + dice.roll(30), 2]));
        let (seen, damage) = read_from(&log.journal, 1);
        assert_same(&seen, &durable, &format!("{context}, written on"));
        assert_eq!(damage, [], "{context}");
    }
    durable.len()
}

#[test]
fn group_commit_survives_a_stop_at_any_operation() {
    let run = |seed| lives(seed, 1, |disk, dice| disk.stop_at_change(dice.roll(140)));
    assert!((0..20).map(run).sum::<usize>() > 1000);
}

#[test]
fn group_commit_survives_a_stop_at_every_sync() {
    // The first life's syncs, one after the other: 40 commits and the preparing of segments.
    let run = |nth| lives(nth, 1, |disk, _| disk.stop_at_sync(nth));
    assert!((1..25).map(run).sum::<usize>() > 1000);
}

#[test]
fn without_durability_whole_frames_from_the_front_survive() {
    for seed in 1000..1020 {
        lives(seed, 1 + seed % 17, |disk, dice| {
            disk.stop_at_change(dice.roll(90))
        });
    }
}

#[test]
fn a_cut_frame_and_all_behind_it_never_come_back() {
    for seed in 0..60 {
        let mut dice = Dice(seed);
        let mut memory = MemoryDisk::new();
        let mut durable = Model::new();
        for life in 1..=4 {
            let context = format!("seed {seed}, life {life}");
            let (mut log, found) = Log::open(&as_disk(&memory), life).unwrap();
            assert_same(&found, &durable, &context);
            // Nothing vouches for these frames: they are the caller's to judge.
            let vouched = log.writer.next().0;
            let mut firsts = Vec::new();
            for _ in 0..1 + dice.roll(12) {
                firsts.push(log.writer.next().0);
                let (model, written) = log.write(1 + dice.roll(9), vouched);
                written.unwrap();
                durable.extend(model);
            }
            log.writer.sync().unwrap();
            drop(log);
            let bad = firsts[usize::try_from(dice.roll(firsts.len() as u64)).unwrap()];
            let (log, _) = Log::open_from(&as_disk(&memory), 99, 1, |first| first != bad).unwrap();
            assert_eq!(log.recovered.cut.as_ref().unwrap().first, Sequence(bad));
            // Sequences that were cut may be used again, for other things.
            assert!(log.recovered.next >= Sequence(bad), "{context}");
            drop(log);
            durable.split_off(&bad);
            if dice.roll(2) == 0 {
                memory = memory.crash_losing_all();
            }
            assert_same(&contents(&memory).0, &durable, &context);
        }
    }
}
