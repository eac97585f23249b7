//! Servers that are known: who a connection belongs to, what is taken from it, and what became of what it sent.
//!
//! A neighbour's counts last as long as the process, whatever becomes of its connections and of the configuration; they are
//! by reason, so that an administrator can tell a peer what is wrong with its feed.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use newsreel_wire::article::{Content, Control, Headers, Known, RelayFacts};
use newsreel_wire::path::{Diagnostic, Path};
use newsreel_wire::{Verdict, Wildmat, newsgroups};
use parking_lot::RwLock;

use crate::reject::Reject;
use crate::transfer::{Defer, Offer, Outcome};

/// An article as a neighbour brings it.
#[derive(Debug, Clone)]
pub struct Brought<'a> {
    /// Its message-id, with brackets.
    pub id: &'a [u8],
    /// The content of Path as it came.
    pub path: &'a [u8],
    /// The content of Newsgroups.
    pub newsgroups: &'a [u8],
    /// The content of Distribution; empty where there is none.
    pub distribution: &'a [u8],
    /// Octets as it is served, without dot-stuffing and terminator.
    pub octets: u32,
    /// It is a control message.
    pub is_control: bool,
    /// What its body is, where [`Terms::ask_content`].
    pub content: Option<Content>,
}

/// What is taken from a neighbour.
pub trait Terms: Debug + Send + Sync + 'static {
    /// Why an article is not taken; none: it is.
    fn refuse(&self, article: &Brought<'_>) -> Option<Reject>;

    /// Whether it must be known what a body is.
    fn ask_content(&self) -> bool {
        false
    }
}

/// Groups alone: one of the article's goes, and none is poison.
impl Terms for Wildmat {
    fn refuse(&self, article: &Brought<'_>) -> Option<Reject> {
        let mut takes = self.matches_all();
        for name in newsgroups::split(article.newsgroups).flatten() {
            match self.verdict(name.as_str()) {
                Verdict::Match => takes = true,
                Verdict::NoMatch => {}
                Verdict::Poison => return Some(Reject::NotFromPeer),
            }
        }
        (!takes).then_some(Reject::NotFromPeer)
    }
}

/// A server that a connection can belong to.
#[derive(Debug)]
pub struct Neighbour {
    name: String,
    aliases: Vec<String>,
    terms: Box<dyn Terms>,
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
    /// A neighbour whose counts begin now, from which articles are taken that meet these terms.
    #[must_use]
    pub fn new(name: &str, aliases: &[String], terms: impl Terms) -> Self {
        Self {
            name: name.to_owned(),
            aliases: aliases.to_vec(),
            terms: Box::new(terms),
            counts: Arc::default(),
        }
    }

    /// Whether an article of so many octets as it is served is taken from it.
    ///
    /// # Errors
    /// Why not.
    pub fn judge(
        &self,
        headers: &Headers<'_>,
        relay: &RelayFacts<'_>,
        octets: u32,
    ) -> Result<(), Reject> {
        let asks_content = self.terms.ask_content();
        let brought = Brought {
            id: relay.message_id.as_bytes(),
            path: relay.path.content(),
            newsgroups: relay.newsgroups,
            distribution: headers.content(Known::Distribution).unwrap_or_default(),
            octets,
            is_control: relay.control.and_then(Control::parse).is_some(),
            content: asks_content.then(|| Content::of(headers)),
        };
        self.terms.refuse(&brought).map_or(Ok(()), Err)
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
            Outcome::Rejected(why)
            | Outcome::RejectedField(why, _)
            | Outcome::RejectedWith(why, _) => one(counts.rejected.get(why as usize)),
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
    use newsreel_wire::article::{ArticleFacts, check_relay};

    use super::*;

    fn takes(neighbour: &Neighbour, groups: &str) -> bool {
        let article = format!(
            "Path: news.example!x\r\nFrom: a@b.example\r\nDate: Thu, 1 Jan 2026 00:00:00 +0000\r\nMessage-ID: <1@t.example>\r\n\
             Subject: x\r\nNewsgroups: {groups}\r\n\r\nx\r\n.\r\n"
        );
        let headers = Headers::scan(article.as_bytes()).unwrap();
        let facts = ArticleFacts::of(&headers).unwrap();
        let relay = check_relay(&headers, &facts).unwrap();
        let judged = neighbour.judge(&headers, &relay, 1);
        assert!(matches!(judged, Ok(()) | Err(Reject::NotFromPeer)));
        judged.is_ok()
    }

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
        assert!(takes(&some, "misc.test,comp.lang.c"));
        assert!(!takes(&some, "comp.bin"));
        assert!(!takes(&some, "comp.lang.c,alt.x"));
        assert!(!takes(&some, "misc.test") && takes(&neighbour("*"), "misc.test"));
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
        assert!(!takes(&now, "misc.test"));
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
