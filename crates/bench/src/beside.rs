//! Feeding beside readers: how much of its rate a feed keeps while others read.
//!
//! Invariant: the feed is measured alone before and after, with as many articles each time, so that
//! a machine that gets slower or faster meanwhile does not pass for an effect of the readers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Serialize;

use crate::corpus::Corpus;
use crate::error::Error;
use crate::feed::{self, FeedArgs};
use crate::load::Machine;
use crate::read::{self, ReadArgs};
use crate::report::Report;

/// Readers are at work so long before the feed begins.
const SETTLE: Duration = Duration::from_millis(500);

/// What to run beside one another.
#[derive(Debug, Clone)]
pub struct BesideArgs {
    /// The feed; it takes a third of the corpus each time.
    pub feed: FeedArgs,
    /// The readers, usually many and paced. They read what the first third brought, and stop when
    /// the feed beside them is done.
    pub read: ReadArgs,
}

/// A feed alone, beside readers, and alone again.
#[derive(Debug, Clone, Serialize)]
pub struct BesideReport {
    /// The feed before the readers came.
    pub before: Report,
    /// The feed beside the readers.
    pub beside: Report,
    /// The feed after they had gone.
    pub after: Report,
    /// The readers.
    pub readers: Report,
    /// How much of its rate the feed kept.
    pub kept: f64,
}

impl BesideReport {
    /// For a terminal.
    pub fn human(&self) -> String {
        format!(
            "alone: {}beside readers: {}readers: {}alone again: {}the feed kept {:.1} % of its rate\n",
            self.before.human(),
            self.beside.human(),
            self.readers.human(),
            self.after.human(),
            self.kept * 100.0,
        )
    }
}

/// Feeds a third of `corpus`, another third beside readers, and the last alone again.
pub fn run(
    args: &BesideArgs,
    corpus: &Corpus,
    machine: Machine<'_>,
) -> Result<BesideReport, Error> {
    let third = corpus.len() / 3;
    if third == 0 {
        return Err(Error::Argument {
            name: "articles",
            value: corpus.len().to_string(),
            why: "there must be three at least".to_owned(),
        });
    }
    let part = |number: u64| {
        let first = corpus.first() + number * third;
        corpus.part(first, first + third)
    };
    let before = feed::run(&args.feed, &part(0), machine)?;
    let stop = Arc::new(AtomicBool::new(false));
    let (beside, readers) = std::thread::scope(|scope| {
        let mut read = args.read.clone();
        read.load.stop = Some(Arc::clone(&stop));
        read.load.progress = false;
        let known = part(0);
        let readers = scope.spawn(move || read::run(&read, &known, machine));
        std::thread::sleep(SETTLE);
        let beside = feed::run(&args.feed, &part(1), machine);
        stop.store(true, Ordering::Relaxed);
        (beside, readers.join())
    });
    let (beside, readers) = (beside?, readers.map_err(|_| Error::WorkerLost)??);
    let after = feed::run(&args.feed, &part(2), machine)?;
    let alone = f64::midpoint(before.per_second, after.per_second);
    let kept = beside.per_second / alone.max(1e-9);
    Ok(BesideReport {
        before,
        beside,
        after,
        readers,
        kept,
    })
}
