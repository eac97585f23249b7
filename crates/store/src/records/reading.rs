//! Reading an article while the free pointer may overtake it.
//!
//! Alive?  Copy the record to the reader's memory.  Still alive?  Then the copy was made before the region could be
//! touched, because the floor rises first (the newest batches lie in memory and never change).  Checksums, position and identity are verified before anything is handed
//! out: what is served is what was stored, or nothing.  At most one `pread` each, because the token says how much
//! there is.

use std::fmt::Display;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use newsreel_host::ErrorKind;
use newsreel_wire::{BufferId, IdHash, Position, Sequence, SetId, Token, UnixTime};

use super::buffer::Buffer;
use super::format::{Mark, RECORD_HEADER, RecordHeader};
use super::geometry::{BLOCK_MIN, in_memory};
use super::headers::ONE_DAMAGED;
use super::home::FileRef;
use super::mend::Mending;
use super::packing::Unpacking;
use super::placing::{ARTICLE_OCTETS_MAX, round_octets, token_of};
use super::scan::CyclicScan;
use crate::error::ReadError;
use crate::facts::BufferFacts;
use crate::method::{
    Blocking, BufferReader, HeaderWrite, RecordScan, ScanRange, Stored, Want, Witness, WrongBits,
};

/// A read that waits for the disk brings so much into the page cache at once, at multiples of it.
const AROUND: u64 = 64 << 10;
/// ... when no more than this was asked for.
const AROUND_FOR: usize = 16 << 10;

/// Whether a read asks for what is alive only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Liveness {
    /// Before and after the copy.
    Checked,
    /// Recovery: the marks are not known yet, nobody writes.
    Ignored,
}

/// What is told of a file that is not where it should be begins with this.
fn not_there(path: &Path) -> String {
    format!("{} is not there", path.display())
}

/// Where an article lies in the file with this key, as a card in the catalogue of another spool says that.
pub(crate) fn place_name(key: &dyn Display, token: &Token) -> String {
    let digits = token.as_bytes().iter();
    let digits: String = digits.map(|octet| format!("{octet:02x}")).collect();
    format!("{key}/{digits}")
}

impl BufferReader for Buffer {
    fn id(&self) -> BufferId {
        self.id
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn set(&self) -> SetId {
        self.set
    }

    fn cut_at(&self) -> Option<u64> {
        if self.home.is_endless() {
            return None;
        }
        let len = self.home.file(1).and_then(|file| file.len()).ok()?;
        (len < self.geometry().data_end).then_some(len)
    }

    fn lies_at(&self, token: &Token) -> Option<String> {
        Some(place_name(&self.key, token))
    }

    fn floor(&self) -> Position {
        Self::floor(self)
    }

    fn cycle_octets(&self) -> u64 {
        self.geometry().capacity()
    }

    fn octets_for(&self, article_len: u64) -> u64 {
        self.geometry().record_octets(article_len)
    }

    fn round_octets(&self) -> Option<u64> {
        (!self.home.is_endless()).then(|| round_octets(self))
    }

    fn vacatable(&self) -> Option<u32> {
        let written = Position(self.written.load(Ordering::Acquire));
        self.home.drops_vacated().then_some(written.cycle())
    }

    fn vacated(&self, cycle: u32) {
        self.home.vacated(cycle);
    }

    fn emptied(&self, end: Position) {
        self.emptied_before(end);
    }

    fn read(
        &self,
        token: &Token,
        want: Want,
        blocking: Blocking,
        memory: &mut Vec<u8>,
    ) -> Result<Stored, ReadError> {
        self.read_record(token, want, blocking, Liveness::Checked, memory)
    }

    fn will_need(&self, from: Position, octets: u64) {
        if from >= self.floor()
            && let Ok(file) = self.file_of(from)
        {
            file.will_need(from.offset(), octets);
        }
    }

    fn verify(
        &self,
        token: &Token,
        sequence: Sequence,
        id_hash: &IdHash,
        memory: &mut Vec<u8>,
    ) -> Result<(), ReadError> {
        let stored =
            self.read_record(token, Want::Whole, Blocking::Yes, Liveness::Ignored, memory)?;
        if stored.sequence != sequence {
            return Err(self.corrupt(
                token.position(),
                "the record has another sequence than the log",
            ));
        }
        if stored.id_hash != *id_hash {
            return Err(self.corrupt(
                token.position(),
                "the record is of another article than the log's",
            ));
        }
        Ok(())
    }

    fn token_at(&self, position: Position) -> Result<Token, ReadError> {
        if position < self.floor() {
            return Err(ReadError::Gone);
        }
        match self.header_at(position) {
            Err(ReadError::Corrupt { .. }) if !self.should_be_sound(position) => {
                Err(ReadError::Gone)
            }
            header => Ok(token_of(self, &header?)),
        }
    }

    fn look(&self) -> crate::error::Result<()> {
        Self::look(self)
    }

    fn scan(self: Arc<Self>, range: ScanRange) -> Box<dyn RecordScan> {
        Box::new(CyclicScan::new(self, range))
    }

    fn is_lost(&self, position: Position) -> bool {
        !self.is_erased(position) && self.should_be_sound(position)
    }

    fn mend_header(&self) -> crate::error::Result<Option<String>> {
        let found = match self.home.mend_header(self.is_usable())? {
            Some(found) => Some(found),
            None => self.mend_dictionaries()?,
        };
        if let Some(found) = &found {
            self.is_mended(ONE_DAMAGED);
            self.complain(found.clone());
        }
        Ok(found)
    }

    fn mending(
        self: Arc<Self>,
        token: &Token,
        arrival: UnixTime,
        id_hash: &IdHash,
        witness: &dyn Witness,
    ) -> Option<HeaderWrite> {
        if !self.is_usable() {
            return None;
        }
        let mut mending = Mending {
            sequence: None,
            vouched: None,
            buffer: self,
            token: *token,
            arrival,
            id_hash: *id_hash,
            is_written: false,
        };
        mending.ask(witness);
        Some(HeaderWrite {
            is_vouched: mending.vouched.is_some(),
            write: Box::new(mending),
        })
    }

    fn wrong_bits(
        &self,
        stretch: Range<Position>,
        starts: &[Position],
    ) -> crate::error::Result<WrongBits> {
        Ok(self.home.wrong_bits(&self.geometry(), stretch, starts)?)
    }

    fn bits(&self, stretch: Range<Position>) -> crate::error::Result<Option<Vec<Position>>> {
        Ok(self.home.bits(&self.geometry(), stretch)?)
    }

    fn has_doubtful_bits(&self) -> bool {
        self.is_rescued && !self.read_only && !self.home.is_endless()
    }

    fn mend_bits(&self, wrong: &WrongBits) -> crate::error::Result<bool> {
        let may_write = self.is_usable();
        if may_write {
            let is_live = |at| self.is_live_after_reading(at);
            self.home.mend_bits(&self.geometry(), wrong, &is_live)?;
        }
        Ok(may_write)
    }

    fn notes_damaged_at(&self) -> Option<u64> {
        self.home.notes_damaged_at()
    }

    fn lacks(&self, start: Position) -> bool {
        let lacks = self.lacks.lock();
        lacks.iter().any(|stretch| stretch.contains(&start))
    }

    fn lacking(&self) -> Vec<Range<Position>> {
        self.lacks.lock().clone()
    }

    fn lacked(&self, stretch: Range<Position>) {
        self.lacks.lock().push(stretch);
    }

    fn marks_withdrawn(&self, start: Position) -> bool {
        !self.home.is_endless() && self.is_usable() && !self.geometry().has_bit(start)
    }

    fn take_memory(&self) {
        self.recent.take_memory();
    }

    fn facts(&self) -> BufferFacts {
        let end = Position(self.end.load(Ordering::Relaxed));
        let reserved = Position(self.reserved.load(Ordering::Relaxed));
        let hints = self.home.written();
        let narrowing = self.home.narrowing();
        let floor = self.floor();
        // In the first cycle nothing has been overwritten yet.
        let oldest = self
            .geometry()
            .start_of(1)
            .map_or(floor, |start| floor.max(start));
        BufferFacts {
            name: self.name.clone(),
            id: self.id.0,
            method: self.home.kind().name,
            set: self.set.0,
            path: self.home.path().display().to_string(),
            octets: self.home.octets(),
            becomes: narrowing.map(|it| it.octets),
            becomes_after_octets: narrowing.map(|it| self.left_of_narrowing(it.last_cycle, end)),
            capacity_octets: Some(self.capacity_octets()),
            free_octets: None,
            block_octets: self.geometry().block,
            article_octets_max: self.article_octets_max(),
            cycle: end.cycle(),
            free_offset: end.offset(),
            data_offset: self.geometry().data_start,
            reserved_offset: reserved.offset(),
            live_octets: self.live_octets(oldest, end),
            suspended: self.suspension(),
            is_read_only: self.read_only,
            is_retired: self.is_retired(),
            is_drained: self.is_drained(),
            complaint: self.complaint(),
            header_sequence: hints.sequence.0,
            header_arrival: hints.arrival.0,
            newest_arrival: self.arrival.load(Ordering::Relaxed),
        }
    }
}

/// The position behind the record of a token.
pub(crate) fn end_of(token: &Token) -> Position {
    let start = token.position();
    let octets = RECORD_HEADER as u64 + u64::from(token.len());
    let end = start
        .offset()
        .saturating_add(octets.next_multiple_of(BLOCK_MIN));
    Position::checked(start.cycle(), end).unwrap_or(start)
}

/// The first `len` octets of memory that is used again and again and seldom has to grow.
fn grown(memory: &mut Vec<u8>, len: usize) -> &mut [u8] {
    if memory.len() < len {
        memory.resize(len, 0);
    }
    &mut memory[..len]
}

impl Buffer {
    /// Room for articles in all files that are there.
    fn capacity_octets(&self) -> u64 {
        if self.home.is_endless() {
            self.home.octets()
        } else {
            self.geometry().capacity()
        }
    }

    fn live_octets(&self, oldest: Position, end: Position) -> u64 {
        if self.home.is_endless() && oldest < end {
            let cycles = u64::from(end.cycle() - oldest.cycle());
            let octets = (cycles * self.geometry().capacity() + end.offset())
                .saturating_sub(oldest.offset());
            // Of a file between others that is not there nothing is.
            return octets.min(self.capacity_octets());
        }
        let octets = self.geometry().distance(oldest, end);
        octets.min(self.geometry().capacity())
    }

    /// Whether a record at this position is alive; whatever was read before this call was read before the answer.
    pub(crate) fn is_live_after_reading(&self, position: Position) -> bool {
        fence(Ordering::SeqCst);
        position >= self.floor()
    }

    /// The file with this position; a file that is not there any more has no articles.
    fn file_of(&self, position: Position) -> Result<FileRef<'_>, ReadError> {
        match self.home.file(position.cycle()) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let why = self.unless_away();
                if matches!(why, ReadError::Gone)
                    && let Some(path) = self.home.missing(position.cycle())
                {
                    self.tell_missing(&path);
                }
                Err(why)
            }
            file => {
                let file = file?;
                if self.misses_file.load(Ordering::Relaxed) {
                    self.is_mended(&not_there(file.path()));
                }
                Ok(file)
            }
        }
    }

    /// Tells of a file that somebody has removed, until it is read again.
    fn tell_missing(&self, path: &Path) {
        let why = format!(
            "{}, though nothing here removed it: what was in there is lost if somebody removed it, and not served until it \
             is put back; see `newsreel store scrub` for what is lost",
            not_there(path)
        );
        tracing::error!(buffer = self.name, "{why}");
        self.complain(why);
        self.misses_file.store(true, Ordering::Relaxed);
    }

    /// The header of the article that begins here.
    fn header_at(&self, position: Position) -> Result<RecordHeader, ReadError> {
        let mut octets = [0; RECORD_HEADER];
        if !self.geometry().holds(position, RECORD_HEADER as u64) {
            return Err(self.corrupt(position, "the position is outside the buffer"));
        }
        let file = self.file_of(position)?;
        file.read_exact_at(&mut octets, position.offset())
            .map_err(|error| self.unread(position, error))?;
        let header = RecordHeader::decode(&octets, self.key);
        let header = header.map_err(|what| self.corrupt(position, what))?;
        if header.position == position && header.mark == Mark::Erased {
            return Err(ReadError::Gone);
        }
        if header.position != position || header.mark != Mark::Article {
            return Err(self.corrupt(
                position,
                "the record was written for another place or cycle",
            ));
        }
        Ok(header)
    }

    fn read_record(
        &self,
        token: &Token,
        want: Want,
        blocking: Blocking,
        liveness: Liveness,
        memory: &mut Vec<u8>,
    ) -> Result<Stored, ReadError> {
        let position = token.position();
        if token.method() != self.home.kind().number || token.buffer() != self.id {
            return Err(ReadError::Gone);
        }
        let [h0, h1, h2, h3, ..] = token.tail();
        let head_len = u32::from_le_bytes([h0, h1, h2, h3]);
        let text_len = match want {
            Want::Whole => token.len(),
            Want::Head => head_len.min(token.len()),
        };
        let whole = RECORD_HEADER as u64 + u64::from(token.len());
        let is_possible = self.geometry().holds(position, whole)
            && u64::from(token.len().max(head_len)) <= ARTICLE_OCTETS_MAX;
        if liveness == Liveness::Checked && position < self.floor() {
            return Err(ReadError::Gone);
        }
        if !is_possible {
            return Err(self.corrupt(position, "the token cannot be of this buffer"));
        }
        let (mut record, mut header) =
            self.read_checked(token, text_len, blocking, liveness, memory)?;
        let is_cut = text_len < token.len();
        if header.is_packed && is_cut {
            (record, header) = self.read_checked(token, token.len(), blocking, liveness, memory)?;
        }
        let text = record.start + RECORD_HEADER..record.end;
        let octets = match header.is_packed {
            true => {
                let unpacked = self.unpack_checked(&header, want, text, blocking, memory);
                self.unless_gone(position, liveness, unpacked)?
            }
            false => text,
        };
        Ok(Stored {
            octets,
            head_len: head_len as usize,
            sequence: header.sequence,
            arrival: header.arrival,
            id_hash: header.id_hash,
        })
    }

    /// Copies the first octets of a record, checked as far as they are; says where in `memory` they are.
    fn read_checked(
        &self,
        token: &Token,
        text_len: u32,
        blocking: Blocking,
        liveness: Liveness,
        memory: &mut Vec<u8>,
    ) -> Result<(Range<usize>, RecordHeader), ReadError> {
        let position = token.position();
        let len = RECORD_HEADER + text_len as usize;
        let record = match liveness {
            Liveness::Checked => self.fetch(position, len, blocking, memory)?,
            // Recovery wants to know what is in the file.
            Liveness::Ignored => self.fetch_exactly(position, len, blocking, memory)?,
        };
        if liveness == Liveness::Checked && !self.is_live_after_reading(position) {
            return Err(ReadError::Gone);
        }
        let checked = self.check(token, &memory[record.clone()]);
        Ok((record, self.unless_gone(position, liveness, checked)?))
    }

    /// What does not agree may have been erased under the copy: then its mark says so by now.  Or overwritten by a server of which
    /// only the header tells.
    fn unless_gone<T>(
        &self,
        position: Position,
        liveness: Liveness,
        checked: Result<T, ReadError>,
    ) -> Result<T, ReadError> {
        match checked {
            Err(ReadError::Corrupt { .. })
                if self.is_erased(position)
                    || liveness == Liveness::Checked && !self.should_be_sound(position) =>
            {
                Err(ReadError::Gone)
            }
            checked => checked,
        }
    }

    /// Unpacks what lies here in `memory`, and says where the article is, or its header block.
    fn unpack_checked(
        &self,
        header: &RecordHeader,
        want: Want,
        stored: Range<usize>,
        blocking: Blocking,
        memory: &mut Vec<u8>,
    ) -> Result<Range<usize>, ReadError> {
        let (from, may_wait) = (stored.end, blocking == Blocking::Yes);
        let unpacked = self.unpack_behind(header.position, stored, may_wait, memory);
        let len = unpacked.map_err(|why| match why {
            Unpacking::Wrong(what) => self.corrupt(header.position, what),
            Unpacking::WouldBlock => ReadError::WouldBlock,
            Unpacking::Host(error) if error.kind() == ErrorKind::NotFound => self.unless_away(),
            Unpacking::Host(error) => error.into(),
        })?;
        let article = from..from + len;
        if !header.signs(&memory[article.clone()]) {
            return Err(self.corrupt(header.position, "checksum of the unpacked article"));
        }
        Ok(match want {
            Want::Whole => article,
            Want::Head => from..from + header.head_len as usize,
        })
    }

    /// Copies the first `len` octets of a record from where they are had most cheaply; says where in `memory` they are.
    fn fetch(
        &self,
        position: Position,
        len: usize,
        blocking: Blocking,
        memory: &mut Vec<u8>,
    ) -> Result<Range<usize>, ReadError> {
        if self.copy_recent(position, len, memory) {
            return Ok(0..len);
        }
        let is_small = len <= AROUND_FOR && self.home.kind().is_of_articles;
        if blocking == Blocking::Yes && is_small {
            // Who waits for the disk anyway brings the neighbours along: they arrived together and are read together.
            let offset = position.offset();
            let from = (offset - offset % AROUND).max(self.geometry().data_start);
            let to = (offset + len as u64)
                .next_multiple_of(AROUND)
                .min(self.geometry().data_end);
            let window = grown(memory, in_memory(to - from));
            if self.file_of(position)?.read_exact_at(window, from).is_ok() {
                let at = in_memory(offset - from);
                return Ok(at..at + len);
            }
            // A neighbour that cannot be read is no reason not to read this one.
        }
        self.fetch_exactly(position, len, blocking, memory)
    }

    /// Reads the first `len` octets of a record from the file.
    fn fetch_exactly(
        &self,
        position: Position,
        len: usize,
        blocking: Blocking,
        memory: &mut Vec<u8>,
    ) -> Result<Range<usize>, ReadError> {
        let record = grown(memory, len);
        let file = self.file_of(position)?;
        match blocking {
            Blocking::Yes => file
                .read_exact_at(record, position.offset())
                .map_err(|error| self.unread(position, error))?,
            Blocking::No => match file.read_cached_at(record, position.offset())? {
                Some(got) if got == len => {}
                _ => return Err(ReadError::WouldBlock),
            },
        }
        Ok(0..len)
    }

    /// Copies a record from the newest batches, if it is there.
    fn copy_recent(&self, position: Position, len: usize, memory: &mut Vec<u8>) -> bool {
        let batch = self.recent.find(position);
        let octets = batch.as_ref().and_then(|batch| batch.at(position));
        let found = octets.and_then(|octets| octets.get(..len));
        found.is_some_and(|found| {
            grown(memory, len).copy_from_slice(found);
            true
        })
    }

    /// Whether the record here was overwritten because it was withdrawn.
    fn is_erased(&self, position: Position) -> bool {
        let mut octets = [0; RECORD_HEADER];
        let file = self.file_of(position);
        let read =
            file.is_ok_and(|file| file.read_exact_at(&mut octets, position.offset()).is_ok());
        read && RecordHeader::decode(&octets, self.key)
            .is_ok_and(|header| header.position == position && header.mark == Mark::Erased)
    }

    /// Everything that must agree before a record is handed out.
    fn check(&self, token: &Token, record: &[u8]) -> Result<RecordHeader, ReadError> {
        let corrupt = |what| self.corrupt(token.position(), what);
        let header = RecordHeader::decode(record, self.key).map_err(corrupt)?;
        if header.position == token.position() && header.mark == Mark::Erased {
            return Err(ReadError::Gone);
        }
        if header.position != token.position() || header.mark != Mark::Article {
            return Err(corrupt("the record was written for another place or cycle"));
        }
        let [h0, h1, h2, h3, i0, i1, i2, i3] = token.tail();
        if header.article_len != token.len()
            || header.head_len != u32::from_le_bytes([h0, h1, h2, h3])
            || !header.id_hash.0.starts_with(&[i0, i1, i2, i3])
        {
            return Err(corrupt("the record is of another article than the token"));
        }
        if header.is_packed {
            // Its checksums are of what is packed.
            return Ok(header);
        }
        let text = &record[RECORD_HEADER..];
        let (head, body) = text.split_at(header.head_len as usize);
        if crc32c::crc32c(head) != header.crc_head {
            return Err(corrupt("checksum of the header block"));
        }
        // Of the header block alone nothing follows.
        if text.len() == header.article_len as usize && crc32c::crc32c(body) != header.crc_body {
            return Err(corrupt("checksum of the body"));
        }
        Ok(header)
    }

    /// Why octets were not read: a file that was cut off is damaged, the disk is not at fault.
    fn unread(&self, position: Position, error: newsreel_host::Error) -> ReadError {
        match error.kind() {
            ErrorKind::ShortRead => self.corrupt(position, "the file ends before it"),
            _ => error.into(),
        }
    }

    const fn corrupt(&self, position: Position, what: &'static str) -> ReadError {
        ReadError::Corrupt {
            buffer: self.id,
            offset: position.offset(),
            what,
        }
    }
}
