//! A policy with so much room: what it holds never exceeds it.

use super::{Article, Policy, Worth};
use crate::policies::PolicyKind;

/// A policy, and how much it may hold.
#[derive(Debug)]
pub struct Room {
    policy: Box<dyn Policy>,
    kind: PolicyKind,
    octets_max: u64,
    articles_max: usize,
}

impl Room {
    /// A policy that holds nothing yet, and never more octets and articles than these.
    #[must_use]
    pub fn new(kind: PolicyKind, octets_max: u64, articles_max: usize) -> Self {
        Self {
            policy: kind.make(),
            kind,
            octets_max,
            articles_max,
        }
    }

    /// Which policy it is.
    #[must_use]
    pub const fn kind(&self) -> PolicyKind {
        self.kind
    }

    /// An article was asked for; true: it is held.
    pub fn touch(&mut self, key: u64) -> bool {
        self.policy.touch(key)
    }

    /// An article came.  Appends what goes for it, which may be that article itself; one that is larger than all the room goes
    /// alone.
    pub fn insert(&mut self, article: Article, gone: &mut Vec<u64>) {
        if article.octets > self.octets_max {
            self.policy.remove(article.key);
            gone.push(article.key);
            return;
        }
        self.policy.insert(article);
        while self.policy.octets() > self.octets_max || self.policy.articles() > self.articles_max {
            self.policy.evict(gone);
        }
    }

    /// An article is not there any more.
    pub fn remove(&mut self, key: u64) -> bool {
        self.policy.remove(key)
    }

    /// What an article is worth; none: it is not held.
    #[must_use]
    pub fn worth(&self, key: u64) -> Option<Worth> {
        self.policy.worth(key)
    }

    /// Octets that are held.
    #[must_use]
    pub fn octets(&self) -> u64 {
        self.policy.octets()
    }

    /// Articles that are held.
    #[must_use]
    pub fn articles(&self) -> usize {
        self.policy.articles()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::policies::POLICIES;

    proptest! {
        /// Whatever the policy, there is never more than there is room for, and what went is not held.
        #[test]
        fn prop_no_policy_holds_more_than_it_may(
            asked in prop::collection::vec((0..40_u64, 0..6_u64, 1..90_u64), 0..200),
            octets_max in 1..300_u64,
            articles_max in 1..12_usize,
        ) {
            for row in POLICIES {
                let mut room = Room::new(row.kind, octets_max, articles_max);
                let mut held = BTreeMap::new();
                for (key, group, octets) in &asked {
                    let key = *key;
                    prop_assert_eq!(room.touch(key), held.contains_key(&key), "{}", row.name);
                    if held.contains_key(&key) {
                        continue;
                    }
                    let mut gone = Vec::new();
                    let article = Article {
                        key, group: *group, octets: *octets, dated: key, uses: 1,
                    };
                    room.insert(article, &mut gone);
                    held.insert(key, *octets);
                    for key in gone {
                        prop_assert!(held.remove(&key).is_some(), "{} let {key} go twice", row.name);
                        prop_assert_eq!(room.worth(key), None);
                    }
                    prop_assert_eq!(room.octets(), held.values().sum::<u64>(), "{}", row.name);
                    prop_assert_eq!(room.articles(), held.len());
                    prop_assert!(room.octets() <= octets_max && held.len() <= articles_max);
                }
            }
        }
    }
}
