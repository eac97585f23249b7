//! What readers asked for, and what of it was kept: the paper's Table 3 of a running server.
//!
//! By database, as there: the list, groups, overview and articles are counted apart, and a question is a hit where the server
//! elsewhere was not asked for what that database has.  What is not there is no answer, and is not counted.

use std::sync::atomic::{AtomicU64, Ordering};

use tokio::time::Instant;

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
}

/// All databases.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) list: Count,
    pub(super) groups: Count,
    pub(super) overview: Count,
    pub(super) articles: Count,
}

/// One database's questions at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counted {
    /// Those that were answered from what is kept.
    pub kept: CountedPart,
    /// Those that the server elsewhere was asked for.
    pub fetched: CountedPart,
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
}

impl Part {
    fn seen(&self) -> CountedPart {
        CountedPart {
            answers: self.answers.load(Ordering::Relaxed),
            octets: self.octets.load(Ordering::Relaxed),
            us: self.us.load(Ordering::Relaxed),
        }
    }
}

impl Count {
    /// A question that was begun then has been answered.
    pub(super) fn answered(&self, is_kept: bool, octets: usize, begun: Instant) {
        let part = if is_kept { &self.kept } else { &self.fetched };
        let us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        part.answers.fetch_add(1, Ordering::Relaxed);
        part.octets.fetch_add(octets as u64, Ordering::Relaxed);
        part.us.fetch_add(us, Ordering::Relaxed);
    }

    /// More octets of answers that were not kept, and that were counted when they began.
    pub(super) fn came(&self, octets: u64) {
        self.fetched.octets.fetch_add(octets, Ordering::Relaxed);
    }

    fn seen(&self) -> Counted {
        Counted {
            kept: self.kept.seen(),
            fetched: self.fetched.seen(),
        }
    }
}

impl Counts {
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
