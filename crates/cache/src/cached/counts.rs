//! What readers asked for, and what of it was kept: the paper's Table 3 of a running server.
//!
//! By database, as there: the list, groups, overview and articles are counted apart, and a question is a hit where the server
//! elsewhere was not asked for what that database has.  What is not there is no answer, and is not counted.  An article that came
//! for readers is fetched for the first of them, be it that it came ahead of him or that he was not who had it fetched, and a hit
//! for all others, so that octets which came once are told once.  Articles are counted besides by the policy that was in force, and by
//! the first group that they name.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use newsreel_wire::IdHash;
use parking_lot::Mutex;
use quick_cache::sync::Cache;
use tokio::time::Instant;

use crate::policies::{POLICIES, PolicyKind};

/// Answers are told apart by how long they took: up to so many microseconds, or longer than all.
pub const ANSWER_US: [u64; 11] = [
    100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000,
];

/// So many groups are counted apart; articles of others are counted as of none.
pub const GROUPS_COUNTED_MAX: usize = 10_000;

/// Articles that came for readers and that none was answered with are remembered so many at most, the last ones.
const UNREAD_MAX: usize = 1 << 12;

/// Articles that came for readers and that none was answered with yet.
pub(super) struct Unread(Cache<IdHash, ()>);

impl Default for Unread {
    fn default() -> Self {
        Self(Cache::new(UNREAD_MAX))
    }
}

impl Unread {
    /// One comes.
    pub(super) fn note(&self, hash: IdHash) {
        self.0.insert(hash, ());
    }

    /// Whether whoever is answered with it now is the first.
    pub(super) fn is_first(&self, hash: &IdHash) -> bool {
        self.0.remove(hash).is_some()
    }
}

/// One database's questions.
#[derive(Debug, Default)]
pub(super) struct Count {
    kept: Part,
    fetched: Part,
}

/// Those that were hits, or those that were not.
#[derive(Debug, Default)]
struct Part {
    answers: AtomicU64,
    octets: AtomicU64,
    us: AtomicU64,
    /// By how long they took.
    by_us: [AtomicU64; ANSWER_US.len() + 1],
}

/// All databases.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) list: Count,
    pub(super) groups: Count,
    pub(super) overview: Count,
    pub(super) articles: Count,
    by_policy: [Count; POLICIES.len()],
    by_group: Mutex<HashMap<Box<str>, CountedGroup>>,
}

/// Articles of a group that were asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CountedGroup {
    /// Those that were kept.
    pub hits: u64,
    /// Octets of these answers: what was saved.
    pub saved_octets: u64,
    /// Those that were not.
    pub misses: u64,
    /// Octets of those.
    pub fetched_octets: u64,
}

/// One database's questions at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counted {
    /// Those that were answered from what is kept.
    pub kept: CountedPart,
    /// Those that the server elsewhere was asked for.
    pub fetched: CountedPart,
}

impl CountedGroup {
    const fn with(self, other: Self) -> Self {
        Self {
            hits: self.hits + other.hits,
            saved_octets: self.saved_octets + other.saved_octets,
            misses: self.misses + other.misses,
            fetched_octets: self.fetched_octets + other.fetched_octets,
        }
    }
}

/// Answers of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CountedPart {
    /// How many.
    pub answers: u64,
    /// Octets in them; groups' facts have none.
    pub octets: u64,
    /// How long all of them took, microseconds.
    pub us: u64,
    /// How many took up to each of [`ANSWER_US`], and not up to the one before; the last: longer than all.
    pub by_us: [u64; ANSWER_US.len() + 1],
}

impl CountedPart {
    /// The microseconds within which so many parts of a hundred were answered; none: of nothing, or longer than all that are told
    /// apart.
    #[must_use]
    pub fn within_us(&self, percent: u64) -> Option<u64> {
        let wanted = (self.answers * percent).div_ceil(100);
        let mut so_far = 0;
        let mut all = ANSWER_US.iter().zip(&self.by_us);
        let found = all.find(|(_, count)| {
            so_far += **count;
            so_far >= wanted && so_far > 0
        });
        found.map(|(us, _)| *us)
    }
}

impl Part {
    fn seen(&self) -> CountedPart {
        CountedPart {
            answers: self.answers.load(Ordering::Relaxed),
            octets: self.octets.load(Ordering::Relaxed),
            us: self.us.load(Ordering::Relaxed),
            by_us: self.by_us.each_ref().map(|it| it.load(Ordering::Relaxed)),
        }
    }
}

impl Count {
    /// A question that was begun then has been answered.
    pub(super) fn answered(&self, is_kept: bool, octets: usize, begun: Instant) {
        self.answered_in(is_kept, octets, us_since(begun));
    }

    fn answered_in(&self, is_kept: bool, octets: usize, us: u64) {
        let part = if is_kept { &self.kept } else { &self.fetched };
        part.answers.fetch_add(1, Ordering::Relaxed);
        part.octets.fetch_add(octets as u64, Ordering::Relaxed);
        part.us.fetch_add(us, Ordering::Relaxed);
        let place = ANSWER_US.partition_point(|most| *most < us);
        if let Some(count) = part.by_us.get(place) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// More octets of answers that were counted when they began.
    pub(super) fn came(&self, is_kept: bool, octets: u64) {
        let part = if is_kept { &self.kept } else { &self.fetched };
        part.octets.fetch_add(octets, Ordering::Relaxed);
    }

    fn seen(&self) -> Counted {
        Counted {
            kept: self.kept.seen(),
            fetched: self.fetched.seen(),
        }
    }
}

fn us_since(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX)
}

impl Counts {
    /// A question for an article that was begun then has been answered, under this policy.
    pub(super) fn article(&self, policy: PolicyKind, is_kept: bool, octets: usize, begun: Instant) {
        let us = us_since(begun);
        self.articles.answered_in(is_kept, octets, us);
        if let Some(count) = self.by_policy.get(policy as usize) {
            count.answered_in(is_kept, octets, us);
        }
    }

    /// More octets of articles that were counted when they began.
    pub(super) fn came(&self, policy: PolicyKind, is_kept: bool, octets: u64) {
        self.articles.came(is_kept, octets);
        if let Some(count) = self.by_policy.get(policy as usize) {
            count.came(is_kept, octets);
        }
    }

    /// An article of a group was asked for so often; octets of all these answers.
    pub(super) fn of_group(&self, group: &str, is_kept: bool, times: u64, octets: u64) {
        let mut groups = self.by_group.lock();
        let counted = match groups.get_mut(group) {
            Some(counted) => counted,
            None => {
                let is_full = groups.len() >= GROUPS_COUNTED_MAX;
                let group = if is_full { "" } else { group };
                groups.entry(group.into()).or_default()
            }
        };
        let (count, all) = if is_kept {
            (&mut counted.hits, &mut counted.saved_octets)
        } else {
            (&mut counted.misses, &mut counted.fetched_octets)
        };
        *count += times;
        *all += octets;
    }

    /// Articles by the policy that was in force, for each that ever was.
    pub(super) fn by_policy(&self) -> Vec<(PolicyKind, Counted)> {
        let all = POLICIES.iter().zip(&self.by_policy);
        let all = all.map(|(row, count)| (row.kind, count.seen()));
        all.filter(|(_, it)| it.kept.answers + it.fetched.answers > 0)
            .collect()
    }

    /// How much a group was asked for, for each octet of what it has: requests by the mean size of an article.
    pub(super) fn popularity(&self, group: &str) -> f64 {
        let groups = self.by_group.lock();
        groups.get(group).map_or(0.0, |counted| {
            let requests = (counted.hits + counted.misses) as f64;
            let octets = (counted.saved_octets + counted.fetched_octets).max(1) as f64;
            requests * requests / octets
        })
    }

    /// Articles by group: so many groups, those asked for most first, and all others as one without a name.
    pub(super) fn by_group(&self, most: usize) -> Vec<(Box<str>, CountedGroup)> {
        let groups = self.by_group.lock();
        let mut all: Vec<_> = groups
            .iter()
            .map(|(name, it)| (name.clone(), *it))
            .collect();
        drop(groups);
        all.sort_by_key(|(name, it)| (name.is_empty(), Reverse(it.hits + it.misses)));
        let rest = all.split_off(most.min(all.len()));
        if let Some(others) = rest
            .into_iter()
            .map(|(_, it)| it)
            .reduce(CountedGroup::with)
        {
            all.push(("".into(), others));
        }
        all
    }

    /// Each with its name.
    pub(super) fn seen(&self) -> [(&'static str, Counted); 4] {
        [
            ("list", self.list.seen()),
            ("groups", self.groups.seen()),
            ("overview", self.overview.seen()),
            ("articles", self.articles.seen()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn times_are_told_apart_and_groups_have_a_limit() {
        let counts = Counts::default();
        let begun = Instant::now();
        for ms in [0, 2, 2, 50, 20_000] {
            tokio::time::advance(Duration::from_millis(ms)).await;
            counts.article(
                PolicyKind::Lfua,
                true,
                10,
                Instant::now() - Duration::from_millis(ms),
            );
        }
        counts.article(PolicyKind::Lrug, false, 7, begun);
        counts.came(PolicyKind::Lrug, false, 5);
        let [_, _, _, (_, articles)] = counts.seen();
        assert_eq!((articles.kept.answers, articles.fetched.octets), (5, 12));
        let within = |percent| articles.kept.within_us(percent);
        let expected = [Some(100), Some(3000), Some(3000), Some(100_000), None];
        assert_eq!([1, 40, 60, 80, 100].map(within), expected);
        assert_eq!(CountedPart::default().within_us(50), None);
        let by_policy = counts.by_policy();
        let policies: Vec<_> = by_policy
            .iter()
            .map(|(kind, it)| (*kind, it.kept.answers))
            .collect();
        assert_eq!(policies, [(PolicyKind::Lrug, 0), (PolicyKind::Lfua, 5)]);
        for group in 0..GROUPS_COUNTED_MAX as u64 + 5 {
            counts.of_group(
                &format!("a.{group}"),
                group % 2 == 0,
                1 + u64::from(group == 7),
                3,
            );
        }
        let groups = counts.by_group(1);
        let others = CountedGroup {
            hits: 5003,
            saved_octets: 15_009,
            misses: 5001,
            fetched_octets: 15_003,
        };
        let seven = CountedGroup {
            misses: 2,
            fetched_octets: 3,
            ..CountedGroup::default()
        };
        assert_eq!(groups, [("a.7".into(), seven), ("".into(), others)]);
        let all = counts.by_group(usize::MAX);
        assert_eq!(all.len(), GROUPS_COUNTED_MAX + 1);
        assert_eq!(all.last().map(|(_, it)| it.hits + it.misses), Some(5));
    }
}
