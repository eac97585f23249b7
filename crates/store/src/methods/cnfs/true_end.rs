//! The true end of a buffer whose log, header or both are older than what was written to it.
//!
//! Every record says where it lies, in which cycle: one that is sound and lies further on in time than all that is known
//! was written later.  From the known end on they are followed, over damage and around the end of the file, until
//! behind the last of them there is none for as long as a buffer may be written without a word in its header.

use newsreel_wire::{Position, Sequence};

use super::buffer::Buffer;
use super::format::{Mark, RECORD_HEADER, RecordHeader};
use super::geometry::{PAGE, in_memory};
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
        let octets = block
            .get(..RECORD_HEADER)
            .filter(|octets| RecordHeader::may_begin(octets))?;
        let header = RecordHeader::decode(octets, buffer.key).ok()?;
        let geometry = &buffer.geometry;
        let at = header.position;
        if at < self.end || at.offset() != offset {
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
            end,
            sequence: self.sequence.max(header.sequence),
        })
    }
}
