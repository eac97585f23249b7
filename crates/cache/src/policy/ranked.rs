//! Things in the order of their ranks, each found by its key: a binary heap that knows where everything stands.
//!
//! Finding costs O(1), and everything that changes the order O(log n).  A key is there once at most.

use super::{Keyed, Worth};

#[derive(Debug)]
struct Slot<T> {
    key: u64,
    rank: Worth,
    /// Where it stands in the heap.
    at: u32,
    value: T,
}

/// The things.
#[derive(Debug)]
pub(crate) struct Ranked<T> {
    slots: Vec<Slot<T>>,
    /// Places of slots; none comes before the one at half its place.
    heap: Vec<u32>,
    places: Keyed<u32>,
}

impl<T> Default for Ranked<T> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            heap: Vec::new(),
            places: Keyed::default(),
        }
    }
}

impl<T> Ranked<T> {
    pub(crate) fn len(&self) -> usize {
        self.slots.len()
    }

    fn slot(&self, key: u64) -> Option<&Slot<T>> {
        let place = *self.places.get(&key)?;
        self.slots.get(place as usize)
    }

    pub(crate) fn get(&self, key: u64) -> Option<&T> {
        Some(&self.slot(key)?.value)
    }

    pub(crate) fn get_mut(&mut self, key: u64) -> Option<&mut T> {
        let place = *self.places.get(&key)?;
        Some(&mut self.slots.get_mut(place as usize)?.value)
    }

    pub(crate) fn rank(&self, key: u64) -> Option<Worth> {
        Some(self.slot(key)?.rank)
    }

    /// The key of what has the lowest rank.
    pub(crate) fn first(&self) -> Option<u64> {
        let place = *self.heap.first()?;
        Some(self.slots.get(place as usize)?.key)
    }

    /// Something that is not there yet.
    pub(crate) fn insert(&mut self, key: u64, rank: Worth, value: T) {
        debug_assert!(!self.places.contains_key(&key), "it is there");
        let at = self.heap.len();
        let place = self.slots.len() as u32;
        self.slots.push(Slot {
            key,
            rank,
            at: at as u32,
            value,
        });
        self.heap.push(place);
        self.places.insert(key, place);
        self.rise(at);
    }

    /// Another rank for what is there.
    pub(crate) fn set_rank(&mut self, key: u64, rank: Worth) {
        let Some(place) = self.places.get(&key) else {
            return;
        };
        let slot = &mut self.slots[*place as usize];
        slot.rank = rank;
        let at = slot.at as usize;
        let at = self.rise(at);
        self.sink(at);
    }

    pub(crate) fn remove(&mut self, key: u64) -> Option<T> {
        let place = self.places.remove(&key)?;
        let at = self.slots[place as usize].at as usize;
        self.heap.swap_remove(at);
        if let Some(moved) = self.heap.get(at) {
            self.slots[*moved as usize].at = at as u32;
            let at = self.rise(at);
            self.sink(at);
        }
        let slot = self.slots.swap_remove(place as usize);
        if let Some(moved) = self.slots.get(place as usize) {
            self.heap[moved.at as usize] = place;
            self.places.insert(moved.key, place);
        }
        Some(slot.value)
    }

    fn rank_at(&self, at: usize) -> Worth {
        self.slots[self.heap[at] as usize].rank
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        for at in [one, other] {
            self.slots[self.heap[at] as usize].at = at as u32;
        }
    }

    /// Moves up what comes before what stands above it; gives where it stands then.
    fn rise(&mut self, mut at: usize) -> usize {
        while at > 0 {
            let above = (at - 1) / 2;
            if self.rank_at(above) <= self.rank_at(at) {
                break;
            }
            self.swap(above, at);
            at = above;
        }
        at
    }

    /// Moves down what comes behind what stands below it.
    fn sink(&mut self, mut at: usize) {
        loop {
            let below = [2 * at + 1, 2 * at + 2].into_iter();
            let below = below.filter(|below| *below < self.heap.len());
            let Some(below) = below.min_by_key(|below| self.rank_at(*below)) else {
                break;
            };
            if self.rank_at(at) <= self.rank_at(below) {
                break;
            }
            self.swap(at, below);
            at = below;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn prop_the_first_is_the_one_of_the_lowest_rank(
            steps in prop::collection::vec((0..4_u8, 0..30_u64, 0..9_u64), 0..200),
        ) {
            let (mut ranked, mut model) = (Ranked::default(), BTreeMap::new());
            for (seq, (what, key, rank)) in steps.into_iter().enumerate() {
                let rank = (rank, seq as u64);
                match what {
                    0 if !model.contains_key(&key) => {
                        ranked.insert(key, rank, key + 1);
                        model.insert(key, rank);
                    }
                    1 => {
                        prop_assert_eq!(ranked.remove(key), model.remove(&key).map(|_| key + 1));
                    }
                    _ => {
                        ranked.set_rank(key, rank);
                        model.entry(key).and_modify(|old| *old = rank);
                    }
                }
                let first = model.iter().min_by_key(|(_, rank)| **rank);
                prop_assert_eq!(ranked.first(), first.map(|(key, _)| *key));
                prop_assert_eq!(ranked.len(), model.len());
                prop_assert_eq!(ranked.rank(key), model.get(&key).copied());
                prop_assert_eq!(ranked.get(key).copied(), model.get(&key).map(|_| key + 1));
            }
        }
    }
}
