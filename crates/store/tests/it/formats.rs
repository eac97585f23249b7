//! Buffers of older versions are read as they were: a file of each version, committed once and never made again.

use std::path::Path;
use std::sync::Arc;

use newsreel_host::{Disk, MemoryDisk, OpenMode};
use newsreel_store::conformance::{WORDS_FROM, article, config_of, id, id_hash};
use newsreel_store::methods::cnfs::{FileHeader, FileKey, RecordHeader};
use newsreel_store::{
    Access, Blocking, Marks, Place, ScanRange, Scanned, Store, StoreConfig, Want,
};
use newsreel_wire::{BufferId, Position, Sequence, SetId, Token, UnixTime};

/// A buffer of version 1, 1 MiB: lines of offset and 32 octets, zeros left out.
const VERSION_1: &str = include_str!("../../../../tests/fixtures/formats/1/cyclic-buffer.hexdump");

/// The same, made larger: version 2.
const VERSION_2: &str =
    include_str!("../../../../tests/fixtures/formats/4/cyclic-buffer-2.hexdump");
const LARGER: u64 = 4 << 20;

/// A segment of version 2 of 8 MiB with a dictionary, and of its 304 articles these: number, asked length, token.
const PACKED_SEGMENT: &str =
    include_str!("../../../../tests/fixtures/formats/6/segment-packed.hexdump");
const PACKED_ARTICLES: [(u64, usize, [u8; 24]); 4] = [
    // Packed without the dictionary, not packed, packed with it.
    (
        WORDS_FROM,
        900,
        [
            2, 0, 1, 0, 25, 2, 0, 0, 128, 1, 0, 0, 64, 0, 0, 0, 63, 0, 0, 0, 0, 0, 0, 0,
        ],
    ),
    (
        1,
        80,
        [
            2, 0, 1, 0, 98, 0, 0, 0, 138, 1, 0, 0, 64, 0, 0, 0, 39, 0, 0, 0, 21, 124, 74, 127,
        ],
    ),
    (
        WORDS_FROM + 300,
        900,
        [
            2, 0, 1, 0, 215, 0, 0, 0, 128, 10, 0, 0, 64, 0, 0, 0, 63, 0, 0, 0, 156, 104, 73, 43,
        ],
    ),
    (
        WORDS_FROM + 301,
        5000,
        [
            2, 0, 1, 0, 53, 1, 0, 0, 133, 10, 0, 0, 64, 0, 0, 0, 63, 0, 0, 0, 177, 228, 147, 170,
        ],
    ),
];

/// The articles in it: number, asked length, token.  The third did not fit before the end.
const ARTICLES: [(u64, usize, [u8; 24]); 4] = [
    (
        1,
        600,
        [
            1, 0, 1, 0, 108, 2, 0, 0, 192, 63, 0, 0, 128, 7, 0, 0, 39, 0, 0, 0, 21, 124, 74, 127,
        ],
    ),
    (
        2,
        1500,
        [
            1, 0, 1, 0, 240, 5, 0, 0, 203, 63, 0, 0, 128, 7, 0, 0, 39, 0, 0, 0, 42, 248, 148, 254,
        ],
    ),
    (
        3,
        3000,
        [
            1, 0, 1, 0, 198, 11, 0, 0, 192, 0, 0, 0, 192, 7, 0, 0, 39, 0, 0, 0, 63, 116, 223, 125,
        ],
    ),
    (
        4,
        80,
        [
            1, 0, 1, 0, 98, 0, 0, 0, 241, 0, 0, 0, 192, 7, 0, 0, 39, 0, 0, 0, 84, 240, 41, 253,
        ],
    ),
];

fn octets_of(hexdump: &str) -> Vec<u8> {
    octets_in(hexdump, 1 << 20)
}

pub(crate) fn octets_in(hexdump: &str, size: u64) -> Vec<u8> {
    let mut octets = vec![0; size as usize];
    for line in hexdump.lines() {
        let (offset, hex) = line.split_once(' ').unwrap();
        let offset = usize::from_str_radix(offset, 16).unwrap();
        for (at, pair) in hex.as_bytes().chunks(2).enumerate() {
            let pair = std::str::from_utf8(pair).unwrap();
            octets[offset + at] = u8::from_str_radix(pair, 16).unwrap();
        }
    }
    octets
}

const FILE: &str = "/spool/buffers/SD1";

fn config() -> StoreConfig {
    let mut config = config_of("cnfs", 1 << 20);
    config.buffers.truncate(1);
    config.buffers[0].name = "SD1".to_owned();
    config.sets[0].buffers = vec!["SD1".to_owned()];
    config
}

/// A disk with a buffer of these octets.
fn disk_with(octets: &[u8]) -> MemoryDisk {
    let disk = MemoryDisk::new();
    let path = Path::new(FILE);
    disk.create_dir_all(path.parent().unwrap()).unwrap();
    let file = disk.open(path, OpenMode::CreateNew).unwrap();
    file.write_at(octets, 0).unwrap();
    disk
}

fn open(octets: &[u8], access: Access) -> (MemoryDisk, Store) {
    let disk = disk_with(octets);
    let mut config = config();
    config.buffers[0].octets = octets.len() as u64;
    let store = Store::open(
        &(Arc::new(disk.clone()) as Arc<dyn Disk>),
        Path::new("/spool"),
        [9; 16],
        &config,
        &[],
        access,
        &mut |_, _, _| {},
    );
    (disk, store.unwrap())
}

#[test]
fn buffers_of_both_versions_are_read() {
    is_read(&octets_of(VERSION_1));
    is_read(&octets_in(VERSION_2, LARGER));
}

fn is_read(octets: &[u8]) {
    let (_, store) = open(octets, Access::ReadOnly);
    let reader = store.reader();
    let mut memory = Vec::new();
    for (number, len, token) in ARTICLES {
        let token = Token::from_bytes(token);
        let stored = reader
            .read(&token, Want::Whole, Blocking::Yes, &mut memory)
            .unwrap();
        assert_eq!(memory[stored.octets], article(number, len).0);
        let expected = (Sequence(100 + number), UnixTime(873_194_497 + number));
        assert_eq!((stored.sequence, stored.arrival), expected);
        assert_eq!(stored.id_hash, id_hash(number));
    }
    let texts = ARTICLES.map(|(.., token)| reader.token_text(&Token::from_bytes(token)).unwrap());
    assert_eq!(
        texts,
        ["SD1:ff000:1e", "SD1:ff2c0:1e", "SD1:3000:1f", "SD1:3c40:1f"]
    );
    let facts = &reader.facts()[0];
    assert_eq!(
        (
            facts.id,
            facts.cycle,
            facts.free_offset,
            facts.reserved_offset
        ),
        (1, 31, 0x3d00, 0x13000)
    );
    assert_eq!(
        (facts.header_sequence, facts.header_arrival),
        (104, 873_194_501)
    );
    let mut scan = reader.scan(BufferId(1), ScanRange::All).unwrap();
    let mut found = Vec::new();
    while let Some(scanned) = scan.step().unwrap() {
        let (token, sound) = match scanned {
            Scanned::Record { token, sound, .. } => (token, sound),
            Scanned::Passed => continue,
            Scanned::Damaged { .. } => panic!("{scanned:?}"),
        };
        assert!(sound);
        found.push(*token.as_bytes());
    }
    found.sort_unstable();
    let mut expected = ARTICLES.map(|(.., token)| token);
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[test]
fn packed_articles_of_segments_are_read_with_either_copy_of_their_dictionary() {
    let octets = octets_in(PACKED_SEGMENT, 8 << 20);
    for copy in [8192, 16_384] {
        let disk = MemoryDisk::new();
        let path = Path::new("/spool/segments/main/00000001.seg");
        disk.create_dir_all(path.parent().unwrap()).unwrap();
        let file = disk.open(path, OpenMode::CreateNew).unwrap();
        file.write_at(&octets, 0).unwrap();
        file.write_at(&[0; 4096], copy).unwrap();
        let store = Store::open(
            &(Arc::new(disk.clone()) as Arc<dyn Disk>),
            Path::new("/spool"),
            [9; 16],
            // It is read also where the set packs nothing any more.
            &config_of("segment", 8 << 20),
            &[],
            Access::ReadOnly,
            &mut |_, _, _| {},
        );
        let reader = store.unwrap().reader();
        let mut memory = Vec::new();
        for (number, len, token) in PACKED_ARTICLES {
            let (text, head_len) = article(number, len);
            for want in [Want::Whole, Want::Head] {
                let token = Token::from_bytes(token);
                let read = reader.read(&token, want, Blocking::Yes, &mut memory);
                let stored = read.unwrap();
                let expected = match want {
                    Want::Whole => &text[..],
                    Want::Head => &text[..head_len as usize],
                };
                assert_eq!(&memory[stored.octets], expected, "{number}, copy {copy}");
                assert_eq!(stored.id_hash, id_hash(number));
            }
        }
    }
}

#[test]
fn version_1_is_still_written_as_it_was() {
    let good = octets_of(VERSION_1);
    let header = FileHeader::decode(&good).unwrap();
    assert_eq!(header.encode(), &good[..4096]);
    let key = FileKey::of(&header.uuid);
    for (.., token) in ARTICLES {
        let at = Token::from_bytes(token).position().offset() as usize;
        let record = RecordHeader::decode(&good[at..], key).unwrap();
        assert_eq!(record.encode(key), &good[at..at + 64]);
    }
    // The same articles into the same file give the same data area and bitmap.
    let mut blank = good.clone();
    blank[8192..].fill(0);
    let (disk, mut store) = open(&blank, Access::Write);
    let marks = Marks {
        buffer: BufferId(1),
        end: Position::new(30, (1 << 20) - 4096),
        reserved: Position::new(31, 12_288 + 65_536),
        known: None,
    };
    store.resume(&[marks], Sequence(104)).unwrap();
    for (number, len, expected) in ARTICLES {
        let (text, head_len) = article(number, len);
        let token = store.place(&Place {
            sequence: Sequence(100 + number),
            arrival: UnixTime(873_194_497 + number),
            id_hash: id_hash(number),
            id: id(number).as_bytes(),
            set: SetId(0),
            format: None,
            xref: b"",
            article: &[&text],
            head_len,
        });
        assert_eq!(token.unwrap().as_bytes(), &expected);
    }
    let mut batches = Vec::new();
    store.seal(&mut batches);
    for batch in &mut batches {
        batch.write().unwrap();
    }
    let file = disk.open(Path::new(FILE), OpenMode::Read).unwrap();
    let mut now = vec![0; 1 << 20];
    file.read_exact_at(&mut now, 0).unwrap();
    assert!(now[12_288..] == good[12_288..], "the data area differs");
}

#[test]
fn version_2_is_still_written_as_it_was() {
    let good = octets_in(VERSION_2, LARGER);
    let header = FileHeader::decode(&good).unwrap();
    assert_eq!(header.encode(), &good[..4096]);
    // The same buffer made larger gives the same file.
    let disk = disk_with(&octets_of(VERSION_1));
    let (there, mut config) = (Arc::new(disk.clone()) as Arc<dyn Disk>, config());
    config.buffers[0].octets = LARGER;
    let place = (Path::new("/spool"), [9; 16]);
    Store::resize(&there, place, &config, "SD1", &mut |_, _, _| {}).unwrap();
    let file = disk.open(Path::new(FILE), OpenMode::Read).unwrap();
    let mut now = vec![0; LARGER as usize];
    file.read_exact_at(&mut now, 0).unwrap();
    assert!(now == good, "the file differs");
}
