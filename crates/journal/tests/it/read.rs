//! Writing and reading back: by recovery, by readers at every place, by readers beside the writer.

use std::sync::Arc;

use newsreel_host::{Disk, FaultyDisk, MemoryDisk, RealDisk};
use newsreel_journal::{Error, FrameBuilder, Recovery, SpoolId};
use newsreel_wire::Sequence;

use crate::support::{
    Log, Model, SEGMENT, SPOOL, as_disk, assert_same, config, contents, dir, enter, read_from,
};

#[test]
fn what_is_committed_is_read_from_every_sequence_and_after_reopening() {
    let disk = MemoryDisk::new();
    let (mut log, empty) = Log::open(&as_disk(&disk), 1).unwrap();
    assert!(empty.is_empty());
    assert_eq!((log.recovered.next, log.recovered.epoch), (Sequence(1), 1));
    let model = log.commit_all([1, 7, 30, 2, 19, 40, 3, 3, 60, 1]);
    assert!(log.journal.segments().len() > 2, "several segments");
    for from in [0, 1, 2, 8, 9, 38, 39, 40, 100, 165, 166] {
        let (seen, damage) = read_from(&log.journal, from);
        assert_same(
            &seen,
            &model.clone().split_off(&from),
            &format!("from {from}"),
        );
        assert!(damage.is_empty());
    }
    drop(log);
    for from in 1..=167 {
        let (log, seen) = Log::open_from(&as_disk(&disk), 2, from, |_| true).unwrap();
        assert_same(
            &seen,
            &model.clone().split_off(&from),
            &format!("replay from {from}"),
        );
        assert_eq!(log.recovered.next, Sequence(167));
        let (seen, _) = read_from(&log.journal, 1);
        assert_same(&seen, &model, "the whole log stays readable");
    }
}

#[test]
fn each_opening_is_a_new_epoch_once_something_was_written() {
    let disk = MemoryDisk::new();
    let mut model = Model::new();
    for life in 1..6 {
        let (mut log, seen) = Log::open(&as_disk(&disk), life).unwrap();
        assert_eq!(log.recovered.epoch, life);
        assert_same(&seen, &model, "earlier lives");
        model.extend(log.commit_all([3, 4]));
    }
    assert!(
        disk.list(dir()).unwrap().len() <= 2,
        "one in use, one prepared"
    );
}

#[test]
fn a_reader_sees_only_what_is_published() {
    let disk = MemoryDisk::new();
    let (mut log, _) = Log::open(&as_disk(&disk), 1).unwrap();
    let mut cursor = log.journal.read_from(Sequence(1));
    assert!(cursor.next_frame().unwrap().is_none());
    let (_, written) = log.write(5, 1);
    written.unwrap();
    assert!(
        cursor.next_frame().unwrap().is_none(),
        "written, not published"
    );
    log.writer.sync().unwrap();
    log.journal.publish_before(Sequence(4));
    assert!(
        cursor.next_frame().unwrap().is_none(),
        "half of a frame is not readable"
    );
    log.journal.publish_before(Sequence(6));
    let frame = cursor.next_frame().unwrap().unwrap();
    assert_eq!(
        (frame.first(), frame.last(), frame.records().len()),
        (Sequence(1), Sequence(5), 5)
    );
    assert_eq!(
        frame
            .records()
            .since(Sequence(4))
            .map(|r| r.sequence.0)
            .collect::<Vec<_>>(),
        [4, 5]
    );
    assert_eq!(frame.records().since(Sequence(9)).count(), 0);
    assert!(cursor.next_frame().unwrap().is_none());
    assert_eq!(cursor.position(), Sequence(6));
    log.journal.publish_before(Sequence(2));
    assert_eq!(log.journal.committed_before(), Sequence(6), "never back");
}

#[test]
fn readers_run_beside_the_writer_across_segments() {
    let disk = MemoryDisk::new();
    let (mut log, _) = Log::open(&as_disk(&disk), 1).unwrap();
    const LAST: u64 = 3000;
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..3)
            .map(|n| {
                let journal = log.journal.clone();
                scope.spawn(move || {
                    let mut cursor = journal.read_from(Sequence(1 + n * 7));
                    let mut model = Model::new();
                    while cursor.position().0 <= LAST {
                        let wanted = cursor.position();
                        match cursor.next_frame().unwrap() {
                            Some(frame) => enter(&mut model, frame.records().since(wanted)),
                            None => std::thread::yield_now(),
                        }
                    }
                    (1 + n * 7, model)
                })
            })
            .collect();
        let mut model = Model::new();
        while log.writer.next().0 <= LAST {
            let count = (1 + log.writer.next().0 % 9).min(LAST + 1 - log.writer.next().0);
            model.extend(log.commit_all([count]));
        }
        for reader in readers {
            let (from, seen) = reader.join().unwrap();
            assert_same(
                &seen,
                &model.clone().split_off(&from),
                "a reader beside the writer",
            );
        }
    });
    assert!(log.journal.segments().len() > 20);
}

#[test]
fn frames_may_skip_sequences_and_the_hole_stays() {
    let disk = MemoryDisk::new();
    let (mut log, _) = Log::open(&as_disk(&disk), 1).unwrap();
    let mut model = log.commit_all([3]);
    let mut frame = FrameBuilder::new();
    frame.start(Sequence(100), log.recovered.epoch);
    frame.push(crate::support::kind(100), &[b"behind ", b"the hole"]);
    log.writer.write(&frame).unwrap();
    log.writer.sync().unwrap();
    log.journal.publish_before(Sequence(101));
    model.insert(100, b"behind the hole".to_vec());
    for from in [1, 4, 50, 100] {
        let (seen, damage) = read_from(&log.journal, from);
        assert_same(&seen, &model.clone().split_off(&from), "hole");
        assert!(damage.is_empty());
    }
    drop(log);
    let (seen, recovered) = contents(&disk);
    assert_same(&seen, &model, "reopened");
    assert_eq!((recovered.next, recovered.damage_count), (Sequence(101), 0));
}

#[test]
fn frames_out_of_order_or_too_large_are_refused() {
    let disk = MemoryDisk::new();
    let (mut log, _) = Log::open(&as_disk(&disk), 1).unwrap();
    let model = log.commit_all([3]);
    let mut frame = FrameBuilder::new();
    log.writer.write(&frame).expect("an empty frame is nothing");
    for (first, epoch) in [(3, 1), (0, 1), (4, 0), (4, 2)] {
        frame.start(Sequence(first), epoch);
        frame.push(1, &[]);
        assert!(
            matches!(log.writer.write(&frame), Err(Error::OutOfOrder { .. })),
            "{first} {epoch}"
        );
    }
    frame.start(Sequence(4), 1);
    let max = log.writer.frame_octets_max();
    frame.push(1, &[&vec![0; usize::try_from(max).unwrap() - 4]]);
    assert!(matches!(
        log.writer.write(&frame),
        Err(Error::FrameTooLarge { .. })
    ));
    frame.start(Sequence(4), 1);
    frame.record(1).clear();
    assert!(matches!(
        log.writer.write(&frame),
        Err(Error::Malformed { .. })
    ));
    let largest = vec![9; usize::try_from(max).unwrap() - 5];
    frame.start(Sequence(4), 1);
    frame.push(4, &[&largest]);
    log.writer.write(&frame).unwrap();
    log.writer.sync().unwrap();
    log.journal.publish_before(Sequence(5));
    let mut model = model;
    model.insert(4, largest);
    assert_same(&read_from(&log.journal, 1).0, &model, "the largest frame");
}

#[test]
fn read_only_changes_nothing_and_sees_everything() {
    let memory = MemoryDisk::new();
    let (mut log, _) = Log::open(&as_disk(&memory), 1).unwrap();
    let model = log.commit_all([5, 50, 50]);
    let (cut_off, written) = log.write(4, log.writer.next().0);
    written.unwrap();
    drop(log);
    let faulty = FaultyDisk::new(Arc::new(memory.clone()));
    let disk: Arc<dyn Disk> = Arc::new(faulty.clone());
    let mut recovery = Recovery::open_read_only(disk, dir(), SPOOL, Sequence(1)).unwrap();
    let mut seen = Model::new();
    while let Some(frame) = recovery.next_frame().unwrap() {
        if frame.is_vouched() {
            enter(&mut seen, frame.records());
        } else if frame.first().0 == 106 {
            recovery.cut("as a store would");
            break;
        } else {
            enter(&mut seen, frame.records());
        }
    }
    let (journal, recovered) = recovery.finish_read_only().unwrap();
    assert_same(&seen, &model, "replayed");
    assert_same(
        &read_from(&journal, 1).0,
        &model,
        "read, without the cut frame",
    );
    assert_eq!(recovered.cut.unwrap().first, Sequence(106));
    journal.retire_before(Sequence(100));
    assert_eq!(faulty.counts().changes(), 0);
    let mut whole = model;
    whole.extend(cut_off);
    assert_same(&contents(&memory).0, &whole, "the cut was not made on disk");
    let none: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let recovery = Recovery::open_read_only(none, dir(), SPOOL, Sequence(1)).unwrap();
    assert_eq!(recovery.finish_read_only().unwrap().1.next, Sequence(1));
}

#[test]
fn another_spools_log_is_refused() {
    let disk = MemoryDisk::new();
    let (mut log, _) = Log::open(&as_disk(&disk), 1).unwrap();
    log.commit_all([1]);
    drop(log);
    let other = SpoolId([7; 16]);
    let error = Recovery::open(as_disk(&disk), dir(), config(), other, Sequence(1)).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("belongs to spool 73706f6f6c2d666f722d746573747321"),
        "{error}"
    );
}

#[test]
fn a_log_older_than_its_views_is_told() {
    let disk = MemoryDisk::new();
    let (mut log, _) = Log::open(&as_disk(&disk), 1).unwrap();
    log.commit_all([5]);
    drop(log);
    let (mut log, seen) = Log::open_from(&as_disk(&disk), 2, 100, |_| true).unwrap();
    assert!(seen.is_empty());
    assert_eq!(
        (log.recovered.end, log.recovered.next),
        (Sequence(6), Sequence(100))
    );
    let model = log.commit_all([2]);
    assert_same(
        &read_from(&log.journal, 100).0,
        &model,
        "goes on behind the views",
    );
}

#[test]
fn the_log_works_on_the_real_disk() {
    let top = tempfile::tempdir().unwrap();
    let dir = top.path().join("spool/log");
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let mut model = Model::new();
    for life in 1..4 {
        let open = Recovery::open(Arc::clone(&disk), &dir, config(), SPOOL, Sequence(1));
        let mut recovery = open.unwrap();
        let mut seen = Model::new();
        while let Some(frame) = recovery.next_frame().unwrap() {
            enter(&mut seen, frame.records());
        }
        assert_same(&seen, &model, "real disk");
        let (mut writer, journal, recovered) = recovery.finish().unwrap();
        let mut frame = FrameBuilder::new();
        for _ in 0..40 {
            frame.start(writer.next(), recovered.epoch);
            frame.vouch(writer.next());
            for _ in 0..20 {
                let octets = crate::support::payload(life, frame.end().0);
                model.insert(frame.end().0, octets.clone());
                frame.push(crate::support::kind(frame.end().0), &[&octets]);
            }
            writer.write(&frame).unwrap();
            writer.sync().unwrap();
        }
        journal.publish_before(writer.next());
        assert_same(&read_from(&journal, 1).0, &model, "real disk, read beside");
    }
    for entry in disk.list(&dir).unwrap() {
        assert_eq!(entry.len, SEGMENT, "every segment is written in full");
    }
}
