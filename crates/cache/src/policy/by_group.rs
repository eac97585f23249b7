//! What policies share that look at groups: each group has a rank, and of the lowest all goes, or what was read longest ago.
//!
//! A group is there as long as one of its articles is.

use super::lists::{List, Lists};
use super::ranked::Ranked;
use super::{Article, Policy, Worth};

/// What goes of the group of the lowest rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// All of it.
    Group,
    /// The article that was asked for longest ago.
    Article,
}

#[derive(Debug, Default)]
struct Members {
    /// Its articles, those asked for longest ago first.
    list: List,
    /// How often they were asked for.
    uses: u64,
}

#[derive(Debug, Clone, Copy)]
struct Held {
    group: u64,
    octets: u64,
}

/// The policy of a ranking of groups.
#[derive(Debug)]
pub(crate) struct ByGroup {
    /// The rank of a group that was asked for so often; of two groups of the same rank the one goes that was asked for longest
    /// ago.
    rank: fn(u64) -> u64,
    unit: Unit,
    groups: Ranked<Members>,
    articles: Lists<Held>,
    octets: u64,
    steps: u64,
}

impl ByGroup {
    pub(crate) fn new(rank: fn(u64) -> u64, unit: Unit) -> Self {
        Self {
            rank,
            unit,
            groups: Ranked::default(),
            articles: Lists::default(),
            octets: 0,
            steps: 0,
        }
    }

    /// Articles of a group were asked for so many times.
    fn used(&mut self, group: u64, uses: u64) {
        self.steps += 1;
        let Some(members) = self.groups.get_mut(group) else {
            return;
        };
        members.uses = members.uses.saturating_add(uses);
        let rank = ((self.rank)(members.uses), self.steps);
        self.groups.set_rank(group, rank);
    }
}

impl Policy for ByGroup {
    fn insert(&mut self, article: Article) {
        self.remove(article.key);
        let Article {
            key, group, octets, ..
        } = article;
        if self.groups.get(group).is_none() {
            self.groups.insert(group, (0, 0), Members::default());
        }
        if let Some(members) = self.groups.get_mut(group) {
            self.articles
                .push(&mut members.list, key, Held { group, octets });
        }
        self.octets += octets;
        self.used(group, article.uses.into());
    }

    fn touch(&mut self, key: u64) -> bool {
        let Some(held) = self.articles.get(key) else {
            return false;
        };
        if let Some(members) = self.groups.get_mut(held.group) {
            self.articles.move_to_end(&mut members.list, key);
        }
        self.used(held.group, 1);
        true
    }

    fn remove(&mut self, key: u64) -> bool {
        let Some(held) = self.articles.get(key) else {
            return false;
        };
        if let Some(members) = self.groups.get_mut(held.group) {
            self.articles.remove(&mut members.list, key);
            if members.list.is_empty() {
                self.groups.remove(held.group);
            }
        }
        self.octets -= held.octets;
        true
    }

    fn evict(&mut self, gone: &mut Vec<u64>) {
        let Some(group) = self.groups.first() else {
            return;
        };
        // The last of its articles takes it away.
        while let Some(members) = self.groups.get(group)
            && let Some(key) = self.articles.first(&members.list)
        {
            self.remove(key);
            gone.push(key);
            if self.unit == Unit::Article {
                break;
            }
        }
    }

    fn worth(&self, key: u64) -> Option<Worth> {
        self.groups.rank(self.articles.get(key)?.group)
    }

    fn octets(&self) -> u64 {
        self.octets
    }

    fn articles(&self) -> usize {
        self.articles.len()
    }
}
