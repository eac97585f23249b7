//! What groups have beyond the limits of their rules, as a pass counted it, less what went otherwise since.
//!
//! It is counted once.  What another pass lets go meanwhile, or somebody cancels, is no longer beyond a limit: every rule of the group heeds
//! that once, whichever it went by.  So too few go rather than too many, and the next pass counts anew.

use std::collections::{BTreeSet, HashMap};

use newsreel_wire::{ArticleNumber, GroupId};

use super::rules::Surplus;

/// A group when it was counted, and what happened to it since.
#[derive(Debug, Clone, Copy)]
struct Counted {
    /// How many articles it had.
    alive: u64,
    high: ArticleNumber,
    /// How many of its places this pass has let go.
    gone: u64,
    /// How many went otherwise and were heeded.
    heeded: u64,
}

/// Of all groups with limits when they were counted, and of the one that is looked at what is left beyond the limits.
#[derive(Debug, Default)]
pub(super) struct Beyond {
    counted: HashMap<GroupId, Counted>,
    group: Option<GroupId>,
    /// By the places of its rules among all.
    left: Vec<(usize, Surplus)>,
}

impl Beyond {
    /// A group is about to be counted that has so many articles, up to this number.
    pub(super) fn begin(&mut self, group: GroupId, alive: u64, high: ArticleNumber) {
        let counted = Counted {
            alive,
            high,
            gone: 0,
            heeded: 0,
        };
        self.counted.insert(group, counted);
    }

    /// It was counted: this is beyond the limits of its rules, in their order.
    pub(super) fn counted(&mut self, group: GroupId, left: Vec<(usize, Surplus)>) {
        (self.group, self.left) = (Some(group), left);
    }

    /// What is left of the group that is looked at; to be [put back](Self::put_back).
    pub(super) fn take(&mut self) -> Vec<(usize, Surplus)> {
        std::mem::take(&mut self.left)
    }

    pub(super) fn put_back(&mut self, left: Vec<(usize, Surplus)>) {
        self.left = left;
    }

    /// Nothing is left of it.
    pub(super) fn is_none(&self) -> bool {
        let mut left = self.left.iter();
        left.all(|(_, surplus)| *surplus == Surplus::default())
    }

    /// The pass has let one of its places go.
    pub(super) fn one_went(&mut self, group: GroupId) {
        if let Some(counted) = self.counted.get_mut(&group) {
            counted.gone += 1;
        }
    }

    /// How many articles of a group went otherwise since this was asked last, where it has so many up to this number by now.
    pub(super) fn went_otherwise(
        &mut self,
        group: GroupId,
        alive: u64,
        high: ArticleNumber,
    ) -> u64 {
        let Some(counted) = self.counted.get_mut(&group) else {
            return 0;
        };
        let came = high.0.saturating_sub(counted.high.0);
        let accounted = alive + counted.gone + counted.heeded;
        let fewer = (counted.alive + came).saturating_sub(accounted);
        counted.heeded += fewer;
        fewer
    }

    /// The rules of a group by which something may be left.
    pub(super) fn rules(&self, group: GroupId) -> BTreeSet<usize> {
        let left = self.left.iter().filter(|_| self.group == Some(group));
        left.map(|(rule, _)| *rule).collect()
    }

    /// So many articles fewer are beyond the limit of a rule; how many of them it had not left.
    pub(super) fn take_off(&mut self, (group, rule): (GroupId, usize), fewer: u64) -> u64 {
        let mut left = self.left.iter_mut().filter(|_| self.group == Some(group));
        let Some((_, left)) = left.find(|(at, _)| *at == rule) else {
            return fewer;
        };
        let kept = left.articles.min(fewer);
        left.articles -= kept;
        // How large they were is not known.
        left.octets = 0;
        fewer - kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_otherwise_is_heeded_once_by_every_rule() {
        let (group, other) = (GroupId(1), GroupId(2));
        let surplus = |articles| Surplus {
            articles,
            octets: 9,
        };
        let mut beyond = Beyond::default();
        assert_eq!(beyond.went_otherwise(group, 1, ArticleNumber(9)), 0);
        beyond.begin(group, 100, ArticleNumber(100));
        beyond.counted(group, vec![(3, surplus(40)), (5, surplus(10))]);
        (0..7).for_each(|_| beyond.one_went(group));
        // Seven by this pass, five that came, and thirteen otherwise.
        assert_eq!(beyond.went_otherwise(group, 85, ArticleNumber(105)), 13);
        assert_eq!(beyond.went_otherwise(group, 85, ArticleNumber(105)), 0);
        assert_eq!(beyond.rules(group), BTreeSet::from([3, 5]));
        assert_eq!(beyond.rules(other), BTreeSet::new());
        assert_eq!(beyond.take_off((other, 3), 13), 13);
        assert_eq!(beyond.take_off((group, 3), 13), 0);
        assert_eq!(beyond.take_off((group, 5), 13), 3);
        assert!(!beyond.is_none());
        let left: Vec<_> = beyond.take().iter().map(|it| it.1.articles).collect();
        assert_eq!(left, [27, 0]);
        assert!(beyond.is_none());
    }
}
