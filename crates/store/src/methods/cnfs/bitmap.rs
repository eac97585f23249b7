//! The bitmap of a buffer: one bit a block, set where a record begins.  A hint for tools, not needed to serve.
//!
//! It is written at checkpoints only, for what was placed since the last one, so that a buffer of 16 TB never has its
//! bitmap in memory.  Between the end it was written to (see the header) and the free pointer it is out of date.

use std::ops::Range;

use newsreel_host::File;
use newsreel_wire::Position;

use crate::records::geometry::{BITMAP_START, Geometry, PAGE, PAGE_LEN, in_memory};

/// Blocks whose bits one page of the bitmap holds.
const BLOCKS_PER_PAGE: u64 = PAGE * 8;
/// Pages of the bitmap written at once.
const PAGES_PER_WRITE: u64 = 64;
/// Records remembered between two checkpoints; those beyond get no bit until their block is written again.
pub const STARTS_MAX: usize = 1 << 22;

/// Where records were placed since the last checkpoint.
#[derive(Debug)]
pub(super) struct Starts {
    from: Position,
    list: Vec<Position>,
    /// Records that were withdrawn since.
    withdrawn: Vec<Position>,
}

impl Starts {
    pub(super) const fn from(from: Position) -> Self {
        Self {
            from,
            list: Vec::new(),
            withdrawn: Vec::new(),
        }
    }

    /// Nothing says how far the bitmap was written: it is as far as the last checkpoint, behind which everything was told by the log or
    /// placed since.  A buffer that stands here was written so far.
    pub(super) fn begin_anew(&mut self, stands: Position) -> Position {
        self.from = self.list.first().copied().unwrap_or(stands);
        self.from
    }

    /// The record here is withdrawn: it has no bit from the next checkpoint on.
    pub(super) fn withdraw(&mut self, start: Position) {
        if self.withdrawn.len() < STARTS_MAX {
            self.withdrawn.push(start);
        }
    }

    /// Where the bit of a record that was withdrawn is still to go.
    pub(super) fn withdrawn(&self) -> &[Position] {
        &self.withdrawn
    }

    /// Adds the records of a batch, in order.
    pub(super) fn append(&mut self, starts: &mut Vec<Position>) {
        if self.list.len() + starts.len() <= STARTS_MAX {
            self.list.append(starts);
        } else {
            starts.clear();
        }
    }

    /// Takes out what a checkpoint up to `end` has to write.
    pub(super) fn take_until(&mut self, end: Position) -> Change {
        let at = self.list.partition_point(|start| *start < end);
        let later = self.list.split_off(at);
        let change = Change {
            from: self.from,
            end: self.from.max(end),
            starts: std::mem::replace(&mut self.list, later),
            withdrawn: std::mem::take(&mut self.withdrawn),
        };
        self.from = change.end;
        change
    }

    /// Puts back what could not be written.
    pub(super) fn give_back(&mut self, mut change: Change) {
        self.from = change.from;
        change.starts.append(&mut self.list);
        self.list = change.starts;
        change.withdrawn.append(&mut self.withdrawn);
        self.withdrawn = change.withdrawn;
    }

    /// Forgets what was placed: the buffer goes on at `from`.
    pub(super) fn restart(&mut self, from: Position) {
        self.from = from;
        self.list.clear();
    }
}

/// What changed between two checkpoints.
#[derive(Debug)]
pub(super) struct Change {
    from: Position,
    pub(super) end: Position,
    /// Record starts in between, ascending.
    starts: Vec<Position>,
    /// Records withdrawn meanwhile, wherever they begin.
    withdrawn: Vec<Position>,
}

impl Change {
    /// Writes the bits of everything between the two checkpoints; the caller syncs.
    pub(super) fn write(&self, file: &dyn File, geometry: &Geometry) -> newsreel_host::Result<()> {
        // Only the last round counts: earlier starts were overwritten.
        let last_round = self.end.one_cycle_before();
        let from = self.starts.partition_point(|start| *start < last_round);
        let mut blocks: Vec<u64> = self.starts[from..]
            .iter()
            .map(|start| start.offset() / geometry.block)
            .collect();
        blocks.sort_unstable();
        for (low, high) in geometry.ranges(self.from, self.end) {
            let (low, high) = (low / geometry.block, high.div_ceil(geometry.block));
            // What a buffer has behind the end that it was made with has no bits.
            let high = high.min(geometry.bitmap_blocks());
            write_bits(file, &blocks, low, high)?;
        }
        self.clear_withdrawn(file, geometry)
    }

    /// Takes the bits of withdrawn records out, a page of the bitmap at a time.
    fn clear_withdrawn(&self, file: &dyn File, geometry: &Geometry) -> newsreel_host::Result<()> {
        // At the place of an earlier record there may be a new one by now.
        let last_round = self.end.one_cycle_before();
        let starts = self.withdrawn.iter().filter(|start| **start >= last_round);
        let mut blocks: Vec<u64> = starts
            .map(|start| start.offset() / geometry.block)
            .filter(|block| *block < geometry.bitmap_blocks())
            .collect();
        blocks.sort_unstable();
        let mut page = vec![0; PAGE_LEN];
        for of_page in blocks.chunk_by(|a, b| a / BLOCKS_PER_PAGE == b / BLOCKS_PER_PAGE) {
            let first = of_page[0] - of_page[0] % BLOCKS_PER_PAGE;
            let at = BITMAP_START + first / 8;
            file.read_exact_at(&mut page, at)?;
            for block in of_page {
                clear(&mut page, block - first, block - first + 1);
            }
            file.write_at(&page, at)?;
        }
        Ok(())
    }
}

/// Clears the bits behind the end of the data area: a file that has become smaller has the bitmap of the larger one.
pub(super) fn clear_behind(file: &dyn File, geometry: &Geometry) -> newsreel_host::Result<()> {
    let (low, high) = (geometry.data_end / geometry.block, geometry.bitmap_blocks());
    match low < high {
        true => write_bits(file, &[], low, high),
        false => Ok(()),
    }
}

/// How many bits are set in front of the data area and behind it; they are cleared, if they may be.
pub(super) fn bits_outside(
    file: &dyn File,
    geometry: &Geometry,
    may_write: bool,
) -> newsreel_host::Result<u64> {
    let (block, last) = (geometry.block, geometry.bitmap_blocks());
    let outside = [
        0..geometry.data_start / block,
        geometry.data_end / block..last,
    ];
    let mut wrong = 0;
    for Range { start, end } in outside {
        let mut low = start;
        while low < end {
            let high = (low - low % BLOCKS_PER_PAGE + BLOCKS_PER_PAGE).min(end);
            let found = read_starts(file, geometry, low * block, high * block)?;
            if !found.is_empty() && may_write {
                write_bits(file, &[], low, high)?;
            }
            wrong += found.len() as u64;
            low = high;
        }
    }
    Ok(wrong)
}

/// Rewrites the bits of the blocks in `low..high`; those in `blocks`, which ascend, are set.
fn write_bits(file: &dyn File, blocks: &[u64], low: u64, high: u64) -> newsreel_host::Result<()> {
    let step = PAGES_PER_WRITE * BLOCKS_PER_PAGE;
    let mut bits = Vec::new();
    let mut first = low - low % BLOCKS_PER_PAGE;
    while first < high {
        let last = (first + step).min(high.next_multiple_of(BLOCKS_PER_PAGE));
        let at = BITMAP_START + first / 8;
        bits.clear();
        bits.resize(in_memory((last - first) / 8), 0);
        // Only the outermost pages hold bits that stay.
        let page = PAGE_LEN;
        if first < low {
            file.read_exact_at(&mut bits[..page], at)?;
        }
        if last > high && (bits.len() > page || first >= low) {
            let from = bits.len() - page;
            file.read_exact_at(&mut bits[from..], at + from as u64)?;
        }
        clear(&mut bits, low.max(first) - first, high.min(last) - first);
        let from = blocks.partition_point(|block| *block < low.max(first));
        for block in blocks[from..]
            .iter()
            .take_while(|block| **block < high.min(last))
        {
            let bit = block - first;
            bits[(bit / 8) as usize] |= 1 << (bit % 8);
        }
        file.write_at(&bits, at)?;
        first = last;
    }
    Ok(())
}

/// Clears the bits `from..to`.
fn clear(bits: &mut [u8], from: u64, to: u64) {
    let mut bit = from;
    while bit < to {
        if bit.is_multiple_of(8) && to - bit >= 8 {
            let whole = ((to - bit) / 8) as usize;
            let at = (bit / 8) as usize;
            bits[at..at + whole].fill(0);
            bit += whole as u64 * 8;
        } else {
            bits[(bit / 8) as usize] &= !(1 << (bit % 8));
            bit += 1;
        }
    }
}

/// The offsets in `low..high`, as wide as the blocks are that these lie in, at which the bitmap says a record begins.
pub(super) fn read_starts(
    file: &dyn File,
    geometry: &Geometry,
    low: u64,
    high: u64,
) -> newsreel_host::Result<Vec<u64>> {
    let (low, high) = (low / geometry.block, high.div_ceil(geometry.block));
    let mut found = Vec::new();
    let mut octets = vec![0; PAGE_LEN];
    let mut first = low - low % 8;
    while first < high {
        let len = (high - first).div_ceil(8).min(PAGE) as usize;
        file.read_exact_at(&mut octets[..len], BITMAP_START + first / 8)?;
        for (octet, at) in octets[..len].iter().zip((first..).step_by(8)) {
            let blocks = (at..at + 8).filter(|block| octet & (1 << (block % 8)) != 0);
            let inside = blocks.filter(|block| (low..high).contains(block));
            found.extend(inside.map(|block| block * geometry.block));
        }
        first += len as u64 * 8;
    }
    Ok(found)
}

/// Sets the bits of records that begin at these offsets, or clears them.
pub(super) fn write_again(
    file: &dyn File,
    geometry: &Geometry,
    offsets: impl Iterator<Item = u64>,
    is_set: bool,
) -> newsreel_host::Result<()> {
    for block in offsets.map(|offset| offset / geometry.block) {
        let at = BITMAP_START + block / 8;
        let mut octet = [0];
        file.read_exact_at(&mut octet, at)?;
        let bit = 1 << (block % 8);
        octet[0] = if is_set {
            octet[0] | bit
        } else {
            octet[0] & !bit
        };
        file.write_at(&octet, at)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use newsreel_host::{Disk, MemoryDisk, OpenMode};
    use proptest::prelude::*;

    use super::*;

    const OCTETS: u64 = 8 << 20;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn prop_the_bitmap_shows_the_last_round(
            block_bits in 6u32..10,
            records in proptest::collection::vec((1u64..60_000, any::<bool>(), any::<u16>()), 1..600),
        ) {
            let geometry = Geometry::of(OCTETS, 1 << block_bits).unwrap();
            let disk = MemoryDisk::new();
            let file = disk.open(Path::new("b"), OpenMode::CreateNew).unwrap();
            file.set_len(OCTETS).unwrap();
            let start = geometry.start_of(1).unwrap();
            let (mut next, mut starts) = (start, Starts::from(start));
            let mut model = BTreeSet::new();
            let mut all = Vec::new();
            for (len, checkpoint, withdrawn) in records {
                let slot = geometry.slot(next, geometry.record_octets(len), false).unwrap();
                for (low, high) in geometry.ranges(next, slot.end) {
                    model.retain(|offset| !(low..high).contains(offset));
                }
                model.insert(slot.at.offset());
                starts.append(&mut vec![slot.at]);
                next = slot.end;
                // One of all before, alive or not, in a quarter of the steps.
                all.push(slot.at);
                if withdrawn % 4 == 0 {
                    let at: Position = all[usize::from(withdrawn) % all.len()];
                    starts.withdraw(at);
                    let is_there = at >= next.one_cycle_before();
                    model.retain(|offset| !(is_there && *offset == at.offset()));
                }
                if checkpoint {
                    let change = starts.take_until(next);
                    change.write(file.as_ref(), &geometry).unwrap();
                }
            }
            starts.take_until(next).write(file.as_ref(), &geometry).unwrap();
            let found = read_starts(file.as_ref(), &geometry, geometry.data_start, geometry.data_end).unwrap();
            prop_assert_eq!(found, model.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_was_not_written_is_written_the_next_time() {
        let geometry = Geometry::of(OCTETS, 64).unwrap();
        let start = geometry.start_of(1).unwrap();
        let at = |block: u64| Position::new(1, geometry.data_start + block * 64);
        let mut starts = Starts::from(start);
        starts.append(&mut vec![at(0), at(5)]);
        let change = starts.take_until(at(6));
        starts.append(&mut vec![at(6)]);
        starts.give_back(change);
        let change = starts.take_until(at(9));
        assert_eq!(
            (change.from, change.end, change.starts),
            (start, at(9), vec![at(0), at(5), at(6)])
        );
    }

    #[test]
    fn memory_between_checkpoints_is_bounded() {
        let mut starts = Starts::from(Position::ZERO);
        let mut many = vec![Position::ZERO; STARTS_MAX];
        starts.append(&mut many);
        let mut one = vec![Position::ZERO];
        starts.append(&mut one);
        assert_eq!((starts.list.len(), one.len()), (STARTS_MAX, 0));
    }
}
