//! Places of feeds that were taken out of the configuration: a feed that is put back in time goes on where it stood.
//!
//! They stand in the file of the places with the time they were taken out, hold the log as any feed's place does, and whoever forgets one says
//! what that leaves unsent.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use newsreel_wire::{Sequence, UnixTime};
use parking_lot::Mutex;

use crate::backlog::Standing;
use crate::config::FeedsConfig;
use crate::feed::{Feed, FeedReport, LinkState};
use crate::place::Place;
use crate::queue::Tally;

/// A place that no feed has at present.
#[derive(Debug)]
pub(crate) struct Left {
    place: Place,
    since: UnixTime,
    /// Whether the log says so.
    is_told: bool,
    /// The feed, if it ended since the server started.
    feed: Option<Arc<Feed>>,
}

/// What is given up with a place.
#[derive(Debug)]
pub(crate) struct Forgotten {
    pub(crate) feed: String,
    /// Articles that were in memory.
    pub(crate) in_memory: usize,
    /// Where it stood.
    pub(crate) standing: Standing,
}

/// Such places, by `peer/feed`.
#[derive(Debug)]
pub(crate) struct Kept {
    places: Mutex<BTreeMap<String, Left>>,
    /// How long they are kept.
    seconds: AtomicU64,
}

/// Places that are kept; of more the oldest are forgotten.
pub const KEPT_MAX: usize = 1000;

/// Stands between the name of a feed and the time in the file; no name has it.
const SINCE: char = '!';

impl Kept {
    /// All places of a file; those whose feeds are in the configuration are taken out again.
    pub(crate) fn new(file: BTreeMap<String, Place>, now: UnixTime) -> Self {
        let left = |(name, place): (String, Place)| {
            let (key, since) = match name.split_once(SINCE) {
                Some((key, since)) => (key.to_owned(), since.parse().ok().map(UnixTime)),
                None => (name, None),
            };
            let left = Left {
                place,
                is_told: since.is_some(),
                since: since.unwrap_or(now),
                feed: None,
            };
            (key, left)
        };
        Self {
            places: Mutex::new(file.into_iter().map(left).collect()),
            seconds: AtomicU64::new(FeedsConfig::default().removed_s),
        }
    }

    pub(crate) fn keep_for(&self, seconds: u64) {
        self.seconds.store(seconds, Ordering::Relaxed);
    }

    /// How long places are kept, seconds.
    pub(crate) fn seconds(&self) -> u64 {
        self.seconds.load(Ordering::Relaxed)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.places.lock().is_empty()
    }

    /// Keeps the place of a feed that has ended.
    pub(crate) fn put(&self, feed: &Arc<Feed>, since: UnixTime) {
        let place = {
            let mut queue = feed.queue.lock();
            queue.forget_articles();
            queue.place().clone()
        };
        let left = Left {
            place,
            since,
            is_told: false,
            feed: Some(Arc::clone(feed)),
        };
        self.places.lock().insert(feed.key(), left);
    }

    /// The place of a feed that begins again, and the feed that had it, if it is known.
    pub(crate) fn take(&self, key: &str) -> Option<(Place, Option<Arc<Feed>>)> {
        let left = self.places.lock().remove(key)?;
        Some((left.place, left.feed))
    }

    /// Says which feeds are not in the configuration any more, once.
    pub(crate) fn tell(&self) {
        let seconds = self.seconds();
        let mut places = self.places.lock();
        for (feed, left) in places.iter_mut().filter(|(_, left)| !left.is_told) {
            left.is_told = true;
            tracing::info!(
                feed,
                "the feed was taken out of the configuration; what waits for it (`newsreel peer list` says how much), and its place, are \
                 kept for {seconds} s (`feeds.removed_s`)"
            );
        }
    }

    /// Forgets those that were kept long enough, and the oldest where there are too many; what is given up is to be told.
    pub(crate) fn forget_old(&self, now: UnixTime, end: Sequence) -> Vec<Forgotten> {
        let seconds = self.seconds();
        let mut places = self.places.lock();
        let is_old = |left: &Left| now.0.saturating_sub(left.since.0) >= seconds;
        let old = places.iter().filter(|(_, left)| is_old(left));
        let mut names: Vec<String> = old.map(|(feed, _)| feed.clone()).collect();
        let mut by_age: Vec<_> = places.iter().map(|(feed, it)| (it.since, feed)).collect();
        by_age.sort_unstable();
        let too_many = by_age.len().saturating_sub(KEPT_MAX);
        names.extend(
            by_age
                .iter()
                .take(too_many)
                .map(|(_, feed)| (*feed).clone()),
        );
        let forgotten = names.into_iter().filter_map(|feed| {
            let left = places.remove(&feed)?;
            Some(left.forgotten(feed, end))
        });
        forgotten.collect()
    }

    /// Gives up what waits for a feed or for all of a peer, or only says what it would be.
    pub(crate) fn drop_all(&self, name: &str, end: Sequence, dry_run: bool) -> Vec<Forgotten> {
        let is_it = |key: &str| key == name || key.split('/').next() == Some(name);
        let mut places = self.places.lock();
        let those = places.iter().filter(|(key, _)| is_it(key));
        let dropped = those.map(|(key, left)| left.forgotten(key.clone(), end));
        let dropped = dropped.collect();
        places.retain(|key, _| dry_run || !is_it(key));
        dropped
    }

    /// The lines of the file.
    pub(crate) fn lines(&self) -> Vec<(String, Place)> {
        let line = |(key, left): (&String, &Left)| {
            let name = format!("{key}{SINCE}{}", left.since.0);
            (name, left.place.clone())
        };
        self.places.lock().iter().map(line).collect()
    }

    /// How they stand, and where.
    pub(crate) fn reports(&self, now: UnixTime, end: Sequence) -> Vec<(FeedReport, Standing)> {
        let seconds = self.seconds();
        let report = |(key, left): (&String, &Left)| {
            let (peer, feed) = key.split_once('/').unwrap_or((key, ""));
            let kept_s = seconds.saturating_sub(now.0.saturating_sub(left.since.0));
            let queue = left.feed.as_ref().map(|feed| feed.queue.lock());
            let named = queue.as_ref().map(|it| it.gone_and_missed());
            let [gone, _] = named.unwrap_or_default();
            let missed = &left.place.missed;
            let report = FeedReport {
                peer: peer.to_owned(),
                feed: feed.to_owned(),
                address: String::new(),
                is_paused: false,
                next: left.place.next.0,
                needs_from: left.place.needs_from().0,
                passed_over: left.place.passed_over(),
                quota_s: None,
                kept_s: Some(kept_s),
                open: left.place.open.len(),
                tally: Tally {
                    missed: missed.many,
                    ..queue.as_ref().map_or_else(Tally::default, |it| it.tally)
                },
                gone,
                missed: missed.ids.iter().map(|id| id.to_string()).collect(),
                unreadable: 0,
                unreadable_ids: Vec::new(),
                rejection: queue.as_ref().and_then(|it| it.rejection()),
                links: vec![LinkState::Removed { kept_s }],
            };
            (report, left.standing(end))
        };
        self.places.lock().iter().map(report).collect()
    }
}

impl Left {
    fn standing(&self, end: Sequence) -> Standing {
        Standing::new(self.feed.clone(), &self.place, end)
    }

    fn forgotten(&self, feed: String, end: Sequence) -> Forgotten {
        Forgotten {
            feed,
            in_memory: self.place.open.len(),
            standing: self.standing(end),
        }
    }
}
