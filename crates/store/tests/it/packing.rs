//! Articles that are stored packed: smaller with a dictionary, read everywhere, and never lost with one copy of it.

use std::path::Path;
use std::sync::Arc;

use newsreel_host::{Disk, Effect, Fault, FaultyDisk, MemoryDisk, Op, OpenMode, read_whole};
use newsreel_store::conformance::{Log, PACKED, Rig, WORDS_FROM, article, config_of};
use newsreel_store::{Access, CheckpointWrite, ScanRange, Scanned, open_alone};
use newsreel_wire::{POSITION_UNIT, Position};

use crate::common::ARTICLE;

/// Large enough for a dictionary.
const SEGMENT: u64 = 8 << 20;
/// So many articles one is made of, and some.
const ENOUGH: u64 = 300;
/// Where the two copies of the dictionary lie.
const COPIES: [u64; 2] = [8192, 16_384];

fn rig(disk: &Arc<dyn Disk>, log: Log) -> Rig {
    Rig::recover(
        Arc::clone(disk),
        &config_of(PACKED, SEGMENT),
        log,
        Access::Write,
    )
    .unwrap()
}

/// Places so many articles of words; octets that they take, of each.
fn feed(rig: &mut Rig, articles: u64) -> u64 {
    let first = WORDS_FROM + rig.log.articles().count() as u64;
    let mut stored = 0;
    for number in first..first + articles {
        stored += u64::from(rig.place(number, ARTICLE).unwrap().len());
    }
    rig.commit().unwrap();
    stored / articles
}

fn checkpoint(rig: &mut Rig) {
    let mut writes: Vec<Box<dyn CheckpointWrite>> = Vec::new();
    rig.store.checkpoint(&mut writes);
    writes.iter_mut().for_each(|write| write.write().unwrap());
}

fn assert_whole(rig: &Rig) {
    let tally = rig.read_all();
    assert_eq!((tally.read, tally.corrupt), (rig.log.articles().count(), 0));
}

/// A spool with a dictionary and articles packed with it.
fn packed() -> (Arc<dyn Disk>, Log) {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let mut rig = rig(&disk, Log::default());
    feed(&mut rig, ENOUGH);
    checkpoint(&mut rig);
    feed(&mut rig, 20);
    (disk, rig.log.clone())
}

fn segment(number: u32) -> String {
    format!("/spool/segments/main/{number:08}.seg")
}

fn damage(disk: &Arc<dyn Disk>, at: u64) {
    let file = disk.open(Path::new(&segment(1)), OpenMode::ReadWrite);
    file.unwrap().write_at(b"damage", at + 1000).unwrap();
}

#[test]
fn a_dictionary_makes_articles_smaller_and_goes_on_after_a_restart() {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let mut first = rig(&disk, Log::default());
    let plain = article(WORDS_FROM, ARTICLE).0.len() as u64;
    let without = feed(&mut first, ENOUGH);
    assert!(without < plain * 9 / 10, "{without} of {plain}");
    checkpoint(&mut first);
    let with = feed(&mut first, 50);
    assert!(with < without * 4 / 5, "{with}, without {without}");
    assert_whole(&first);
    let mut again = rig(&disk, first.log.clone());
    assert_whole(&again);
    let after = feed(&mut again, 50);
    assert!(after < without * 4 / 5, "{after}, without {without}");
    assert_whole(&again);
}

#[test]
fn each_segment_gets_a_dictionary_and_can_be_read_alone() {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let mut rig = rig(&disk, Log::default());
    while !disk.exists(Path::new(&segment(3))).unwrap() {
        feed(&mut rig, ENOUGH);
        checkpoint(&mut rig);
    }
    assert_whole(&rig);
    let mut found = 0;
    for number in 1..=2 {
        let file = disk.open(Path::new(&segment(number)), OpenMode::Read);
        let file = file.unwrap();
        for at in COPIES {
            let mut magic = [0; 8];
            file.read_exact_at(&mut magic, at).unwrap();
            assert_eq!(&magic, b"NRZSTDIC", "segment {number}, {at}");
        }
        for reader in open_alone(&disk, Path::new(&segment(number))).unwrap() {
            let mut scan = reader.unwrap().scan(ScanRange::All);
            while let Some(scanned) = scan.step().unwrap() {
                if let Scanned::Record { sound, .. } = scanned {
                    assert!(sound && scan.article().ends_with(b"\r\n.\r\n"));
                    found += 1;
                }
            }
        }
    }
    assert!(found > ENOUGH, "{found}");
}

/// Octets of dictionaries were read as bits: of articles in front of all others, and, in a file that is not the first, of articles
/// that are not there.
#[test]
fn where_a_dictionary_lies_a_file_alone_has_no_bitmap() {
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let mut rig = rig(&disk, Log::default());
    while !disk.exists(Path::new(&segment(2))).unwrap() {
        feed(&mut rig, ENOUGH);
        checkpoint(&mut rig);
    }
    feed(&mut rig, ENOUGH);
    checkpoint(&mut rig);
    feed(&mut rig, 20);
    checkpoint(&mut rig);
    for number in [1, 2] {
        // Also under another name, with one copy; and under its own with none.
        let path = segment(number);
        let octets = read_whole(disk.as_ref(), Path::new(&path), 2 * SEGMENT as usize).unwrap();
        let elsewhere = format!("/copy-of-{number}");
        let copy = disk.open(Path::new(&elsewhere), OpenMode::CreateNew);
        let copy = copy.unwrap();
        copy.write_at(&octets, 0).unwrap();
        has_no_bitmap(&disk, &elsewhere);
        assert_eq!(complaint(&disk, &elsewhere), None);
        copy.write_at(b"damage", COPIES[number as usize - 1])
            .unwrap();
        has_no_bitmap(&disk, &elsewhere);
        let told = complaint(&disk, &elsewhere).unwrap();
        assert!(
            told.contains("one of the two copies of its dictionary"),
            "{told}"
        );
        has_no_bitmap(&disk, &path);
        let file = disk.open(Path::new(&path), OpenMode::ReadWrite).unwrap();
        for at in COPIES {
            file.write_at(b"damage", at).unwrap();
        }
        has_no_bitmap(&disk, &path);
    }
}

/// What is wrong with a file that is opened alone.
fn complaint(disk: &Arc<dyn Disk>, path: &str) -> Option<String> {
    let mut files = open_alone(disk, Path::new(path)).unwrap();
    files.next().unwrap().unwrap().facts().complaint
}

fn has_no_bitmap(disk: &Arc<dyn Disk>, path: &str) {
    for reader in open_alone(disk, Path::new(path)).unwrap() {
        let reader = reader.unwrap();
        assert_eq!(reader.mend_header().unwrap(), None, "{path}");
        let facts = reader.facts();
        for cycle in 1..=facts.cycle {
            let whole = Position::new(cycle, 0)..Position::new(cycle, SEGMENT);
            assert_eq!(reader.bits(whole).unwrap(), None, "{path}, cycle {cycle}");
        }
        let mut scan = reader.clone().scan(ScanRange::Live);
        while let Some(scanned) = scan.step().unwrap() {
            if let Scanned::Record { token, .. } = scanned {
                let start = token.position();
                let end = Position::new(start.cycle(), start.offset() + POSITION_UNIT);
                let wrong = reader.wrong_bits(start..end, &[start]).unwrap();
                assert!(wrong.missing.is_empty() && wrong.extra.is_empty(), "{path}");
            }
        }
    }
}

#[test]
fn either_copy_of_a_dictionary_is_enough_and_the_other_is_written_again() {
    for (at, other) in [(COPIES[0], COPIES[1]), (COPIES[1], COPIES[0])] {
        let (disk, log) = packed();
        damage(&disk, at);
        let again = rig(&disk, log);
        assert_whole(&again);
        let buffer = again.reader.buffers()[0].clone();
        let told = buffer.mend_header().unwrap().unwrap();
        assert!(told.contains("segment 1"), "{told}");
        assert_eq!(buffer.mend_header().unwrap(), None);
        damage(&disk, other);
        assert_whole(&rig(&disk, again.log.clone()));
    }
}

#[test]
fn what_a_server_has_in_memory_is_written_again() {
    let (disk, log) = packed();
    let first = rig(&disk, log);
    assert_whole(&first);
    COPIES.iter().for_each(|at| damage(&disk, *at));
    let buffer = first.reader.buffers()[0].clone();
    let told = buffer.mend_header().unwrap().unwrap();
    assert!(told.contains("both copies were damaged"), "{told}");
    assert_whole(&rig(&disk, first.log.clone()));
    // Who has not read it knows only that it is lost.
    COPIES.iter().for_each(|at| damage(&disk, *at));
    let again = rig(&disk, first.log.clone());
    let told = again.reader.buffers()[0].mend_header().unwrap().unwrap();
    assert!(told.contains("both copies are damaged"), "{told}");
}

#[test]
fn a_file_whose_dictionary_is_gone_gets_no_other() {
    let (disk, log) = packed();
    let file = disk.open(Path::new(&segment(1)), OpenMode::ReadWrite);
    let file = file.unwrap();
    let mut backup = vec![0; 16_384];
    file.read_exact_at(&mut backup, COPIES[0]).unwrap();
    file.write_at(&vec![0; backup.len()], COPIES[0]).unwrap();
    let mut again = rig(&disk, log);
    feed(&mut again, ENOUGH);
    checkpoint(&mut again);
    feed(&mut again, ENOUGH);
    let tally = again.read_all();
    assert_eq!((tally.read, tally.corrupt), (3 * ENOUGH as usize, 20));
    file.write_at(&backup, COPIES[0]).unwrap();
    assert_whole(&rig(&disk, again.log.clone()));
}

#[test]
fn without_its_dictionary_an_article_is_damaged_and_nothing_is_written_there() {
    let (disk, log) = packed();
    COPIES.iter().for_each(|at| damage(&disk, *at));
    let mut again = rig(&disk, log);
    let tally = again.read_all();
    assert_eq!((tally.read, tally.corrupt), (ENOUGH as usize, 20));
    feed(&mut again, ENOUGH);
    checkpoint(&mut again);
    feed(&mut again, ENOUGH);
    let tally = again.read_all();
    assert_eq!((tally.read, tally.corrupt), (3 * ENOUGH as usize, 20));
    let mut octets = [0; 6];
    let file = disk.open(Path::new(&segment(1)), OpenMode::Read).unwrap();
    file.read_exact_at(&mut octets, COPIES[0] + 1000).unwrap();
    assert_eq!(&octets, b"damage");
}

#[test]
fn a_dictionary_that_cannot_be_written_costs_nothing() {
    for (op, nth) in [(Op::Write, 1), (Op::Sync, 1), (Op::Write, 2), (Op::Sync, 2)] {
        let memory = MemoryDisk::new();
        let faulty = FaultyDisk::new(Arc::new(memory.clone()));
        let disk: Arc<dyn Disk> = Arc::new(faulty.clone());
        let mut first = rig(&disk, Log::default());
        feed(&mut first, ENOUGH);
        let mut writes: Vec<Box<dyn CheckpointWrite>> = Vec::new();
        first.store.checkpoint(&mut writes);
        let mut training = writes.pop().unwrap();
        faulty.add(Fault::new(op, &segment(1), Effect::Medium).nth(nth));
        training.write().unwrap();
        feed(&mut first, ENOUGH);
        assert_whole(&first);
        // And as the power cut leaves it.
        let left: Arc<dyn Disk> = Arc::new(memory.crash_losing_all());
        let mut again = rig(&left, first.log.clone());
        assert_whole(&again);
        feed(&mut again, ENOUGH);
        assert_whole(&again);
    }
}
