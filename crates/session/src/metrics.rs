//! Counters of all sessions: commands by verb, replies by code, articles by outcome, octets, ends.
//!
//! Counters are sharded by thread, so that counting is one uncontended relaxed addition; reading adds the shards up.
//! Nothing here is ever reset.  What is counted of single servers is kept with them, in [`Metrics::neighbours`].

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use newsreel_service::{Defer, Neighbours, Outcome, Reject};

use crate::commands::TABLE;
use crate::end::End;

/// Shards; more threads than this share.
const SHARDS: usize = 8;

/// Reply codes run from 100 to 599.
const CODES: usize = 500;

/// Verbs, and one place for commands that are none.
const VERBS: usize = 32;

/// Kinds of [`Tally`].
const TALLIES: usize = 8;

/// Refusals and deferrals, by reason.
const REASONS: usize = 96;

/// Things that are counted one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tally {
    OctetsIn,
    OctetsOut,
    SessionsOpened,
    SessionsClosed,
    Accepted,
    Duplicate,
    Failed,
    Oversized,
}

#[repr(align(128))]
#[derive(Debug)]
struct Shard {
    verbs: [AtomicU64; VERBS],
    codes: [AtomicU64; CODES],
    tallies: [AtomicU64; TALLIES],
    rejects: [AtomicU64; REASONS],
    defers: [AtomicU64; Defer::ALL.len()],
    ends: [AtomicU64; End::ALL.len()],
}

/// The counters.
#[derive(Debug)]
pub struct Metrics {
    shards: Box<[Shard]>,
    neighbours: Neighbours,
}

/// What has been counted so far; names are metric labels.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MetricsSnapshot {
    /// Commands by verb; `unknown` for those that are none.
    pub commands: Vec<(&'static str, u64)>,
    /// Replies by code, those that were given.
    pub replies: Vec<(u16, u64)>,
    /// Refused articles by reason, those that occurred.
    pub rejected: Vec<(&'static str, u64)>,
    /// Articles put off by reason, those that occurred.
    pub deferred: Vec<(&'static str, u64)>,
    /// Ended connections by how.
    pub ended: Vec<(&'static str, u64)>,
    /// Octets read.
    pub octets_in: u64,
    /// Octets written.
    pub octets_out: u64,
    /// Sessions begun.
    pub opened: u64,
    /// Sessions ended.
    pub closed: u64,
    /// Articles accepted.
    pub accepted: u64,
    /// Articles that were there already.
    pub duplicate: u64,
    /// Articles this server could not keep.
    pub failed: u64,
    /// Articles dropped because they were too large.
    pub oversized: u64,
}

const fn zeros<const N: usize>() -> [AtomicU64; N] {
    [const { AtomicU64::new(0) }; N]
}

impl Default for Metrics {
    fn default() -> Self {
        let shard = || Shard {
            verbs: zeros(),
            codes: zeros(),
            tallies: zeros(),
            rejects: zeros(),
            defers: zeros(),
            ends: zeros(),
        };
        Self {
            shards: (0..SHARDS).map(|_| shard()).collect(),
            neighbours: Neighbours::default(),
        }
    }
}

/// This thread's shard.
fn place() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static PLACE: usize = NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS;
    }
    PLACE.with(|place| *place)
}

fn bump(counters: &[AtomicU64], at: usize, by: u64) {
    if let Some(counter) = counters.get(at) {
        counter.fetch_add(by, Ordering::Relaxed);
    }
}

impl Metrics {
    fn shard(&self) -> &Shard {
        &self.shards[place()]
    }

    /// A command came; `None` for one that is none.
    pub(crate) fn command(&self, verb: Option<usize>) {
        bump(&self.shard().verbs, verb.unwrap_or(TABLE.len()), 1);
    }

    /// A reply was given.
    pub(crate) fn reply(&self, code: u16) {
        bump(&self.shard().codes, usize::from(code.wrapping_sub(100)), 1);
    }

    pub(crate) fn add(&self, tally: Tally, by: u64) {
        bump(&self.shard().tallies, tally as usize, by);
    }

    /// An article was answered.
    pub(crate) fn outcome(&self, outcome: Outcome) {
        match outcome {
            Outcome::Accepted => self.add(Tally::Accepted, 1),
            Outcome::Duplicate => self.add(Tally::Duplicate, 1),
            Outcome::Failed => self.add(Tally::Failed, 1),
            Outcome::Rejected(reason)
            | Outcome::RejectedField(reason, _)
            | Outcome::RejectedWith(reason, _) => {
                bump(&self.shard().rejects, reason as usize, 1);
            }
            Outcome::Deferred(why) => self.defer(why),
        }
    }

    /// An article or an offer was put off.
    pub(crate) fn defer(&self, why: Defer) {
        let at = Defer::ALL.iter().position(|one| *one == why);
        bump(&self.shard().defers, at.unwrap_or(usize::MAX), 1);
    }

    pub(crate) fn end(&self, end: End) {
        bump(&self.shard().ends, end as usize, 1);
        self.add(Tally::SessionsClosed, 1);
    }

    fn sum(&self, of: impl Fn(&Shard) -> &AtomicU64) -> u64 {
        self.shards
            .iter()
            .map(|shard| of(shard).load(Ordering::Relaxed))
            .sum()
    }

    /// Servers that connections are known to belong to, with their own counters.
    #[must_use]
    pub const fn neighbours(&self) -> &Neighbours {
        &self.neighbours
    }

    /// The counters now.
    #[must_use]
    pub fn snapshot(&self) -> MetricsSnapshot {
        let tally = |tally: Tally| self.sum(|shard| &shard.tallies[tally as usize]);
        let names = TABLE.iter().map(|spec| spec.name).chain(["unknown"]);
        let codes = (0..CODES).map(|at| (at as u16 + 100, self.sum(|shard| &shard.codes[at])));
        let rejects = Reject::ALL.iter().map(|reason| {
            (
                reason.label(),
                self.sum(|shard| &shard.rejects[*reason as usize]),
            )
        });
        let defers = Defer::ALL
            .iter()
            .enumerate()
            .map(|(at, why)| (why.label(), self.sum(|shard| &shard.defers[at])));
        let ends = End::ALL
            .iter()
            .map(|end| (end.label(), self.sum(|shard| &shard.ends[*end as usize])));
        MetricsSnapshot {
            commands: names
                .enumerate()
                .map(|(at, name)| (name, self.sum(|shard| &shard.verbs[at])))
                .collect(),
            replies: codes.filter(|(_, count)| *count > 0).collect(),
            rejected: rejects.filter(|(_, count)| *count > 0).collect(),
            deferred: defers.filter(|(_, count)| *count > 0).collect(),
            ended: ends.collect(),
            octets_in: tally(Tally::OctetsIn),
            octets_out: tally(Tally::OctetsOut),
            opened: tally(Tally::SessionsOpened),
            closed: tally(Tally::SessionsClosed),
            accepted: tally(Tally::Accepted),
            duplicate: tally(Tally::Duplicate),
            failed: tally(Tally::Failed),
            oversized: tally(Tally::Oversized),
        }
    }
}

// A table that outgrows its counters would count wrong without a word.
const _: () = assert!(TABLE.len() < VERBS && Reject::ALL.len() <= REASONS);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_add_up_over_threads() {
        let metrics = Metrics::default();
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    metrics.command(Some(0));
                    metrics.command(None);
                    metrics.reply(211);
                    metrics.outcome(Outcome::Rejected(Reject::Nul));
                    metrics.outcome(Outcome::Deferred(Defer::Full));
                    metrics.end(End::Quit);
                    metrics.reply(99);
                });
            }
        });
        let seen = metrics.snapshot();
        assert_eq!(seen.commands[0], (TABLE[0].name, 3));
        assert_eq!(seen.commands.last(), Some(&("unknown", 3)));
        assert_eq!(seen.replies, [(211, 3)]);
        assert_eq!(seen.rejected, [("nul", 3)]);
        assert_eq!(seen.deferred, [("full", 3)]);
        assert!(seen.ended.contains(&("quit", 3)) && seen.closed == 3);
    }
}
