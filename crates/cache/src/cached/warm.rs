//! Fetching what somebody names, now: articles by message-id, and the threads to which they belong.
//!
//! Of a thread those come that the article's References name, and those in its groups, as far as their overview goes, that follow
//! the thread's first one.  Those that are kept are read: one that is damaged is no use to who names it, and comes anew.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use newsreel_net::client::Connect;
use newsreel_service::NewsService as _;
use newsreel_wire::article::{Headers, Known};
use newsreel_wire::{IdHash, MessageId, newsgroups};
use tokio::task::JoinSet;

use super::arrivals::Why;
use super::flights::Wanted;
use super::rate::Rate;
use super::{CServer, Inner, PrefetchLimits, Prefetched};

/// Articles that one is told to follow, at most; of more, the last ones are looked at.
const REFERENCES_MAX: usize = 100;

/// What is known of an article's thread.
#[derive(Debug, Default)]
struct Thread {
    /// The articles before it, the first one first.
    before: Vec<Box<[u8]>>,
    groups: Vec<Arc<str>>,
}

fn thread_of(wire: &[u8]) -> Thread {
    let Ok(headers) = Headers::scan_stored(wire) else {
        return Thread::default();
    };
    let references = headers.content(Known::References).unwrap_or_default();
    let words = references.split(u8::is_ascii_whitespace);
    let ids = words.filter(|word| MessageId::parse(word).is_ok());
    let mut before: Vec<Box<[u8]>> = ids.map(Box::from).collect();
    if let Some(too_many) = before.len().checked_sub(REFERENCES_MAX) {
        before.drain(1..=too_many);
    }
    let groups = headers.content(Known::Newsgroups).unwrap_or_default();
    let groups = newsgroups::split(groups).flatten();
    Thread {
        before,
        groups: groups.map(|group| group.as_str().into()).collect(),
    }
}

impl<C: Connect> CServer<C> {
    /// Fetches articles by their message-ids, and with `threads` the others of their threads, as far as they are among the newest of
    /// their groups that the limits say; `goes_on` is told what was done so far, and says whether more is wanted.
    pub async fn warm(
        &self,
        ids: &[MessageId<'_>],
        threads: bool,
        limits: PrefetchLimits,
        goes_on: &mut impl FnMut(&Prefetched) -> bool,
    ) -> Prefetched {
        // Of a thread all comes that is among the newest: nothing is looked for before these.
        let mut fetching = self.fetching(PrefetchLimits {
            threads: 0,
            reads_kept: true,
            ..limits
        });
        let named: Vec<Box<[u8]>> = ids.iter().map(|id| id.as_bytes().into()).collect();
        let (inner, mut done) = (Arc::clone(&self.inner), Prefetched::default());
        inner
            .warm_ids(
                named.clone(),
                (limits, &mut fetching.rate),
                &mut done,
                goes_on,
            )
            .await;
        // What is on its way would be asked for once more.
        let mut seen = HashSet::new();
        for id in named.iter().filter(|_| threads) {
            let Some(thread) = inner.thread(id).await else {
                continue;
            };
            let first = thread.before.first().unwrap_or(id).clone();
            let rate = (limits, &mut fetching.rate);
            inner
                .warm_ids(thread.before, rate, &mut done, goes_on)
                .await;
            if !seen.insert((first.clone(), thread.groups.clone())) {
                continue;
            }
            fetching.threads = Some(Arc::new(HashSet::from([first])));
            for name in &thread.groups {
                if done.is_cut || fetching.done.is_cut {
                    break;
                }
                fetching.limits.octets = limits.octets.saturating_sub(done.octets);
                fetching.done.groups += 1;
                let all = |so_far: &Prefetched| done.with(so_far);
                let mut goes_on = |so_far: &Prefetched| goes_on(&all(so_far));
                if fetching.group(name, &mut goes_on).await.is_err() {
                    fetching.done.failed += 1;
                }
            }
        }
        while fetching.joined().await {}
        let done = done.with(&fetching.done);
        goes_on(&done);
        done
    }
}

impl Prefetched {
    /// Together with another.
    #[must_use]
    pub const fn with(&self, other: &Self) -> Self {
        Self {
            matching: self.matching + other.matching,
            groups: self.groups + other.groups,
            failed: self.failed + other.failed,
            asked: self.asked + other.asked,
            articles: self.articles + other.articles,
            octets: self.octets + other.octets,
            is_cut: self.is_cut || other.is_cut,
        }
    }
}

impl<C: Connect> Inner<C> {
    /// What an article that is kept says of its thread.
    async fn thread(&self, id: &[u8]) -> Option<Thread> {
        let hash = self.keep.id_hash(MessageId::parse(id).ok()?);
        let now = self.there.now();
        let reading = self.on_disk(move |keep| keep.article(&hash, now));
        Some(thread_of(&reading.await.ok()??.wire))
    }

    /// Fetches those of these articles that are not kept, or cannot be read, several at a time; one connection is left to readers.
    async fn warm_ids(
        self: &Arc<Self>,
        ids: Vec<Box<[u8]>>,
        (limits, rate): (PrefetchLimits, &mut Rate),
        done: &mut Prefetched,
        goes_on: &mut impl FnMut(&Prefetched) -> bool,
    ) {
        let at_once = self.there.connections_max().saturating_sub(1).max(1);
        let (mut tasks, mut seen) = (JoinSet::<Option<u64>>::new(), HashSet::new());
        let mut rest: VecDeque<Box<[u8]>> = ids.into();
        loop {
            while tasks.len() >= at_once || (rest.is_empty() && !tasks.is_empty()) {
                if let Some(Ok(Some(octets))) = tasks.join_next().await {
                    done.articles += 1;
                    done.octets += octets;
                    rate.pause(octets).await;
                }
            }
            let Some(id) = rest.pop_front() else {
                return;
            };
            let Ok(parsed) = MessageId::parse(&id) else {
                continue;
            };
            let hash = self.keep.id_hash(parsed);
            if !seen.insert(hash) {
                continue;
            }
            let reading = self.on_disk(move |keep| keep.article_unasked(&hash).is_some());
            if reading.await.unwrap_or(true) {
                continue;
            }
            if done.octets > limits.octets || !goes_on(done) {
                done.is_cut = true;
                rest.clear();
                continue;
            }
            done.asked += 1;
            let inner = Arc::clone(self);
            tasks.spawn(async move { inner.warmed(&id, hash).await });
        }
    }

    /// Fetches an article; octets of it, if it came.
    async fn warmed(&self, id: &[u8], hash: IdHash) -> Option<u64> {
        match self.flights.begin(Wanted::Id(hash)) {
            Ok(flight) => self.fetched_by_id(id, flight, Why::Prefetch).await,
            // Somebody fetches it already.
            Err(landing) => {
                landing.wait().await;
            }
        }
        let looking = self.on_disk(move |keep| keep.article_octets(&hash));
        looking.await.ok()?
    }
}
