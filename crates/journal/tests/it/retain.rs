//! Retention: old segments go, their files come back as new ones, slow readers are told.

use std::sync::Arc;

use newsreel_host::{Disk, FaultyDisk, MemoryDisk};
use newsreel_journal::{Error, Recovery};
use newsreel_wire::Sequence;

use crate::support::{
    Dice, Log, Model, SPOOL, as_disk, assert_same, config, contents_from, dir, enter, read_from,
};

#[test]
fn retired_segments_go_and_the_rest_stays_readable() {
    let memory = MemoryDisk::new();
    let (mut log, _) = Log::open(&as_disk(&memory), 1).unwrap();
    let model = log.commit_all((0..60).map(|n| 1 + n % 13));
    let firsts: Vec<u64> = log.journal.segments().iter().map(|s| s.first.0).collect();
    assert!(firsts.len() > 4 && firsts[0] == 1, "{firsts:?}");
    log.writer.retire_before(Sequence(firsts[2] - 1)).unwrap();
    assert_eq!(log.journal.oldest(), Sequence(firsts[1]));
    log.journal.retire_before(Sequence(firsts[3]));
    assert_eq!(log.journal.oldest(), Sequence(firsts[3]));
    let (seen, _) = read_from(&log.journal, firsts[3]);
    assert_same(&seen, &model.clone().split_off(&firsts[3]), "kept");
    let mut cursor = log.journal.read_from(Sequence(firsts[3] - 1));
    let error = cursor.next_frame().unwrap_err();
    assert!(
        matches!(error, Error::Gone { oldest, .. } if oldest.0 == firsts[3]),
        "{error}"
    );
    cursor.seek(log.journal.oldest());
    assert_eq!(cursor.next_frame().unwrap().unwrap().first().0, firsts[3]);
    log.journal.retire_before(Sequence(u64::MAX));
    assert_eq!(
        log.journal.segments().len(),
        1,
        "the one being written stays"
    );
    let kept = log.journal.oldest();
    drop(log);
    assert!(
        memory.list(dir()).unwrap().len() <= 3,
        "one in use, one prepared, one to recycle"
    );
    let gone = Recovery::open(
        as_disk(&memory),
        dir(),
        config(),
        SPOOL,
        Sequence(kept.0 - 1),
    );
    assert!(matches!(gone.unwrap_err(), Error::Gone { .. }));
    let (_, found) = Log::open_from(&as_disk(&memory), 2, kept.0, |_| true).unwrap();
    assert_same(&found, &model.clone().split_off(&kept.0), "reopened");
}

#[test]
fn recycled_segments_never_show_their_earlier_life() {
    for seed in 0..8 {
        recycle(seed);
    }
}

/// Lives with commits, retirement and a stop at any moment, on one disk.
fn recycle(seed: u64) {
    let mut dice = Dice(seed);
    let mut memory = MemoryDisk::new();
    let (mut durable, mut replay_from) = (Model::new(), 1);
    for life in 1..=12 {
        let context = format!("seed {seed}, life {life}");
        let faulty = FaultyDisk::new(Arc::new(memory.clone()));
        let disk: Arc<dyn Disk> = Arc::new(faulty.clone());
        let (mut log, found) = Log::open_from(&disk, life, replay_from, |_| true).unwrap();
        assert_same(&found, &durable, &context);
        if dice.roll(3) > 0 {
            faulty.stop_at_change(faulty.counts().changes() + dice.roll(120));
        }
        let mut open = Model::new();
        for _ in 0..40 {
            let (records, done) = log.commit(1 + dice.roll(12));
            if done.is_err() {
                open = records;
                break;
            }
            durable.extend(records);
            replay_from += dice.roll(log.writer.next().0 - replay_from + 1);
            log.journal.retire_before(Sequence(replay_from));
        }
        durable = durable.split_off(&replay_from);
        if !faulty.stopped() {
            let (seen, damage) = read_from(&log.journal, replay_from);
            assert_same(&seen, &durable, &context);
            assert!(damage.is_empty());
            assert!(log.journal.segments().len() < 10);
        }
        drop(log);
        memory = memory.crash(dice.roll(u64::MAX));
        // The frame that was being written may be there or not, but only as a whole.
        let (found, _) = contents_from(&memory, replay_from);
        if found.len() > durable.len() {
            durable.extend(open);
        }
        assert_same(&found, &durable, &format!("{context}, crashed"));
    }
    assert!(
        memory.list(dir()).unwrap().len() < 12,
        "files do not pile up"
    );
}

#[test]
fn a_reader_overtaken_by_retention_is_told_and_never_sees_other_octets() {
    let memory = MemoryDisk::new();
    let (mut log, _) = Log::open(&as_disk(&memory), 1).unwrap();
    let journal = log.journal.clone();
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let mut cursor = journal.read_from(Sequence(1));
            let (mut model, mut gone) = (Model::new(), 0);
            while cursor.position().0 < 6000 {
                let wanted = cursor.position();
                match cursor.next_frame() {
                    Ok(Some(frame)) => {
                        enter(&mut model, frame.records().since(wanted));
                        if wanted.0 % 5 == 0 {
                            std::thread::sleep(std::time::Duration::from_micros(300));
                        }
                    }
                    Ok(None) => std::thread::yield_now(),
                    Err(Error::Gone { oldest, .. }) => {
                        gone += 1;
                        cursor.seek(oldest);
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            (model, gone)
        });
        let mut model = Model::new();
        while log.writer.next().0 < 6000 {
            model.extend(log.commit_all([7]));
            log.journal
                .retire_before(Sequence(log.writer.next().0.saturating_sub(60)));
        }
        let (seen, gone) = reader.join().unwrap();
        for (sequence, octets) in &seen {
            assert!(model.get(sequence) == Some(octets), "{sequence}");
        }
        assert!(gone > 0, "the reader was to be overtaken");
    });
    drop(log);
    assert!(last_in(&memory) > 5990);
}

/// The last sequence of a log that begins anywhere.
fn last_in(memory: &MemoryDisk) -> u64 {
    let entries = memory.list(dir()).unwrap();
    assert!(entries.len() < 5, "{entries:?}");
    let oldest = match Recovery::open_read_only(as_disk(memory), dir(), SPOOL, Sequence(1)) {
        Err(Error::Gone { oldest, .. }) => oldest.0,
        other => panic!("{other:?}"),
    };
    let (_, found) = Log::open_from(&as_disk(memory), 2, oldest, |_| true).unwrap();
    *found.keys().next_back().unwrap()
}
