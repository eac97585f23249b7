//! Articles taken out before their buffer overwrites them: cancelled, superseded, or damaged in the store.
//!
//! A small set in memory, kept in the group rows' files.  The rows themselves stay in their blocks until their buffer
//! gets there; then the entries here go too.  Facts about blocks need not know of this: what is withdrawn and would be
//! alive by its position is subtracted at the end.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use newsreel_wire::{ArticleNumber, BufferId, GroupId, Position, SetId, Token, TokenParts};
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

    /// A token for this place, which says no more of the article.
    pub(crate) fn token(&self) -> Token {
        Token::new(TokenParts {
            method: 0,
            set: SetId(0),
            buffer: self.buffer,
            len: 0,
            position: self.position,
            tail: [0; 8],
        })
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

/// What is withdrawn of a group.
#[derive(Debug, Default)]
struct List {
    /// Where the article of each number lies.
    by_number: BTreeMap<u64, Place>,
    /// The same in the order in which buffers overwrite them.
    by_place: BTreeSet<(Place, u64)>,
    /// Which of all that was ever added to the set was added here last.
    last: u64,
}

type Place = (BufferId, Position);

impl List {
    fn add(&mut self, withdrawn: Withdrawn, added: u64) {
        self.last = self.last.max(added);
        let (number, place) = (withdrawn.number, (withdrawn.buffer, withdrawn.position));
        // It was moved since it was added.
        if let Some(former) = self.by_number.insert(number, place) {
            self.by_place.remove(&(former, number));
        }
        self.by_place.insert((place, number));
    }

    /// Those whose articles are dead by now, in each buffer.
    fn dead<'a>(&'a self, floors: &mut Floors<'_>) -> impl Iterator<Item = (Place, u64)> + use<'a> {
        let mut ends = Vec::new();
        let mut from = ((BufferId(0), Position::ZERO), 0);
        while let Some(((buffer, _), _)) = self.by_place.range(from..).next() {
            ends.push((*buffer, floors.floor(*buffer)));
            let Some(next) = buffer.0.checked_add(1) else {
                break;
            };
            from = ((BufferId(next), Position::ZERO), 0);
        }
        ends.into_iter().flat_map(|(buffer, floor)| {
            let first = ((buffer, Position::ZERO), 0);
            self.by_place.range(first..((buffer, floor), 0)).copied()
        })
    }

    fn drop_dead(&mut self, floors: &mut Floors<'_>) {
        let dead: Vec<(Place, u64)> = self.dead(floors).collect();
        for entry in dead {
            self.by_place.remove(&entry);
            self.by_number.remove(&entry.1);
        }
    }
}

/// What is withdrawn of a group, as readers hold it: what is withdrawn while they look is gone for them, too.
#[derive(Debug, Clone)]
pub(crate) struct OfGroup(Arc<RwLock<List>>);

impl OfGroup {
    /// Whether this number is among them.
    pub(crate) fn has(&self, number: u64) -> bool {
        self.0.read().by_number.contains_key(&number)
    }

    /// Whether it is among them, and its row leads elsewhere than to this place.
    pub(crate) fn has_elsewhere(&self, number: u64, token: &Token) -> bool {
        let list = self.0.read();
        let place = list.by_number.get(&number);
        place.is_some_and(|place| *place != (token.buffer(), token.position()))
    }

    /// How many of them would be alive by their position.
    pub(crate) fn still_alive(&self, floors: &mut Floors<'_>) -> u64 {
        let list = self.0.read();
        (list.by_number.len() - list.dead(floors).count()) as u64
    }
}

/// All that is withdrawn.
#[derive(Debug, Default)]
pub(crate) struct WithdrawnSet {
    /// Counts what was ever added.
    added: AtomicU64,
    groups: RwLock<HashMap<GroupId, OfGroup>>,
}

impl WithdrawnSet {
    /// Adds one.
    pub(crate) fn add(&self, withdrawn: Withdrawn) {
        let added = self.added.fetch_add(1, Ordering::AcqRel) + 1;
        // Under the lock: an empty list may be taken out any moment.
        let is_known = match self.groups.read().get(&withdrawn.group) {
            Some(of_group) => {
                of_group.0.write().add(withdrawn, added);
                true
            }
            None => false,
        };
        if !is_known {
            let mut groups = self.groups.write();
            let made = || OfGroup(Arc::default());
            let of_group = groups.entry(withdrawn.group).or_insert_with(made);
            of_group.0.write().add(withdrawn, added);
        }
    }

    /// All of it.
    pub(crate) fn all(&self) -> Vec<Withdrawn> {
        let mut all = Vec::new();
        for (group, of_group) in self.groups.read().iter() {
            let list = of_group.0.read();
            all.extend(
                list.by_number
                    .iter()
                    .map(|(number, (buffer, position))| Withdrawn {
                        group: *group,
                        number: *number,
                        buffer: *buffer,
                        position: *position,
                    }),
            );
        }
        all
    }

    fn is_untouched(&self) -> bool {
        self.added.load(Ordering::Acquire) == 0
    }

    /// Differs from what it was before whenever something was withdrawn of these groups.
    pub(crate) fn mark_of(&self, groups: &[GroupId]) -> u64 {
        if self.is_untouched() {
            return 0;
        }
        let lists = self.groups.read();
        let of_these = groups.iter().filter_map(|group| lists.get(group));
        of_these
            .map(|of_group| of_group.0.read().last)
            .max()
            .unwrap_or_default()
    }

    /// What is withdrawn of a group; `None`: nothing.
    pub(crate) fn of(&self, group: GroupId) -> Option<OfGroup> {
        if self.is_untouched() {
            return None;
        }
        self.groups.read().get(&group).cloned()
    }

    /// Forgets those whose articles are dead by now.
    pub(crate) fn drop_dead(&self, floors: &mut Floors<'_>) {
        if self.is_untouched() {
            return;
        }
        self.groups.write().retain(|_, of_group| {
            let mut list = of_group.0.write();
            list.drop_dead(floors);
            !list.by_number.is_empty()
        });
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        let groups = self.groups.read();
        groups
            .values()
            .map(|of_group| of_group.0.read().by_number.len())
            .sum()
    }
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
        let groups = [GroupId(1), GroupId(2)];
        let before = set.mark_of(&groups);
        assert_eq!(set.mark_of(&groups), before);
        assert_eq!(set.mark_of(&groups[1..]), 0);
        let list = set.of(GroupId(1)).unwrap();
        assert!(list.has(3) && !list.has(4));
        assert_eq!(list.still_alive(&mut Floors::new(&marks)), 2);
        set.drop_dead(&mut Floors::new(&marks));
        assert_eq!(set.len(), 2);
        // As many as before, but not the same.
        let other = token(0, 80);
        set.add(Withdrawn::new(GroupId(1), ArticleNumber(8), &other));
        assert_ne!(set.mark_of(&groups), before);
    }
}
