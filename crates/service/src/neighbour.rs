//! Servers that are known: who a connection belongs to, what is taken from it, and what became of what it sent.
//!
//! A neighbour's counts last as long as the process, whatever becomes of its connections and of the configuration; they are
//! by reason, so that an administrator can tell a peer what is wrong with its feed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use newsreel_wire::path::{Diagnostic, Path};
use newsreel_wire::{Verdict, Wildmat, newsgroups};
use parking_lot::RwLock;

use crate::reject::Reject;
use crate::transfer::{Defer, Offer, Outcome};

/// A server that a connection can belong to.
#[derive(Debug)]
pub struct Neighbour {
    name: String,
    aliases: Vec<String>,
    groups: Wildmat,
    counts: Arc<Counts>,
}

/// What became of what it offered and sent, by how and why.
#[derive(Debug)]
struct Counts {
    connections: AtomicU64,
    accepted: AtomicU64,
    octets: AtomicU64,
    refused: AtomicU64,
    duplicate: AtomicU64,
    failed: AtomicU64,
    rejected: Vec<AtomicU64>,
    deferred: [AtomicU64; Defer::ALL.len()],
    mismatched: AtomicU64,
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            connections: AtomicU64::default(),
            accepted: AtomicU64::default(),
            octets: AtomicU64::default(),
            refused: AtomicU64::default(),
            duplicate: AtomicU64::default(),
            failed: AtomicU64::default(),
            rejected: Reject::ALL.iter().map(|_| AtomicU64::default()).collect(),
            deferred: Default::default(),
            mismatched: AtomicU64::default(),
        }
    }
}

/// What a neighbour has sent so far; reasons are metric labels, those that occurred.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Received {
    /// Its connections now.
    pub connections: u64,
    /// Articles that were taken.
    pub accepted: u64,
    /// Their octets, as they came.
    pub octets: u64,
    /// Offers of what is here already.
    pub refused: u64,
    /// Articles that came though they are here already.
    pub duplicate: u64,
    /// Articles that could not be kept for a fault here.
    pub failed: u64,
    /// Articles that were not wanted when they came, by reason.
    pub rejected: Vec<(&'static str, u64)>,
    /// Offers and articles that were put off, by reason.
    pub deferred: Vec<(&'static str, u64)>,
    /// Articles whose Path begins with none of its names.
    pub mismatched: u64,
}

fn one(counter: Option<&AtomicU64>) {
    if let Some(counter) = counter {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl Neighbour {
    /// A neighbour whose counts begin now, from which the articles of these groups are taken.
    #[must_use]
    pub fn new(name: &str, aliases: &[String], groups: Wildmat) -> Self {
        Self {
            name: name.to_owned(),
            aliases: aliases.to_vec(),
            groups,
            counts: Arc::default(),
        }
    }

    /// What it calls itself in Path.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it calls itself so.
    fn is_called(&self, identity: &[u8]) -> bool {
        let mut names = [&self.name].into_iter().chain(&self.aliases);
        names.any(|name| name.as_bytes().eq_ignore_ascii_case(identity))
    }

    /// What our Path entry says of where an article came from (RFC 5537 section 3.2.1): whether the server that Path
    /// names first is this one.
    #[must_use]
    pub fn diagnostic(&self, path: &Path<'_>) -> Diagnostic<'_> {
        match path.entries().next() {
            Some(first) if self.is_called(first.identity) => Diagnostic::Match,
            _ => Diagnostic::Mismatch(&self.name),
        }
    }

    /// Whether articles with this Newsgroups are taken from it: one group goes, and none is poison.
    #[must_use]
    pub fn takes_groups(&self, content: &[u8]) -> bool {
        if self.groups.matches_all() {
            return true;
        }
        let mut takes = false;
        for name in newsgroups::split(content).flatten() {
            match self.groups.verdict(name.as_str()) {
                Verdict::Match => takes = true,
                Verdict::NoMatch => {}
                Verdict::Poison => return false,
            }
        }
        takes
    }

    /// One of its connections begins, or ends.
    pub(crate) fn count_connection(&self, begins: bool) {
        match begins {
            true => self.counts.connections.fetch_add(1, Ordering::Relaxed),
            false => self.counts.connections.fetch_sub(1, Ordering::Relaxed),
        };
    }

    /// It was answered to an offer.
    pub fn count_offer(&self, offer: Offer) {
        match offer {
            Offer::Want => {}
            Offer::Known => one(Some(&self.counts.refused)),
            Offer::Later(why) => self.count_deferred(why),
        }
    }

    /// An article of so many octets was answered.
    pub fn count_transfer(&self, outcome: Outcome, octets: u32) {
        let counts = &self.counts;
        match outcome {
            Outcome::Accepted => {
                one(Some(&counts.accepted));
                counts.octets.fetch_add(octets.into(), Ordering::Relaxed);
            }
            Outcome::Duplicate => one(Some(&counts.duplicate)),
            Outcome::Failed => one(Some(&counts.failed)),
            Outcome::Rejected(why) | Outcome::RejectedField(why, _) => {
                one(counts.rejected.get(why as usize));
            }
            Outcome::Filtered(_) => one(counts.rejected.get(Reject::Filtered as usize)),
            Outcome::Deferred(why) => self.count_deferred(why),
        }
    }

    fn count_deferred(&self, why: Defer) {
        let at = Defer::ALL.iter().position(|one| *one == why);
        one(at.and_then(|at| self.counts.deferred.get(at)));
    }

    /// An article came whose Path begins with somebody else.
    pub fn count_mismatch(&self) {
        one(Some(&self.counts.mismatched));
    }

    /// The counts now.
    #[must_use]
    pub fn received(&self) -> Received {
        let counts = &self.counts;
        let now = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let rejected = Reject::ALL.iter().zip(&counts.rejected);
        let deferred = Defer::ALL.iter().zip(&counts.deferred);
        Received {
            connections: now(&counts.connections),
            accepted: now(&counts.accepted),
            octets: now(&counts.octets),
            refused: now(&counts.refused),
            duplicate: now(&counts.duplicate),
            failed: now(&counts.failed),
            rejected: rejected
                .map(|(why, counter)| (why.label(), now(counter)))
                .filter(|(_, count)| *count > 0)
                .collect(),
            deferred: deferred
                .map(|(why, counter)| (why.label(), now(counter)))
                .filter(|(_, count)| *count > 0)
                .collect(),
            mismatched: now(&counts.mismatched),
        }
    }
}

/// All neighbours of the configuration in force, by name.
#[derive(Debug, Default)]
pub struct Neighbours(RwLock<BTreeMap<String, Arc<Neighbour>>>);

impl Neighbours {
    /// Takes over another list; who stays keeps its counts.
    pub fn set(&self, all: impl IntoIterator<Item = Neighbour>) {
        let mut known = self.0.write();
        let all = all.into_iter().map(|mut neighbour| {
            if let Some(before) = known.get(&neighbour.name) {
                neighbour.counts = Arc::clone(&before.counts);
            }
            (neighbour.name.clone(), Arc::new(neighbour))
        });
        *known = all.collect();
    }

    /// All of them, by name.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Neighbour>> {
        self.0.read().values().cloned().collect()
    }

    /// The one of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Arc<Neighbour>> {
        self.0.read().get(name).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn neighbour(groups: &str) -> Neighbour {
        let aliases = ["old.example".to_owned()];
        Neighbour::new("news.example", &aliases, Wildmat::parse(groups).unwrap())
    }

    #[test]
    fn path_says_who_it_is_or_somebody_else() {
        let neighbour = neighbour("*");
        let of = |path: &str| {
            let path = Path::parse(path.as_bytes()).unwrap();
            neighbour.diagnostic(&path)
        };
        assert_eq!(of("news.example!x"), Diagnostic::Match);
        assert_eq!(of(" NEWS.Example !!y!x"), Diagnostic::Match);
        assert_eq!(of("old.example!.POSTED!x"), Diagnostic::Match);
        for other in ["y!news.example!x", "news.example", "news.example.org!x"] {
            assert_eq!(of(other), Diagnostic::Mismatch("news.example"), "{other}");
        }
    }

    #[test]
    fn what_is_taken_from_it() {
        let some = neighbour("comp.*,!comp.bin,@alt.*");
        assert!(some.takes_groups(b"misc.test,comp.lang.c"));
        assert!(!some.takes_groups(b"comp.bin"));
        assert!(!some.takes_groups(b"comp.lang.c,alt.x"));
        assert!(!some.takes_groups(b"") && neighbour("*").takes_groups(b""));
    }

    #[test]
    fn counts_outlive_the_configuration() {
        let all = Neighbours::default();
        all.set([neighbour("*")]);
        let first = all.get("news.example").unwrap();
        first.count_transfer(Outcome::Accepted, 100);
        first.count_offer(Offer::Known);
        first.count_offer(Offer::Want);
        first.count_offer(Offer::Later(Defer::UnderWay));
        first.count_transfer(Outcome::Rejected(Reject::TooOld), 7);
        first.count_mismatch();
        all.set([neighbour("comp.*")]);
        first.count_transfer(Outcome::Duplicate, 7);
        first.count_transfer(Outcome::Deferred(Defer::Full), 7);
        let now = all.get("news.example").unwrap();
        assert!(!now.takes_groups(b"misc.test"));
        let expected = Received {
            connections: 0,
            accepted: 1,
            octets: 100,
            refused: 1,
            duplicate: 1,
            failed: 0,
            rejected: vec![("too_old", 1)],
            deferred: vec![("under_way", 1), ("full", 1)],
            mismatched: 1,
        };
        assert_eq!(now.received(), expected);
        all.set([]);
        assert!(all.get("news.example").is_none());
    }
}
