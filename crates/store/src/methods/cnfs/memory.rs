//! The memory of a batch: page-aligned, written once by the sequencer, used again by later batches.
//!
//! Fresh memory costs a page fault every 4 KiB, about as much as copying an article into it; so what was written is
//! handed back to a small pool when nobody needs it any more, whatever became of its batch.  A sealed batch never
//! changes: the commit thread writes from it and readers copy from it at the same time.

use std::fmt;
use std::sync::Arc;

use newsreel_wire::Position;
use parking_lot::Mutex;
use smallvec::SmallVec;

use super::geometry::PAGE;

const PAGE_LEN: usize = PAGE as usize;
/// Octets kept for later batches, in all.
const KEPT_MAX: usize = 16 << 20;
/// Pieces kept for later batches.
const KEPT_PIECES_MAX: usize = 32;

/// A piece of memory.
#[derive(Default)]
struct Block {
    octets: Vec<u8>,
    /// Unused octets in front, so that the rest begins on a page.
    skip: usize,
}

impl Block {
    fn new(room: usize) -> Self {
        let octets = vec![0; room + PAGE_LEN];
        // An allocator that cannot say is none of ours; without alignment the disk copies once more.
        let skip = octets.as_ptr().align_offset(PAGE_LEN).min(PAGE_LEN);
        Self { octets, skip }
    }

    fn room(&self) -> usize {
        self.octets.len().saturating_sub(PAGE_LEN)
    }
}

/// What a batch of this length is given: a power of two of pages.
fn room_for(len: usize) -> usize {
    len.max(PAGE_LEN).next_power_of_two()
}

/// Memory of batches that are done.
#[derive(Default)]
pub(super) struct Pool(Mutex<Vec<Block>>);

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool({} octets)", self.kept())
    }
}

impl Pool {
    /// Memory for a batch that may become about so long.
    pub(super) fn memory(self: &Arc<Self>, len: usize) -> BatchMemory {
        BatchMemory {
            block: self.take(room_for(len)),
            len: 0,
            pool: Arc::clone(self),
        }
    }

    fn kept(&self) -> usize {
        self.0.lock().iter().map(Block::room).sum()
    }

    fn take(&self, room: usize) -> Block {
        let mut kept = self.0.lock();
        let fitting = kept.iter().position(|block| block.room() == room);
        let found = fitting.map(|at| kept.swap_remove(at));
        drop(kept);
        found.unwrap_or_else(|| Block::new(room))
    }

    fn give(&self, block: Block) {
        let mut kept = self.0.lock();
        let octets: usize = kept.iter().map(Block::room).sum();
        let has_room = kept.len() < KEPT_PIECES_MAX && octets + block.room() <= KEPT_MAX;
        if block.room() > 0 && has_room {
            kept.push(block);
        }
    }
}

/// Octets that grow at the end and keep their alignment; their memory goes back to the pool.
pub(super) struct BatchMemory {
    block: Block,
    len: usize,
    pool: Arc<Pool>,
}

impl fmt::Debug for BatchMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BatchMemory({} of {})", self.len, self.room())
    }
}

impl BatchMemory {
    fn room(&self) -> usize {
        self.block.room()
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Appends room for `len` octets, whose contents are whatever was there before.
    pub(super) fn grow(&mut self, len: usize) -> &mut [u8] {
        let (from, to) = (self.len, self.len + len);
        if to > self.room() {
            let mut larger = self.pool.take(room_for(to));
            let skip = larger.skip;
            larger.octets[skip..skip + from].copy_from_slice(self.get(0, from));
            self.pool.give(std::mem::replace(&mut self.block, larger));
        }
        self.len = to;
        let skip = self.block.skip;
        &mut self.block.octets[skip + from..skip + to]
    }

    /// Fills up to a whole page with zeros.
    pub(super) fn pad(&mut self) {
        let missing = self.len.next_multiple_of(PAGE_LEN) - self.len;
        self.grow(missing).fill(0);
    }

    fn get(&self, from: usize, to: usize) -> &[u8] {
        &self.block.octets[self.block.skip + from..self.block.skip + to]
    }

    /// The same octets in no more memory than they need.
    fn compacted(&self) -> Self {
        let mut small = self.pool.memory(self.len);
        small.grow(self.len).copy_from_slice(self.get(0, self.len));
        small
    }
}

impl Drop for BatchMemory {
    fn drop(&mut self) {
        self.pool.give(std::mem::take(&mut self.block));
    }
}

/// Octets of a batch that go to one place of the file, in whole pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch {
    /// Where in the file; a multiple of the page.
    pub(super) offset: u64,
    /// Where in the memory; a multiple of the page.
    pub(super) start: usize,
    /// Where it ends in the memory.
    pub(super) end: usize,
}

/// A batch as it goes to the file: usually one stretch, two when the buffer wraps.
#[derive(Debug)]
pub(super) struct Sealed {
    memory: BatchMemory,
    pub(super) stretches: SmallVec<[Stretch; 2]>,
    /// Where it begins.
    pub(super) from: Position,
    /// Behind its last page.
    pub(super) end: Position,
}

impl Sealed {
    pub(super) const fn new(
        memory: BatchMemory,
        stretches: SmallVec<[Stretch; 2]>,
        from: Position,
        end: Position,
    ) -> Self {
        Self {
            memory,
            stretches,
            from,
            end,
        }
    }

    pub(super) fn octets(&self, stretch: &Stretch) -> &[u8] {
        self.memory.get(stretch.start, stretch.end)
    }

    /// What lies at this offset of the file and behind it in the same stretch.
    pub(super) fn at(&self, offset: u64) -> Option<&[u8]> {
        self.stretches.iter().find_map(|stretch| {
            let at = usize::try_from(offset.checked_sub(stretch.offset)?).ok()?;
            self.octets(stretch)
                .get(at..)
                .filter(|rest| !rest.is_empty())
        })
    }

    /// Octets of memory it takes up.
    pub(super) fn footprint(&self) -> usize {
        self.memory.block.octets.len()
    }

    /// The same in no more memory than it needs, when it has more.
    pub(super) fn compacted(self: &Arc<Self>) -> Arc<Self> {
        if room_for(self.memory.len()) >= self.memory.room() {
            return Arc::clone(self);
        }
        Arc::new(Self::new(
            self.memory.compacted(),
            self.stretches.clone(),
            self.from,
            self.end,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(pool: &Arc<Pool>, len: usize, fill: u8) -> BatchMemory {
        let mut memory = pool.memory(0);
        memory.grow(len).fill(fill);
        memory
    }

    #[test]
    fn memory_grows_keeps_its_octets_and_its_alignment() {
        let mut memory = Arc::new(Pool::default()).memory(0);
        for n in 0..200u8 {
            memory.grow(5000).fill(n);
            assert!(memory.get(0, 1).as_ptr().addr().is_multiple_of(PAGE_LEN));
        }
        for n in 0..200usize {
            let part = memory.get(n * 5000, (n + 1) * 5000);
            assert!(part.iter().all(|octet| usize::from(*octet) == n));
        }
        memory.pad();
        assert_eq!(memory.len(), 1_003_520);
        let padding = memory.get(1_000_000, 1_003_520);
        assert!(padding.iter().all(|octet| *octet == 0));
    }

    #[test]
    fn dropped_memory_is_used_again_and_padding_is_zeroed_again() {
        let pool = Arc::new(Pool::default());
        let first = memory(&pool, 10_000, 7);
        let at = first.get(0, 1).as_ptr();
        drop(first);
        let mut second = pool.memory(10_000);
        second.grow(100).fill(8);
        assert_eq!(second.get(0, 1).as_ptr(), at);
        second.pad();
        assert_eq!(second.len(), PAGE_LEN);
        assert!(second.get(100, PAGE_LEN).iter().all(|octet| *octet == 0));
    }

    #[test]
    fn a_batch_like_the_last_one_takes_its_memory() {
        let pool = Arc::new(Pool::default());
        drop(memory(&pool, 300_000, 1));
        let kept = pool.kept();
        let mut next = pool.memory(300_000);
        assert!(pool.kept() < kept, "nothing was taken");
        let at = next.get(0, 0).as_ptr();
        next.grow(300_000);
        assert_eq!(next.get(0, 1).as_ptr(), at, "it had to grow");
    }

    #[test]
    fn the_pool_is_bounded() {
        let pool = Arc::new(Pool::default());
        let many: Vec<_> = (0..40).map(|_| memory(&pool, 1 << 20, 1)).collect();
        let large = memory(&pool, KEPT_MAX + 1, 1);
        drop((many, large));
        assert!(pool.kept() <= KEPT_MAX);
        assert!(pool.kept() > KEPT_MAX / 2);
        drop((0..100).map(|_| memory(&pool, 1, 1)).collect::<Vec<_>>());
        assert!(pool.0.lock().len() <= KEPT_PIECES_MAX);
    }

    #[test]
    fn a_small_batch_is_kept_in_little_memory_and_a_full_one_as_it_is() {
        let pool = Arc::new(Pool::default());
        for (len, is_same) in [(PAGE_LEN * 40, true), (PAGE_LEN * 3, false)] {
            let mut memory = pool.memory(PAGE_LEN * 40);
            memory.grow(len).fill(3);
            let stretch = Stretch {
                offset: 8 * PAGE,
                start: 0,
                end: len,
            };
            let (from, end) = (
                Position::new(1, 8 * PAGE),
                Position::new(1, 8 * PAGE + len as u64),
            );
            let stretches = SmallVec::from_slice(&[stretch]);
            let sealed = Arc::new(Sealed::new(memory, stretches, from, end));
            let kept = sealed.compacted();
            assert_eq!(Arc::ptr_eq(&sealed, &kept), is_same);
            assert!(kept.footprint() <= room_for(len) + PAGE_LEN);
            assert_eq!(kept.octets(&stretch), sealed.octets(&stretch));
            assert_eq!(kept.at(9 * PAGE).map(<[u8]>::len), Some(len - PAGE_LEN));
            assert_eq!(
                (kept.at(7 * PAGE), kept.at(8 * PAGE + len as u64)),
                (None, None)
            );
        }
    }
}
