//! What a filter has said, counted by verdict.
//!
//! Read by `newsreel status`; counted since its entry was read, so a changed one begins anew.

use std::sync::atomic::{AtomicU64, Ordering};

use newsreel_service::{FilterCounts, Verdict};

/// The counters of one filter.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    accepted: AtomicU64,
    labelled: AtomicU64,
    classed: AtomicU64,
    rejected: AtomicU64,
    dropped: AtomicU64,
    unjudged: AtomicU64,
}

fn one_more(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Counts {
    /// It has judged an article.
    pub(crate) fn judged(&self, verdict: &Verdict) {
        match verdict {
            Verdict::Accept => one_more(&self.accepted),
            Verdict::Class(_) => {
                one_more(&self.accepted);
                one_more(&self.classed);
            }
            Verdict::Reject(_) => one_more(&self.rejected),
            Verdict::Drop => one_more(&self.dropped),
            Verdict::Later => self.not_judged(),
        }
    }

    /// One that it took has a label.
    pub(crate) fn labelled(&self) {
        one_more(&self.labelled);
    }

    /// It has not judged an article in time.
    pub(crate) fn not_judged(&self) {
        one_more(&self.unjudged);
    }

    /// All of them, for the filter of this name.
    pub(crate) fn values(&self, name: &str) -> FilterCounts {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        FilterCounts {
            name: name.to_owned(),
            accepted: of(&self.accepted),
            labelled: of(&self.labelled),
            classed: of(&self.classed),
            rejected: of(&self.rejected),
            dropped: of(&self.dropped),
            unjudged: of(&self.unjudged),
        }
    }
}
