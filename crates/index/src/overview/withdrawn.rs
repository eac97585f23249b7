//! Articles taken out before their buffer overwrites them: cancelled, superseded, or damaged in the store.
//!
//! A small set in memory, kept in the group rows' files.  The rows themselves stay in their blocks until their buffer
//! gets there; then the entries here go too.  Facts about blocks need not know of this: what is withdrawn and would be
//! alive by its position is subtracted at the end.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use newsreel_wire::{ArticleNumber, BufferId, GroupId, Position, Token};
use parking_lot::RwLock;

use crate::cursor::{Bad, Cursor};
use crate::liveness::Floors;

/// One article in one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Withdrawn {
    pub(crate) group: GroupId,
    pub(crate) number: u64,
    pub(crate) buffer: BufferId,
    pub(crate) position: Position,
}

impl Withdrawn {
    pub(crate) fn new(group: GroupId, number: ArticleNumber, token: &Token) -> Self {
        Self {
            group,
            number: number.0,
            buffer: token.buffer(),
            position: token.position(),
        }
    }

    fn would_live(&self, floors: &mut Floors<'_>) -> bool {
        self.position >= floors.floor(self.buffer)
    }

    /// Appends the stored form.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.group.0.to_le_bytes());
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(&self.buffer.0.to_le_bytes());
        out.extend_from_slice(&self.position.0.to_le_bytes());
    }

    /// Reads the stored form.
    pub(crate) fn decode(cursor: &mut Cursor<'_>) -> Result<Self, Bad> {
        Ok(Self {
            group: GroupId(cursor.u32()?),
            number: cursor.u64()?,
            buffer: BufferId(cursor.u16()?),
            position: Position(cursor.u64()?),
        })
    }
}

/// What is withdrawn of a group, by number.
pub(crate) type OfGroup = Arc<[Withdrawn]>;

/// All that is withdrawn.
#[derive(Debug, Default)]
pub(crate) struct WithdrawnSet {
    any: AtomicBool,
    groups: RwLock<HashMap<GroupId, OfGroup>>,
}

impl WithdrawnSet {
    /// Adds one.
    pub(crate) fn add(&self, withdrawn: Withdrawn) {
        let mut groups = self.groups.write();
        let of_group = groups.entry(withdrawn.group).or_default();
        let Err(at) = of_group.binary_search_by_key(&withdrawn.number, |one| one.number) else {
            return;
        };
        let mut list = of_group.to_vec();
        list.insert(at, withdrawn);
        *of_group = list.into();
        drop(groups);
        self.any.store(true, Ordering::Release);
    }

    /// All of it.
    pub(crate) fn all(&self) -> Vec<Withdrawn> {
        let groups = self.groups.read();
        let all = groups.values().flat_map(|of_group| of_group.iter());
        all.copied().collect()
    }

    /// What is withdrawn of a group; `None`: nothing.
    pub(crate) fn of(&self, group: GroupId) -> Option<OfGroup> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        self.groups.read().get(&group).map(Arc::clone)
    }

    /// Forgets those whose articles are dead by now.
    pub(crate) fn drop_dead(&self, floors: &mut Floors<'_>) {
        if !self.any.load(Ordering::Acquire) {
            return;
        }
        self.groups.write().retain(|_, of_group| {
            if of_group.iter().all(|one| one.would_live(floors)) {
                return true;
            }
            let live: Vec<Withdrawn> = of_group
                .iter()
                .filter(|one| one.would_live(floors))
                .copied()
                .collect();
            *of_group = live.into();
            !of_group.is_empty()
        });
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.groups
            .read()
            .values()
            .map(|of_group| of_group.len())
            .sum()
    }
}

/// Whether this number is among them.
pub(crate) fn is_withdrawn(of_group: Option<&OfGroup>, number: u64) -> bool {
    of_group.is_some_and(|list| list.binary_search_by_key(&number, |one| one.number).is_ok())
}

/// How many of them would be alive by their position.
pub(crate) fn still_alive(of_group: &OfGroup, floors: &mut Floors<'_>) -> u64 {
    of_group.iter().filter(|one| one.would_live(floors)).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::liveness::tests::{Marks, token};

    #[test]
    fn what_is_withdrawn_is_known_until_it_is_dead() {
        let set = WithdrawnSet::default();
        assert!(set.of(GroupId(1)).is_none());
        for number in [7, 3, 7, 5] {
            let at = token(0, number * 10);
            set.add(Withdrawn::new(GroupId(1), ArticleNumber(number), &at));
        }
        let marks = Marks::default();
        marks.raise(0, 50);
        let list = set.of(GroupId(1)).unwrap();
        assert!(is_withdrawn(Some(&list), 3) && !is_withdrawn(Some(&list), 4));
        assert_eq!(still_alive(&list, &mut Floors::new(&marks)), 2);
        set.drop_dead(&mut Floors::new(&marks));
        assert_eq!(set.len(), 2);
    }
}
