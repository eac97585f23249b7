//! Failing disks while the store is used: torn writes, EIO and ENOSPC at any operation.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use newsreel_host::{Effect, Fault, FaultyDisk, MemoryDisk, Op, read_whole};
use newsreel_store::conformance::{Logged, Rig, Tally, config_of, variants};
use newsreel_store::{BatchWrite, Error, FileFormat, PlaceError, ScanRange, Scanned};
use newsreel_wire::UnixTime;

/// What may become of one operation, but for octets that are lost without a word.
const EFFECTS: [Effect; 3] = [
    Effect::Medium,
    Effect::Full,
    Effect::Torn {
        sectors: 3,
        silent: false,
    },
];

/// Places three articles and commits as the engine does; what finds no place now is left out.
fn three_more(rig: &mut Rig, first: u64) {
    for number in first..first + 3 {
        if rig.try_place(number, 3000) == Err(PlaceError::NeedsReservation) {
            rig.commit_with_repair();
            let _ = rig.try_place(number, 3000);
        }
    }
    rig.commit_with_repair();
}

/// One failure of any kind, anywhere, from the first octet on: what was acknowledged stays, also after a crash, and once a
/// while has passed articles are taken as before.
#[test]
fn one_failure_costs_no_method_what_was_acknowledged_nor_the_set() {
    for method in variants() {
        for op in [Op::Open, Op::CreateDir, Op::Write, Op::Sync, Op::Link] {
            for (nth, effect) in (1..10).flat_map(|nth| EFFECTS.map(|effect| (nth, effect))) {
                if op != Op::Write && matches!(effect, Effect::Torn { .. }) {
                    continue;
                }
                one_failure(
                    method,
                    Fault::new(op, "/spool/", effect).nth(nth),
                    &format!("{method}: {op} {nth} {effect:?}"),
                );
            }
        }
    }
}

fn one_failure(method: &str, fault: Fault, what: &str) {
    let memory = MemoryDisk::new();
    let faulty = FaultyDisk::new(Arc::new(memory.clone()));
    let config = config_of(method, 1 << 20);
    let mut rig = Rig::new(Arc::new(faulty.clone()), &config).unwrap();
    faulty.add(fault);
    for commit in 0..6 {
        rig.now = Some(UnixTime(5000 + commit * 10));
        three_more(&mut rig, commit * 3);
    }
    // Longer than what failed is left alone.
    rig.now = Some(UnixTime(9000));
    rig.commit_with_repair();
    let before = rig.log.articles().count();
    three_more(&mut rig, 100);
    assert_eq!(
        rig.log.articles().count(),
        before + 3,
        "{what}: not taken again"
    );
    let all = Tally {
        read: before + 3,
        ..Tally::default()
    };
    assert_eq!(rig.read_all(), all, "{what}");
    let log = rig.log.clone();
    drop(rig);
    let left = Arc::new(memory.crash_losing_all());
    let rig = Rig::recover(left, &config, log, newsreel_store::Access::Write).unwrap();
    assert_eq!(rig.read_all(), all, "{what}, after a crash");
}

/// What its rule said of its form holds also where it is placed again.
#[test]
fn what_is_placed_again_has_the_form_of_its_rule() {
    let memory = MemoryDisk::new();
    let faulty = FaultyDisk::new(Arc::new(memory.clone()));
    let config = config_of("tradspool", 1 << 20);
    let mut rig = Rig::new(Arc::new(faulty.clone()), &config).unwrap();
    // A set that never wrote anything is suspended by a failure.
    rig.place(1, 500).unwrap();
    rig.commit().unwrap();
    rig.format = Some(FileFormat::Wire);
    rig.place(2, 500).unwrap();
    faulty.add(Fault::new(Op::Write, "/misc/test/", Effect::Medium));
    assert_eq!(rig.commit_with_repair(), Some(1));
    let file = |number| {
        let path = format!("/spool/articles/main/misc/test/{number}");
        read_whole(&memory, Path::new(&path), 1 << 16).unwrap()
    };
    assert!(!file(1).contains(&b'\r'));
    assert!(file(2).ends_with(b"\r\n.\r\n"));
    assert_eq!(rig.read_all().read, 2);
}

/// A disk that takes nothing at all for a while.
#[test]
fn a_disk_that_comes_back_is_used_again() {
    for method in variants().filter(|method| *method != "cnfs") {
        let faulty = FaultyDisk::new(Arc::new(MemoryDisk::new()));
        let mut rig = Rig::new(Arc::new(faulty.clone()), &config_of(method, 1 << 20)).unwrap();
        for op in [Op::Write, Op::Sync] {
            faulty.add(Fault::new(op, "/spool/", Effect::Medium).forever());
        }
        for minute in 0..20 {
            rig.now = Some(UnixTime(5000 + minute * 60));
            three_more(&mut rig, minute * 3);
        }
        assert_eq!(rig.log.articles().count(), 0, "{method}");
        faulty.clear();
        rig.now = Some(UnixTime(5000 + 3 * 3600));
        rig.commit_with_repair();
        three_more(&mut rig, 100);
        let all = Tally {
            read: 3,
            ..Tally::default()
        };
        assert_eq!(rig.read_all(), all, "{method}");
    }
}

#[test]
fn whatever_fails_once_nothing_committed_is_lost() {
    for op in [Op::Write, Op::Sync] {
        for nth in 1..40 {
            for effect in EFFECTS {
                if op == Op::Sync && matches!(effect, Effect::Torn { .. }) {
                    continue;
                }
                let memory = MemoryDisk::new();
                let faulty = FaultyDisk::new(Arc::new(memory.clone()));
                let mut rig =
                    Rig::new(Arc::new(faulty.clone()), &config_of("cnfs", 4 << 20)).unwrap();
                faulty.add(Fault::new(op, "/spool/buffers/C", effect).nth(nth));
                for commit in 0..30 {
                    for n in 0..8 {
                        if rig.try_place(commit * 8 + n, 4000).is_err() {
                            rig.commit_with_repair();
                            rig.try_place(commit * 8 + n, 4000).unwrap();
                        }
                    }
                    rig.commit_with_repair();
                }
                let tally = rig.read_all();
                assert_eq!(
                    (tally.read, tally.gone, tally.corrupt),
                    (240, 0, 0),
                    "{op} {nth} {effect:?}"
                );
                // The medium agrees with what was acknowledged.
                let log = rig.log.clone();
                drop(rig);
                let left = Arc::new(memory.crash_losing_all());
                let config = config_of("cnfs", 4 << 20);
                let rig = Rig::recover(left, &config, log, newsreel_store::Access::Write).unwrap();
                let tally = rig.read_all();
                assert_eq!(
                    (tally.read, tally.corrupt),
                    (240, 0),
                    "{op} {nth} {effect:?}, after a restart"
                );
            }
        }
    }
}

#[test]
fn when_every_buffer_fails_articles_are_put_off_not_lost() {
    let faulty = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    let mut rig = Rig::new(Arc::new(faulty.clone()), &config_of("cnfs", 4 << 20)).unwrap();
    for number in 0..20 {
        rig.place(number, 4000).unwrap();
    }
    rig.commit().unwrap();
    faulty.add(Fault::new(Op::Sync, "", Effect::Medium).forever());
    rig.try_place(100, 4000).unwrap();
    let mut batches = rig.seal();
    let error = batches
        .iter_mut()
        .find_map(|batch| batch.write().and_then(|()| batch.sync()).err());
    assert!(matches!(error, Some(Error::Host(_))), "{error:?}");
    assert_eq!(rig.place_again(&batches), 1, "the other buffer takes it");
    let mut again: Vec<Box<dyn BatchWrite>> = Vec::new();
    rig.store.seal(&mut again);
    for batch in &mut again {
        batch.write().unwrap();
        batch.sync().unwrap_err();
    }
    assert_eq!(rig.place_again(&again), 0, "there is no third one");
    assert_eq!(rig.try_place(101, 10), Err(PlaceError::Suspended));
    assert_eq!(rig.read_all().read, 20, "reading goes on");
}

#[test]
fn a_batch_sealed_before_its_buffer_failed_is_refused_not_written() {
    let faulty = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    let mut rig = Rig::new(Arc::new(faulty.clone()), &config_of("cnfs", 4 << 20)).unwrap();
    rig.commit().unwrap();
    let first = rig.try_place(1, 300).unwrap();
    let mut in_flight = rig.seal();
    // The next commit is collected meanwhile, in the same buffer.
    let second = rig.try_place(2, 300).unwrap();
    assert_eq!(first.buffer(), second.buffer());
    let mut next: Vec<Box<dyn BatchWrite>> = Vec::new();
    rig.store.seal(&mut next);
    faulty.add(Fault::new(Op::Sync, "", Effect::Medium));
    in_flight[0].write().unwrap();
    in_flight[0].sync().unwrap_err();
    let before = faulty.counts().changes();
    let error = next[0].write().unwrap_err();
    assert!(matches!(error, Error::Suspended { .. }), "{error}");
    assert!(error.to_string().contains("placed elsewhere"), "{error}");
    assert_eq!(
        faulty.counts().changes(),
        before,
        "a suspended buffer was touched"
    );
    assert!(next[0].article(&second).is_some());
}

/// The batch that was under way behind a failure was refused as its file had been given up, and the next file, a sound one, was given up for
/// that: one file after another while articles kept coming, and `keep_octets` let good ones go for them.
#[test]
fn a_write_that_failed_costs_one_file_while_articles_keep_coming() {
    let write = |batches: &mut Vec<Box<dyn BatchWrite>>| {
        let mut writes = batches.iter_mut();
        writes.try_for_each(|batch| batch.write().and_then(|()| batch.sync()))
    };
    for (method, op) in variants().flat_map(|method| [(method, Op::Write), (method, Op::Sync)]) {
        let faulty = FaultyDisk::new(Arc::new(MemoryDisk::new()));
        let mut rig = Rig::new(Arc::new(faulty.clone()), &config_of(method, 1 << 20)).unwrap();
        rig.place(1, 500).unwrap();
        rig.commit().unwrap();
        faulty.add(Fault::new(op, "/spool/", Effect::Medium));
        rig.try_place(2, 500).unwrap();
        let (mut committing, mut failures) = (rig.seal(), 0);
        for number in 3..20 {
            // It comes while the commit is written, and belongs to the next one.
            rig.try_place(number, 500).unwrap();
            let failed = write(&mut committing).is_err();
            let mut open: Vec<Box<dyn BatchWrite>> = Vec::new();
            rig.store.seal(&mut open);
            if failed {
                failures += 1;
                rig.store.suspend(committing[0].buffer());
                assert_eq!(rig.place_again(&committing), 1, "{method} {op}: {number}");
                let mut again = Vec::new();
                rig.store.seal(&mut again);
                write(&mut again).unwrap();
            }
            committing = open;
        }
        write(&mut committing).unwrap();
        rig.log_commit();
        // The one that failed, and the one that was under way.
        assert_eq!(failures, 2, "{method} {op}");
        let places = rig.log.articles().map(|logged| logged.token);
        let files = places.map(|token| (token.buffer(), token.position().cycle()));
        let files: BTreeSet<_> = files.collect();
        assert_eq!(files.len(), 2, "{method} {op}: {files:?}");
        assert_eq!(rig.read_all().read, 19, "{method} {op}");
    }
}

#[test]
fn a_reservation_that_never_became_durable_is_asked_for_again() {
    let mut rig = Rig::new(Arc::new(MemoryDisk::new()), &config_of("cnfs", 4 << 20)).unwrap();
    let (mut lost, mut again) = (Vec::new(), Vec::new());
    rig.store.reservations(None, &mut lost);
    assert_eq!(lost.len(), 2);
    // That commit failed.
    rig.store.reservations(None, &mut again);
    assert_eq!(lost, again);
    for reservation in again {
        rig.store.reserved(reservation);
    }
    let mut none = Vec::new();
    rig.store.reservations(None, &mut none);
    assert_eq!(none, []);
}

#[test]
fn a_buffer_that_cannot_be_synced_at_the_start_is_suspended() {
    let memory = MemoryDisk::new();
    let faulty = FaultyDisk::new(Arc::new(memory));
    let config = config_of("cnfs", 4 << 20);
    let mut rig = Rig::new(Arc::new(faulty.clone()), &config).unwrap();
    rig.place(1, 300).unwrap();
    rig.commit().unwrap();
    let log = rig.log.clone();
    drop(rig);
    faulty.add(Fault::new(Op::Sync, "C0", Effect::Medium));
    let mut rig = Rig::recover(
        Arc::new(faulty),
        &config,
        log,
        newsreel_store::Access::Write,
    )
    .unwrap();
    let states: Vec<String> = rig
        .reader
        .facts()
        .iter()
        .map(|facts| facts.state())
        .collect();
    assert!(
        states[0].starts_with("suspended: ") && states[1] == "ok",
        "{states:?}"
    );
    assert_eq!(rig.place(2, 300).unwrap().buffer().0, 2);
}

/// What cannot be read, wherever it lies in a record, is damage to that record: a walk tells it and goes on behind it.
#[test]
fn a_bad_sector_costs_a_scan_the_record_in_it() {
    let faulty = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    let mut rig = Rig::new(Arc::new(faulty.clone()), &config_of("cnfs", 2 << 20)).unwrap();
    for number in 0..150 {
        rig.place(number, 200 + (number as usize * 37) % 9000)
            .unwrap();
    }
    rig.commit().unwrap();
    let articles: Vec<_> = rig.log.articles().copied().collect();
    for (nth, bad) in articles.iter().enumerate().step_by(7) {
        let buffer = rig.reader.buffer(bad.token.buffer()).unwrap();
        let path = buffer.facts().path;
        let behind = [0, 70, u64::from(bad.token.len())][nth % 3];
        let sector = bad.token.position().offset() + behind;
        let fault = Fault::new(Op::Read, &path, Effect::Medium);
        faulty.add(fault.covering(sector).forever());
        let (mut found, mut damaged) = (0, 0);
        let mut scan = rig
            .reader
            .scan(bad.token.buffer(), ScanRange::Live)
            .unwrap();
        while let Some(scanned) = scan.step().unwrap() {
            match scanned {
                Scanned::Record { token, sound, .. } => {
                    assert!(sound && token != bad.token, "{nth}: {token:?}");
                    found += 1;
                }
                Scanned::Damaged { from, to, .. } => {
                    assert!(from <= sector && sector < to, "{nth}: {from:#x} to {to:#x}");
                    damaged += 1;
                }
                Scanned::Passed => {}
            }
        }
        faulty.clear();
        let here = |logged: &&Logged| logged.token.buffer() == bad.token.buffer();
        let all = articles.iter().filter(here).count();
        assert_eq!((found, damaged), (all - 1, 1), "{nth}");
    }
}

/// A rebuild took a device that gave nothing any more for one without articles, and ended well.
#[test]
fn a_device_that_cannot_be_read_at_all_is_no_empty_one() {
    for (effect, articles) in [
        (Effect::Medium, 400),
        (Effect::Medium, 3),
        (Effect::Full, 3),
    ] {
        let faulty = FaultyDisk::new(Arc::new(MemoryDisk::new()));
        let mut rig = Rig::new(Arc::new(faulty.clone()), &config_of("cnfs", 2 << 20)).unwrap();
        for number in 0..articles {
            rig.place(number, 5000).unwrap();
        }
        rig.commit().unwrap();
        let buffer = rig.log.articles().next().unwrap().token.buffer();
        let path = rig.reader.buffer(buffer).unwrap().facts().path;
        faulty.add(Fault::new(Op::Read, &path, effect).forever());
        for range in [ScanRange::Live, ScanRange::All] {
            let mut scan = rig.reader.scan(buffer, range).unwrap();
            let ended = std::iter::from_fn(|| scan.step().transpose()).find(Result::is_err);
            let error = ended.expect("the walk does not end well").unwrap_err();
            assert!(error.to_string().contains(&path), "{error}");
        }
    }
}
