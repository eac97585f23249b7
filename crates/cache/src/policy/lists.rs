//! Lists of things, each found by its key in whichever list it is: every step costs O(1).
//!
//! A key is in one list at most; who takes it out says in which.

use super::Keyed;

const NONE: u32 = u32::MAX;

/// The ends of a list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct List {
    first: u32,
    last: u32,
}

impl Default for List {
    fn default() -> Self {
        Self {
            first: NONE,
            last: NONE,
        }
    }
}

impl List {
    pub(crate) const fn is_empty(&self) -> bool {
        self.first == NONE
    }
}

#[derive(Debug)]
struct Node<T> {
    key: u64,
    before: u32,
    after: u32,
    value: T,
}

/// What is in all of them.
#[derive(Debug)]
pub(crate) struct Lists<T> {
    nodes: Vec<Node<T>>,
    free: Vec<u32>,
    places: Keyed<u32>,
}

impl<T> Default for Lists<T> {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            free: Vec::new(),
            places: Keyed::default(),
        }
    }
}

impl<T: Copy> Lists<T> {
    /// How many are in all lists together.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    fn node(&self, key: u64) -> Option<&Node<T>> {
        let place = *self.places.get(&key)?;
        self.nodes.get(place as usize)
    }

    pub(crate) fn get(&self, key: u64) -> Option<T> {
        Some(self.node(key)?.value)
    }

    pub(crate) fn get_mut(&mut self, key: u64) -> Option<&mut T> {
        let place = *self.places.get(&key)?;
        Some(&mut self.nodes.get_mut(place as usize)?.value)
    }

    /// The key of the first of a list.
    pub(crate) fn first(&self, list: &List) -> Option<u64> {
        Some(self.nodes.get(list.first as usize)?.key)
    }

    /// Something that is in no list yet, at the end of one.
    pub(crate) fn push(&mut self, list: &mut List, key: u64, value: T) {
        debug_assert!(!self.places.contains_key(&key), "it is there");
        let node = Node {
            key,
            before: NONE,
            after: NONE,
            value,
        };
        let place = match self.free.pop() {
            Some(place) => {
                self.nodes[place as usize] = node;
                place
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }
        };
        self.places.insert(key, place);
        self.link_last(list, place);
    }

    /// What is in this list goes to its end.
    pub(crate) fn move_to_end(&mut self, list: &mut List, key: u64) {
        if let Some(place) = self.places.get(&key).copied() {
            self.unlink(list, place);
            self.link_last(list, place);
        }
    }

    /// Takes out what is in this list.
    pub(crate) fn remove(&mut self, list: &mut List, key: u64) -> Option<T> {
        let place = self.places.remove(&key)?;
        self.unlink(list, place);
        self.free.push(place);
        Some(self.nodes[place as usize].value)
    }

    fn link_last(&mut self, list: &mut List, place: u32) {
        let before = list.last;
        let node = &mut self.nodes[place as usize];
        (node.before, node.after) = (before, NONE);
        match self.nodes.get_mut(before as usize) {
            Some(before) => before.after = place,
            None => list.first = place,
        }
        list.last = place;
    }

    fn unlink(&mut self, list: &mut List, place: u32) {
        let node = &self.nodes[place as usize];
        let (before, after) = (node.before, node.after);
        match self.nodes.get_mut(before as usize) {
            Some(before) => before.after = after,
            None => list.first = after,
        }
        match self.nodes.get_mut(after as usize) {
            Some(after) => after.before = before,
            None => list.last = before,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn prop_two_lists_are_in_order_each(
            steps in prop::collection::vec((0..4_u8, 0..2_usize, 0..20_u64), 0..200),
        ) {
            let (mut lists, mut ends) = (Lists::default(), [List::default(); 2]);
            let mut model = [VecDeque::new(), VecDeque::new()];
            for (what, which, key) in steps {
                let is_here = model[which].contains(&key);
                let is_there = model[1 - which].contains(&key);
                match what {
                    0 | 1 if !is_here && !is_there => {
                        lists.push(&mut ends[which], key, key + 1);
                        model[which].push_back(key);
                    }
                    2 if is_here => {
                        prop_assert_eq!(lists.remove(&mut ends[which], key), Some(key + 1));
                        model[which].retain(|other| *other != key);
                    }
                    3 if is_here => {
                        lists.move_to_end(&mut ends[which], key);
                        model[which].retain(|other| *other != key);
                        model[which].push_back(key);
                    }
                    _ => {}
                }
                for (list, model) in ends.iter().zip(&model) {
                    prop_assert_eq!(lists.first(list), model.front().copied());
                    prop_assert_eq!(list.is_empty(), model.is_empty());
                }
                prop_assert_eq!(lists.len(), model[0].len() + model[1].len());
                let is_held = model.iter().any(|list| list.contains(&key));
                prop_assert_eq!(lists.get(key).is_some(), is_held);
            }
            // All of them, in order.
            for (list, model) in ends.iter_mut().zip(model) {
                for key in model {
                    prop_assert_eq!(lists.first(list), Some(key));
                    lists.remove(list, key);
                }
            }
        }
    }
}
