//! Places of feeds that were taken out of the configuration: a feed that is put back in time goes on where it stood.
//!
//! They stand in the file of the places with the time they were taken out, hold the log as any feed's place does, and whoever forgets one says
//! what that leaves unsent.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use newsreel_wire::{Sequence, UnixTime};
use parking_lot::Mutex;

use crate::config::FeedsConfig;
use crate::feed::{Feed, FeedReport, LinkState};
use crate::gaps::Gaps;
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

/// Such places, by `peer/feed`.
#[derive(Debug)]
pub(crate) struct Kept {
    places: Mutex<BTreeMap<String, Left>>,
    gaps: Arc<Gaps>,
    /// How long they are kept.
    seconds: AtomicU64,
}

/// Places that are kept; of more the oldest are forgotten.
pub const KEPT_MAX: usize = 1000;

/// Stands between the name of a feed and the time in the file; no name has it.
const SINCE: char = '!';

impl Kept {
    /// All places of a file; those whose feeds are in the configuration are taken out again.
    pub(crate) fn new(file: BTreeMap<String, Place>, gaps: Arc<Gaps>, now: UnixTime) -> Self {
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
            gaps,
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

    /// Says which feeds are not in the configuration any more, and what waits for them, once.
    pub(crate) fn tell(&self, end: Sequence) {
        let seconds = self.seconds();
        let mut places = self.places.lock();
        for (feed, left) in places.iter_mut().filter(|(_, left)| !left.is_told) {
            left.is_told = true;
            let (articles, sequences) = (left.place.open.len(), left.place.unseen(end, &self.gaps));
            tracing::info!(
                feed,
                "the feed was taken out of the configuration; {articles} articles in memory and {sequences} sequences of the log \
                 wait for it, and its place is kept for {seconds} s (`feeds.removed_s`)"
            );
        }
    }

    /// Forgets those that were kept long enough, and the oldest where there are too many; what is given up is told.
    pub(crate) fn forget_old(&self, now: UnixTime, end: Sequence) {
        let seconds = self.seconds();
        let mut places = self.places.lock();
        places.retain(|feed, left| {
            let is_old = now.0.saturating_sub(left.since.0) >= seconds;
            if is_old {
                left.tell_forgotten(feed, end, &self.gaps);
            }
            !is_old
        });
        while places.len() > KEPT_MAX {
            let oldest = places.iter().min_by_key(|(_, left)| left.since);
            let Some(feed) = oldest.map(|(feed, _)| feed.clone()) else {
                return;
            };
            if let Some(left) = places.remove(&feed) {
                left.tell_forgotten(&feed, end, &self.gaps);
            }
        }
    }

    /// Gives up what waits for a feed or for all of a peer, or only says what it would be: feeds, sequences of the log, articles.
    pub(crate) fn drop_all(&self, name: &str, end: Sequence, dry_run: bool) -> (usize, u64, usize) {
        let (mut feeds, mut sequences, mut articles) = (0, 0, 0);
        self.places.lock().retain(|key, left| {
            let is_it = key == name || key.split('/').next() == Some(name);
            if is_it {
                feeds += 1;
                sequences += left.place.unseen(end, &self.gaps);
                articles += left.place.open.len();
            }
            dry_run || !is_it
        });
        (feeds, sequences, articles)
    }

    /// From where on they need the log.
    pub(crate) fn needs_from(&self) -> Option<Sequence> {
        let places = self.places.lock();
        places.values().map(|left| left.place.needs_from()).min()
    }

    /// The lines of the file.
    pub(crate) fn lines(&self) -> Vec<(String, Place)> {
        let line = |(key, left): (&String, &Left)| {
            let name = format!("{key}{SINCE}{}", left.since.0);
            (name, left.place.clone())
        };
        self.places.lock().iter().map(line).collect()
    }

    /// How they stand.
    pub(crate) fn reports(&self, now: UnixTime, end: Sequence) -> Vec<FeedReport> {
        let seconds = self.seconds();
        let report = |(key, left): (&String, &Left)| {
            let (peer, feed) = key.split_once('/').unwrap_or((key, ""));
            let kept_s = seconds.saturating_sub(now.0.saturating_sub(left.since.0));
            let queue = left.feed.as_ref().map(|feed| feed.queue.lock());
            FeedReport {
                peer: peer.to_owned(),
                feed: feed.to_owned(),
                address: String::new(),
                is_paused: false,
                next: left.place.next.0,
                needs_from: left.place.needs_from().0,
                passed_over: left.place.passed_over(),
                behind: left.place.unseen(end, &self.gaps),
                quota_s: None,
                kept_s: Some(kept_s),
                open: left.place.open.len(),
                tally: queue.as_ref().map_or_else(Tally::default, |it| it.tally),
                gone: queue.as_ref().map_or_else(Vec::new, |it| it.gone()),
                links: vec![LinkState::Removed { kept_s }],
            }
        };
        self.places.lock().iter().map(report).collect()
    }
}

impl Left {
    fn tell_forgotten(&self, feed: &str, end: Sequence, gaps: &Gaps) {
        let (articles, sequences) = (self.place.open.len(), self.place.unseen(end, gaps));
        tracing::warn!(
            feed,
            "the place of a feed that is not in the configuration is kept no longer (`feeds.removed_s`): \
             {articles} articles in memory and {sequences} sequences of the log are never looked at for it"
        );
    }
}
