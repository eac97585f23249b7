//! What cannot be read of the log for a feed: it is told once, tried again after a while, and holds up no other feed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use newsreel_engine::Error;

use crate::feed::Feed;

/// What failed is tried again after so long, however often there is something else to do.
const PAUSE: Duration = Duration::from_secs(1);

/// So many words of a failure are told until it is over.
const TOLD_MAX: usize = 8;

/// What the log is read for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Aim {
    /// What was open when the feed began.
    Open,
    /// What goes with the log.
    Missed,
    /// What comes next.
    Next,
    /// What was passed over.
    Late,
}

/// The failures that are not over, by feed and what the log was read for.
#[derive(Debug, Default)]
pub(crate) struct Failures(BTreeMap<(usize, Aim), Failure>);

#[derive(Debug)]
struct Failure {
    at: Duration,
    /// What was told of it.
    told: BTreeSet<String>,
}

impl Failures {
    /// Whether the log may be read, at this time of a clock that never steps back.
    pub(crate) fn may_read(&self, of: (usize, Aim), now: Duration) -> bool {
        let failure = self.0.get(&of);
        failure.is_none_or(|it| now.saturating_sub(it.at) >= PAUSE)
    }

    /// How reading came out; each failure is told once until it is over, and what was found until then may go out.
    pub(crate) fn note(
        &mut self,
        feed: &Feed,
        of: (usize, Aim),
        now: Duration,
        read: Result<(), &Error>,
    ) {
        let Err(error) = read else {
            self.0.remove(&of);
            return;
        };
        feed.more.notify_waiters();
        let why = error.to_string();
        if self.is_news(of, now, &why) {
            let (peer, name) = (&feed.peer.name, &feed.config.name);
            tracing::error!(
                peer,
                feed = name,
                "the log cannot be read for the feed; it is tried again until it can: {why}"
            );
        }
    }

    /// Keeps a failure; whether it is one that was not told.
    fn is_news(&mut self, of: (usize, Aim), at: Duration, why: &str) -> bool {
        let told = BTreeSet::new();
        let failure = self.0.entry(of).or_insert(Failure { at, told });
        failure.at = at;
        failure.told.len() < TOLD_MAX && failure.told.insert(why.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_told_once_and_tried_again_later() {
        let mut failures = Failures::default();
        let (next, late) = ((0, Aim::Next), (0, Aim::Late));
        let s = Duration::from_secs;
        assert!(failures.is_news(next, s(5), "EIO"));
        assert!(!failures.may_read(next, s(5)) && failures.may_read(next, s(6)));
        assert!(failures.may_read(late, s(5)));
        assert!(!failures.is_news(next, s(6), "EIO"));
        assert!(failures.is_news(next, s(7), "EACCES"));
        assert!(failures.is_news(late, s(7), "EIO"));
        // Two by turns.
        assert!(!failures.is_news(next, s(8), "EIO") && !failures.is_news(next, s(9), "EACCES"));
        assert!(!failures.may_read(next, s(9)) && failures.may_read(next, s(10)));
        let many = (0..100).filter(|n| failures.is_news(next, s(10), &n.to_string()));
        assert_eq!(many.count(), TOLD_MAX - 2);
    }
}
