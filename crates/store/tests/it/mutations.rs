//! Damaged and hostile buffer files: any octets, mutated good ones, articles that imitate records.

use std::path::Path;
use std::sync::Arc;

use newsreel_host::{Disk, MemoryDisk, OpenMode};
use newsreel_store::conformance::{Rig, config_of};
use newsreel_store::fuzz::{decode_buffer, decode_record};
use newsreel_store::{Access, Place, ScanRange, Scanned, StoreConfig};
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
    read_file(&disk, "/spool/buffers/C0")
}

fn read_file(disk: &MemoryDisk, path: &str) -> Vec<u8> {
    let file = disk.open(Path::new(path), OpenMode::Read).unwrap();
    let mut octets = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut octets, 0).unwrap();
    octets
}

#[test]
fn mutated_buffers_never_panic_and_good_records_are_found() {
    let good = wrapped();
    let whole = decode_buffer(&good).unwrap();
    assert!(whole.sound > 300 && whole.read > 600, "{whole:?}");
    let mut seed = 1_u64;
    let mut next = |below: usize| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % below
    };
    for round in 0..150 {
        let mut bad = good.clone();
        match round % 5 {
            0 => (0..50).for_each(|_| bad[next(1 << 20)] ^= 1 << next(8)),
            1 => {
                let (from, len) = (next(1 << 20), next(1 << 16));
                let to = (from + len).min(bad.len());
                bad[from..to].fill(0xa5);
            }
            2 => bad.truncate(next(1 << 20)),
            3 => {
                let (from, to) = (next(1 << 19), next(1 << 19));
                bad.copy_within(from..from + 5000, to);
            }
            _ => (0..3).for_each(|_| bad[next(8192)] ^= 1 << next(8)),
        }
        let _ = decode_buffer(&bad);
    }
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
    let stolen = read_file(&disk, "/spool/buffers/C0");
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
