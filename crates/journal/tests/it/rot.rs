//! Rot: a damaged frame that a later one vouches for is reported and passed over, never cut; a damaged end is cut.

use std::path::PathBuf;

use newsreel_host::{Disk, MemoryDisk};
use newsreel_journal::FrameBuilder;
use newsreel_wire::Sequence;

use crate::support::{Dice, Log, Model, as_disk, assert_same, contents, dir, read_from};

/// A log of known frames; each is (segment path, offset, octets on disk, first, before).
struct Written {
    memory: MemoryDisk,
    model: Model,
    frames: Vec<(PathBuf, u64, u64, u64, u64)>,
}

fn written(commits: u64) -> Written {
    let memory = MemoryDisk::new();
    let (mut log, _) = Log::open(&as_disk(&memory), 1).unwrap();
    let model = log.commit_all((0..commits).map(|n| 1 + n % 11));
    let mut frames = Vec::new();
    let mut cursor = log.journal.read_from(Sequence(1));
    while let Some(frame) = cursor.next_frame().unwrap() {
        let path = dir().join(format!("{:016x}.log", frame.segment()));
        let (first, before) = (frame.first().0, frame.last().0 + 1);
        frames.push((path, frame.offset(), frame.disk_octets(), first, before));
    }
    drop(log);
    Written {
        memory,
        model,
        frames,
    }
}

/// The records without those in `first..before`.
fn without(model: &Model, first: u64, before: u64) -> Model {
    model
        .iter()
        .filter(|(s, _)| !(first..before).contains(s))
        .map(|(s, o)| (*s, o.clone()))
        .collect()
}

#[test]
fn one_rotten_frame_in_the_middle_is_reported_and_passed_over() {
    let Written {
        memory,
        model,
        frames,
    } = written(60);
    let mut dice = Dice(1);
    for (path, offset, octets, first, before) in &frames[..frames.len() - 1] {
        // In the header, anywhere in the payload, and the whole first page.
        let places = [dice.roll(64), 64 + dice.roll(16)];
        for (n, place) in places.into_iter().chain([0]).enumerate() {
            let memory = memory.crash_losing_all();
            if n == 2 {
                memory.corrupt(path, *offset, &[0; 4096]).unwrap();
            } else {
                memory
                    .flip_bit(path, offset + place, dice.roll(8) as u8)
                    .unwrap();
            }
            let context = format!("frame of {first}, {octets} octets, damaged at {place}");
            let wanted = without(&model, *first, *before);
            let (found, recovered) = contents(&memory);
            assert_same(&found, &wanted, &context);
            let damage: Vec<_> = recovered
                .damage
                .iter()
                .map(|d| (d.first.0, d.before.0))
                .collect();
            assert_eq!(damage, [(*first, *before)], "{context}");
            assert!(recovered.cut.is_none());
            let (log, _) = Log::open(&as_disk(&memory), 2).unwrap();
            let (seen, damage) = read_from(&log.journal, 1);
            assert_same(&seen, &wanted, &context);
            assert_eq!(damage, [(*first, *before)], "{context}, reading");
            let (seen, damage) = read_from(&log.journal, *before);
            assert_same(&seen, &model.clone().split_off(before), &context);
            assert!(damage.is_empty(), "{context}: not asked for");
        }
    }
}

#[test]
fn a_rotten_last_frame_is_cut() {
    let Written {
        memory,
        model,
        frames,
    } = written(25);
    let (path, offset, _, first, before) = frames.last().unwrap();
    for place in [3, 40, 70] {
        let memory = memory.crash_losing_all();
        memory.flip_bit(path, offset + place, 1).unwrap();
        let (mut log, found) = Log::open(&as_disk(&memory), 2).unwrap();
        let mut wanted = without(&model, *first, *before);
        assert_same(&found, &wanted, "cut");
        assert_eq!(log.recovered.next, Sequence(*first));
        assert_eq!(
            log.recovered.cut.is_some(),
            place != 3 && place != 40,
            "a frame, or nothing"
        );
        wanted.extend(log.commit_all([2]));
        drop(log);
        assert_same(&contents(&memory).0, &wanted, "written on");
    }
}

/// It vouches for all before it, also for the hole that a start leaves: that is no damage to whoever reads later.
#[test]
fn a_hole_before_a_frame_that_is_cut_is_no_damage() {
    let memory = MemoryDisk::new();
    let (mut log, _) = Log::open(&as_disk(&memory), 1).unwrap();
    let mut model = log.commit_all([3]);
    let mut frame = FrameBuilder::new();
    frame.start(Sequence(1000), log.recovered.epoch);
    frame.vouch(Sequence(1000));
    frame.push(crate::support::kind(1000), &[b"behind the hole"]);
    log.writer.write(&frame).unwrap();
    log.writer.sync().unwrap();
    drop(log);
    let segment = dir().join("0000000000000001.log");
    let (first_page, first_body) = (4096, 64);
    let second_frame = first_page * 2;
    memory
        .flip_bit(&segment, second_frame + first_body, 1)
        .unwrap();
    let (mut log, found) = Log::open(&as_disk(&memory), 2).unwrap();
    assert_same(&found, &model, "cut");
    let cut = log.recovered.cut.clone().unwrap();
    assert_eq!(
        (cut.first, log.recovered.next),
        (Sequence(1000), Sequence(1000))
    );
    model.extend(log.commit_all([2]));
    let (seen, damage) = read_from(&log.journal, 1);
    assert_same(&seen, &model, "written on");
    assert_eq!(damage, []);
    drop(log);
    let (_, recovered) = contents(&memory);
    assert_eq!(recovered.damage, []);
}

#[test]
fn a_rotten_first_page_costs_nothing() {
    let Written {
        memory,
        model,
        frames,
    } = written(60);
    let mut paths: Vec<&PathBuf> = frames.iter().map(|frame| &frame.0).collect();
    paths.dedup();
    assert!(paths.len() > 3);
    for path in paths {
        let memory = memory.crash_losing_all();
        memory.corrupt(path, 0, &[0xee; 100]).unwrap();
        let (mut log, found) = Log::open(&as_disk(&memory), 2).unwrap();
        let mut model = model.clone();
        assert_same(&found, &model, "every frame tells which segment it is in");
        assert_eq!(log.recovered.damage, []);
        assert_same(&read_from(&log.journal, 1).0, &model, "reading");
        model.extend(log.commit_all([3, 9]));
        drop(log);
        assert_same(&contents(&memory).0, &model, "written on");
    }
}

#[test]
fn rot_anywhere_costs_at_most_the_frames_it_is_in() {
    let Written {
        memory,
        model,
        frames,
    } = written(40);
    for seed in 0..150 {
        let mut dice = Dice(seed);
        let memory = memory.crash_losing_all();
        let mut hit = Vec::new();
        for _ in 0..=dice.roll(3) {
            let at = usize::try_from(dice.roll(frames.len() as u64)).unwrap();
            let (path, offset, octets, first, before) = &frames[at];
            let from = dice.roll(*octets);
            let len = 1 + dice.roll(octets - from);
            let junk: Vec<u8> = (0..len).map(|_| dice.roll(256) as u8).collect();
            memory.corrupt(path, offset + from, &junk).unwrap();
            hit.push((*first, *before));
        }
        let least = hit
            .iter()
            .fold(model.clone(), |model, (f, b)| without(&model, *f, *b));
        let (found, _) = contents(&memory);
        for (sequence, octets) in &least {
            assert!(
                found.get(sequence) == Some(octets),
                "seed {seed}: {sequence} is lost"
            );
        }
        for (sequence, octets) in &found {
            assert!(
                model.get(sequence) == Some(octets),
                "seed {seed}: {sequence} is wrong"
            );
        }
    }
}

#[test]
fn a_segment_that_is_gone_is_damage() {
    let Written {
        memory,
        model,
        frames,
    } = written(60);
    let mut paths: Vec<&PathBuf> = frames.iter().map(|frame| &frame.0).collect();
    paths.dedup();
    let lost: Vec<_> = frames.iter().filter(|frame| frame.0 == *paths[1]).collect();
    let (first, before) = (lost[0].3, lost[lost.len() - 1].4);
    memory.remove(paths[1]).unwrap();
    let (found, recovered) = contents(&memory);
    assert_same(
        &found,
        &without(&model, first, before),
        "the others are there",
    );
    assert_eq!(recovered.damage_count, 1);
    assert_eq!(
        (recovered.damage[0].first.0, recovered.damage[0].before.0),
        (first, before)
    );
}

#[test]
fn rot_at_the_very_beginning_is_reported_too() {
    let Written {
        memory,
        model,
        frames,
    } = written(20);
    let (path, offset, octets, first, before) = &frames[0];
    memory.corrupt(path, 0, &[1; 90]).unwrap();
    memory
        .corrupt(path, *offset, &vec![1; usize::try_from(*octets).unwrap()])
        .unwrap();
    let (found, recovered) = contents(&memory);
    assert_same(
        &found,
        &without(&model, *first, *before),
        "the rest is there",
    );
    let damage: Vec<_> = recovered
        .damage
        .iter()
        .map(|d| (d.first.0, d.before.0))
        .collect();
    assert_eq!(damage, [(*first, *before)]);
}

#[test]
fn a_lost_beginning_that_nobody_vouched_for_is_cut_and_not_taken_for_retired() {
    let memory = MemoryDisk::new();
    let (mut log, _) = Log::open(&as_disk(&memory), 1).unwrap();
    while log.journal.segments().len() < 2 {
        log.write(9, 0).1.unwrap();
    }
    drop(log);
    let first = dir().join(format!("{:016x}.log", 1));
    memory.corrupt(&first, 0, &[0; 64 * 1024]).unwrap();
    let (mut log, found) = Log::open(&as_disk(&memory), 2).unwrap();
    assert!(found.is_empty());
    assert_eq!(log.recovered.cut.as_ref().unwrap().first, Sequence(1));
    let model = log.commit_all([3, 20]);
    drop(log);
    assert_same(&contents(&memory).0, &model, "written on");
}
