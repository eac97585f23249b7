//! What policies share whose unit is an article: each article has a rank, and the lowest goes.

use std::fmt;

use super::ranked::Ranked;
use super::{Article, Policy, Worth};

/// How a policy ranks; of two articles of the same rank the one goes first that got it first.
pub(crate) trait Ranking: fmt::Debug + Send {
    /// The rank of an article that came.
    fn came(&self, article: &Article) -> u64;

    /// Its rank when it was asked for so often; none: as before, and for as long.
    fn used(&self, uses: u32, octets: u64) -> Option<u64>;

    /// An article of this rank was the lowest, and went.
    fn went(&mut self, _rank: u64) {}
}

#[derive(Debug, Clone, Copy)]
struct Held {
    octets: u64,
    uses: u32,
}

/// The policy of a ranking.
#[derive(Debug)]
pub(crate) struct ByArticle<R> {
    ranking: R,
    articles: Ranked<Held>,
    octets: u64,
    steps: u64,
}

impl<R: Ranking> ByArticle<R> {
    pub(crate) fn new(ranking: R) -> Self {
        Self {
            ranking,
            articles: Ranked::default(),
            octets: 0,
            steps: 0,
        }
    }
}

impl<R: Ranking> Policy for ByArticle<R> {
    fn insert(&mut self, article: Article) {
        self.remove(article.key);
        self.steps += 1;
        let rank = (self.ranking.came(&article), self.steps);
        let Article { octets, uses, .. } = article;
        self.articles
            .insert(article.key, rank, Held { octets, uses });
        self.octets += octets;
    }

    fn touch(&mut self, key: u64) -> bool {
        let Some(held) = self.articles.get_mut(key) else {
            return false;
        };
        held.uses = held.uses.saturating_add(1);
        self.steps += 1;
        if let Some(rank) = self.ranking.used(held.uses, held.octets) {
            self.articles.set_rank(key, (rank, self.steps));
        }
        true
    }

    fn remove(&mut self, key: u64) -> bool {
        let held = self.articles.remove(key);
        self.octets -= held.map_or(0, |held| held.octets);
        held.is_some()
    }

    fn evict(&mut self, gone: &mut Vec<u64>) {
        let Some(key) = self.articles.first() else {
            return;
        };
        if let Some((rank, _)) = self.articles.rank(key) {
            self.ranking.went(rank);
        }
        self.remove(key);
        gone.push(key);
    }

    fn worth(&self, key: u64) -> Option<Worth> {
        self.articles.rank(key)
    }

    fn octets(&self) -> u64 {
        self.octets
    }

    fn articles(&self) -> usize {
        self.articles.len()
    }
}
