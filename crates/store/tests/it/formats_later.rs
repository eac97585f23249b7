//! What later versions brought is read as it was, and written so still: a buffer that was made smaller, and what is noted behind a segment of
//! what was withdrawn.  A file of each, committed once and never made again.

use std::path::Path;
use std::sync::Arc;

use newsreel_host::{Disk, MemoryDisk, OpenMode};
use newsreel_store::conformance::{article, config_of, id, id_hash};
use newsreel_store::methods::cnfs::FileHeader;
use newsreel_store::{
    Access, Blocking, Marks, Place, ScanRange, Scanned, Store, StoreConfig, Want, open_alone,
};
use newsreel_wire::{BufferId, Position, Sequence, SetId, Token, UnixTime};

use crate::formats::octets_in;

/// A buffer of 1 MiB that had 4 MiB: version 3.
const NARROWED: &str = include_str!("../../../../tests/fixtures/formats/8/cyclic-buffer-3.hexdump");
/// A segment of 1 MiB with two lists behind it.
const WITHDRAWN: &str =
    include_str!("../../../../tests/fixtures/formats/8/segment-withdrawn.hexdump");
const OCTETS: u64 = 1 << 20;
/// Each list has one article.
const LISTS: u64 = 2 * (16 + 4);

/// What lies in each, by number and asked length.
const ARTICLES: [(u64, usize); 4] = [(1, 600), (2, 1500), (3, 3000), (4, 80)];

fn config(method: &str) -> StoreConfig {
    let mut config = config_of(method, OCTETS);
    if method == "cnfs" {
        config.buffers.truncate(1);
        config.sets[0].buffers.truncate(1);
    }
    config
}

/// A store whose only file has these octets.
fn open(method: &str, (path, octets): (&str, &[u8]), access: Access) -> (MemoryDisk, Store) {
    let (disk, path) = (MemoryDisk::new(), Path::new(path));
    disk.create_dir_all(path.parent().unwrap()).unwrap();
    let file = disk.open(path, OpenMode::CreateNew).unwrap();
    file.write_at(octets, 0).unwrap();
    let store = Store::open(
        &(Arc::new(disk.clone()) as Arc<dyn Disk>),
        Path::new("/spool"),
        [9; 16],
        &config(method),
        &[],
        access,
        &mut |_, _, _| {},
    );
    (disk, store.unwrap())
}

fn content(disk: &MemoryDisk, path: &str) -> Vec<u8> {
    newsreel_host::read_whole(disk, Path::new(path), 4 << 20).unwrap()
}

/// Places those articles, and writes them.
fn place(store: &mut Store, first: u64) -> Vec<Token> {
    let mut tokens = Vec::new();
    for (number, len) in ARTICLES {
        let (text, head_len) = article(number, len);
        let token = store.place(&Place {
            sequence: Sequence(first + number),
            arrival: UnixTime(873_194_497 + number),
            id_hash: id_hash(number),
            id: id(number).as_bytes(),
            set: SetId(0),
            format: None,
            xref: b"",
            article: &[&text],
            head_len,
        });
        tokens.push(token.unwrap());
    }
    let mut batches = Vec::new();
    store.seal(&mut batches);
    for batch in &mut batches {
        batch.write().unwrap();
        batch.sync().unwrap();
    }
    tokens
}

fn checkpoint(store: &mut Store) {
    let mut writes = Vec::new();
    store.checkpoint(&mut writes);
    writes.iter_mut().for_each(|write| write.write().unwrap());
}

fn resume(store: &mut Store, end: Position, reserved: Position) {
    let marks = Marks {
        buffer: BufferId(1),
        end,
        reserved,
        known: None,
    };
    store.resume(&[marks], Sequence(104)).unwrap();
}

/// What a walk over everything in a store meets.
fn met(store: &Store) -> Vec<Token> {
    let mut scan = store.reader().scan(BufferId(1), ScanRange::All).unwrap();
    let mut tokens = Vec::new();
    while let Some(scanned) = scan.step().unwrap() {
        match scanned {
            Scanned::Record { token, sound, .. } => {
                assert!(sound);
                tokens.push(token);
            }
            Scanned::Passed => {}
            Scanned::Damaged { .. } => panic!("{scanned:?}"),
        }
    }
    tokens
}

fn are_read(store: &Store, tokens: &[Token]) {
    let (reader, mut memory) = (store.reader(), Vec::new());
    assert_eq!(tokens.len(), ARTICLES.len());
    for ((number, len), token) in ARTICLES.into_iter().zip(tokens) {
        let read = reader.read(token, Want::Whole, Blocking::Yes, &mut memory);
        let stored = read.unwrap();
        assert_eq!(memory[stored.octets], article(number, len).0);
        let expected = (Sequence(100 + number), UnixTime(873_194_497 + number));
        assert_eq!((stored.sequence, stored.arrival), expected);
        assert_eq!(stored.id_hash, id_hash(number));
    }
}

const BUFFER: &str = "/spool/buffers/C0";
/// Where the one that was made smaller stood before those articles came: in front of its end, so that the third begins a cycle.
const STOOD: (u32, u64) = (30, OCTETS - 4096);
/// Its bitmap has a page more than one of its size.
const DATA_START: u64 = 16_384;

fn resume_narrowed(store: &mut Store) {
    let stood = Position::new(STOOD.0, STOOD.1);
    let reserved = Position::new(STOOD.0 + 1, DATA_START + 65_536);
    resume(store, stood, reserved);
}

#[test]
fn a_buffer_that_was_made_smaller_is_read_and_written_as_it_was() {
    let good = octets_in(NARROWED, OCTETS);
    assert_eq!(good[8], 3, "its version");
    let header = FileHeader::decode(&good).unwrap();
    assert_eq!((header.octets, header.data_start), (OCTETS, DATA_START));
    assert_eq!(header.encode(), &good[..4096]);
    let (_, store) = open("cnfs", (BUFFER, &good), Access::ReadOnly);
    let mut tokens = met(&store);
    tokens.sort_by_key(Token::position);
    are_read(&store, &tokens);
    let places: Vec<_> = tokens.iter().map(Token::position).collect();
    let cycle = STOOD.0;
    let expected = [
        Position::new(cycle, STOOD.1),
        Position::new(cycle, STOOD.1 + 704),
        Position::new(cycle + 1, DATA_START),
        Position::new(cycle + 1, DATA_START + 3136),
    ];
    assert_eq!(places, expected);
    let reader = store.reader();
    let of_cycle = expected[2]..Position::new(cycle + 1, DATA_START + 3584);
    let bits = reader.buffers()[0].bits(of_cycle).unwrap();
    assert_eq!(bits.as_deref(), Some(&expected[2..]));
    // The same articles into the same file give the same data area.
    let mut blank = good.clone();
    blank[8192..].fill(0);
    let (disk, mut store) = open("cnfs", (BUFFER, &blank), Access::Write);
    resume_narrowed(&mut store);
    assert_eq!(place(&mut store, 100), tokens);
    let (now, data) = (content(&disk, BUFFER), DATA_START as usize);
    assert!(now[data..] == good[data..], "the data area differs");
}

const SEGMENT: &str = "/spool/segments/main/00000001.seg";

/// Has the second and the fourth withdrawn, each by a checkpoint of its own.
fn withdraw(store: &mut Store, tokens: &[Token]) {
    for token in [tokens[1], tokens[3]] {
        store.withdrawn(&[token], &mut Vec::new());
        checkpoint(store);
    }
}

#[test]
fn what_is_noted_behind_a_segment_is_read_and_written_as_it_was() {
    let good = octets_in(WITHDRAWN, OCTETS + LISTS);
    assert!(good[OCTETS as usize..].starts_with(b"NRGONE01"));
    let (disk, store) = open("segment", (SEGMENT, &good), Access::ReadOnly);
    let tokens = met(&store);
    are_read(&store, &tokens);
    // Who has the file alone is told.
    let disk: Arc<dyn Disk> = Arc::new(disk);
    let alone = open_alone(&disk, Path::new(SEGMENT)).unwrap().next();
    let alone = alone.unwrap().unwrap();
    let gone = tokens.iter().map(|token| {
        let start = token.position();
        let end = Position::new(start.cycle(), start.offset() + 64);
        let wrong = alone.wrong_bits(start..end, &[start]).unwrap();
        !wrong.missing.is_empty()
    });
    assert_eq!(gone.collect::<Vec<_>>(), [false, true, false, true]);
    // The same said of the same file gives the same lists.
    let front = &good[..OCTETS as usize];
    let (disk, mut store) = open("segment", (SEGMENT, front), Access::Write);
    let end = tokens[3].position();
    let start = Position::new(1, DATA_START - 4096);
    resume(&mut store, Position::new(1, end.offset() + 192), start);
    withdraw(&mut store, &tokens);
    let now = content(&disk, SEGMENT);
    assert!(now[OCTETS as usize..] == good[OCTETS as usize..]);
}
