//! Every effect, and the counting of occurrences.

use std::path::PathBuf;

use super::*;
use crate::disk::MemoryDisk;

fn disk() -> (MemoryDisk, FaultyDisk) {
    let memory = MemoryDisk::new();
    let faulty = FaultyDisk::new(Arc::new(memory.clone()));
    (memory, faulty)
}

fn new_file(disk: &FaultyDisk, name: &str) -> Arc<dyn File> {
    let file = disk.open(Path::new(name), OpenMode::CreateNew).unwrap();
    disk.sync_dir(Path::new("")).unwrap();
    file
}

fn kind<T: std::fmt::Debug>(result: Result<T>) -> ErrorKind {
    result.unwrap_err().kind()
}

#[test]
fn a_fault_strikes_its_occurrences_on_its_path_only() {
    let (_, disk) = disk();
    let (a, b) = (new_file(&disk, "a.log"), new_file(&disk, "b.buf"));
    disk.add(
        Fault::new(Op::Write, ".log", Effect::Medium)
            .nth(2)
            .times(2),
    );
    let outcome = |file: &Arc<dyn File>| file.write_at(b"x", 0).map_err(|e| e.kind());
    assert_eq!(outcome(&a), Ok(()));
    assert_eq!(outcome(&b), Ok(()));
    assert_eq!(outcome(&b), Ok(()));
    assert_eq!(outcome(&a), Err(ErrorKind::Io));
    assert_eq!(outcome(&a), Err(ErrorKind::Io));
    assert_eq!(outcome(&a), Ok(()));
    disk.add(Fault::new(Op::Write, "", Effect::Full).forever());
    assert_eq!(outcome(&a), Err(ErrorKind::Full));
    disk.clear();
    assert_eq!(outcome(&a), Ok(()));
}

#[test]
fn counters_tell_where_a_run_can_be_stopped() {
    let (_, disk) = disk();
    let run = |disk: &FaultyDisk| -> Result<()> {
        let file = disk.open(Path::new("a"), OpenMode::CreateOrOpen)?;
        file.write_at(b"x", 0)?;
        file.sync_data()?;
        file.read_at(&mut [0], 0)?;
        disk.rename(Path::new("a"), Path::new("b"))?;
        disk.sync_dir(Path::new(""))
    };
    run(&disk).unwrap();
    let counts = disk.counts();
    assert_eq!(
        (counts.changes(), counts.syncs(), counts.of(Op::Read)),
        (5, 2, 1)
    );
    for nth in 1..=counts.changes() {
        let disk = FaultyDisk::new(Arc::new(MemoryDisk::new()));
        disk.stop_at_change(nth);
        assert_eq!(kind(run(&disk)), ErrorKind::Stopped);
        assert_eq!(
            disk.counts().changes(),
            nth,
            "nothing is tried after the stop"
        );
        assert!(disk.stopped());
        assert_eq!(
            kind(disk.exists(&PathBuf::from("a"))),
            ErrorKind::Stopped,
            "nor read"
        );
    }
    let disk = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    disk.stop_at_sync(2);
    assert_eq!(run(&disk).unwrap_err().op(), Op::SyncDir);
    disk.clear();
    run(&disk).unwrap();
    disk.stop();
    assert_eq!(kind(run(&disk)), ErrorKind::Stopped);
}

#[test]
fn octets_are_counted_by_path() {
    let (_, disk) = disk();
    let (a, b) = (new_file(&disk, "a.log"), new_file(&disk, "b.run"));
    a.write_at(b"12345", 0).unwrap();
    b.write_at(b"123", 0).unwrap();
    a.read_at(&mut [0; 4], 0).unwrap();
    a.read_cached_at(&mut [0; 2], 1).unwrap();
    b.read_at(&mut [0; 3], 0).unwrap();
    let octets = |part| (disk.octets_written(part), disk.octets_read(part));
    assert_eq!(octets(".log"), (5, 6));
    assert_eq!(octets(".run"), (3, 3));
    assert_eq!(octets(""), (8, 9));
    a.write_at(b"678", 5).unwrap();
    assert_eq!(disk.writes_apart(""), 0);
    a.write_at(b"0", 2).unwrap();
    b.write_at(b"0", 4).unwrap();
    assert_eq!((disk.writes_apart(".log"), disk.writes_apart("")), (1, 2));
}

#[test]
fn a_stop_leaves_the_operation_undone() {
    let (memory, disk) = disk();
    let file = new_file(&disk, "a");
    disk.add(Fault::new(Op::Write, "a", Effect::Stop).nth(2));
    file.write_at(b"one", 0).unwrap();
    assert_eq!(kind(file.write_at(b"two", 0)), ErrorKind::Stopped);
    assert_eq!(
        crate::read_whole(&memory, Path::new("a"), 10).unwrap(),
        b"one"
    );
}

#[test]
fn a_failed_sync_loses_its_data_for_good() {
    let (memory, disk) = disk();
    let file = new_file(&disk, "a");
    file.write_at(b"one", 0).unwrap();
    disk.add(Fault::new(Op::Sync, "a", Effect::Medium));
    assert_eq!(kind(file.sync_data()), ErrorKind::Io);
    file.sync_data().expect("the error is told once");
    let after = memory.crash_losing_all();
    let left = crate::read_whole(&after, Path::new("a"), 10).unwrap();
    assert_eq!(left, [0; 3], "the second sync had only the length to write");
}

#[test]
fn a_failed_sync_is_told_once_to_each_opening_that_was_there() {
    let (_, disk) = disk();
    let file = new_file(&disk, "a");
    let other = disk.open(Path::new("a"), OpenMode::ReadWrite).unwrap();
    disk.add(Fault::new(Op::Sync, "a", Effect::Medium));
    assert_eq!(kind(file.sync_data()), ErrorKind::Io);
    let later = disk.open(Path::new("a"), OpenMode::ReadWrite).unwrap();
    later.sync_data().expect("nothing failed since");
    assert_eq!(kind(other.sync_data()), ErrorKind::Io);
    other.sync_data().expect("the error is told once");
    file.sync_data().expect("the error was told");
}

#[test]
fn torn_writes_do_their_first_sectors() {
    let (memory, disk) = disk();
    let file = new_file(&disk, "a");
    for (silent, sectors) in [(false, 1), (true, 2), (true, 9)] {
        file.set_len(0).unwrap();
        disk.add(Fault::new(Op::Write, "a", Effect::Torn { sectors, silent }));
        let parts = [IoSlice::new(&[1; 700]), IoSlice::new(&[1; 900])];
        assert_eq!(file.write_vectored_at(&parts, 0).is_ok(), silent);
        let done = crate::read_whole(&memory, Path::new("a"), 9999).unwrap();
        assert_eq!(done, vec![1; (sectors * SECTOR_BYTES).min(1600)]);
    }
    disk.add(Fault::new(
        Op::ZeroFill,
        "a",
        Effect::Torn {
            sectors: 1,
            silent: false,
        },
    ));
    assert_eq!(kind(file.zero_fill(0, 1600)), ErrorKind::Io);
    let done = crate::read_whole(&memory, Path::new("a"), 9999).unwrap();
    assert_eq!(done, [vec![0; 512], vec![1; 1088]].concat());
}

#[test]
fn bits_flip_in_reads_and_writes_that_cover_them() {
    let (memory, disk) = disk();
    let file = new_file(&disk, "a");
    file.write_at(&[0; 20], 0).unwrap();
    let flip = Effect::FlipBit { offset: 12, bit: 1 };
    disk.add(Fault::new(Op::Read, "a", flip));
    let mut buf = [0; 10];
    file.read_at(&mut buf, 0).unwrap();
    assert_eq!(buf, [0; 10], "not covered, not counted");
    file.read_at(&mut buf, 8).unwrap();
    assert_eq!(buf, [0, 0, 0, 0, 2, 0, 0, 0, 0, 0]);
    file.read_cached_at(&mut buf, 8).unwrap();
    assert_eq!(buf, [0; 10], "once");
    disk.add(Fault::new(Op::Write, "a", flip));
    file.write_at(&[4; 20], 0).unwrap();
    assert_eq!(
        crate::read_whole(&memory, Path::new("a"), 99).unwrap()[11..14],
        [4, 6, 4]
    );
}

#[test]
fn a_cold_file_is_read_only_by_waiting() {
    let (_, disk) = disk();
    let file = new_file(&disk, "a");
    file.write_at(&[7; 3], 0).unwrap();
    disk.add(Fault::new(Op::Read, "a", Effect::Cold));
    assert_eq!(file.read_cached_at(&mut [0; 3], 0).unwrap(), None);
    assert_eq!(file.read_cached_at(&mut [0; 3], 0).unwrap(), Some(3));
    assert_eq!(disk.waits_here(), 0);
    file.read_at(&mut [0; 3], 0).unwrap();
    assert_eq!(disk.waits_here(), 1);
    let other = disk.clone();
    let there = std::thread::spawn(move || other.waits_here());
    assert_eq!(there.join().unwrap(), 0);
}

#[test]
fn a_slow_operation_works_in_the_end() {
    let (_, disk) = disk();
    let file = new_file(&disk, "a");
    let clock = crate::RealClock::new();
    let time = std::time::Duration::from_millis(20);
    disk.add(Fault::new(Op::Sync, "a", Effect::Slow(time)));
    file.sync_data().unwrap();
    assert!(crate::Clock::monotonic(&clock) >= time);
}

#[test]
fn every_other_operation_can_fail_too() {
    let (_, disk) = disk();
    let file = new_file(&disk, "a");
    let path = Path::new("a");
    for op in Op::ALL {
        disk.add(Fault::new(op, "", Effect::Medium).forever());
    }
    disk.add(Fault::new(Op::Lock, "", Effect::Medium));
    let top = Path::new("");
    let kinds = [
        kind(disk.open(path, OpenMode::Read)),
        kind(disk.rename(path, path)),
        kind(disk.remove(path)),
        kind(disk.create_dir_all(path)),
        kind(disk.list(top)),
        kind(disk.exists(path)),
        kind(disk.sync_dir(top)),
        kind(disk.free_bytes(path)),
        kind(disk.lock(path)),
        kind(file.sync_all()),
        kind(file.len()),
        kind(file.set_len(0)),
        kind(file.zero_fill(0, 1)),
        kind(file.reserve(0, 1)),
        kind(file.drop_cache(0, 1)),
        kind(file.read_exact_at(&mut [0], 0)),
    ];
    assert!(kinds.iter().all(|kind| *kind == ErrorKind::Io), "{kinds:?}");
}
