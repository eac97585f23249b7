//! The memory of batches: page-aligned, written once by the sequencer, used again by later batches.
//!
//! Fresh memory costs a page fault every 4 KiB, more than copying an article into it; so batches lie one behind the
//! other in slabs, without gaps, and a slab is used again when nobody needs any batch in it, whatever became of them.
//! A sealed batch never changes: the commit thread writes from it and readers copy from it at the same time.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::{Buf, Bytes, BytesMut};
use newsreel_wire::Position;
use parking_lot::Mutex;
use smallvec::SmallVec;

#[cfg(test)]
use super::geometry::PAGE;
use super::geometry::PAGE_LEN;

/// Octets of a slab; a batch that is longer has one of its own.
const SLAB: usize = 2 << 20;
/// A slab that became larger goes back to the system.
const SLAB_KEPT_MAX: usize = 4 * SLAB;
/// Slabs kept for later, beside those taken beforehand.
const KEPT_MAX: usize = 4;
/// Slabs taken beforehand at most: enough for the beginning, and nothing that a small site would miss.
const BEFOREHAND_MAX: usize = 32;

/// Slabs with room.
#[derive(Default)]
pub(crate) struct Pool {
    /// Whole ones in front; behind them rests.
    kept: Mutex<Vec<BytesMut>>,
    /// Slabs taken beforehand.
    beforehand: AtomicUsize,
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool({} slabs)", self.kept.lock().len())
    }
}

impl Pool {
    /// Memory for a batch that may become about so long.
    pub(crate) fn memory(self: &Arc<Self>, len: usize) -> BatchMemory {
        BatchMemory {
            octets: self.take(len),
            pool: Arc::clone(self),
        }
    }

    /// Takes so much memory from the system now, if it is not too much, instead of when articles come.
    pub(crate) fn take_beforehand(&self, octets: usize) {
        let room = BEFOREHAND_MAX.saturating_sub(self.beforehand.load(Ordering::Relaxed));
        for _ in 0..octets.div_ceil(SLAB).min(room) {
            let mut slab = aligned(BytesMut::new(), SLAB);
            // The pages are there once something was written to them.
            slab.resize(SLAB, 0);
            slab.clear();
            self.beforehand.fetch_add(1, Ordering::Relaxed);
            self.kept.lock().insert(0, slab);
        }
    }

    /// Page-aligned room for at least `len` octets.
    fn take(&self, len: usize) -> BytesMut {
        let mut kept = self.kept.lock();
        // A rest that is too small would keep its slab from being used again.
        while kept
            .pop_if(|rest| rest.capacity() < len.min(SLAB))
            .is_some()
        {}
        if let Some(fits) = kept.iter().rposition(|slab| slab.capacity() >= len) {
            return kept.remove(fits);
        }
        drop(kept);
        aligned(BytesMut::new(), len)
    }

    /// Takes back what is left of a slab.
    fn give(&self, rest: BytesMut) {
        let max = self.beforehand.load(Ordering::Relaxed) + KEPT_MAX;
        let mut kept = self.kept.lock();
        if rest.capacity() < PAGE_LEN || rest.capacity() > SLAB_KEPT_MAX || kept.len() >= max {
            return;
        }
        if rest.capacity() >= SLAB {
            kept.insert(0, rest);
        } else {
            kept.push(rest);
        }
    }

    /// Takes back a slab if these were the last octets in use of it.
    fn give_sealed(&self, octets: Bytes) {
        if let Ok(octets) = octets.try_into_mut() {
            self.give(aligned(octets, SLAB));
        }
    }
}

/// Empties `slab` and gives it room for `len` octets that begin on a page.
fn aligned(mut slab: BytesMut, len: usize) -> BytesMut {
    slab.clear();
    slab.reserve(len.max(SLAB) + PAGE_LEN);
    // An allocator that cannot say is none of ours; without alignment the disk copies once more.
    let skip = slab.as_ptr().align_offset(PAGE_LEN).min(PAGE_LEN);
    slab.resize(skip, 0);
    slab.advance(skip);
    slab
}

/// A batch being collected.
pub(crate) struct BatchMemory {
    octets: BytesMut,
    pool: Arc<Pool>,
}

impl fmt::Debug for BatchMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BatchMemory({} octets)", self.octets.len())
    }
}

impl BatchMemory {
    pub(crate) fn len(&self) -> usize {
        self.octets.len()
    }

    /// Appends these parts and zeros up to `len` octets in all; gives what it appended.
    pub(crate) fn append(&mut self, parts: &[&[u8]], len: usize) -> &mut [u8] {
        let (from, to) = (self.len(), self.len() + len);
        if to > self.octets.capacity() {
            let mut larger = self.pool.take(to.next_power_of_two());
            larger.extend_from_slice(&self.octets);
            self.octets = larger;
        }
        for part in parts {
            self.octets.extend_from_slice(part);
        }
        self.octets.resize(to, 0);
        &mut self.octets[from..]
    }

    /// Fills up to a whole page with zeros.
    pub(crate) fn pad(&mut self) {
        let len = self.len();
        self.append(&[], len.next_multiple_of(PAGE_LEN) - len);
    }

    /// Closes the batch; the rest of its slab is for the next ones.
    pub(crate) fn seal(
        mut self,
        stretches: SmallVec<[Stretch; 2]>,
        from: Position,
        end: Position,
    ) -> Sealed {
        self.pad();
        let octets = self.octets.split().freeze();
        let rest = self.octets.capacity();
        self.pool.give(self.octets);
        // What another one does not fit into lies idle until this one goes.
        let idle = if rest < octets.len() { rest } else { 0 };
        Sealed {
            memory_octets: octets.len() + idle,
            octets,
            pool: self.pool,
            stretches,
            from,
            end,
        }
    }
}

/// Octets of a batch that go to one place of the file, in whole pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stretch {
    /// Where it begins: in which file, and where in it; a multiple of the page.
    pub(crate) at: Position,
    /// Where in the memory; a multiple of the page.
    pub(crate) start: usize,
    /// Where it ends in the memory.
    pub(crate) end: usize,
}

/// A batch as it goes to the file: usually one stretch, two when the buffer wraps.
#[derive(Debug)]
pub(crate) struct Sealed {
    octets: Bytes,
    /// Octets of memory that it holds.
    pub(crate) memory_octets: usize,
    pool: Arc<Pool>,
    pub(crate) stretches: SmallVec<[Stretch; 2]>,
    /// Where it begins.
    pub(crate) from: Position,
    /// Behind its last page.
    pub(crate) end: Position,
}

impl Sealed {
    pub(crate) fn octets(&self, stretch: &Stretch) -> &[u8] {
        self.octets
            .get(stretch.start..stretch.end)
            .unwrap_or_default()
    }

    /// What lies at this position and behind it in the same stretch.
    pub(crate) fn at(&self, position: Position) -> Option<&[u8]> {
        let same_cycle = |stretch: &&Stretch| stretch.at.cycle() == position.cycle();
        self.stretches
            .iter()
            .filter(same_cycle)
            .find_map(|stretch| {
                let at = position.offset().checked_sub(stretch.at.offset())?;
                let at = usize::try_from(at).ok()?;
                self.octets(stretch)
                    .get(at..)
                    .filter(|rest| !rest.is_empty())
            })
    }
}

impl Drop for Sealed {
    fn drop(&mut self) {
        self.pool.give_sealed(std::mem::take(&mut self.octets));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(pool: &Arc<Pool>, len: usize, fill: u8) -> BatchMemory {
        let mut memory = pool.memory(0);
        memory.append(&[], len).fill(fill);
        memory
    }

    fn sealed(memory: BatchMemory) -> Sealed {
        let end = memory.len().next_multiple_of(PAGE_LEN);
        let from = Position::new(1, 8 * PAGE);
        let stretch = Stretch {
            at: from,
            start: 0,
            end,
        };
        memory.seal(SmallVec::from_slice(&[stretch]), from, from)
    }

    fn octets(sealed: &Sealed) -> &[u8] {
        sealed.octets(&sealed.stretches[0])
    }

    #[test]
    fn memory_grows_keeps_its_octets_and_its_alignment() {
        let mut memory = Arc::new(Pool::default()).memory(0);
        for n in 0..2000usize {
            let appended = memory.append(&[&[n as u8; 3000], &[1, 2]], 5000);
            assert_eq!(&appended[2999..3005], [n as u8, 1, 2, 0, 0, 0]);
        }
        assert!(memory.octets.as_ptr().addr().is_multiple_of(PAGE_LEN));
        let sealed = sealed(memory);
        let octets = octets(&sealed);
        assert_eq!(octets.len(), 10_002_432);
        for n in 0..2000usize {
            let part = &octets[n * 5000..(n + 1) * 5000];
            assert!(part[..3000].iter().all(|octet| *octet == n as u8));
        }
        assert!(octets[10_000_000..].iter().all(|octet| *octet == 0));
    }

    #[test]
    fn batches_share_a_slab_each_on_pages_of_its_own() {
        let pool = Arc::new(Pool::default());
        let first = sealed(filled(&pool, 10_000, 7));
        let second = sealed(filled(&pool, 100, 8));
        let (a, b) = (octets(&first), octets(&second));
        assert_eq!(b.as_ptr().addr(), a.as_ptr().addr() + a.len());
        assert!(b.as_ptr().addr().is_multiple_of(PAGE_LEN));
        assert!(a[..10_000].iter().all(|octet| *octet == 7));
        assert_eq!((b.len(), b[99], b[100]), (PAGE_LEN, 8, 0));
    }

    #[test]
    fn a_slab_is_used_again_once_nobody_needs_it() {
        let pool = Arc::new(Pool::default());
        let mut slabs = std::collections::BTreeSet::new();
        let mut kept = std::collections::VecDeque::new();
        for n in 0..200 {
            let batch = sealed(filled(&pool, 300_000, n as u8));
            slabs.insert(octets(&batch).as_ptr().addr() / SLAB);
            kept.push_back(batch);
            if kept.len() > 6 {
                kept.pop_front();
            }
            for (batch, n) in kept.iter().rev().zip((0..=n).rev()) {
                assert_eq!(
                    (octets(batch)[0], octets(batch)[299_999]),
                    (n as u8, n as u8)
                );
            }
        }
        assert!(slabs.len() <= 12, "{} slabs", slabs.len());
    }

    #[test]
    fn only_the_beginning_is_taken_beforehand() {
        let pool = Arc::new(Pool::default());
        // As buffers of one set do, each for itself.
        for _ in 0..2 {
            pool.take_beforehand(40 * SLAB);
        }
        assert_eq!(pool.kept.lock().len(), BEFOREHAND_MAX);
    }

    #[test]
    fn the_pool_is_bounded() {
        let pool = Arc::new(Pool::default());
        let many: Vec<_> = (0..20).map(|_| sealed(filled(&pool, SLAB, 1))).collect();
        let large = sealed(filled(&pool, SLAB_KEPT_MAX + 1, 1));
        drop((many, large));
        let kept = pool.kept.lock();
        assert!((1..=KEPT_MAX).contains(&kept.len()));
        assert!(kept.iter().all(|slab| slab.capacity() <= SLAB_KEPT_MAX));
    }

    #[test]
    fn a_larger_slab_is_used_again_behind_smaller_ones() {
        let pool = Arc::new(Pool::default());
        let large = sealed(filled(&pool, 2 * SLAB, 1));
        let small: Vec<_> = (0..3).map(|_| sealed(filled(&pool, SLAB, 2))).collect();
        let place = octets(&large).as_ptr().addr();
        drop((small, large));
        let memory = pool.memory(2 * SLAB);
        assert_eq!(memory.octets.as_ptr().addr(), place);
    }

    #[test]
    fn memory_taken_beforehand_is_used_and_comes_back() {
        let pool = Arc::new(Pool::default());
        pool.take_beforehand(10 * SLAB);
        assert_eq!(pool.kept.lock().len(), 10);
        let places: Vec<_> = pool
            .kept
            .lock()
            .iter()
            .map(|slab| slab.as_ptr().addr())
            .collect();
        let batches: Vec<_> = (0..10).map(|n| sealed(filled(&pool, SLAB, n))).collect();
        let is_there = |batch| places.contains(&octets(batch).as_ptr().addr());
        assert!(batches.iter().all(is_there));
        drop(batches);
        assert_eq!(pool.kept.lock().len(), 10);
    }
}
