//! The cases of the suite: one function each, and the table of them.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use newsreel_host::{Disk, Effect, Fault, FaultyDisk, File, MemoryDisk, Op, OpenMode};
use newsreel_wire::{BufferId, Sequence, SetId, TokenText, UnixTime};

use super::PACKED;
use super::config_of;
use super::rig::{Rig, article, id_hash};
use crate::error::{PlaceError, ReadError};
use crate::method::{Blocking, Place, ScanRange, Scanned, Want};
use crate::methods::cnfs::ARTICLE_OCTETS_MAX;
use crate::store::Access;

/// One promise.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// What is promised.
    pub name: &'static str,
    /// Tries it with a method of this name.
    pub run: fn(&str),
}

/// Every promise.
pub const CASES: &[Case] = &[
    Case {
        name: "what was committed is read back octet for octet, whole and head",
        run: read_back,
    },
    Case {
        name: "articles of every length survive",
        run: lengths,
    },
    Case {
        name: "a restart changes nothing that is read, and goes on",
        run: restart,
    },
    Case {
        name: "recovery tells the log's article from any other",
        run: verify,
    },
    Case {
        name: "what cannot fit is refused with the limit, what fits is taken",
        run: too_large,
    },
    Case {
        name: "a write or sync that fails suspends the buffer and gives the articles back",
        run: failed_batch,
    },
    Case {
        name: "a flipped bit anywhere never becomes a wrong octet",
        run: flipped_bits,
    },
    Case {
        name: "a reader that does not wait is told so",
        run: would_block,
    },
    Case {
        name: "a store opened for reading writes nothing",
        run: read_only,
    },
    Case {
        name: "a scan shows what is alive and nothing else",
        run: scans,
    },
    Case {
        name: "tokens have a text form that finds them again",
        run: token_texts,
    },
    Case {
        name: "checkpoints may fail and are made good by the next",
        run: checkpoints,
    },
    Case {
        name: "of a disk that fails a checkpoint a batch is told, too",
        run: checkpoint_beside_batch,
    },
    Case {
        name: "an unknown buffer has nothing",
        run: unknown_buffer,
    },
];

const OCTETS: u64 = 2 << 20;

fn memory_rig(method: &str) -> (MemoryDisk, Rig) {
    let disk = MemoryDisk::new();
    let rig = Rig::new(Arc::new(disk.clone()), &config_of(method, OCTETS)).unwrap();
    (disk, rig)
}

fn len_of(octets: u64) -> usize {
    usize::try_from(octets).unwrap()
}

/// A rig with some articles of some lengths, committed.
fn filled(disk: Arc<dyn Disk>, method: &str, count: u64) -> Rig {
    let mut rig = Rig::new(disk, &config_of(method, OCTETS)).unwrap();
    for number in 0..count {
        rig.place(number, 200 + len_of(number * 37 % 5000)).unwrap();
        if number % 7 == 0 {
            rig.commit().unwrap();
        }
    }
    rig.commit().unwrap();
    rig
}

fn read_back(method: &str) {
    let (_, mut rig) = memory_rig(method);
    let token = rig.place(1, 3000).unwrap();
    let stored = token.len() as usize;
    let len = article(1, 3000).0.len();
    assert!(stored == len || method == PACKED && stored < len);
    rig.commit().unwrap();
    for number in 2..200 {
        rig.place(number, 2650).unwrap();
    }
    rig.commit().unwrap();
    assert_eq!(rig.read_all().read, 199);
}

fn lengths(method: &str) {
    let (_, mut rig) = memory_rig(method);
    let lengths = (0..300).chain([
        4030, 4031, 4032, 4033, 4095, 4096, 4097, 65_535, 65_536, 300_000,
    ]);
    for (number, len) in (0..).zip(lengths) {
        rig.place(number, len).unwrap();
    }
    rig.commit().unwrap();
    let tally = rig.read_all();
    assert_eq!((tally.read, tally.corrupt), (310, 0));
}

fn restart(method: &str) {
    let disk = MemoryDisk::new();
    let mut rig = filled(Arc::new(disk.clone()), method, 150);
    let before = rig.read_all();
    let config = config_of(method, OCTETS);
    for round in 0..3 {
        let log = rig.log.clone();
        drop(rig);
        rig = Rig::recover(Arc::new(disk.clone()), &config, log, Access::Write).unwrap();
        assert_eq!(rig.read_all().read, before.read + round * 10);
        for number in 0..10 {
            rig.place(1000 + round as u64 * 10 + number, 900).unwrap();
        }
        rig.commit().unwrap();
    }
}

fn verify(method: &str) {
    let (_, mut rig) = memory_rig(method);
    rig.place(1, 3000).unwrap();
    rig.place(2, 3000).unwrap();
    rig.commit().unwrap();
    let articles: Vec<_> = rig.log.articles().copied().collect();
    let mut memory = Vec::new();
    for logged in &articles {
        let hash = id_hash(logged.number);
        let mut ask = |sequence, hash| {
            rig.reader
                .verify(&logged.token, sequence, &hash, &mut memory)
        };
        ask(logged.sequence, hash).unwrap();
        let wrong_sequence = ask(Sequence(logged.sequence.0 + 1), hash);
        assert!(matches!(wrong_sequence, Err(ReadError::Corrupt { .. })));
        let wrong_hash = ask(logged.sequence, id_hash(99));
        assert!(matches!(wrong_hash, Err(ReadError::Corrupt { .. })));
    }
    // Placed, but never written.
    rig.place(3, 3000).unwrap();
    let log = rig.log_with_open();
    let never = log.articles().last().unwrap();
    let hash = id_hash(never.number);
    let verified = rig
        .reader
        .verify(&never.token, never.sequence, &hash, &mut memory);
    assert!(verified.is_err());
}

fn too_large(method: &str) {
    let (_, mut rig) = memory_rig(method);
    if config_of(method, OCTETS).sets[0].is_in_files() {
        return larger_than_any(&mut rig);
    }
    let Err(PlaceError::TooLarge { limit }) = rig.place(1, len_of(OCTETS)) else {
        panic!("an article larger than its buffer found a place");
    };
    assert!(limit < OCTETS);
    let largest = len_of(limit) - 25;
    rig.place(2, largest).unwrap();
    rig.place(3, largest).unwrap();
    rig.commit().unwrap();
    assert_eq!(rig.read_all().read, 2);
}

fn failed_batch(method: &str) {
    for op in [Op::Write, Op::Sync] {
        for effect in [Effect::Medium, Effect::Full] {
            let faulty = FaultyDisk::new(Arc::new(MemoryDisk::new()));
            let mut rig = filled(Arc::new(faulty.clone()), method, 20);
            let token = rig.place(500, 3000).unwrap();
            rig.place(501, 200).unwrap();
            let name = rig.reader.buffer(token.buffer()).unwrap().name().to_owned();
            faulty.add(Fault::new(op, &name, effect));
            let mut batches = rig.seal();
            let results: Vec<bool> = batches
                .iter_mut()
                .map(|batch| batch.write().and_then(|()| batch.sync()).is_ok())
                .collect();
            assert!(results.contains(&false), "{op} {effect:?}: nobody noticed");
            // Nobody gets through by trying again, though the disk would let them.
            for (batch, ok) in batches.iter_mut().zip(&results) {
                assert_eq!((batch.write().is_ok(), batch.sync().is_ok()), (*ok, *ok));
            }
            let suspended = rig.reader.buffer(token.buffer()).unwrap().facts();
            assert!(suspended.suspended.is_some(), "{}", suspended.state());
            rig.store.suspend(token.buffer());
            assert_eq!(rig.place_again(&batches), 2);
            drop(batches);
            rig.commit().unwrap();
            let tally = rig.read_all();
            assert_eq!((tally.read, tally.corrupt), (22, 0), "{op} {effect:?}");
            let articles = rig.log.articles();
            let moved: Vec<_> = articles.filter(|logged| logged.number >= 500).collect();
            let place = |token: &newsreel_wire::Token| (token.buffer(), token.position().cycle());
            let elsewhere = |logged: &&super::Logged| place(&logged.token) != place(&token);
            assert!(moved.iter().all(elsewhere));
            assert_eq!(moved.len(), 2);
        }
    }
}

/// Where articles are files there is no limit but that of every article.
fn larger_than_any(rig: &mut Rig) {
    let piece = vec![b'x'; 1 << 20];
    let pieces: Vec<&[u8]> = (0..=ARTICLE_OCTETS_MAX >> 20).map(|_| &piece[..]).collect();
    let placed = rig.store.place(&Place {
        sequence: Sequence(1),
        arrival: UnixTime(1),
        id_hash: id_hash(1),
        id: b"<1@t.example>",
        set: SetId(0),
        format: None,
        xref: b"t.example misc.test:1",
        article: &pieces,
        head_len: 9,
    });
    let limit = ARTICLE_OCTETS_MAX;
    assert_eq!(placed, Err(PlaceError::TooLarge { limit }));
    rig.place(2, len_of(2 * OCTETS)).unwrap();
    rig.commit().unwrap();
    assert_eq!(rig.read_all().read, 1);
}

/// The store's own files.
fn files(disk: &MemoryDisk, dir: &str) -> Vec<Arc<dyn File>> {
    let mut found = Vec::new();
    for entry in disk.list(Path::new(dir)).unwrap() {
        let path = format!("{dir}/{}", entry.name);
        if entry.is_dir {
            found.extend(files(disk, &path));
        } else {
            found.push(disk.open(Path::new(&path), OpenMode::ReadWrite).unwrap());
        }
    }
    found
}

fn flipped_bits(method: &str) {
    let disk = MemoryDisk::new();
    let rig = filled(Arc::new(disk.clone()), method, 12);
    let articles: Vec<_> = rig.log.articles().copied().collect();
    let total = articles.len();
    let mut noticed = 0;
    for file in files(&disk, "/spool") {
        let mut octet = [0];
        // Every octet of what holds articles would take too long; 37 is coprime to every field.  Where nothing was ever written a
        // few are enough.
        let mut page = [0; 4096];
        let mut at = 0;
        let len = file.len().unwrap().min(128 << 10);
        while at < len {
            file.read_exact_at(&mut octet, at).unwrap();
            file.write_at(&[octet[0] ^ (1 << (at % 8))], at).unwrap();
            let tally = rig.read_all();
            assert!(
                tally.read + 1 >= total,
                "one flip costs one article at most"
            );
            noticed += tally.corrupt;
            file.write_at(&octet, at).unwrap();
            let start = at - at % 4096;
            let got = file.read_at(&mut page, start).unwrap();
            at += match page[..got].iter().all(|octet| *octet == 0) {
                true => 1021,
                false => 37,
            };
        }
    }
    // Packed articles have half the octets, and so half the flips.
    let least = if method == PACKED { 60 } else { 120 };
    assert!(noticed > least, "only {noticed} flips were noticed");
    assert_eq!(rig.read_all().read, total);
}

fn would_block(method: &str) {
    let faulty = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    let rig = filled(Arc::new(faulty.clone()), method, 5);
    let logged = *rig.log.articles().next().unwrap();
    let mut memory = Vec::new();
    let mut read = |blocking| {
        let read = rig
            .reader
            .read(&logged.token, Want::Whole, blocking, &mut memory);
        read.map(|stored| memory[stored.octets].to_vec())
    };
    let text = article(logged.number, logged.len).0;
    assert_eq!(read(Blocking::No).unwrap(), text);
    faulty.add(Fault::new(Op::Read, "", Effect::Cold).forever());
    assert!(matches!(read(Blocking::No), Err(ReadError::WouldBlock)));
    assert_eq!(read(Blocking::Yes).unwrap(), text);
    faulty.clear();
    faulty.add(Fault::new(Op::Read, "", Effect::Medium).forever());
    assert!(matches!(read(Blocking::Yes), Err(ReadError::Host(_))));
}

fn read_only(method: &str) {
    let faulty = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    let config = config_of(method, OCTETS);
    let missing = Rig::recover(
        Arc::new(faulty.clone()),
        &config,
        super::Log::default(),
        Access::ReadOnly,
    );
    assert!(missing.is_err(), "made a store that was only to be read");
    let rig = filled(Arc::new(faulty.clone()), method, 40);
    let (log, tally) = (rig.log.clone(), rig.read_all());
    drop(rig);
    let before = faulty.counts().changes();
    let mut rig = Rig::recover(Arc::new(faulty.clone()), &config, log, Access::ReadOnly).unwrap();
    assert_eq!(rig.read_all(), tally);
    assert_eq!(rig.place(1, 100), Err(PlaceError::Suspended));
    rig.checkpoint().unwrap();
    assert_eq!(faulty.counts().changes(), before, "something was written");
}

fn scans(method: &str) {
    let (_, mut rig) = memory_rig(method);
    for number in 0..2500 {
        rig.place(number, 300 + len_of(number * 91 % 9000)).unwrap();
        if number % 11 == 0 {
            rig.commit().unwrap();
        }
    }
    rig.commit().unwrap();
    let logged: BTreeSet<_> = rig.log.articles().map(|logged| logged.token).collect();
    let alive: BTreeSet<_> = logged
        .iter()
        .filter(|token| rig.reader.is_live(token))
        .collect();
    let (mut live, mut all) = (BTreeSet::new(), BTreeSet::new());
    for buffer in rig.reader.buffers() {
        for (range, found) in [(ScanRange::Live, &mut live), (ScanRange::All, &mut all)] {
            let mut scan = Arc::clone(buffer).scan(range);
            while let Some(scanned) = scan.step().unwrap() {
                match scanned {
                    Scanned::Record { token, sound, .. } => {
                        let fresh = !sound || found.insert(token);
                        assert!(fresh, "{token:?} is shown twice");
                        assert!(sound || range == ScanRange::All, "{token:?} is not sound");
                        let len = scan.article().len();
                        let is_whole = len == token.len() as usize || method == PACKED;
                        assert!(is_whole, "{token:?} is not whole");
                    }
                    Scanned::Damaged { from, to, .. } if range == ScanRange::Live => {
                        panic!("damage from {from:#x} to {to:#x} where none was done");
                    }
                    Scanned::Damaged { .. } | Scanned::Passed => {}
                }
            }
        }
    }
    assert_eq!(live.iter().collect::<BTreeSet<_>>(), alive);
    assert!(live.is_subset(&all) && all.is_subset(&logged));
    for buffer in rig.reader.buffers() {
        let oldest = rig.reader.oldest(buffer.id()).unwrap().unwrap();
        let of_buffer = alive.iter().filter(|token| token.buffer() == buffer.id());
        let expected = of_buffer.map(|token| token.position()).min();
        assert_eq!(Some(oldest.position), expected);
    }
}

fn token_texts(method: &str) {
    let (_, mut rig) = memory_rig(method);
    let token = rig.place(1, 3000).unwrap();
    rig.commit().unwrap();
    let text = rig.reader.token_text(&token).unwrap();
    let parsed = TokenText::parse(&text).unwrap();
    assert_eq!(rig.reader.token_at(&parsed).unwrap(), token);
    let elsewhere = TokenText::parse("nowhere:1000:1").unwrap();
    assert!(matches!(
        rig.reader.token_at(&elsewhere),
        Err(ReadError::Gone)
    ));
    let text = format!("{}:40:1", parsed.name);
    let wrong = TokenText::parse(&text).unwrap();
    assert!(rig.reader.token_at(&wrong).is_err());
}

fn checkpoints(method: &str) {
    let faulty = FaultyDisk::new(Arc::new(MemoryDisk::new()));
    let mut rig = filled(Arc::new(faulty.clone()), method, 60);
    rig.checkpoint().unwrap();
    rig.place(100, 2000).unwrap();
    rig.commit().unwrap();
    for nth in 1..4 {
        faulty.add(Fault::new(Op::Write, "/spool/", Effect::Medium).nth(nth));
        let _ = rig.checkpoint();
        faulty.clear();
    }
    rig.checkpoint().unwrap();
    let usable = rig
        .reader
        .facts()
        .iter()
        .all(|facts| facts.suspended.is_none());
    assert!(usable, "a checkpoint's failure is not a batch's");
    assert_eq!(rig.read_all().read, 61);
}

/// While a batch waits for its sync a checkpoint writes headers to the same files: its failed sync loses the batch's octets, too.
fn checkpoint_beside_batch(method: &str) {
    for nth in 1.. {
        let memory = MemoryDisk::new();
        let faulty = FaultyDisk::new(Arc::new(memory.clone()));
        let mut rig = filled(Arc::new(faulty.clone()), method, 20);
        rig.place(500, 3000).unwrap();
        let mut headers = Vec::new();
        rig.store.checkpoint(&mut headers);
        let mut batches = rig.seal();
        batches.iter_mut().for_each(|batch| batch.write().unwrap());
        let before = faulty.counts().of(Op::Sync);
        faulty.add(Fault::new(Op::Sync, "/spool/", Effect::Medium).nth(nth));
        headers.iter_mut().for_each(|header| {
            let _ = header.write();
        });
        if faulty.counts().of(Op::Sync) - before < nth {
            assert!(nth > 1, "a checkpoint synced nothing");
            return;
        }
        if batches.iter_mut().all(|batch| batch.sync().is_ok()) {
            rig.log_commit();
            let left = Arc::new(memory.crash_losing_all());
            let config = config_of(method, OCTETS);
            let after = Rig::recover(left, &config, rig.log.clone(), Access::Write).unwrap();
            assert_eq!(after.read_all().read, 21, "sync {nth}");
        }
    }
}

fn unknown_buffer(method: &str) {
    let (_, mut rig) = memory_rig(method);
    let token = rig.place(1, 300).unwrap();
    rig.commit().unwrap();
    let mut parts = token.parts();
    parts.buffer = BufferId(999);
    let elsewhere = newsreel_wire::Token::new(parts);
    assert!(!rig.reader.is_live(&elsewhere));
    let read = rig
        .reader
        .read(&elsewhere, Want::Whole, Blocking::Yes, &mut Vec::new());
    assert!(matches!(read, Err(ReadError::Gone)));
    assert!(rig.reader.scan(BufferId(999), ScanRange::Live).is_none());
    rig.store.suspend(BufferId(999));
    assert_eq!(rig.read_all().read, 1);
}
