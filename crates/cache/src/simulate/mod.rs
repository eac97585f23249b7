//! Policies over a trace: the paper's figures 3 and 4, from requests that were, or are made up with its statistics.
//!
//! Pure: the same trace gives the same figures, whatever the machine.

mod findings;
mod generated;
mod logged;
mod run;

pub use crate::policies::WANTED_PART;
pub use findings::{Finding, findings};
pub use generated::{Shape, generated};
pub use logged::Logged;
pub use run::{Outcome, SEGMENTS, run, run_in_segments};

/// An article was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// When, in seconds since 1970.
    pub at: u64,
    /// Stands for its message-id.
    pub key: u64,
    /// Stands for the group that it was asked for in.
    pub group: u64,
    /// Octets of the whole article.
    pub octets: u64,
    /// When it was written.
    pub dated: u64,
}

/// A trace in figures.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Totals {
    /// Requests.
    pub requests: u64,
    /// Octets of all answers.
    pub octets: u64,
    /// Different articles.
    pub articles: u64,
    /// Octets of these: with so much room nothing ever has to go.
    pub articles_octets: u64,
    /// Different groups.
    pub groups: u64,
    /// Of all requests those in the ten groups that were asked for most, parts of a hundred.
    pub top_ten_part: f64,
}

impl Totals {
    /// Those of a trace.
    #[must_use]
    pub fn of(trace: &[Request]) -> Self {
        let mut totals = Self::default();
        let mut articles = std::collections::HashSet::new();
        let mut groups = std::collections::HashMap::<u64, u64>::new();
        for request in trace {
            totals.requests += 1;
            totals.octets += request.octets;
            *groups.entry(request.group).or_default() += 1;
            if articles.insert(request.key) {
                totals.articles += 1;
                totals.articles_octets += request.octets;
            }
        }
        totals.groups = groups.len() as u64;
        let mut each: Vec<u64> = groups.into_values().collect();
        each.sort_unstable();
        let top: u64 = each.iter().rev().take(10).sum();
        totals.top_ten_part = 100.0 * top as f64 / totals.requests.max(1) as f64;
        totals
    }

    /// The hit rate that no policy exceeds: with room for everything, parts of a hundred.
    #[must_use]
    pub fn best_hit_part(&self) -> f64 {
        let hits = self.requests - self.articles;
        100.0 * hits as f64 / self.requests.max(1) as f64
    }
}
