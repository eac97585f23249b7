//! The true end of a buffer whose log, header or both are older than what was written to it.
//!
//! Every record says where it lies, in which cycle: one that is sound and lies further on in time than all that is known
//! was written later.  From the known end on they are followed, over damage and around the end of the file, until
//! behind the last of them there is none for as long as a buffer may be written without a word in its header.

use newsreel_wire::{Position, Sequence, Token};

use super::buffer::Buffer;
use super::format::{Mark, RECORD_HEADER, RecordHeader};
use super::geometry::{PAGE, in_memory};
use super::placing::token_of;
use crate::error::Result;

/// Octets read at once: whole blocks.
const WINDOW: u64 = 1 << 20;

/// What was written last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TrueEnd {
    /// Behind the last record.
    pub(super) end: Position,
    /// Its sequence; 0 when nothing is there behind what was known.
    pub(super) sequence: Sequence,
}

/// A batch that the log does not have: its articles, and where it ends.
#[derive(Debug)]
struct LeftBatch {
    tokens: Vec<Token>,
    end: Position,
}

/// The articles of the batch that begins exactly here, if it is later than what the log has and whole: an unfinished
/// commit leaves one.  What is torn has no end, which is zeros up to the end of a page.
pub(super) fn left(buffer: &Buffer, from: Position, last: Sequence) -> Result<Vec<Token>> {
    let Some(batch) = batch(buffer, from, last)? else {
        return Ok(Vec::new());
    };
    let offset = batch.end.offset();
    let mut rest = vec![0; in_memory(offset.next_multiple_of(PAGE) - offset)];
    match buffer.file.read_exact_at(&mut rest, offset) {
        Err(error) if error.is_medium() => return Ok(Vec::new()),
        read => read?,
    }
    let is_whole = rest.iter().all(|octet| *octet == 0);
    Ok(if is_whole { batch.tokens } else { Vec::new() })
}

/// The batch that begins exactly here, if it is later than what the log has.
fn batch(buffer: &Buffer, from: Position, last: Sequence) -> Result<Option<LeftBatch>> {
    let mut batch = LeftBatch {
        tokens: Vec::new(),
        end: from,
    };
    while let Some(record) = later(buffer, batch.end, last)? {
        batch.tokens.extend(record.token);
        batch.end = record.end;
    }
    Ok((batch.end > from).then_some(batch))
}

/// Whether more than one batch lies behind the end of the log.  The second is written only when the log has the first: so
/// the log has lost what it had.
pub(super) fn has_batches(buffer: &Buffer, from: Position, last: Sequence) -> Result<bool> {
    let Some(first) = batch(buffer, from, last)? else {
        return Ok(false);
    };
    // The next batch begins on a page.
    match buffer.geometry.page_up(first.end) {
        Some(next) => Ok(batch(buffer, next, last)?.is_some()),
        None => Ok(false),
    }
}

/// The sound record that begins exactly here, if it is later than what the log has.
fn later(buffer: &Buffer, at: Position, last: Sequence) -> Result<Option<Record>> {
    let mut octets = [0; RECORD_HEADER];
    if !buffer.geometry.holds(at, RECORD_HEADER as u64) {
        return Ok(None);
    }
    match buffer.file.read_exact_at(&mut octets, at.offset()) {
        Err(error) if error.is_medium() => return Ok(None),
        read => read?,
    }
    let record = Record::read(buffer, at.offset(), &octets);
    // What is older, an unfinished commit of an earlier run left there.
    Ok(record.filter(|record| record.at == at && record.sequence > last))
}

/// Follows the records from a known end on.  Where there is none for `quiet` octets, nothing was written.
pub(super) fn find(buffer: &Buffer, known: Position, quiet: u64) -> Result<TrueEnd> {
    let geometry = &buffer.geometry;
    let mut search = Search {
        buffer,
        found: TrueEnd {
            end: known,
            sequence: Sequence::ZERO,
        },
        window: vec![0; in_memory(WINDOW)],
        quiet: 0,
    };
    let mut at = known.offset().next_multiple_of(geometry.block);
    // Each round but the last finds something newer; a file of damage alone ends it too.
    while search.quiet < quiet.min(geometry.capacity()) {
        if at >= geometry.data_end {
            at = geometry.data_start;
        }
        let len = WINDOW.min(geometry.data_end - at);
        at = search.look(at, len)?;
    }
    Ok(search.found)
}

struct Search<'a> {
    buffer: &'a Buffer,
    found: TrueEnd,
    window: Vec<u8>,
    /// Octets looked through since the last find.
    quiet: u64,
}

impl Search<'_> {
    /// Looks at the blocks of a stretch; where to look next.
    fn look(&mut self, from: u64, len: u64) -> Result<u64> {
        let block = in_memory(self.buffer.geometry.block);
        let window = &mut self.window[..in_memory(len)];
        match self.buffer.file.read_exact_at(window, from) {
            Err(error) if error.is_medium() && len > PAGE => return self.look(from, PAGE),
            Err(error) if error.is_medium() => {
                self.quiet += len;
                return Ok(from + len);
            }
            read => read?,
        }
        for (nth, octets) in self.window[..in_memory(len)].chunks(block).enumerate() {
            let offset = from + (nth * block) as u64;
            if let Some(newer) = self.found.newer(self.buffer, offset, octets) {
                self.found = newer;
                self.quiet = 0;
                return Ok(newer.end.offset());
            }
        }
        self.quiet += len;
        Ok(from + len)
    }
}

impl TrueEnd {
    /// What begins in a block, if it is newer than all before.
    fn newer(&self, buffer: &Buffer, offset: u64, block: &[u8]) -> Option<Self> {
        let record = Record::read(buffer, offset, block)?;
        (record.at >= self.end).then(|| Self {
            end: record.end,
            sequence: self.sequence.max(record.sequence),
        })
    }
}

/// Where a sound record begins and ends in time, and its sequence.
struct Record {
    at: Position,
    end: Position,
    sequence: Sequence,
    /// Of an article.
    token: Option<Token>,
}

impl Record {
    /// The record that begins in this block, at this offset.
    fn read(buffer: &Buffer, offset: u64, block: &[u8]) -> Option<Self> {
        let octets = block
            .get(..RECORD_HEADER)
            .filter(|octets| RecordHeader::may_begin(octets))?;
        let header = RecordHeader::decode(octets, buffer.key).ok()?;
        let geometry = &buffer.geometry;
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
        })
    }
}
