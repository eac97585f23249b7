//! Where things lie in a cyclic buffer: arithmetic of offsets and positions, nothing else.
//!
//! Every position handed out is normal: its offset lies inside the data area, so that the end of the area is the
//! start of the next cycle.  Then positions compare as they follow each other in time.

use newsreel_wire::{CYCLE_MAX, OFFSET_MAX, POSITION_UNIT, Position};

use super::format::RECORD_HEADER;

/// Batches begin at multiples of this and are written in multiples of it; headers and bitmap too.
pub const PAGE: u64 = PAGE_LEN as u64;
/// The same, of memory.
pub(crate) const PAGE_LEN: usize = 4096;
/// Where the bitmap lies, behind two copies of the header.
pub(crate) const BITMAP_START: u64 = 2 * PAGE;
/// The largest file: positions name all its units.
pub const BUFFER_OCTETS_MAX: u64 = OFFSET_MAX + POSITION_UNIT;
/// The smallest block, and the usual one: what positions count in.
pub const BLOCK_MIN: u64 = POSITION_UNIT;
/// The largest block.
pub const BLOCK_MAX: u64 = PAGE;

/// A number of octets that lie in memory at once: pages, windows, records, all far below what a machine addresses.
pub(crate) fn in_memory(octets: u64) -> usize {
    usize::try_from(octets).unwrap_or(usize::MAX)
}

/// The layout of one buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Where articles begin: a multiple of the page.
    pub data_start: u64,
    /// Where they end: a multiple of the page.
    pub data_end: u64,
    /// Articles begin at multiples of this.
    pub block: u64,
}

/// Where a record goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    /// Its place.
    pub(crate) at: Position,
    /// Behind it, and behind its padding to the next block.
    pub(crate) end: Position,
    /// Behind the last page it touches: what must be reserved.
    pub(crate) page_end: Position,
    /// It goes to the start of the next cycle.
    pub(crate) wraps: bool,
}

impl Geometry {
    /// The layout of a file of this size, if it makes sense.
    #[must_use]
    pub fn of(octets: u64, block: u64) -> Option<Self> {
        let block_is_sound = block.is_power_of_two() && (BLOCK_MIN..=BLOCK_MAX).contains(&block);
        if !block_is_sound || octets > BUFFER_OCTETS_MAX {
            return None;
        }
        // One bit a block for the whole file: a little more than needed, and simple.
        let bitmap = octets.div_ceil(block).div_ceil(8);
        let data_start = (BITMAP_START + bitmap).next_multiple_of(PAGE);
        // Also where articles end is a position.
        let data_end = octets.min(OFFSET_MAX) / PAGE * PAGE;
        (data_start < data_end).then_some(Self {
            data_start,
            data_end,
            block,
        })
    }

    /// The same with articles that begin here, behind a bitmap that is smaller than it should be, or larger.
    #[must_use]
    pub fn with_start(self, data_start: u64) -> Option<Self> {
        let is_sound = data_start.is_multiple_of(PAGE)
            && (BITMAP_START + PAGE..self.data_end).contains(&data_start);
        is_sound.then_some(Self { data_start, ..self })
    }

    /// So many blocks, from the beginning of the file on, have a bit.
    pub(crate) const fn bitmap_blocks(&self) -> u64 {
        (self.data_start - BITMAP_START) * 8
    }

    /// Whether the record that begins there has one: what is behind the end that a file was made with has none.
    pub(crate) const fn has_bit(&self, start: Position) -> bool {
        start.offset() / self.block < self.bitmap_blocks()
    }

    /// Room for articles, octets.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.data_end - self.data_start
    }

    /// Octets on disk of the record of an article of this length.
    #[must_use]
    pub const fn record_octets(&self, article_len: u64) -> u64 {
        (RECORD_HEADER as u64 + article_len).next_multiple_of(self.block)
    }

    /// The first position of a cycle; `None` when cycle numbers are used up.
    #[must_use]
    pub const fn start_of(&self, cycle: u32) -> Option<Position> {
        Position::checked(cycle, self.data_start)
    }

    /// Whether a position of this buffer can hold a record of so many octets.
    #[must_use]
    pub const fn holds(&self, position: Position, octets: u64) -> bool {
        let offset = position.offset();
        offset >= self.data_start
            && offset.is_multiple_of(self.block)
            && offset < self.data_end
            && octets <= self.data_end - offset
    }

    /// The position `octets` further on, at most once around the end.
    pub(crate) fn advance(&self, from: Position, octets: u64) -> Option<Position> {
        let to = from.offset() + octets;
        if to < self.data_end {
            return Position::checked(from.cycle(), to);
        }
        let over = to - self.data_end;
        if over >= self.capacity() || from.cycle() >= CYCLE_MAX {
            return None;
        }
        Position::checked(from.cycle() + 1, self.data_start + over)
    }

    /// Octets from one position to a later one; 0 when it is not later, very much when it is cycles away.
    pub(crate) const fn distance(&self, from: Position, to: Position) -> u64 {
        if to.0 <= from.0 {
            return 0;
        }
        match to.cycle() - from.cycle() {
            0 => to.offset() - from.offset(),
            1 => (self.data_end - from.offset()) + (to.offset() - self.data_start),
            _ => u64::MAX,
        }
    }

    /// The same position where it is none of this size: a cycle of a file that was larger went further on.  Nothing is alive
    /// there, so that the end of the area, which is the start of the next cycle, comes to the same.
    pub(crate) fn normal(&self, position: Position) -> Position {
        if position.offset() < self.data_end {
            return position;
        }
        let next = position.cycle().checked_add(1);
        next.and_then(|cycle| self.start_of(cycle))
            .unwrap_or(position)
    }

    /// The next page's start, or this one's.
    pub(crate) fn page_up(&self, position: Position) -> Option<Position> {
        let offset = position.offset();
        self.advance(position, offset.next_multiple_of(PAGE) - offset)
    }

    /// Where a record of so many octets goes when `next` is free: here, or, when it does not fit before the end (or
    /// the cycle is to be closed), at the start of the next cycle, as in the paper.
    pub(crate) fn slot(&self, next: Position, octets: u64, close_cycle: bool) -> Option<Slot> {
        let closing = close_cycle && next.offset() != self.data_start;
        let wraps = closing || octets > self.data_end - next.offset();
        let at = if wraps {
            self.start_of(next.cycle().checked_add(1)?)?
        } else {
            next
        };
        let end = self.advance(at, octets)?;
        Some(Slot {
            at,
            end,
            page_end: self.page_up(end)?,
            wraps,
        })
    }

    /// The ranges of offsets between two positions, in order; everything when it went more than once around.
    pub(crate) fn ranges(&self, from: Position, to: Position) -> Vec<(u64, u64)> {
        if to <= from {
            return Vec::new();
        }
        match to.cycle() - from.cycle() {
            0 => vec![(from.offset(), to.offset())],
            1 if to.offset() <= from.offset() => {
                let ranges = [
                    (from.offset(), self.data_end),
                    (self.data_start, to.offset()),
                ];
                ranges
                    .into_iter()
                    .filter(|(low, high)| low < high)
                    .collect()
            }
            _ => vec![(self.data_start, self.data_end)],
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SMALL: u64 = 1 << 20;

    fn geometry() -> Geometry {
        Geometry::of(SMALL, 64).unwrap()
    }

    #[test]
    fn the_layout_of_a_megabyte() {
        // 16384 blocks, 2048 octets of bitmap.
        let geometry = geometry();
        assert_eq!((geometry.data_start, geometry.data_end), (12_288, SMALL));
        assert_eq!(geometry.record_octets(0), 64);
        assert_eq!(geometry.record_octets(1), 128);
        assert_eq!(Geometry::of(SMALL, 512).unwrap().record_octets(1), 512);
    }

    #[test]
    fn senseless_layouts_are_refused() {
        for (octets, block) in [
            (SMALL, 32),
            (SMALL, 96),
            (SMALL, 8192),
            (8192, 64),
            (BUFFER_OCTETS_MAX + 1, 64),
        ] {
            assert_eq!(Geometry::of(octets, block), None, "{octets} {block}");
        }
        let largest = Geometry::of(BUFFER_OCTETS_MAX, 64);
        assert_eq!(
            largest.map(|it| it.data_end),
            Geometry::of(OFFSET_MAX, 64).map(|it| it.data_end)
        );
    }

    #[test]
    fn what_does_not_fit_before_the_end_goes_to_the_start() {
        let geometry = geometry();
        let next = Position::new(3, SMALL - 4096);
        let fits = geometry.slot(next, 4096, false).unwrap();
        let start = geometry.start_of(4).unwrap();
        assert_eq!((fits.at, fits.end, fits.page_end), (next, start, start));
        let wraps = geometry.slot(next, 4160, false).unwrap();
        assert_eq!((wraps.at, wraps.wraps), (start, true));
        let closed = geometry.slot(next, 64, true).unwrap();
        assert_eq!((closed.at, closed.wraps), (start, true));
        assert!(!geometry.slot(start, 64, true).unwrap().wraps);
    }

    #[test]
    fn the_last_cycle_ends_in_none_not_in_the_past() {
        let geometry = geometry();
        let last = Position::new(CYCLE_MAX, SMALL - 64);
        assert_eq!(geometry.slot(last, 64, false), None);
        assert_eq!(geometry.slot(last, 128, false), None);
        assert_eq!(geometry.page_up(last), None);
    }

    proptest! {
        #[test]
        fn prop_advance_and_distance_are_each_others_inverse(
            cycle in 1u32..1000, at in 0u64..(SMALL - 12_288) / 64, blocks in 0u64..(SMALL - 12_288) / 64,
        ) {
            let geometry = geometry();
            let from = Position::new(cycle, geometry.data_start + at * 64);
            let to = geometry.advance(from, blocks * 64).unwrap();
            prop_assert!(geometry.holds(to, 64));
            prop_assert_eq!(geometry.distance(from, to), blocks * 64);
            let covered: u64 = geometry.ranges(from, to).iter().map(|(low, high)| high - low).sum();
            prop_assert_eq!(covered, blocks * 64);
        }

        #[test]
        fn prop_slots_follow_each_other(octets in proptest::collection::vec(1u64..200_000, 1..200)) {
            let geometry = geometry();
            let mut next = geometry.start_of(1).unwrap();
            for octets in octets {
                let octets = geometry.record_octets(octets);
                let slot = geometry.slot(next, octets, false).unwrap();
                prop_assert!(slot.at >= next && slot.end > slot.at && slot.page_end >= slot.end);
                prop_assert!(geometry.holds(slot.at, octets));
                prop_assert_eq!(geometry.distance(slot.at, slot.end), octets);
                next = slot.end;
            }
        }
    }
}
