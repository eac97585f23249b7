//! Groups by id and by name, and their names in order.
//!
//! Attributes are replaced as a whole, so a reader always holds one consistent state.  The sorted list is made again
//! only when groups came or went, by merging, so that many additions cost no sorting each.

use std::cmp::Ordering as Order;
use std::sync::Arc;

use hashbrown::HashTable;
use newsreel_wire::GroupId;
use parking_lot::{Mutex, RwLock};
use smallvec::SmallVec;

use super::row::Group;

use crate::narrow::halves;

const SHARDS: usize = 32;

/// A name's hash and its group's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Named {
    hash: u32,
    id: GroupId,
}

#[derive(Debug, Default)]
struct Sorted {
    list: Arc<[GroupId]>,
    /// Made since; not in the list.
    added: Vec<GroupId>,
    /// Some of the list are gone.
    any_removed: bool,
}

/// The table.
#[derive(Debug)]
pub(crate) struct Table {
    by_id: Box<[RwLock<Vec<Option<Group>>>]>,
    by_name: Box<[RwLock<HashTable<Named>>]>,
    sorted: Mutex<Sorted>,
}

impl Default for Table {
    fn default() -> Self {
        Self {
            by_id: (0..SHARDS).map(|_| RwLock::default()).collect(),
            by_name: (0..SHARDS).map(|_| RwLock::default()).collect(),
            sorted: Mutex::default(),
        }
    }
}

/// A hash good enough for names, eight octets a step.
fn hash(name: &str) -> u32 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut state = name.len() as u64;
    let (words, rest) = name.as_bytes().as_chunks::<8>();
    for word in words {
        state = (state ^ u64::from_le_bytes(*word)).wrapping_mul(FACTOR);
        state ^= state >> 29;
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    state = (state ^ u64::from_le_bytes(last)).wrapping_mul(FACTOR);
    let [low, high] = halves(state);
    low ^ high
}

/// What the hash table wants: the whole width mixed.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Table {
    /// A group by its id, removed ones too.
    pub(crate) fn get(&self, id: GroupId) -> Option<Group> {
        let shard = self.by_id[id.0 as usize % SHARDS].read();
        shard.get(id.0 as usize / SHARDS)?.clone()
    }

    /// The newest group of this name, removed or not.
    pub(crate) fn named(&self, name: &str) -> Option<Group> {
        let hash = hash(name);
        let candidates: SmallVec<[GroupId; 2]> = {
            let shard = self.by_name[hash as usize % SHARDS].read();
            let same = shard
                .iter_hash(spread(hash))
                .filter(|named| named.hash == hash);
            same.map(|named| named.id).collect()
        };
        let groups = candidates.into_iter().filter_map(|id| self.get(id));
        groups.filter(|group| group.name() == name).last()
    }

    /// Puts a group in, or its new attributes.  A group of the same name under another id gives up the name.
    pub(crate) fn put(&self, group: Group) {
        let id = group.id();
        let before = self.get(id);
        let is_listed = before.as_ref().is_some_and(|before| !before.is_removed());
        let will_be = !group.is_removed();
        if before.is_none() {
            self.take_name(&group);
        }
        {
            let mut shard = self.by_id[id.0 as usize % SHARDS].write();
            let at = id.0 as usize / SHARDS;
            if at >= shard.len() {
                // Not doubling: there are many groups, and they do not come often.
                if at >= shard.capacity() {
                    let more = (at + 1 - shard.len()).max(shard.len() / 16);
                    shard.reserve_exact(more);
                }
                shard.resize(at + 1, None);
            }
            shard[at] = Some(group);
        }
        if is_listed != will_be {
            let mut sorted = self.sorted.lock();
            if will_be {
                sorted.added.push(id);
            } else {
                sorted.any_removed = true;
            }
        }
    }

    fn take_name(&self, group: &Group) {
        let hash = hash(group.name());
        let old = self.named(group.name()).map(|old| old.id());
        // Its name went to another one since.
        if old.is_some_and(|old| old > group.id()) {
            return;
        }
        let mut shard = self.by_name[hash as usize % SHARDS].write();
        if let Some(old) = old
            && let Ok(entry) = shard.find_entry(spread(hash), |named| named.id == old)
        {
            entry.remove();
        }
        let named = Named {
            hash,
            id: group.id(),
        };
        shard.insert_unique(spread(hash), named, |named| spread(named.hash));
    }

    /// The ids of all groups that are there, in octet order of their names.
    pub(crate) fn sorted(&self) -> Arc<[GroupId]> {
        let mut sorted = self.sorted.lock();
        if sorted.added.is_empty() && !sorted.any_removed {
            return Arc::clone(&sorted.list);
        }
        let mut added: Vec<Group> = sorted
            .added
            .drain(..)
            .filter_map(|id| self.get(id))
            .collect();
        added.retain(|group| !group.is_removed());
        added.sort_by(|a, b| a.name().cmp(b.name()));
        added.dedup_by_key(|group| group.id());
        sorted.any_removed = false;
        let old = sorted.list.iter().filter_map(|id| self.get(*id));
        let old = old.filter(|group| !group.is_removed());
        sorted.list = merged(old, added);
        Arc::clone(&sorted.list)
    }

    /// Octets it takes, about.
    pub(crate) fn octets(&self) -> u64 {
        // Of an Arc: two counters, and what the allocator rounds up.
        const ARC_OCTETS: usize = 16 + 8;
        let mut octets = 0;
        for shard in &self.by_id {
            let shard = shard.read();
            octets += shard.capacity() * size_of::<Option<Group>>();
            let groups = shard.iter().flatten();
            octets += groups
                .map(|group| group.octets().len() + ARC_OCTETS)
                .sum::<usize>();
        }
        for shard in &self.by_name {
            octets += shard.read().capacity() * (size_of::<Named>() + 1) * 8 / 7;
        }
        (octets + self.sorted.lock().list.len() * size_of::<GroupId>()) as u64
    }
}

fn merged(old: impl Iterator<Item = Group>, added: Vec<Group>) -> Arc<[GroupId]> {
    let mut out = Vec::new();
    let mut added = added.into_iter().peekable();
    for group in old {
        while let Some(next) = added.next_if(|next| next.name() < group.name()) {
            out.push(next.id());
        }
        if added
            .peek()
            .is_some_and(|next| next.name().cmp(group.name()) == Order::Equal)
        {
            added.next();
        }
        out.push(group.id());
    }
    out.extend(added.map(|group| group.id()));
    out.into()
}
