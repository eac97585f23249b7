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
/// Memory a new batch begins with.
const FIRST_LEN: usize = 256 * 1024;
/// Memories kept for later.
const KEPT_MAX: usize = 4;
/// A batch that needed more than this gives its memory back to the system.
const KEPT_LEN_MAX: usize = 16 << 20;

/// Octets that grow at the end and keep their alignment.
#[derive(Default)]
pub(super) struct BatchMemory {
    octets: Vec<u8>,
    /// Unused octets in front, so that the rest begins on a page.
    skip: usize,
    len: usize,
}

impl fmt::Debug for BatchMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BatchMemory({} of {})", self.len, self.room())
    }
}

impl BatchMemory {
    fn with_room(room: usize) -> Self {
        let octets = vec![0; room + PAGE_LEN];
        // An allocator that cannot say is none of ours; without alignment the disk copies once more.
        let skip = octets.as_ptr().align_offset(PAGE_LEN).min(PAGE_LEN);
        Self {
            octets,
            skip,
            len: 0,
        }
    }

    /// Octets it can take, or takes up.
    pub(super) fn room(&self) -> usize {
        self.octets.len().saturating_sub(self.skip.max(PAGE_LEN))
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Appends room for `len` octets, whose contents are whatever was there before.
    pub(super) fn grow(&mut self, len: usize) -> &mut [u8] {
        let (from, to) = (self.len, self.len + len);
        if to > self.room() {
            let room = to.max(FIRST_LEN).next_power_of_two();
            let mut larger = Self::with_room(room);
            larger.octets[larger.skip..larger.skip + from].copy_from_slice(self.get(0, from));
            (self.octets, self.skip) = (larger.octets, larger.skip);
        }
        self.len = to;
        &mut self.octets[self.skip + from..self.skip + to]
    }

    /// Fills up to a whole page with zeros.
    pub(super) fn pad(&mut self) {
        let missing = self.len.next_multiple_of(PAGE_LEN) - self.len;
        self.grow(missing).fill(0);
    }

    fn get(&self, from: usize, to: usize) -> &[u8] {
        &self.octets[self.skip + from..self.skip + to]
    }
}

/// Memory of batches that are done.
#[derive(Debug, Default)]
pub(super) struct Pool(Mutex<Vec<BatchMemory>>);

impl Pool {
    pub(super) fn take(self: &Arc<Self>) -> Pooled {
        Pooled {
            memory: self.0.lock().pop().unwrap_or_default(),
            pool: Some(Arc::clone(self)),
        }
    }

    fn give(&self, mut memory: BatchMemory) {
        memory.len = 0;
        let mut kept = self.0.lock();
        if kept.len() < KEPT_MAX && memory.room() <= KEPT_LEN_MAX && memory.room() > 0 {
            kept.push(memory);
        }
    }
}

/// Memory that goes back to its pool, if it has one.
#[derive(Debug)]
pub(super) struct Pooled {
    pub(super) memory: BatchMemory,
    pool: Option<Arc<Pool>>,
}

impl Drop for Pooled {
    fn drop(&mut self) {
        if let Some(pool) = &self.pool {
            pool.give(std::mem::take(&mut self.memory));
        }
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
    pooled: Pooled,
    pub(super) stretches: SmallVec<[Stretch; 2]>,
    /// Where it begins.
    pub(super) from: Position,
    /// Behind its last page.
    pub(super) end: Position,
}

impl Sealed {
    pub(super) const fn new(
        pooled: Pooled,
        stretches: SmallVec<[Stretch; 2]>,
        from: Position,
        end: Position,
    ) -> Self {
        Self {
            pooled,
            stretches,
            from,
            end,
        }
    }

    pub(super) fn octets(&self, stretch: &Stretch) -> &[u8] {
        self.pooled.memory.get(stretch.start, stretch.end)
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
    pub(super) fn room(&self) -> usize {
        self.pooled.memory.room()
    }

    /// The same in no more memory than it needs, when it needs far less than it has.
    pub(super) fn compacted(self: &Arc<Self>) -> Arc<Self> {
        let memory = &self.pooled.memory;
        if memory.len() * 2 >= memory.room() {
            return Arc::clone(self);
        }
        let mut small = BatchMemory {
            octets: vec![0; memory.len() + PAGE_LEN],
            skip: 0,
            len: 0,
        };
        small
            .grow(memory.len())
            .copy_from_slice(memory.get(0, memory.len()));
        let pooled = Pooled {
            memory: small,
            pool: None,
        };
        Arc::new(Self::new(
            pooled,
            self.stretches.clone(),
            self.from,
            self.end,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_grows_keeps_its_octets_and_its_alignment() {
        let mut memory = BatchMemory::default();
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
        assert!(
            memory
                .get(1_000_000, 1_003_520)
                .iter()
                .all(|octet| *octet == 0)
        );
    }

    #[test]
    fn dropped_memory_is_used_again_and_padding_is_zeroed_again() {
        let pool = Arc::new(Pool::default());
        let mut first = pool.take();
        first.memory.grow(10_000).fill(7);
        let at = first.memory.get(0, 1).as_ptr();
        drop(first);
        let mut second = pool.take();
        second.memory.grow(100).fill(8);
        assert_eq!(second.memory.get(0, 1).as_ptr(), at);
        second.memory.pad();
        assert_eq!(second.memory.len(), PAGE_LEN);
        assert!(
            second
                .memory
                .get(100, PAGE_LEN)
                .iter()
                .all(|octet| *octet == 0)
        );
    }

    #[test]
    fn the_pool_is_bounded() {
        let pool = Arc::new(Pool::default());
        let mut many: Vec<Pooled> = (0..10).map(|_| pool.take()).collect();
        for pooled in &mut many {
            pooled.memory.grow(1);
        }
        many[0].memory.grow(KEPT_LEN_MAX + 1);
        drop(many);
        assert_eq!(pool.0.lock().len(), KEPT_MAX);
        assert!(
            pool.0
                .lock()
                .iter()
                .all(|memory| memory.room() <= KEPT_LEN_MAX)
        );
    }

    #[test]
    fn a_small_batch_is_kept_in_little_memory_and_a_full_one_as_it_is() {
        let pool = Arc::new(Pool::default());
        for (len, is_same) in [(PAGE_LEN * 40, true), (PAGE_LEN * 3, false)] {
            let mut pooled = pool.take();
            pooled.memory.grow(len).fill(3);
            let stretch = Stretch {
                offset: 8 * PAGE,
                start: 0,
                end: len,
            };
            let (from, end) = (
                Position::new(1, 8 * PAGE),
                Position::new(1, 8 * PAGE + len as u64),
            );
            let sealed = Arc::new(Sealed::new(
                pooled,
                SmallVec::from_slice(&[stretch]),
                from,
                end,
            ));
            let kept = sealed.compacted();
            assert_eq!(Arc::ptr_eq(&sealed, &kept), is_same);
            assert!(kept.room() <= 2 * len);
            assert_eq!(kept.octets(&stretch), sealed.octets(&stretch));
            assert_eq!(kept.at(9 * PAGE).map(<[u8]>::len), Some(len - PAGE_LEN));
            assert_eq!(
                (kept.at(7 * PAGE), kept.at(8 * PAGE + len as u64)),
                (None, None)
            );
        }
    }
}
