//! Conversions and repairs that are stopped at every single change, and then run again.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use newsreel_host::{FaultyDisk, Folder, MemoryDisk};
use newsreel_layout::convert::{Options, Target, convert};
use newsreel_layout::verify::{Finding, What, verify};
use newsreel_layout::{ATTRIBUTE, Algorithm, Mark, Name, SET_UID};

use crate::world::{Seen, World, inodes, put, view};

fn targets() -> [Target; 6] {
    let [yyy, low, high, last, _] = Algorithm::ALL.map(Target::To);
    let range = Target::To(Algorithm::range(16).unwrap());
    [yyy, low, high, last, range, Target::Off]
}

fn run(folder: &Folder, target: Target, verify: bool) -> newsreel_layout::Result<()> {
    let options = Options { verify };
    let report = convert(folder, target, options, &mut |_| ControlFlow::Continue(()))?;
    assert!(!report.differs(), "{report:?}");
    Ok(())
}

/// A folder that stops at the `nth` change; 0 is never.
fn faulty(path: &Path, nth: u64) -> (Folder, FaultyDisk) {
    let faults = FaultyDisk::new(Arc::new(MemoryDisk::default()));
    faults.stop_at_change(nth);
    (Folder::open_with_faults(path, &faults).unwrap(), faults)
}

/// Everything that was there is there once, wherever it is.
fn assert_nothing_lost(world: &World, before: &Seen) {
    assert_eq!(&inodes(&world.group()), before);
}

/// Stops at the first change, then at the second, ... until a run comes to its end; each time another run completes it.
fn stop_everywhere(from: Target, to: Target, again: Target) -> u64 {
    let world = World::with_odd_names();
    for nth in 1.. {
        run(&world.group(), from, false).unwrap();
        let before = (view(&world.group()), inodes(&world.group()));
        let (folder, faults) = faulty(&world.path(), nth);
        let result = run(&folder, to, nth % 2 == 0);
        assert_eq!(result.is_err(), faults.stopped());
        assert_nothing_lost(&world, &before.1);
        if result.is_err() {
            // The second run is stopped too, somewhere else, and the third is not.
            let (folder, _) = faulty(&world.path(), nth * 7 % 50 + 1);
            let _ = run(&folder, again, false);
            assert_nothing_lost(&world, &before.1);
        }
        run(&world.group(), again, false).unwrap();
        assert_eq!(view(&world.group()), before.0, "{to:?} stopped at {nth}");
        assert_nothing_lost(&world, &before.1);
        let mut findings = Vec::new();
        let mut note = |finding: &Finding| findings.push(finding.clone());
        verify(&world.group(), false, &mut note).unwrap();
        findings.retain(|finding| finding.what != What::RelativeLink);
        assert!(findings.is_empty(), "{to:?} stopped at {nth}: {findings:?}");
        if result.is_ok() {
            return nth;
        }
    }
    unreachable!("a run ends")
}

#[test]
fn a_conversion_stopped_at_any_change_is_completed_by_another() {
    let [yyy, low, high, last, range, off] = targets();
    let mut changes = 0;
    for managed in [yyy, low, high, last, range] {
        changes += stop_everywhere(off, managed, managed);
        changes += stop_everywhere(managed, off, off);
    }
    for (from, to) in [
        (yyy, range),
        (low, high),
        (high, yyy),
        (range, low),
        (last, yyy),
    ] {
        changes += stop_everywhere(from, to, to);
    }
    assert!(changes > 1000, "{changes}");
}

#[test]
fn a_conversion_stopped_at_any_change_is_turned_round() {
    let [yyy, low, high, _, range, off] = targets();
    for (from, to) in [
        (off, yyy),
        (off, range),
        (high, off),
        (range, off),
        (yyy, high),
        (low, high),
        (yyy, range),
    ] {
        stop_everywhere(from, to, from);
    }
}

#[test]
fn a_mark_set_or_taken_off_and_stopped_is_one_or_the_other() {
    for algorithm in Algorithm::ALL {
        for nth in 1..20 {
            let world = World::fast();
            let (folder, _) = faulty(&world.path(), nth);
            let set = Mark::set(&folder, algorithm);
            let mark = Mark::read(&world.group()).unwrap();
            match set {
                Ok(()) => assert_eq!(mark, Mark::Managed(algorithm)),
                // The bit without the attribute would be another algorithm.
                Err(_) if algorithm != Algorithm::YYY => {
                    assert_ne!(mark, Mark::Managed(Algorithm::YYY));
                }
                Err(_) => {}
            }
            verify(&world.group(), true, &mut |_| {}).unwrap();
            let mark = Mark::read(&world.group()).unwrap();
            assert!(matches!(mark, Mark::None | Mark::Managed(_)), "{mark:?}");
        }
    }
}

/// A directory in whose view nothing is: files beside the buckets, some called like one, and one in a wrong bucket.
fn strayed(algorithm: Algorithm) -> World {
    let world = World::fast();
    let group = world.group();
    let names = "1008 1009 000 034 345 aaa r0 r16 00 34 foo .usenetfs";
    for name in names.split(' ') {
        put(&group, Path::new(name), name.as_bytes()).unwrap();
    }
    let text = format!("1 {algorithm}");
    group.set_attribute(ATTRIBUTE, text.as_bytes()).unwrap();
    group.set_mode(0o755 | SET_UID).unwrap();
    let wrong = Name::parse("4242424242".as_ref()).unwrap();
    let managed = world.open();
    managed.make_bucket(algorithm.bucket(wrong)).unwrap();
    let at = algorithm
        .bucket_path(algorithm.bucket(wrong))
        .join("88888888");
    put(&group, &at, b"88888888").unwrap();
    world
}

#[test]
fn a_repair_stopped_at_any_change_is_completed_by_another() {
    for algorithm in Algorithm::ALL {
        for nth in 1.. {
            let world = strayed(algorithm);
            let names = inodes(&world.group());
            assert!(view(&world.group()).is_empty());
            let (folder, faults) = faulty(&world.path(), nth);
            let stopped = verify(&folder, true, &mut |_| {}).is_err();
            assert_eq!(stopped, faults.stopped());
            assert_nothing_lost(&world, &names);
            verify(&world.group(), true, &mut |_| {}).unwrap();
            assert_nothing_lost(&world, &names);
            assert_eq!(view(&world.group()).len(), names.len());
            let summary = verify(&world.group(), false, &mut |_| {}).unwrap();
            assert_eq!(summary.findings, 0, "{algorithm} stopped at {nth}");
            if !stopped {
                break;
            }
        }
    }
}
