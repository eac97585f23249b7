//! Sequencer, commit thread and log in miniature: what a store needs around it to be tried.
//!
//! The log is a list; a frame is in it once its commit has ended, as one whose sync returned.  Articles are made from
//! their numbers, so that every octet that is read can be compared.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use newsreel_host::Disk;
use newsreel_wire::{BufferId, IdHash, Position, Sequence, SetId, Token, UnixTime};

use crate::config::{FileFormat, StoreConfig};
use crate::error::{PlaceError, ReadError, Result};
use crate::method::{BatchWrite, Blocking, CheckpointWrite, Marks, Place, Reservation, Want};
use crate::methods::end_of;
use crate::reader::StoreReader;
use crate::store::{Access, Store};

/// The UUID of the spool of every rig.
const SPOOL: [u8; 16] = [9; 16];
/// Where the spool lies, usually.
const DIR: &str = "/spool";

/// An article as the log tells of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Logged {
    /// The number it was made from.
    pub number: u64,
    /// The length it was asked for.
    pub len: usize,
    /// Where it lies.
    pub token: Token,
    /// Its place in the log.
    pub sequence: Sequence,
}

/// One commit.
#[derive(Debug, Clone, Default)]
struct Frame {
    articles: Vec<Logged>,
    reservations: Vec<Reservation>,
    last: u64,
}

/// What survives a restart beside the disk.
#[derive(Debug, Clone, Default)]
pub struct Log {
    frames: Vec<Frame>,
}

/// What became of the articles of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Read back octet for octet.
    pub read: usize,
    /// Gone, and computed as gone.
    pub gone: usize,
    /// Refused as damaged.
    pub corrupt: usize,
}

/// A store with what it needs around it.
#[derive(Debug)]
pub struct Rig {
    /// The disk.
    pub disk: Arc<dyn Disk>,
    /// The store.
    pub store: Store,
    /// Its readers' half.
    pub reader: Arc<StoreReader>,
    /// What is committed.
    pub log: Log,
    /// The time to judge by.
    pub now: Option<UnixTime>,
    /// Octets that Xref is made longer by, where that is what is to be large.
    pub xref_octets: usize,
    /// The form that its rule says of the file of an article.
    pub format: Option<FileFormat>,
    open: Frame,
    next: u64,
}

/// Articles from this number on consist of words, as those of people do; others of letters by chance.
pub const WORDS_FROM: u64 = 1 << 40;

/// An article of about `len` octets that says which it is, and the length of its header block.
#[must_use]
pub fn article(number: u64, len: usize) -> (Vec<u8>, u32) {
    let mut out = format!("Subject: {number}\r\nMessage-ID: {}\r\n", id(number)).into_bytes();
    let head_len = u32::try_from(out.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(b"\r\n");
    let mut fill = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    while out.len() < len {
        fill = fill.rotate_left(7).wrapping_add(number);
        if number >= WORDS_FROM {
            // A few hundred words, each of its own letters.
            let mut word = fill % 300;
            if out.len() > 8192 {
                // The order would repeat itself; of short ones it stays as it is in the stored files of tests.
                fill = fill.wrapping_mul(0x5851_f42d_4c95_7f2d);
                word = (fill >> 33) % 300;
            }
            let letters = word.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let letters = letters.swap_bytes().to_le_bytes();
            let letters = letters.iter().take(3 + (word % 6) as usize);
            out.extend(letters.map(|octet| b'a' + octet % 26));
            let is_end = out.len() % 11 == 0;
            out.extend_from_slice(if is_end { b"\r\n" } else { b" " });
            continue;
        }
        // Suites spend most of their time here.
        let octets = fill.to_le_bytes();
        let mut line = *b"................\r\n";
        for (pair, octet) in line.chunks_exact_mut(2).zip(octets) {
            pair.copy_from_slice(&[b'a' + (octet & 15), b'a' + (octet >> 4)]);
        }
        out.extend_from_slice(&line);
    }
    if !out.ends_with(b"\r\n") {
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b".\r\n");
    (out, head_len)
}

/// The message-id of article `number`.
#[must_use]
pub fn id(number: u64) -> String {
    format!("<{number}@t.example>")
}

/// Where article `number` is filed, as its Xref would say: every third in two groups.
#[must_use]
pub fn xref(number: u64) -> String {
    let first = format!("t.example misc.test:{number}");
    match number % 3 {
        0 => format!("{first} misc.other:{}", number / 3),
        _ => first,
    }
}

/// The hash of the message-id of article `number`.
#[must_use]
pub fn id_hash(number: u64) -> IdHash {
    let mut out = [0; 16];
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    out[..8].copy_from_slice(&mixed.to_le_bytes());
    out[8..].copy_from_slice(&number.to_le_bytes());
    IdHash(out)
}

impl Log {
    /// Every article committed, in order.
    pub fn articles(&self) -> impl Iterator<Item = &Logged> {
        self.frames.iter().flat_map(|frame| &frame.articles)
    }

    /// The last sequence.
    #[must_use]
    pub fn end(&self) -> Sequence {
        Sequence(self.frames.last().map_or(0, |frame| frame.last))
    }

    /// How many commits it has.
    #[must_use]
    pub fn commits(&self) -> usize {
        self.frames.len()
    }

    /// An older copy of it, put back: only the first so many commits.
    #[must_use]
    pub fn cut(&self, commits: usize) -> Self {
        Self {
            frames: self.frames[..commits].to_vec(),
        }
    }

    /// The same without its last reservation: the frame that told of it was damaged, and no article was in it.
    #[must_use]
    pub fn without_last_reservation(&self) -> Self {
        let mut log = self.clone();
        let mut reserving = log.frames.iter_mut().rev();
        if let Some(frame) = reserving.find(|frame| !frame.reservations.is_empty()) {
            frame.reservations.clear();
        }
        log
    }

    /// The marks that follow from it.
    #[must_use]
    pub fn marks(&self) -> Vec<Marks> {
        let mut marks: BTreeMap<BufferId, (Position, Position)> = BTreeMap::new();
        for frame in &self.frames {
            for logged in &frame.articles {
                let end = end_of(&logged.token);
                marks.entry(logged.token.buffer()).or_default().0 = end;
            }
            for reservation in &frame.reservations {
                marks.entry(reservation.buffer).or_default().1 = reservation.up_to;
            }
        }
        let mark = |(buffer, (end, reserved))| Marks {
            buffer,
            end,
            reserved,
            known: None,
        };
        marks.into_iter().map(mark).collect()
    }
}

impl Rig {
    /// A store that is used for the first time, or again without its log.
    ///
    /// # Errors
    /// What opening the store says.
    pub fn new(disk: Arc<dyn Disk>, config: &StoreConfig) -> Result<Self> {
        Self::recover(disk, config, Log::default(), Access::Write)
    }

    /// A store after a restart, with what its log has.
    ///
    /// # Errors
    /// What opening the store says.
    pub fn recover(
        disk: Arc<dyn Disk>,
        config: &StoreConfig,
        log: Log,
        access: Access,
    ) -> Result<Self> {
        Self::recover_in(Path::new(DIR), disk, config, log, access)
    }

    /// The same in another directory.
    ///
    /// # Errors
    /// What opening the store says.
    pub fn recover_in(
        dir: &Path,
        disk: Arc<dyn Disk>,
        config: &StoreConfig,
        log: Log,
        access: Access,
    ) -> Result<Self> {
        let mut store = Store::open(&disk, dir, SPOOL, config, &[], access, &mut |_, _, _| {})?;
        let reader = store.reader();
        for logged in log.articles() {
            store.replayed(&logged.token);
        }
        store.resume(&log.marks(), log.end())?;
        // A sequence that a buffer knows of is not given again.
        let facts = reader.facts();
        let known = facts.iter().map(|facts| facts.header_sequence);
        let last = known.max().unwrap_or(0).max(log.end().0);
        Ok(Self {
            disk,
            store,
            reader,
            next: last + 1,
            log,
            now: None,
            xref_octets: 0,
            format: None,
            open: Frame::default(),
        })
    }

    /// Whether the last commit of a log is whole in the store, so that it need not be cut.
    #[must_use]
    pub fn has_last_commit(&self) -> bool {
        let mut memory = Vec::new();
        let last = self.log.frames.last();
        last.is_none_or(|frame| {
            frame.articles.iter().all(|logged| {
                let hash = id_hash(logged.number);
                let verified =
                    self.reader
                        .verify(&logged.token, logged.sequence, &hash, &mut memory);
                verified.is_ok()
            })
        })
    }

    /// Passes so many sequences over, as a start after a crash does.
    pub const fn pass_over(&mut self, sequences: u64) {
        self.next += sequences;
    }

    /// Places an article in set 0, committing when a reservation is wanted.
    ///
    /// # Errors
    /// When it gets no place.
    ///
    /// # Panics
    /// When a commit fails, or reserving leads nowhere.
    pub fn place(&mut self, number: u64, len: usize) -> std::result::Result<Token, PlaceError> {
        for _ in 0..3 {
            match self.try_place(number, len) {
                Err(PlaceError::NeedsReservation) => self.commit().unwrap(),
                other => return other,
            }
        }
        panic!("article {number} of {len} octets: reserving leads nowhere");
    }

    /// Places an article in set 0 once.
    ///
    /// # Errors
    /// When it gets no place.
    pub fn try_place(&mut self, number: u64, len: usize) -> std::result::Result<Token, PlaceError> {
        let (text, head_len) = article(number, len);
        let cut = text.len() / 3;
        let sequence = Sequence(self.next);
        let token = self.store.place(&Place {
            sequence,
            arrival: UnixTime(1_000_000 + number),
            id_hash: id_hash(number),
            id: id(number).as_bytes(),
            set: SetId(0),
            format: self.format,
            xref: (xref(number) + &" ".repeat(self.xref_octets)).as_bytes(),
            article: &[&text[..cut], &[], &text[cut..]],
            head_len,
        })?;
        self.next += 1;
        self.open.articles.push(Logged {
            number,
            len,
            token,
            sequence,
        });
        Ok(token)
    }

    /// Commits what was placed: buffers first, log second.
    ///
    /// # Errors
    /// What the first failing buffer says; its articles are not in the log then.
    pub fn commit(&mut self) -> Result<()> {
        let mut batches = self.seal();
        for batch in &mut batches {
            batch.write()?;
        }
        for batch in &mut batches {
            batch.sync()?;
        }
        self.store.recycle(&mut batches);
        self.log_commit();
        Ok(())
    }

    /// Commits as the engine does: buffers that fail are suspended, and their articles placed again as far as there is a
    /// place for them; the others are left out.  Gives how many were placed again, where something failed.
    pub fn commit_with_repair(&mut self) -> Option<usize> {
        let mut placed = None;
        let mut batches = self.seal();
        loop {
            let mut failed = BTreeSet::new();
            for batch in &mut batches {
                if batch.write().and_then(|()| batch.sync()).is_err() {
                    failed.insert(batch.buffer());
                }
            }
            if failed.is_empty() {
                break;
            }
            for buffer in &failed {
                self.store.suspend(*buffer);
            }
            let (bad, good): (Vec<_>, Vec<_>) = batches
                .into_iter()
                .partition(|batch| failed.contains(&batch.buffer()));
            placed = Some(self.place_again(&bad));
            batches = good;
            self.store.seal(&mut batches);
        }
        self.store.recycle(&mut batches);
        self.log_commit();
        placed
    }

    /// The first half of a commit: reservations are noted and batches sealed.
    pub fn seal(&mut self) -> Vec<Box<dyn BatchWrite>> {
        let now = self.now;
        self.store.reservations(now, &mut self.open.reservations);
        self.next += self.open.reservations.len() as u64;
        self.open.last = self.next - 1;
        let mut batches = Vec::new();
        self.store.seal(&mut batches);
        batches
    }

    /// The last half: the log has it, and its reservations hold.
    pub fn log_commit(&mut self) {
        let frame = std::mem::take(&mut self.open);
        for reservation in &frame.reservations {
            self.store.reserved(*reservation);
        }
        self.log.frames.push(frame);
    }

    /// What the log would have if it got the open commit, whose buffers were written.
    #[must_use]
    pub fn log_with_open(&self) -> Log {
        let mut log = self.log.clone();
        log.frames.push(self.open.clone());
        log
    }

    /// The commit that was being made failed: its articles are taken out of its batches and placed again.  What finds
    /// no place is left out.  Gives how many were placed.
    pub fn place_again(&mut self, failed: &[Box<dyn BatchWrite>]) -> usize {
        let articles = std::mem::take(&mut self.open.articles);
        let mut placed = 0;
        for mut logged in articles {
            let kept = failed.iter().find_map(|batch| batch.article(&logged.token));
            if let Some(kept) = kept {
                let again = self.store.place(&Place {
                    sequence: logged.sequence,
                    arrival: UnixTime(1_000_000 + logged.number),
                    id_hash: id_hash(logged.number),
                    id: id(logged.number).as_bytes(),
                    set: SetId(0),
                    format: kept.format,
                    xref: xref(logged.number).as_bytes(),
                    article: &[&kept.text],
                    head_len: kept.head_len,
                });
                let Ok(token) = again else { continue };
                logged.token = token;
                placed += 1;
            }
            self.open.articles.push(logged);
        }
        placed
    }

    /// Writes headers and bitmaps.
    ///
    /// # Errors
    /// What the first failing buffer says.
    pub fn checkpoint(&mut self) -> Result<()> {
        let mut writes: Vec<Box<dyn CheckpointWrite>> = Vec::new();
        self.store.checkpoint(&mut writes);
        self.commit()?;
        writes.iter_mut().try_for_each(|write| write.write())
    }

    /// Reads one article and compares every octet.
    ///
    /// # Errors
    /// What reading says.
    ///
    /// # Panics
    /// When what was read is not what was stored.
    pub fn read(&self, logged: &Logged) -> std::result::Result<(), ReadError> {
        let (text, head_len) = article(logged.number, logged.len);
        let mut memory = Vec::new();
        for (want, octets) in [
            (Want::Whole, &text[..]),
            (Want::Head, &text[..head_len as usize]),
        ] {
            let read = self
                .reader
                .read(&logged.token, want, Blocking::Yes, &mut memory)?;
            assert_eq!(&memory[read.octets.clone()], octets, "octets of {logged:?}");
            assert_eq!(read.head_len, head_len as usize, "{logged:?}");
            assert_eq!(read.sequence, logged.sequence, "{logged:?}");
            assert_eq!(read.id_hash, id_hash(logged.number), "{logged:?}");
            assert_eq!(read.arrival.0, 1_000_000 + logged.number, "{logged:?}");
        }
        Ok(())
    }

    /// Reads everything committed and compares every octet: what is there is what was stored, what is gone computes
    /// as gone.
    ///
    /// # Panics
    /// When that is not so, or the disk fails.
    pub fn read_all(&self) -> Tally {
        let mut tally = Tally::default();
        for logged in self.log.articles() {
            match self.read(logged) {
                Ok(()) => {
                    assert!(self.reader.is_live(&logged.token), "{logged:?}");
                    tally.read += 1;
                }
                Err(ReadError::Gone) => {
                    assert!(!self.reader.is_live(&logged.token), "{logged:?}");
                    tally.gone += 1;
                }
                Err(ReadError::Corrupt { .. }) => tally.corrupt += 1,
                Err(error) => panic!("{logged:?}: {error}"),
            }
        }
        tally
    }
}
