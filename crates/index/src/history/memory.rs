//! The newest ids, in memory: a hash table in shards, so that readers and the applier seldom meet.
//!
//! A shard holds a range of the sort order, so writing the part out sorted needs no more memory than a shard.  A part
//! is never shrunk; a checkpoint replaces it.

use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use newsreel_wire::IdHash;
use parking_lot::RwLock;

use super::page::Stored;
use crate::layers::Part;

const SHARD_BITS: u32 = 7;

/// A part of the history in memory.
#[derive(Debug)]
pub(crate) struct MemoryPart {
    shards: Box<[RwLock<HashTable<Stored>>]>,
    rows: AtomicU64,
}

impl Default for MemoryPart {
    fn default() -> Self {
        Self {
            shards: (0..1 << SHARD_BITS).map(|_| RwLock::default()).collect(),
            rows: AtomicU64::new(0),
        }
    }
}

impl Part for MemoryPart {
    /// Empties it and keeps its memory, so that the next part need not grow again.
    fn recycled(mut self) -> Self {
        self.shards
            .iter_mut()
            .for_each(|shard| shard.get_mut().clear());
        *self.rows.get_mut() = 0;
        self
    }
}

impl MemoryPart {
    fn shard(&self, hash: &IdHash) -> &RwLock<HashTable<Stored>> {
        &self.shards[(hash.prefix() >> (u64::BITS - SHARD_BITS)) as usize]
    }

    /// Puts an entry in; a later one for the same id replaces it.
    pub(crate) fn insert(&self, stored: Stored) {
        let mut shard = self.shard(&stored.hash).write();
        let found = shard.entry(
            stored.hash.suffix(),
            |other| other.hash == stored.hash,
            |other| other.hash.suffix(),
        );
        match found {
            Entry::Occupied(mut occupied) => *occupied.get_mut() = stored,
            Entry::Vacant(vacant) => {
                vacant.insert(stored);
                self.rows.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// The entry with this hash.
    pub(crate) fn get(&self, hash: &IdHash) -> Option<Stored> {
        let shard = self.shard(hash).read();
        shard
            .find(hash.suffix(), |other| other.hash == *hash)
            .copied()
    }

    /// How many entries it holds.
    pub(crate) fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }

    /// Octets it takes, about.
    pub(crate) fn octets(&self) -> u64 {
        let places: usize = self
            .shards
            .iter()
            .map(|shard| shard.read().capacity())
            .sum();
        // A hash table keeps an eighth of its places empty and an octet of its own for each.
        (places as u64 * 8 / 7) * (size_of::<Stored>() as u64 + 1)
    }

    /// Visits the entries whose hashes begin with so many zeros, in no order.
    pub(crate) fn visit_first(&self, zeros: u32, mut visit: impl FnMut(&Stored)) {
        let shards = (self.shards.len() >> zeros.min(SHARD_BITS)).max(1);
        for shard in self.shards.iter().take(shards) {
            let shard = shard.read();
            let meant = shard
                .iter()
                .filter(|stored| stored.hash.prefix().leading_zeros() >= zeros);
            meant.for_each(&mut visit);
        }
    }

    /// Visits all entries in sort order.
    pub(crate) fn sorted<E>(
        &self,
        mut visit: impl FnMut(&Stored) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rows = Vec::new();
        for shard in &self.shards {
            rows.clear();
            rows.extend(shard.read().iter().copied());
            rows.sort_unstable_by_key(Stored::key);
            rows.iter().try_for_each(&mut visit)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_replaced_and_come_out_sorted() {
        let part = MemoryPart::default();
        let stored = |octet: u8, arrival| Stored {
            hash: IdHash([octet; 16]),
            token: [0; 24],
            arrival,
            is_withdrawn: false,
        };
        for octet in (0..=255).rev() {
            part.insert(stored(octet, 1));
        }
        part.insert(stored(9, 2));
        assert_eq!(part.get(&IdHash([9; 16])), Some(stored(9, 2)));
        assert_eq!(
            (part.get(&IdHash([0; 16])).is_some(), part.rows()),
            (true, 256)
        );
        let mut seen = Vec::new();
        part.sorted(|stored| {
            seen.push(stored.hash.prefix());
            Ok::<_, ()>(())
        })
        .unwrap();
        assert!(seen.is_sorted() && seen.len() == 256);
    }
}
