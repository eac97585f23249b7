//! Connections counted by key, and what each key has run up: kept behind its last connection until it is paid for.
//!
//! The table has an entry for each key that has a connection, and those of connections that have gone before what they ran
//! up was paid for: who comes again has it still.  Of those there are at most [`PACES_KEPT_MAX`]; beyond it those that went first
//! begin anew.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use tokio::time::Instant;

/// Entries that are kept of those who have gone, in each table.
pub const PACES_KEPT_MAX: usize = 10_000;

/// What a key has run up.
pub(crate) trait Dues {
    /// Whether it is paid for, so that who has nothing would be the same.
    fn are_paid(&self, now: Instant) -> bool;
}

#[derive(Debug)]
struct Entry<V> {
    connections: u32,
    dues: V,
}

/// The table.
#[derive(Debug)]
pub(crate) struct Kept<K, V> {
    entries: HashMap<K, Entry<V>>,
    /// Of whom no connection is left, in the order in which they went; some may have come again.
    gone: VecDeque<K>,
}

impl<K, V> Default for Kept<K, V> {
    fn default() -> Self {
        Self {
            entries: HashMap::new(),
            gone: VecDeque::new(),
        }
    }
}

impl<K: Clone + Eq + Hash, V: Dues> Kept<K, V> {
    /// Connections of a key.
    pub(crate) fn connections(&self, key: &K) -> u32 {
        self.entries.get(key).map_or(0, |entry| entry.connections)
    }

    /// One more connection; what its key has run up.
    pub(crate) fn come(&mut self, key: K, nothing: impl FnOnce() -> V) -> &mut V {
        let entry = self.entries.entry(key).or_insert_with(|| Entry {
            connections: 0,
            dues: nothing(),
        });
        entry.connections += 1;
        &mut entry.dues
    }

    /// What a key has run up without any connection.
    pub(crate) fn note(&mut self, key: K, nothing: impl FnOnce() -> V) -> &mut V {
        let gone = &mut self.gone;
        let entry = self.entries.entry(key);
        let entry = entry.or_insert_with_key(|key| {
            gone.push_back(key.clone());
            Entry {
                connections: 0,
                dues: nothing(),
            }
        });
        &mut entry.dues
    }

    /// One connection less.
    pub(crate) fn go(&mut self, key: K) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.connections = entry.connections.saturating_sub(1);
            if entry.connections == 0 {
                self.gone.push_back(key);
            }
        }
    }

    /// Forgets who have paid, or are too many.
    pub(crate) fn tidy(&mut self, now: Instant) {
        while let Some(first) = self.gone.front() {
            let entry = self.entries.get(first);
            let is_back = entry.is_none_or(|entry| entry.connections > 0);
            let is_over = entry.is_some_and(|entry| entry.dues.are_paid(now));
            if !is_back && !is_over && self.gone.len() <= PACES_KEPT_MAX {
                return;
            }
            if let Some(first) = self.gone.pop_front()
                && !is_back
            {
                self.entries.remove(&first);
            }
        }
    }

    /// Keys that it has, and those that have gone.
    #[cfg(test)]
    pub(crate) fn len(&self) -> (usize, usize) {
        (self.entries.len(), self.gone.len())
    }
}
