//! What waits for feeds in the log, counted in articles: one pass over the log for all feeds.
//!
//! A sequence is no article, and many were never given; so the log is read, and only what a feed lets out counts for it.  However much
//! waits, only so much is looked at; of more it is said that there is more.

use std::ops::ControlFlow;
use std::sync::Arc;

use newsreel_engine::{Engine, FedArticle, FeedRead};
use newsreel_wire::{Sequence, UnixTime};

use crate::feed::Feed;
use crate::place::Place;

/// Articles that are looked at to say what waits, each once for each feed.
pub const LOOKS_MAX: u64 = 1_000_000;

/// What waits for a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Backlog {
    /// Articles of the log that go out by it and were not looked at.
    pub behind: u64,
    /// There may be more of them: not all were counted.
    pub is_more: bool,
    /// When the oldest article came that is not settled.
    pub oldest: Option<UnixTime>,
}

impl Backlog {
    /// The same of several feeds.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        let both = self.oldest.into_iter().chain(other.oldest);
        Self {
            behind: self.behind + other.behind,
            is_more: self.is_more || other.is_more,
            oldest: both.min(),
        }
    }
}

/// Where a feed stands, while it is counted.
#[derive(Debug)]
pub(crate) struct Standing {
    /// Whose it is; none: it has not been here since the start, and everything counts.
    feed: Option<Arc<Feed>>,
    /// The first article that is open and in the log.
    open: Option<Sequence>,
    /// What was not looked at, from one sequence to before another, ascending.
    unseen: Vec<(Sequence, Sequence)>,
    /// When the first article came that was looked at.
    first: Option<UnixTime>,
    found: Backlog,
}

impl Standing {
    pub(crate) fn new(feed: Option<Arc<Feed>>, place: &Place, end: Sequence) -> Self {
        let rest = [(place.next, end)];
        Self {
            feed,
            open: place.open_in_log().next(),
            unseen: place.behind.iter().copied().chain(rest).collect(),
            first: None,
            found: Backlog::default(),
        }
    }

    /// What it wants to see next, from here on.
    fn wants(&self, from: Sequence) -> Option<Sequence> {
        let is_looked_for = self.found.oldest.is_none();
        let open = self.open.filter(|open| is_looked_for && *open >= from);
        open.into_iter().chain(self.wants_unseen(from)).min()
    }

    fn wants_unseen(&self, from: Sequence) -> Option<Sequence> {
        let mut ahead = self.unseen.iter().filter(|(_, to)| *to > from);
        ahead.find_map(|(first, to)| (first < to).then(|| from.max(*first)))
    }

    /// Looks at an article; whether it had to.
    fn sees(&mut self, article: &FedArticle<'_>) -> bool {
        let at = article.sequence;
        let is_unseen = self.unseen.iter().any(|(from, to)| *from <= at && at < *to);
        let goes = |feed: &Arc<Feed>| {
            let groups = feed.filter.takes_groups(&article.groups);
            groups.and_then(|()| feed.filter.judge(article)).is_ok()
        };
        let counts = is_unseen && self.feed.as_ref().is_none_or(goes);
        self.found.behind += u64::from(counts);
        if is_unseen {
            self.first.get_or_insert(article.arrival);
        }
        if counts || self.open == Some(at) {
            self.found.oldest.get_or_insert(article.arrival);
        }
        is_unseen
    }

    /// Not all of it was looked at, from here on.
    fn breaks_off(&mut self, from: Sequence) {
        if self.wants_unseen(from).is_some() {
            self.found.is_more = true;
            // What waits may be as old as that.
            self.found.oldest = self.found.oldest.or(self.first);
        }
    }
}

/// What waits for each of them.  Waits for the disk where the log is not in memory.
pub(crate) fn count(engine: &Engine, mut all: Vec<Standing>, looks_max: u64) -> Vec<Backlog> {
    let wanted = |all: &[Standing], from| all.iter().filter_map(|it| it.wants(from)).min();
    let Some(first) = wanted(&all, Sequence::ZERO) else {
        return all.into_iter().map(|it| it.found).collect();
    };
    let (mut cursor, mut left) = (engine.feed_from(first), looks_max);
    while let Some(at) = wanted(&all, cursor.position()) {
        if at > cursor.position() {
            cursor.seek(at);
        }
        let read = cursor.read(|article| {
            let looks = all.iter_mut().map(|it| u64::from(it.sees(article)));
            left = left.saturating_sub(looks.sum());
            match left {
                0 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        });
        match read {
            Ok(FeedRead::End) => break,
            Ok(FeedRead::More | FeedRead::Missed { .. }) if left > 0 => {}
            // Where the log cannot be read, its reader says so.
            Ok(_) | Err(_) => {
                let from = Sequence(cursor.position().0.saturating_add(1));
                all.iter_mut().for_each(|it| it.breaks_off(from));
                break;
            }
        }
    }
    all.into_iter().map(|it| it.found).collect()
}
