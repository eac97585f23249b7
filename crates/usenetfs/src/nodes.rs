//! The table of nodes: what the kernel knows of, by the number of its inode, and the handle that leads there.
//!
//! No descriptor is kept for a node.  A row takes 28 octets and 5 to 12 more lead to it; those of file systems with long
//! handles have more beside.

use std::collections::HashMap;

use hashbrown::hash_table::{Entry, HashTable};
use newsreel_host::node::Handle;
use parking_lot::Mutex;

use crate::rows::Rows;

/// Tables, each with its lock.
const SHARDS: usize = 16;

/// Octets of a handle that stand in the row itself: enough for ext4, XFS and tmpfs.
const INLINE: usize = 12;

/// A row; in parts of four octets, so that none is lost between rows.
#[derive(Debug, Clone, Copy)]
struct Row {
    node: [u32; 2],
    /// So often the kernel was told of it; at the end of the count it is never forgotten.
    lookups: u32,
    octets: [u8; INLINE],
    kind: u8,
    /// Of the handle; [`BESIDE`] when it does not stand here.
    len: u8,
}

const BESIDE: u8 = u8::MAX;

#[derive(Debug, Default)]
struct Shard {
    rows: Rows<Row>,
    /// Their places, by node.
    places: HashTable<u32>,
    beside: HashMap<u64, Handle>,
}

/// The table.
#[derive(Debug, Default)]
pub(crate) struct Nodes([Mutex<Shard>; SHARDS]);

impl Nodes {
    fn shard(&self, node: u64) -> &Mutex<Shard> {
        // Another part of the hash than the rows' own tables use.
        let at = usize::try_from(hash(node) >> 20).unwrap_or(0) % SHARDS;
        &self.0[at]
    }

    /// Counts one lookup of a node.  When its number has come to another inode, it is that one from now on, and this is
    /// said.
    pub(crate) fn remember(&self, node: u64, handle: &Handle) -> bool {
        let mut shard = self.shard(node).lock();
        let shard = &mut *shard;
        let fresh = Row::new(node, handle);
        let was = match fresh.len {
            BESIDE => shard.beside.insert(node, *handle),
            _ => None,
        };
        let rows = &shard.rows;
        match shard.places.entry(
            hash(node),
            |place| rows.node(*place) == Some(node),
            |place| rows.node(*place).map_or(0, hash),
        ) {
            Entry::Occupied(place) => {
                let Some(old) = shard.rows.get_mut(*place.get() as usize) else {
                    return false;
                };
                let is_same =
                    (old.octets, old.kind, old.len) == (fresh.octets, fresh.kind, fresh.len);
                let lookups = old.lookups.saturating_add(1);
                *old = Row { lookups, ..fresh };
                !is_same || was.is_some_and(|was| was != *handle)
            }
            Entry::Vacant(room) => {
                room.insert(rows.len() as u32);
                shard.rows.push(fresh);
                false
            }
        }
    }

    /// The handle of a node.
    pub(crate) fn handle(&self, node: u64) -> Option<Handle> {
        let shard = self.shard(node).lock();
        let row = shard.row(node)?;
        match row.len {
            BESIDE => shard.beside.get(&node).copied(),
            len => Handle::new(row.kind.into(), row.octets.get(..usize::from(len))?),
        }
    }

    /// Whether the kernel knows of a node.
    pub(crate) fn knows(&self, node: u64) -> bool {
        self.shard(node).lock().row(node).is_some()
    }

    /// Takes back so many lookups; says whether the node is gone with them.
    pub(crate) fn forget(&self, node: u64, lookups: u64) -> bool {
        let mut shard = self.shard(node).lock();
        let shard = &mut *shard;
        let Some(place) = shard.place(node) else {
            return false;
        };
        let Some(row) = shard.rows.get_mut(place as usize) else {
            return false;
        };
        if row.lookups == u32::MAX {
            return false;
        }
        row.lookups -= u32::try_from(lookups).unwrap_or(u32::MAX).min(row.lookups);
        if row.lookups > 0 {
            return false;
        }
        shard.remove(node, place);
        true
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(|shard| shard.lock().rows.len()).sum()
    }
}

impl Shard {
    fn place(&self, node: u64) -> Option<u32> {
        let is_it = |place: &u32| self.rows.node(*place) == Some(node);
        self.places.find(hash(node), is_it).copied()
    }

    fn row(&self, node: u64) -> Option<&Row> {
        self.rows.get(self.place(node)? as usize)
    }

    fn remove(&mut self, node: u64, place: u32) {
        if let Ok(entry) = self.places.find_entry(hash(node), |at| *at == place) {
            entry.remove();
        }
        if let Some((moved, had)) = self.rows.take(place as usize) {
            let is_it = |at: &u32| *at as usize == had;
            if let Some(at) = self.places.find_mut(hash(moved.node()), is_it) {
                *at = place;
            }
        }
        self.beside.remove(&node);
        let (len, room) = (self.places.len(), self.places.capacity());
        if room > 4096 && len < room / 8 {
            let rows = &self.rows;
            self.places
                .shrink_to(len * 2, |at| rows.node(*at).map_or(0, hash));
        }
    }
}

impl Rows<Row> {
    fn node(&self, place: u32) -> Option<u64> {
        self.get(place as usize).map(Row::node)
    }
}

impl Row {
    fn new(node: u64, handle: &Handle) -> Self {
        let mut octets = [0; INLINE];
        let inline = octets.get_mut(..handle.octets().len());
        let kind = u8::try_from(handle.kind()).ok();
        let (kind, len) = match (inline, kind) {
            (Some(inline), Some(kind)) => {
                inline.copy_from_slice(handle.octets());
                (kind, u8::try_from(handle.octets().len()).unwrap_or(BESIDE))
            }
            _ => (0, BESIDE),
        };
        Self {
            node: [(node >> 32) as u32, node as u32],
            lookups: 1,
            octets,
            kind,
            len,
        }
    }

    const fn node(&self) -> u64 {
        (self.node[0] as u64) << 32 | self.node[1] as u64
    }
}

/// Numbers of inodes come one after the other; this strews them.
const fn hash(node: u64) -> u64 {
    let mixed = (node ^ (node >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 29)
}

/// What tells an inode from the ones that had its number before: from its handle, so the same after a restart.
pub(crate) fn generation(handle: &Handle) -> u64 {
    handle
        .octets()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, octet| {
            (hash ^ u64::from(*octet)).wrapping_mul(0x0100_0000_01b3)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn handle(octets: &[u8]) -> Handle {
        Handle::new(1, octets).unwrap()
    }

    #[test]
    fn a_node_costs_at_most_64_octets() {
        assert_eq!(size_of::<Row>(), 28);
        // Places take four octets and one more, and tables are at least 7/16 full just after they grew.
        assert!(size_of::<Row>() + (size_of::<u32>() + 1) * 16 / 7 < 40);
        // What the issue counts with: a million.
        let nodes = Nodes::default();
        for node in 0..1_000_000_u64 {
            nodes.remember(node, &handle(&node.to_le_bytes()));
        }
        let room: usize = nodes
            .0
            .iter()
            .map(|s| {
                let shard = s.lock();
                shard.rows.allocation_size() + shard.places.allocation_size()
            })
            .sum();
        assert!(room / nodes.len() <= 40, "{} a node", room / nodes.len());
    }

    #[test]
    fn nodes_are_forgotten_when_every_lookup_is() {
        let nodes = Nodes::default();
        let long = handle(&[7; 40]);
        for (node, handle) in [(5, handle(b"12345678")), (1 << 40, long)] {
            nodes.remember(node, &handle);
            nodes.remember(node, &handle);
            assert_eq!(nodes.handle(node), Some(handle));
            assert!(!nodes.forget(node, 1));
            assert_eq!(nodes.handle(node), Some(handle));
            assert!(nodes.forget(node, 1));
            assert_eq!(nodes.handle(node), None);
            assert!(!nodes.forget(node, 1));
        }
        assert_eq!(nodes.len(), 0);
    }

    /// What goes moves another into its place: each is still found, and none twice.
    #[test]
    fn those_that_stay_are_found() {
        let nodes = Nodes::default();
        for node in 0..20_000_u64 {
            nodes.remember(node, &handle(&node.to_le_bytes()));
        }
        let goes = |node: u64| node % 16 != 5;
        for node in (0..20_000).rev().filter(|node| goes(*node)) {
            assert!(nodes.forget(node, 1));
        }
        for node in 0..20_000 {
            let expected = (!goes(node)).then(|| handle(&node.to_le_bytes()));
            assert_eq!(nodes.handle(node), expected);
        }
        assert_eq!(nodes.len(), 1250);
    }

    #[test]
    fn a_number_that_is_used_again_leads_to_the_new_inode() {
        let nodes = Nodes::default();
        let (old, new) = (handle(b"old"), handle(b"new"));
        assert!(!nodes.remember(5, &old));
        assert!(!nodes.remember(5, &old));
        assert!(nodes.remember(5, &new));
        assert_eq!(nodes.handle(5), Some(new));
        assert_ne!(generation(&old), generation(&new));
        assert!(nodes.forget(5, 3));
    }
}
