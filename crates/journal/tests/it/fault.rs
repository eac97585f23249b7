//! Failing syncs, torn writes, a full disk: what was given up stays a hole, what was acknowledged stays.

use std::sync::Arc;

use newsreel_host::{Disk, Effect, Fault, FaultyDisk, MemoryDisk, Op};
use newsreel_journal::Error;
use newsreel_wire::Sequence;

use crate::support::{Log, Model, SEGMENT, as_disk, assert_same, contents, dir, read_from};

fn faulty(memory: &MemoryDisk) -> (FaultyDisk, Arc<dyn Disk>) {
    let faulty = FaultyDisk::new(Arc::new(memory.clone()));
    (faulty.clone(), Arc::new(faulty))
}

/// Runs commits; those that fail are given up and the log goes on.  Returns what was acknowledged and how many failed.
fn run(log: &mut Log, commits: u64) -> (Model, u64) {
    let (mut model, mut failed) = (Model::new(), 0);
    for n in 0..commits {
        let first = log.writer.next();
        let (records, done) = log.commit(1 + n % 7);
        match done {
            Ok(()) => model.extend(records),
            Err(_) => {
                failed += 1;
                let last = Sequence(*records.keys().next_back().unwrap());
                while log.writer.abort(first, last).is_err() {}
                assert!(log.writer.next() > last, "given up for good");
            }
        }
    }
    (model, failed)
}

#[test]
fn a_sync_that_fails_costs_its_frame_and_nothing_else() {
    for nth in 1..40 {
        for effect in [Effect::Medium, Effect::Full] {
            let memory = MemoryDisk::new();
            let (disk, as_dyn) = faulty(&memory);
            let (mut log, _) = Log::open(&as_dyn, 1).unwrap();
            disk.add(Fault::new(Op::Sync, ".log", effect).nth(nth));
            let (model, failed) = run(&mut log, 40);
            assert!(
                failed <= 1,
                "the prepared segment's syncs are not the caller's"
            );
            let context = format!("sync {nth} fails");
            assert_same(&read_from(&log.journal, 1).0, &model, &context);
            drop(log);
            for seed in 0..6 {
                let (found, recovered) = contents(&memory.crash(seed));
                assert_same(&found, &model, &format!("{context}, seed {seed}"));
                assert_eq!(recovered.damage_count, 0);
            }
            // Without a power cut: what memory shows and the disk does not have is not believed.
            let (log, found) = Log::open(&as_disk(&memory), 2).unwrap();
            assert_same(&found, &model, &format!("{context}, restarted"));
            drop(log);
            assert_same(&contents(&memory.crash_losing_all()).0, &model, &context);
        }
    }
}

#[test]
fn after_a_failed_sync_only_abort_goes_on() {
    let memory = MemoryDisk::new();
    let (disk, as_dyn) = faulty(&memory);
    let (mut log, _) = Log::open(&as_dyn, 1).unwrap();
    let mut model = log.commit_all([2]);
    disk.add(Fault::new(Op::Sync, "0001.log", Effect::Medium));
    let (_, failed) = log.commit(3);
    assert!(matches!(failed, Err(Error::Disk(_))));
    assert!(
        matches!(log.writer.sync(), Err(Error::Abandoned { .. })),
        "not tried again"
    );
    let (_, refused) = log.commit(1);
    assert!(matches!(refused, Err(Error::Abandoned { .. })));
    log.writer.abort(Sequence(3), Sequence(5)).unwrap();
    assert_eq!(log.writer.next(), Sequence(6));
    model.extend(log.commit_all([1, 1]));
    assert_same(&read_from(&log.journal, 1).0, &model, "goes on");
    assert_eq!(read_from(&log.journal, 3).0.len(), 2);
    drop(log);
    let (mut log, found) = Log::open(&as_dyn, 2).unwrap();
    assert_same(&found, &model, "reopened");
    assert_eq!(log.recovered.next, Sequence(8));
    model.extend(log.commit_all([1]));
    drop(log);
    assert_same(&contents(&memory).0, &model, "and written on");
}

#[test]
fn a_restart_after_a_failed_sync_believes_only_the_medium() {
    // The process dies right after the sync failed: nothing names the aborted frame.
    for seed in 1..40 {
        let memory = MemoryDisk::new();
        let (disk, as_dyn) = faulty(&memory);
        let (mut log, _) = Log::open(&as_dyn, 1).unwrap();
        let mut model = log.commit_all((0..seed).map(|n| 1 + n % 9));
        // The segment in use, and the next one should the frame not fit.
        let id = log.journal.segments().last().unwrap().id;
        for id in [id, id + 1] {
            disk.add(Fault::new(Op::Sync, &format!("{id:016x}"), Effect::Medium).forever());
        }
        let (_, failed) = log.commit(3);
        assert!(failed.is_err());
        drop(log);
        disk.clear();
        let (mut log, found) = Log::open(&as_dyn, 2).unwrap();
        assert_same(&found, &model, "the lost frame shows only in memory");
        model.extend(log.commit_all([4]));
        drop(log);
        assert_same(&contents(&memory.crash_losing_all()).0, &model, "durable");
    }
}

#[test]
fn a_torn_write_costs_its_frame_and_nothing_else() {
    for nth in 1..30 {
        let memory = MemoryDisk::new();
        let (disk, as_dyn) = faulty(&memory);
        let (mut log, _) = Log::open(&as_dyn, 1).unwrap();
        let torn = Effect::Torn {
            sectors: usize::try_from(nth % 11).unwrap(),
            silent: false,
        };
        disk.add(Fault::new(Op::Write, ".log", torn).nth(nth));
        let (model, failed) = run(&mut log, 30);
        assert!(failed <= 1);
        assert_same(&read_from(&log.journal, 1).0, &model, "beside");
        drop(log);
        let (found, recovered) = contents(&memory.crash(nth));
        assert_same(&found, &model, &format!("torn at {nth}"));
        assert_eq!(recovered.damage_count, 0);
    }
}

#[test]
fn aborted_sequences_stay_holes_when_only_the_new_segments_first_page_was_written() {
    for from in [1, 3, 6] {
        let memory = MemoryDisk::new();
        let (disk, as_dyn) = faulty(&memory);
        let (mut log, _) = Log::open(&as_dyn, 1).unwrap();
        let model = log.commit_all([2]);
        // The aborted frame did reach the medium, though the sync said no.
        let (_, written) = log.write(3, 3);
        written.unwrap();
        log.writer.abort(Sequence(3), Sequence(5)).unwrap();
        let torn = Effect::Torn {
            sectors: 8,
            silent: false,
        };
        disk.add(Fault::new(Op::Write, "0002.log", torn));
        let (_, failed) = log.commit(2);
        assert!(failed.is_err());
        drop(log);
        let (mut log, found) = Log::open_from(&as_disk(&memory), 2, from, |_| true).unwrap();
        assert_same(&found, &model.clone().split_off(&from), "replayed");
        assert_eq!(
            (log.recovered.end, log.recovered.next),
            (Sequence(3), Sequence(6))
        );
        assert_same(&read_from(&log.journal, 1).0, &model, "read");
        let mut model = model;
        model.extend(log.commit_all([2, 2]));
        assert_same(&read_from(&log.journal, 1).0, &model, "written on");
        drop(log);
        assert_same(&contents(&memory).0, &model, "reopened");
    }
}

#[test]
fn without_durability_a_failed_sync_is_not_believed_after_a_restart() {
    for frames in [5, 20, 40] {
        let memory = MemoryDisk::new();
        let (disk, as_dyn) = faulty(&memory);
        let (mut log, _) = Log::open(&as_dyn, 1).unwrap();
        let durable = log.commit_all([3]);
        for _ in 0..frames {
            log.write(9, 4).1.unwrap();
        }
        let segments = log.journal.segments();
        assert!(frames < 40 || segments.len() > 5);
        for segment in &segments {
            let name = format!("{:016x}", segment.id);
            disk.add(Fault::new(Op::Sync, &name, Effect::Medium));
        }
        assert!(log.writer.sync().is_err());
        drop(log);
        disk.clear();
        let (log, found) = Log::open(&as_dyn, 2).unwrap();
        for sequence in durable.keys() {
            assert!(found.contains_key(sequence));
        }
        drop(log);
        assert_same(
            &contents(&memory.crash_losing_all()).0,
            &found,
            "what is believed is there",
        );
    }
}

#[test]
fn a_slow_preparation_is_waited_for_and_not_done_twice() {
    let memory = MemoryDisk::new();
    let (disk, as_dyn) = faulty(&memory);
    let (mut log, _) = Log::open(&as_dyn, 1).unwrap();
    let slow = Effect::Slow(std::time::Duration::from_millis(5));
    disk.add(Fault::new(Op::ZeroFill, "", slow).forever());
    disk.add(Fault::new(Op::Sync, "", slow).forever());
    let model = log.commit_all((0..24).map(|_| 25));
    let segments = log.journal.segments();
    assert!(segments.len() > 4);
    let made = disk.counts().of(Op::ZeroFill);
    assert!(
        made <= segments.len() as u64 + 1,
        "{made} for {} segments",
        segments.len()
    );
    assert_same(&read_from(&log.journal, 1).0, &model, "beside");
    drop(log);
    assert_same(&contents(&memory).0, &model, "reopened");
}

#[test]
fn a_full_disk_stops_the_log_before_it_hurts_and_lets_it_go_on() {
    // Room for two segments and a half.
    let memory = MemoryDisk::with_capacity(SEGMENT * 5 / 2);
    let (mut log, _) = Log::open(&as_disk(&memory), 1).unwrap();
    let mut model = log.commit_all([1]);
    while !log.writer.has_room(SEGMENT) {
        std::thread::yield_now();
    }
    let error = loop {
        let room = log.writer.room();
        let (records, done) = log.commit(5);
        match done {
            Ok(()) => model.extend(records),
            Err(error) => {
                assert!(room < SEGMENT, "{room} octets were promised");
                break error;
            }
        }
    };
    assert_eq!(log.journal.segments().len(), 2);
    let Error::Disk(error) = error else {
        panic!("{error}")
    };
    assert_eq!(error.kind(), newsreel_host::ErrorKind::Full);
    assert_same(
        &read_from(&log.journal, 1).0,
        &model,
        "what was taken is there",
    );
    assert!(!log.writer.has_room(SEGMENT));
    assert!(
        log.journal
            .shortage(SEGMENT)
            .is_some_and(|why| why.contains("full") || why.contains("space"))
    );
    assert_eq!(log.journal.shortage(0), None);
    // A checkpoint passed the first segment: its file becomes the next one.
    let second = log.journal.segments()[1].first;
    log.writer.retire_before(second).unwrap();
    model = model.split_off(&second.0);
    model.extend(log.commit_all([5, 5]));
    let (seen, damage) = read_from(&log.journal, second.0);
    assert_same(&seen, &model, "goes on");
    assert_eq!(log.journal.shortage(100), None);
    assert!(damage.is_empty());
    drop(log);
    let (log, found) = Log::open_from(&as_disk(&memory), 2, second.0, |_| true).unwrap();
    assert_same(&found, &model, "reopened");
    drop(log);
    assert_eq!(memory.list(dir()).unwrap().len(), 2);
}
