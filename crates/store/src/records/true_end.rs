//! The true end of a buffer whose log, header or both are older than what was written to it.
//!
//! Every record says where it lies, in which cycle: one that is sound and lies further on in time than all that is known
//! was written later.  From the newest that a few looks find they are followed, over damage and around the end of the file,
//! until behind the last of them there is none for as long as a buffer may be written without a word in its header.

mod newest;

use std::ops::Range;

use newsreel_host::{AlignedBuf, ErrorKind};
use newsreel_wire::{IdHash, Position, Sequence, Token, UnixTime};

use super::buffer::Buffer;
use super::format::{Mark, RECORD_HEADER, RecordHeader};
use super::geometry::{PAGE, PAGE_LEN, in_memory};
use super::placing::{ARTICLE_OCTETS_MAX, token_of};
use crate::error::{Error, Result};
use crate::method::{Left, Missing};
use newest::Seen;

/// Octets read at once: whole blocks.
const WINDOW: u64 = 1 << 20;

/// What was written last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TrueEnd {
    /// Behind the last record.
    pub(crate) end: Position,
    /// Its sequence; 0 when nothing is there behind what was known.
    pub(crate) sequence: Sequence,
}

/// Whether more than one batch lies behind the end of the log.  The second is written only when the log has the first: so
/// the log has lost what it had.
pub(crate) fn has_batches(buffer: &Buffer, from: Position, last: Sequence) -> Result<bool> {
    let (first, last) = batch(buffer, (from, last))?;
    // The next batch begins on a page.
    match buffer.geometry().page_up(first).filter(|_| first > from) {
        Some(next) => Ok(later(buffer, next, last)?.is_some()),
        None => Ok(false),
    }
}

/// The end of the batch that begins exactly here, and its last sequence.  Sequences grow: what is older, an unfinished
/// commit of an earlier run left there.
fn batch(buffer: &Buffer, from: (Position, Sequence)) -> Result<(Position, Sequence)> {
    let (mut end, mut last) = from;
    while let Some(record) = later(buffer, end, last)? {
        (end, last) = (record.end, record.behind());
    }
    Ok((end, last))
}

/// A stretch between two records in which none can be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gap {
    pub(crate) from: Position,
    to: Position,
    /// Of the record behind it.
    sequence: Sequence,
}

/// Whether there is a record within so many octets that the log does not have.
pub(crate) fn has_any(
    buffer: &Buffer,
    from: Position,
    missing: Missing,
    octets: u64,
) -> Result<bool> {
    let mut walk = Walk::new(buffer, from, octets.min(buffer.geometry().capacity()));
    let is_missing = |record: &Record, _: u32| record.at >= from && record.sequence > missing.last;
    Ok(walk.step(is_missing)?.is_some())
}

/// The articles that the log does not have, as far as records of growing sequences follow, over damage, and not for more
/// than `octets_max` (`None` when there is more); and the gaps between them.
pub(crate) fn left(
    buffer: &Buffer,
    from: Position,
    missing: Missing,
    (quiet, octets_max): (u64, u64),
) -> Result<Option<(Left, Vec<Gap>)>> {
    let mut left = Left {
        buffer: buffer.id,
        articles: Vec::new(),
        end: from,
        reserved: buffer.home.opened().reserved,
        has_gaps: false,
        has_remains: false,
    };
    let (mut gaps, mut octets) = (Vec::new(), 0_u64);
    let mut last = missing.last;
    let mut walk = Walk::new(buffer, from, quiet);
    // What another cycle has here was written before or behind all that is looked for.
    let is_next = |record: &Record, cycle, end, last| {
        record.at.cycle() == cycle && record.at >= end && record.sequence > last
    };
    while let Some(record) = walk.step(|record, cycle| is_next(record, cycle, left.end, last))? {
        if missing
            .before
            .is_some_and(|before| record.sequence >= before)
        {
            break;
        }
        if !follows(buffer, left.end, record.at)? {
            left.has_gaps = true;
            gaps.push(Gap {
                from: left.end,
                to: record.at,
                sequence: record.sequence,
            });
        }
        // A start before this closed a gap here, or the log has lost a withdrawal.
        left.has_gaps |= record.is_erased;
        octets = octets.saturating_add(buffer.geometry().distance(left.end, record.end));
        (left.end, last) = (record.end, record.behind());
        if let Some(token) = record.token {
            left.articles.push((record.sequence, token));
        }
        if octets > octets_max {
            return Ok(None);
        }
    }
    Ok(Some((left, gaps)))
}

/// Whether a record at `at` is the next one behind `end`: there, or on the next page with nothing between.
fn follows(buffer: &Buffer, end: Position, at: Position) -> Result<bool> {
    if at == end {
        return Ok(true);
    }
    if buffer.geometry().page_up(end) != Some(at) {
        return Ok(false);
    }
    let mut rest = [0; PAGE_LEN];
    let rest = &mut rest[in_memory(end.offset() % PAGE)..];
    match read(buffer, end, rest) {
        Err(error) if is_nothing(&error) => Ok(false),
        read => {
            read?;
            Ok(rest.iter().all(|octet| *octet == 0))
        }
    }
}

/// Marks a gap as passed over, so that nobody takes it for damage later.  What cannot be read stays as it is.
pub(crate) fn close(buffer: &Buffer, gap: &Gap) -> Result<()> {
    let geometry = &buffer.geometry();
    let mut at = gap.from;
    while at < gap.to {
        let is_same = at.cycle() == gap.to.cycle();
        let area_end = if is_same {
            gap.to.offset()
        } else {
            geometry.data_end
        };
        let octets = (area_end - at.offset()).min(ARTICLE_OCTETS_MAX);
        let header = RecordHeader {
            mark: Mark::Erased,
            is_packed: false,
            article_len: u32::try_from(octets - RECORD_HEADER as u64).unwrap_or(u32::MAX),
            head_len: 0,
            crc_head: 0,
            crc_body: 0,
            position: at,
            sequence: Sequence(gap.sequence.0.saturating_sub(1)),
            arrival: UnixTime(0),
            id_hash: IdHash([0; 16]),
        };
        match put(buffer, at, &header.encode(buffer.key)) {
            Err(error) if is_nothing(&error) => {}
            put => put?,
        }
        let Some(next) = geometry.advance(at, octets) else {
            break;
        };
        at = next;
    }
    Ok(())
}

/// Writes a record's header into its page.
fn put(buffer: &Buffer, at: Position, header: &[u8]) -> newsreel_host::Result<()> {
    let from = at.offset() - at.offset() % PAGE;
    let file = buffer.home.file(at.cycle())?;
    let mut page = AlignedBuf::new();
    let octets = page.append(in_memory(PAGE));
    file.read_exact_at(octets, from)?;
    let in_page = in_memory(at.offset() - from);
    octets[in_page..in_page + header.len()].copy_from_slice(header);
    file.write_at(&page, from)
}

/// Overwrites with zeros what is torn behind the last record, up to the end of its page: so that nobody takes it for
/// damage, now that this page is kept.  Whether something was.
pub(crate) fn clear_page(buffer: &Buffer, end: Position) -> Result<bool> {
    let from = end.offset() - end.offset() % PAGE;
    let at = in_memory(end.offset() - from);
    if at == 0 {
        return begins_here(buffer, end);
    }
    let mut page = AlignedBuf::new();
    let octets = page.append(in_memory(PAGE));
    let file = buffer.home.file(end.cycle())?;
    file.read_exact_at(octets, from)?;
    if octets[at..].iter().all(|octet| *octet == 0) {
        return Ok(false);
    }
    octets[at..].fill(0);
    file.write_at(&page, from)?;
    Ok(true)
}

/// Whether what lies here looks like the record of this position, sound or not.
fn begins_here(buffer: &Buffer, at: Position) -> Result<bool> {
    let mut octets = [0; RECORD_HEADER];
    match read(buffer, at, &mut octets) {
        Err(error) if is_nothing(&error) => Ok(false),
        read => {
            read?;
            Ok(octets.windows(8).any(|eight| eight == at.0.to_le_bytes()))
        }
    }
}

/// Reads at a position; where there is no file there is nothing.
fn read(buffer: &Buffer, at: Position, octets: &mut [u8]) -> newsreel_host::Result<()> {
    let file = buffer.home.file(at.cycle())?;
    file.read_exact_at(octets, at.offset())
}

/// Whether an error means that nothing can be known of what is there.
pub(crate) fn is_nothing(error: &newsreel_host::Error) -> bool {
    error.is_medium() || matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ShortRead)
}

/// The sound record that begins exactly here, if it is later than what the log has.
fn later(buffer: &Buffer, at: Position, last: Sequence) -> Result<Option<Record>> {
    // What is older, an unfinished commit of an earlier run left there.
    Ok(record_at(buffer, at)?.filter(|record| record.sequence > last))
}

/// Where the sound record ends that begins exactly here.
pub(crate) fn behind(buffer: &Buffer, at: Position) -> Result<Option<Position>> {
    Ok(record_at(buffer, at)?.map(|record| record.end))
}

/// The sound record that begins exactly here.
fn record_at(buffer: &Buffer, at: Position) -> Result<Option<Record>> {
    let mut octets = [0; RECORD_HEADER];
    if !buffer.geometry().holds(at, RECORD_HEADER as u64) {
        return Ok(None);
    }
    match read(buffer, at, &mut octets) {
        Err(error) if is_nothing(&error) => return Ok(None),
        read => read?,
    }
    let record = Record::read(buffer, at.offset(), &octets);
    Ok(record.filter(|record| record.at == at))
}

/// Whether a record that the log does not have lies close behind this position.
pub(crate) fn has_one_behind(
    buffer: &Buffer,
    at: Position,
    last: Sequence,
    octets: u64,
) -> Result<bool> {
    let from = at.offset() - at.offset() % PAGE;
    let offsets = from..(from + octets).min(buffer.geometry().data_end);
    let found = match newest::first(buffer, at.cycle(), offsets) {
        Err(Error::Host(error)) if is_nothing(&error) => return Ok(false),
        found => found?,
    };
    Ok(found.is_some_and(|it| it.at.cycle() == at.cycle() && it.sequence > last))
}

/// Where all that was written may end, and how it is looked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Search {
    /// So much of it is known.
    pub(crate) known: Position,
    /// So many octets behind that were looked at: nothing comes there.
    pub(crate) passed: u64,
    /// Where there is no record for so many octets, or no file any more, nothing was written.
    pub(crate) quiet: u64,
    /// So close to the newest record the walk begins.
    pub(crate) step: u64,
    /// What lies behind much damage is looked for, too, which may be most of what can be read.
    pub(crate) is_thorough: bool,
}

/// Follows the records from the newest on that is found.
pub(crate) fn find(buffer: &Buffer, search: Search) -> Result<TrueEnd> {
    let geometry = &buffer.geometry();
    let quiet = search.quiet.min(geometry.capacity());
    let mut found = TrueEnd {
        end: search.known,
        sequence: Sequence::ZERO,
    };
    // Of a buffer with a file for each cycle its files tell which is the newest.
    let is_one_file = !buffer.home.is_endless();
    let look = |from: u64, is_thorough| match is_one_file {
        true => newest::look(buffer, from..geometry.data_end, (search.step, is_thorough)),
        false => Ok(Seen::default()),
    };
    let Seen { newest, furthest } = look(geometry.data_start, search.is_thorough)?;
    let mut beyond = furthest;
    let mut walk = match newest.filter(|newest| newest.at >= found.end) {
        Some(newest) => {
            found.end = newest.at;
            Walk::new(buffer, newest.at, quiet)
        }
        None => Walk::behind(buffer, search, quiet),
    };
    let mut looked_from = found.end;
    loop {
        // Each round but the last finds something newer; a file of damage alone ends it too.
        while let Some(record) = walk.step(|record, _| record.at >= found.end)? {
            found.take(&record);
            if is_one_file && geometry.distance(looked_from, found.end) > 2 * search.step {
                // Where it was looked there was only the text of large articles, or damage.
                let seen = look(found.end.offset() - found.end.offset() % PAGE, false)?;
                if let Some(newest) = seen.newest.filter(|newest| newest.at >= found.end) {
                    found.end = newest.at;
                    walk = Walk::new(buffer, newest.at, quiet);
                }
                looked_from = found.end;
            }
        }
        let Some(record) = beyond.take().filter(|record| record.at >= found.end) else {
            return Ok(found);
        };
        found.take(&record);
        walk = Walk::new(buffer, found.end, quiet);
    }
}

impl TrueEnd {
    fn take(&mut self, record: &Record) {
        self.end = record.end;
        self.sequence = self.sequence.max(record.sequence);
    }
}

/// A walk over the blocks of a buffer, from record to record, around the end of the file or into the next one.
struct Walk<'a> {
    buffer: &'a Buffer,
    /// Whose file is looked at, and where in it.
    cycle: u32,
    at: u64,
    window: Vec<u8>,
    /// Which octets of which file the window has.
    has: (u32, Range<u64>),
    /// It ends when it has found nothing for so long.
    quiet_max: u64,
}

impl<'a> Walk<'a> {
    fn new(buffer: &'a Buffer, from: Position, quiet_max: u64) -> Self {
        Self {
            buffer,
            cycle: from.cycle(),
            at: from.offset(),
            window: Vec::new(),
            has: (0, 0..0),
            quiet_max,
        }
    }

    /// From behind what is known and what was looked at.
    fn behind(buffer: &'a Buffer, search: Search, quiet: u64) -> Self {
        let passed = search.passed.min(quiet);
        match buffer.geometry().advance(search.known, passed) {
            Some(from) => Self::new(buffer, from, quiet - passed),
            None => Self::new(buffer, search.known, quiet),
        }
    }

    /// The next sound record that is wanted, by itself and the cycle that is walked.
    fn step(&mut self, is_wanted: impl Fn(&Record, u32) -> bool) -> Result<Option<Record>> {
        let geometry = self.buffer.geometry();
        let mut quiet = 0;
        while quiet < self.quiet_max {
            if self.at >= geometry.data_end {
                self.at = geometry.data_start;
                self.cycle += 1;
            }
            let Some(len) = self.fill()? else {
                return Ok(None);
            };
            if len == 0 {
                // It cannot be read.
                self.at += PAGE;
                quiet += PAGE;
                continue;
            }
            let from = in_memory(self.at - self.has.1.start);
            let record = Record::read(self.buffer, self.at, &self.window[from..]);
            if let Some(record) = record.filter(|record| is_wanted(record, self.cycle)) {
                (self.cycle, self.at) = (record.end.cycle(), record.end.offset());
                return Ok(Some(record));
            }
            self.at += geometry.block;
            quiet += geometry.block;
        }
        Ok(None)
    }

    /// Has the octets from here on in the window: how many, 0 when they cannot be read, `None` without a file.
    fn fill(&mut self) -> Result<Option<usize>> {
        let (cycle, has) = &self.has;
        if *cycle == self.cycle && has.contains(&self.at) {
            return Ok(Some(in_memory(has.end - self.at)));
        }
        let file = match self.buffer.home.file(self.cycle) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        for len in [WINDOW, PAGE] {
            // Both end where blocks do.
            let end = (self.at - self.at % PAGE + len).min(self.buffer.geometry().data_end);
            self.window.resize(in_memory(end - self.at), 0);
            match file.read_exact_at(&mut self.window, self.at) {
                // Somebody cut it: what lies in front of the cut is there.
                Err(error) if len == PAGE && error.kind() == ErrorKind::ShortRead => {
                    let got = file.read_at(&mut self.window, self.at)?;
                    self.window.truncate(got - got % RECORD_HEADER);
                    if !self.window.is_empty() {
                        let end = self.at + self.window.len() as u64;
                        self.has = (self.cycle, self.at..end);
                        return Ok(Some(self.window.len()));
                    }
                    self.at = self.buffer.geometry().data_end - PAGE;
                }
                Err(error) if is_nothing(&error) => {}
                read => {
                    read?;
                    self.has = (self.cycle, self.at..end);
                    return Ok(Some(self.window.len()));
                }
            }
        }
        self.at -= self.at % PAGE;
        Ok(Some(0))
    }
}

/// Where a sound record begins and ends in time, and its sequence.
#[derive(Debug, Clone, Copy)]
struct Record {
    at: Position,
    end: Position,
    sequence: Sequence,
    /// Of an article.
    token: Option<Token>,
    /// It says that its cycle ends.
    is_cycle_end: bool,
    is_erased: bool,
}

impl Record {
    /// What comes behind it has a later sequence.
    const fn behind(&self) -> Sequence {
        // The end of a cycle has that of the article which began the next.
        Sequence(self.sequence.0.saturating_sub(self.is_cycle_end as u64))
    }

    /// The record that begins in this block, at this offset.
    fn read(buffer: &Buffer, offset: u64, block: &[u8]) -> Option<Self> {
        let octets = block
            .get(..RECORD_HEADER)
            .filter(|octets| RecordHeader::may_begin(octets))?;
        let header = RecordHeader::decode(octets, buffer.key).ok()?;
        let geometry = &buffer.geometry();
        let at = header.position;
        if at.offset() != offset {
            return None;
        }
        let end = match header.mark {
            Mark::Article | Mark::Erased => {
                let len = geometry.record_octets(u64::from(header.article_len));
                geometry.holds(at, len).then(|| geometry.advance(at, len))?
            }
            Mark::CycleEnd => geometry.start_of(at.cycle().checked_add(1)?),
        }?;
        Some(Self {
            at,
            end,
            sequence: header.sequence,
            token: (header.mark == Mark::Article).then(|| token_of(buffer, &header)),
            is_cycle_end: header.mark == Mark::CycleEnd,
            is_erased: header.mark == Mark::Erased,
        })
    }
}
