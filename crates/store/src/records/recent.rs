//! The newest batches of a buffer, kept in memory for readers and feeds.
//!
//! Batches are written around the page cache (see `docs/decisions/0004-buffers-around-the-page-cache.md`), so that what
//! was just written is not in it.  Most reads want just that: here it is, without a system call.  Bounded in octets;
//! the oldest batch goes first.

use std::collections::VecDeque;
use std::sync::Arc;

use newsreel_wire::Position;
use parking_lot::RwLock;

use super::memory::{Pool, Sealed};

/// The newest batches of one buffer.
#[derive(Debug)]
pub(crate) struct Recent {
    kept: RwLock<Kept>,
    octets_max: usize,
    /// Where batches have their memory from.
    pub(crate) pool: Arc<Pool>,
}

#[derive(Debug, Default)]
struct Kept {
    /// Oldest first.
    batches: VecDeque<Arc<Sealed>>,
    /// Octets of memory that they hold.
    octets: usize,
}

impl Recent {
    pub(crate) fn new(octets_max: usize, pool: Arc<Pool>) -> Self {
        Self {
            kept: RwLock::default(),
            octets_max,
            pool,
        }
    }

    /// How much it keeps, octets.
    #[cfg(test)]
    pub(crate) fn octets_max(&self) -> usize {
        self.octets_max
    }

    /// Takes the memory for it from the system now.
    pub(crate) fn take_memory(&self) {
        self.pool.take_beforehand(self.octets_max);
    }

    /// Adds the newest batch; those that have no room any more go.
    pub(crate) fn add(&self, sealed: &Arc<Sealed>) {
        if self.octets_max == 0 {
            return;
        }
        let mut gone = Vec::new();
        let mut kept = self.kept.write();
        kept.octets += sealed.memory_octets;
        kept.batches.push_back(Arc::clone(sealed));
        while kept.octets > self.octets_max
            && let Some(oldest) = kept.batches.pop_front()
        {
            kept.octets -= oldest.memory_octets;
            gone.push(oldest);
        }
        // Their memory is given back when nobody waits for the lock.
        drop(kept);
    }

    /// The batch that has this position.
    pub(crate) fn find(&self, position: Position) -> Option<Arc<Sealed>> {
        if self.octets_max == 0 {
            return None;
        }
        let batches = &self.kept.read().batches;
        let behind = batches.partition_point(|batch| batch.from <= position);
        let batch = batches.get(behind.checked_sub(1)?)?;
        (position < batch.end).then(|| Arc::clone(batch))
    }

    /// Forgets everything: the buffer goes on elsewhere.
    pub(crate) fn clear(&self) {
        *self.kept.write() = Kept::default();
    }
}

#[cfg(test)]
mod tests {
    use smallvec::SmallVec;

    use super::super::memory::Stretch;
    use super::*;

    /// A batch of so many pages from `page` on, full of `fill`.
    fn batch(pool: &Arc<Pool>, page: u64, pages: u64, fill: u8) -> Arc<Sealed> {
        let mut memory = pool.memory(0);
        let len = (pages * 4096) as usize;
        memory.append(&[], len).fill(fill);
        let from = Position::new(1, page * 4096);
        let stretch = Stretch {
            at: from,
            start: 0,
            end: len,
        };
        let end = Position::new(1, (page + pages) * 4096);
        Arc::new(memory.seal(SmallVec::from_slice(&[stretch]), from, end))
    }

    fn first_octet(recent: &Recent, page: u64) -> Option<u8> {
        let position = Position::new(1, page * 4096 + 64);
        let found = recent.find(position)?;
        found.at(position)?.first().copied()
    }

    #[test]
    fn the_newest_are_found_and_the_oldest_go() {
        let pool = Arc::new(Pool::default());
        // Pages 10 to 12, 13, then a gap, 20 to 29.
        let recent = Recent::new(20 * 4096, Arc::clone(&pool));
        for (page, pages, fill) in [(10, 3, 1), (13, 1, 2), (20, 10, 3)] {
            recent.add(&batch(&pool, page, pages, fill));
        }
        let found: Vec<_> = [9, 10, 12, 13, 14, 20, 29, 30]
            .map(|page| first_octet(&recent, page))
            .to_vec();
        assert_eq!(
            found,
            [
                None,
                Some(1),
                Some(1),
                Some(2),
                None,
                Some(3),
                Some(3),
                None
            ]
        );
        recent.add(&batch(&pool, 30, 8, 4));
        let found: Vec<_> = [10, 13, 20, 30]
            .map(|page| first_octet(&recent, page))
            .to_vec();
        assert_eq!(found, [None, Some(2), Some(3), Some(4)]);
        recent.clear();
        assert_eq!(first_octet(&recent, 30), None);
    }

    #[test]
    fn what_lies_idle_behind_a_batch_counts() {
        let pool = Arc::new(Pool::default());
        // Slabs of 2 MiB: one batch of 1.5 MiB fits into each.
        let recent = Recent::new((8 << 20) + (64 << 10), Arc::clone(&pool));
        let pages = 384;
        for n in 0..5 {
            recent.add(&batch(&pool, 10 + n * pages, pages, n as u8));
        }
        let found: Vec<_> = (0..5)
            .map(|n| first_octet(&recent, 10 + n * pages))
            .collect();
        assert_eq!(found, [None, Some(1), Some(2), Some(3), Some(4)]);
    }

    #[test]
    fn none_are_kept_when_there_is_no_room() {
        let pool = Arc::new(Pool::default());
        for octets_max in [0, 4096] {
            let recent = Recent::new(octets_max, Arc::clone(&pool));
            recent.add(&batch(&pool, 10, 3, 1));
            assert_eq!(first_octet(&recent, 10), None, "{octets_max}");
        }
    }
}
