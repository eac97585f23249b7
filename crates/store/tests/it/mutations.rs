//! Damaged and hostile buffer files: any octets, mutated good ones, articles that imitate records.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_host::{Disk, MemoryDisk, OpenMode};
use newsreel_store::conformance::{Log, Rig, config_of, variants};
use newsreel_store::fuzz::{decode_buffer, decode_record};
use newsreel_store::{Access, Place, ReadError, ScanRange, Scanned, StoreConfig};
use newsreel_wire::{IdHash, Sequence, SetId, UnixTime};
use proptest::prelude::*;

fn config() -> StoreConfig {
    config_of("cnfs", 1 << 20)
}

/// A wrapped buffer's octets.
fn wrapped() -> Vec<u8> {
    let disk = MemoryDisk::new();
    let mut rig = Rig::new(Arc::new(disk.clone()), &config()).unwrap();
    for number in 0..700 {
        rig.place(number, 500 + (number as usize * 37) % 5000)
            .unwrap();
    }
    rig.checkpoint().unwrap();
    read_file(&disk, Path::new("/spool/buffers/C0"))
}

fn read_file(disk: &MemoryDisk, path: &Path) -> Vec<u8> {
    let file = disk.open(path, OpenMode::Read).unwrap();
    let mut octets = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut octets, 0).unwrap();
    octets
}

#[test]
fn mutated_buffers_never_panic_and_good_records_are_found() {
    let good = wrapped();
    let whole = decode_buffer(&good).unwrap();
    assert!(whole.sound > 300 && whole.read > 600, "{whole:?}");
    let mut next = numbers();
    for round in 0..150 {
        let mut bad = good.clone();
        mutate(&mut bad, round, &mut next);
        let _ = decode_buffer(&bad);
    }
}

/// Numbers below what is asked for, the same in each run.
fn numbers() -> impl FnMut(usize) -> usize {
    let mut seed = 1_u64;
    move |below| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    }
}

/// Flips, overwrites, cuts or repeats something in what a file holds.
fn mutate(octets: &mut Vec<u8>, round: usize, next: &mut impl FnMut(usize) -> usize) {
    let len = octets.len();
    match round % 5 {
        0 => (0..50).for_each(|_| octets[next(len)] ^= 1 << next(8)),
        1 => {
            let (from, stretch) = (next(len), next(1 << 16));
            octets[from..(from + stretch).min(len)].fill(0xa5);
        }
        2 => octets.truncate(next(len)),
        3 => {
            let (from, to) = (next(len / 2), next(len / 2));
            octets.copy_within(from..from + (len / 2).min(5000), to);
        }
        _ => (0..3).for_each(|_| octets[next(len.min(8192))] ^= 1 << next(8)),
    }
}

fn files_below(disk: &MemoryDisk, dir: &Path) -> Vec<PathBuf> {
    let entries = disk.list(dir).unwrap().into_iter();
    let paths = entries.map(|entry| dir.join(entry.name));
    paths
        .flat_map(|path| match disk.open(&path, OpenMode::Read) {
            Ok(_) => vec![path],
            Err(_) => files_below(disk, &path),
        })
        .collect()
}

/// Whatever becomes of one of its files, what a set serves is what was stored, and the rest is still there.
#[test]
fn no_method_serves_what_was_mutated() {
    for method in variants() {
        let disk = MemoryDisk::new();
        let config = config_of(method, 1 << 20);
        let mut rig = Rig::new(Arc::new(disk.clone()), &config).unwrap();
        for number in 0..60 {
            rig.place(number, 500 + (number as usize * 37) % 5000)
                .unwrap();
            if number % 20 == 19 {
                rig.commit().unwrap();
            }
        }
        rig.checkpoint().unwrap();
        let log = rig.log.clone();
        drop(rig);
        let files = files_below(&disk, Path::new("/spool"));
        let (mut next, mut lost) = (numbers(), 0);
        for round in 0..100 {
            let bad = disk.crash_losing_all();
            let path = &files[next(files.len())];
            let mut octets = read_file(&bad, path);
            mutate(&mut octets, round, &mut next);
            let file = bad.open(path, OpenMode::ReadWrite).unwrap();
            file.set_len(octets.len() as u64).unwrap();
            file.write_at(&octets, 0).unwrap();
            lost += 60 - alive(bad, &config, &log, &format!("{method}: {round} {path:?}"));
        }
        assert!(lost > 0, "{method}: nothing was hit");
    }
}

/// How many articles are there, each as it was stored.
fn alive(disk: MemoryDisk, config: &StoreConfig, log: &Log, what: &str) -> usize {
    let mut rig = match Rig::recover(Arc::new(disk), config, log.clone(), Access::Write) {
        Ok(rig) => rig,
        // A buffer that was cut, or has no header any more, is the administrator's to restore.
        Err(error) if error.to_string().contains("/spool/") => return 0,
        Err(error) => panic!("{what}: {error}"),
    };
    for buffer in rig.reader.buffers() {
        let mut scan = rig.reader.scan(buffer.id(), ScanRange::All).unwrap();
        while scan.step().unwrap().is_some() {}
    }
    let articles = log.articles();
    let alive = articles.filter(|logged| match rig.read(logged) {
        Err(ReadError::Host(error)) => panic!("{what}: {error}"),
        read => read.is_ok(),
    });
    let alive = alive.count();
    rig.place(100, 700).unwrap();
    rig.commit().unwrap();
    alive
}

proptest! {
    #[test]
    fn prop_any_octets_decode_without_panic(octets in proptest::collection::vec(any::<u8>(), 0..9000)) {
        decode_record(&octets);
        let _ = decode_buffer(&octets);
    }
}

/// An article full of what looks like records of this very buffer, copied from its file, cannot be told from them by
/// their looks; but they are in the wrong place, and those of other files have another key.
#[test]
fn an_article_that_imitates_records_stays_an_article() {
    let disk = MemoryDisk::new();
    let mut rig = Rig::new(Arc::new(disk.clone()), &config()).unwrap();
    rig.place(1, 700).unwrap();
    rig.commit().unwrap();
    let stolen = read_file(&disk, Path::new("/spool/buffers/C0"));
    let token = rig.log.articles().next().unwrap().token;
    let at = token.position().offset() as usize;
    let record = &stolen[at..at + 768];
    // The same at every alignment.
    let mut text = b"Subject: trap\r\n\r\n".to_vec();
    for shift in 0..64 {
        text.resize(text.len() + shift, b'x');
        text.extend_from_slice(record);
    }
    text.extend_from_slice(b"\r\n.\r\n");
    let trap = rig
        .store
        .place(&Place {
            sequence: Sequence(50),
            arrival: UnixTime(1),
            id_hash: IdHash([5; 16]),
            id: b"<trap@t.example>",
            set: SetId(0),
            format: None,
            xref: b"",
            article: &[&text],
            head_len: 15,
        })
        .unwrap();
    rig.commit().unwrap();
    assert_eq!(trap.buffer(), token.buffer());
    // The trap's own header is destroyed, so that a scan must resynchronise inside of it.
    disk.corrupt(
        Path::new("/spool/buffers/C0"),
        trap.position().offset(),
        &[0xff; 64],
    )
    .unwrap();
    let mut scan = rig.reader.scan(token.buffer(), ScanRange::All).unwrap();
    let (mut found, mut damaged) = (Vec::new(), 0);
    while let Some(scanned) = scan.step().unwrap() {
        match scanned {
            Scanned::Record { token, .. } => found.push(token),
            Scanned::Damaged { .. } => damaged += 1,
            Scanned::Passed => {}
        }
    }
    assert_eq!((found, damaged), (vec![token], 1));
}

#[test]
fn damage_is_reported_where_it_is_and_left_behind() {
    let disk = MemoryDisk::new();
    let mut rig = Rig::new(Arc::new(disk.clone()), &config()).unwrap();
    for number in 0..40 {
        rig.place(number, 3000).unwrap();
    }
    rig.commit().unwrap();
    let tokens: Vec<_> = rig.log.articles().map(|logged| logged.token).collect();
    let of_first: Vec<_> = tokens
        .iter()
        .filter(|token| token.buffer() == tokens[0].buffer())
        .collect();
    let path = Path::new("/spool/buffers/C0");
    let offset = |nth: usize| of_first[nth].position().offset();
    // The header of one, the text of another.
    disk.flip_bit(path, offset(3) + 20, 2).unwrap();
    disk.flip_bit(path, offset(7) + 1500, 2).unwrap();
    let mut scan = rig
        .reader
        .scan(tokens[0].buffer(), ScanRange::Live)
        .unwrap();
    let mut lines = Vec::new();
    while let Some(scanned) = scan.step().unwrap() {
        match scanned {
            Scanned::Record {
                token,
                sound: false,
                ..
            } => lines.push(format!("unsound {:x}", token.position().offset())),
            Scanned::Record { .. } | Scanned::Passed => {}
            Scanned::Damaged { from, to, .. } => lines.push(format!("damaged {from:x} {to:x}")),
        }
    }
    let expected = [
        format!("damaged {:x} {:x}", offset(3), offset(4)),
        format!("unsound {:x}", offset(7)),
    ];
    assert_eq!(lines, expected);
    let tally = rig.read_all();
    assert_eq!((tally.read, tally.corrupt), (38, 2));
    let log = rig.log.clone();
    drop(rig);
    let rig = Rig::recover(Arc::new(disk), &config(), log, Access::Write).unwrap();
    assert_eq!(rig.read_all().corrupt, 2);
}
