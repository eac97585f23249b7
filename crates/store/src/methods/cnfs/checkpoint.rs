//! Headers and bitmap brought up to date, for tools: one bit a block, set where a record begins.
//!
//! Nothing of it is needed to serve articles; it is written in the background, only where
//! something changed since the last time.

use std::sync::Arc;

use newsreel_wire::{Position, Sequence};

use super::file::Buffer;
use super::format::{BITMAP, BLOCK, PAGE};
use crate::error::Result;
use crate::method::CheckpointWrite;

/// Blocks whose bits one page of the bitmap holds.
const BLOCKS_PER_PAGE: u64 = PAGE * 8;

/// What changed in one buffer since the last checkpoint.
#[derive(Debug)]
pub(super) struct BufferCheckpoint {
    pub(super) buffer: Arc<Buffer>,
    /// Written from here to `end`; what lay there before is gone.
    pub(super) from: Position,
    pub(super) end: Position,
    pub(super) reserved: Position,
    pub(super) sequence: Sequence,
    /// Record starts in between, ascending.
    pub(super) starts: Vec<Position>,
}

impl CheckpointWrite for BufferCheckpoint {
    fn write(&mut self) -> Result<()> {
        if self.from != self.end {
            for (low, high) in self.ranges() {
                self.write_bits(low, high)?;
            }
        }
        self.buffer
            .write_header((self.end, self.reserved, self.sequence))
    }
}

impl BufferCheckpoint {
    /// The offsets written, in one or two ranges; everything when it went once around.
    fn ranges(&self) -> Vec<(u64, u64)> {
        let (start, end) = (self.buffer.data_start, self.buffer.data_end);
        let cycles = self.end.cycle() - self.from.cycle();
        match cycles {
            0 => vec![(self.from.offset(), self.end.offset())],
            1 if self.end.offset() < self.from.offset() => {
                vec![(self.from.offset(), end), (start, self.end.offset())]
            }
            _ => vec![(start, end)],
        }
    }

    /// Rewrites the bits of the blocks in `low..high`, page by page.
    fn write_bits(&self, low: u64, high: u64) -> Result<()> {
        let (low, high) = (low / BLOCK, high.div_ceil(BLOCK));
        // Only the last cycle's start at a block counts: later ones overwrote it.
        let mut blocks: Vec<u64> = self
            .starts
            .iter()
            .filter(|start| self.is_last_round(**start))
            .map(|start| start.offset() / BLOCK)
            .filter(|block| (low..high).contains(block))
            .collect();
        blocks.sort_unstable();
        let mut page = vec![0; PAGE as usize];
        let mut rest = &blocks[..];
        for number in low / BLOCKS_PER_PAGE..high.div_ceil(BLOCKS_PER_PAGE) {
            let at = BITMAP + number * PAGE;
            let (first, last) = (number * BLOCKS_PER_PAGE, (number + 1) * BLOCKS_PER_PAGE);
            self.buffer.file.read_exact_at(&mut page, at)?;
            for block in low.max(first)..high.min(last) {
                set_bit(&mut page, block - first, false);
            }
            while let Some((block, more)) = rest.split_first()
                && *block < last
            {
                set_bit(&mut page, block - first, true);
                rest = more;
            }
            self.buffer.file.write_at(&page, at)?;
        }
        Ok(())
    }

    /// Whether a record placed since the last checkpoint has not been overwritten since.
    fn is_last_round(&self, start: Position) -> bool {
        start >= self.end.one_cycle_before()
    }
}

fn set_bit(page: &mut [u8], bit: u64, on: bool) {
    // The bit is inside the page: below PAGE * 8.
    let Some(octet) = page.get_mut((bit / 8) as usize) else {
        return;
    };
    let mask = 1 << (bit % 8);
    if on {
        *octet |= mask;
    } else {
        *octet &= !mask;
    }
}

/// Reads whether a record begins at this offset, as the bitmap has it.
pub(super) fn bit_at(buffer: &Buffer, offset: u64) -> Result<bool> {
    let block = offset / BLOCK;
    let mut octet = [0];
    buffer.file.read_exact_at(&mut octet, BITMAP + block / 8)?;
    Ok(octet[0] & (1 << (block % 8)) != 0)
}
