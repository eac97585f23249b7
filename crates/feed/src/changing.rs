//! Taking over another configuration: what it changes or leaves out ends, what is new begins, and no other feed waits for either.
//!
//! A feed that ends stays in the list, and its place in the file, until the last of its connections and programs is done; only then
//! the one that follows it begins, where it stood.  Meanwhile the log is read for everybody else.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use newsreel_wire::{Sequence, UnixTime};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::config::PeerConfig;
use crate::feed::Feed;
use crate::filter::Filter;
use crate::peers::Peers;
use crate::place::Place;

/// Word that there is something to take over: another configuration, or the end of a feed.
#[derive(Debug, Default)]
pub(crate) struct Changed {
    is_so: AtomicBool,
    word: Notify,
}

impl Changed {
    pub(crate) fn tell(&self) {
        self.is_so.store(true, Ordering::Release);
        self.word.notify_one();
    }

    pub(crate) fn is_so(&self) -> bool {
        self.is_so.load(Ordering::Acquire)
    }

    /// Whether there was anything since the last time.
    pub(crate) fn take(&self) -> bool {
        self.is_so.swap(false, Ordering::AcqRel)
    }

    pub(crate) async fn told(&self) {
        self.word.notified().await;
    }
}

/// Those who take the feeds' articles away.
#[derive(Debug, Default)]
pub(crate) struct Work {
    /// By feed.
    links: BTreeMap<String, JoinSet<()>>,
    /// Those of feeds that end.
    ending: JoinSet<()>,
}

impl Work {
    /// Has somebody work for a feed, if nobody does.
    pub(crate) fn begin(&mut self, feed: &Arc<Feed>, links: impl FnOnce() -> JoinSet<()>) {
        self.links.entry(feed.key()).or_insert_with(links);
    }

    /// Ends a feed, and says when that is done.
    fn end(&mut self, feed: &Arc<Feed>, changed: &Arc<Changed>) {
        feed.stop.start();
        let mut links = self.links.remove(&feed.key()).unwrap_or_default();
        let (feed, changed) = (Arc::clone(feed), Arc::clone(changed));
        while self.ending.try_join_next().is_some() {}
        self.ending.spawn(async move {
            while links.join_next().await.is_some() {}
            // A batch that is being written still moves the place.
            drop(feed.batching.lock().await);
            feed.has_ended.store(true, Ordering::Release);
            changed.tell();
        });
    }

    /// Ends all of them; returns when that is done.
    pub(crate) async fn finish(mut self, feeds: &[Arc<Feed>]) {
        feeds.iter().for_each(|feed| feed.stop.start());
        for (_, mut links) in self.links {
            while links.join_next().await.is_some() {}
        }
        while self.ending.join_next().await.is_some() {}
        for feed in feeds {
            drop(feed.batching.lock().await);
        }
    }
}

impl Peers {
    /// Ends what is not wanted any more, and begins what is new, as far as that can be done now; whether that is all.
    pub(crate) fn change_to(&self, peers: &[PeerConfig], work: &mut Work) -> bool {
        let is_wanted = |feed: &Arc<Feed>| {
            let mut feeds = peers
                .iter()
                .flat_map(|peer| peer.feed.iter().map(move |feed| (peer, feed)));
            feeds.any(|(peer, config)| feed.is_as(peer, config))
        };
        let end = self.engine.watch_commits().borrow().next();
        let now = UnixTime(self.clock.now().secs);
        self.tell_content(peers);
        let mut feeds = self.feeds.lock();
        // Asked once of each: one that ends meanwhile stays in the list until the next time, and its place with it.
        feeds.retain(|feed| {
            let has_ended = feed.has_ended();
            if has_ended {
                self.kept.put(feed, now);
            } else if !feed.stop.is_started() && !is_wanted(feed) {
                work.end(feed, &self.changed);
            }
            !has_ended
        });
        *feeds = self.made(peers, &feeds, end);
        self.kept.tell();
        !feeds.iter().any(|feed| feed.stop.is_started())
    }

    /// The feeds of a configuration: those that are as they were, those that still end, and new ones at the places that are kept for them.
    pub(crate) fn made(
        &self,
        peers: &[PeerConfig],
        old: &[Arc<Feed>],
        begin: Sequence,
    ) -> Vec<Arc<Feed>> {
        let end = self.engine.watch_commits().borrow().next();
        let mut feeds = Vec::new();
        for peer in peers {
            for config in &peer.feed {
                let key = format!("{}/{}", peer.name, config.name);
                if let Some(stays) = old.iter().find(|it| it.key() == key) {
                    feeds.push(Arc::clone(stays));
                    continue;
                }
                // What was checked when it was read.
                let Ok(filter) = Filter::new(peer, config) else {
                    continue;
                };
                let kept = self.kept.take(&key);
                let (mut place, before) = kept.unwrap_or_else(|| (Place::at(begin), None));
                if place.next > end {
                    tracing::warn!(
                        feed = key,
                        "the log ends before the feed's place: it goes on at the end of the log"
                    );
                    place = place.goes_on_at(end);
                }
                let feed = Feed::new(peer, config, filter, place);
                if let Some(before) = before {
                    feed.continues(&before);
                }
                feeds.push(Arc::new(feed));
            }
        }
        for feed in old.iter().filter(|feed| feed.stop.is_started()) {
            if !feeds.iter().any(|it| Arc::ptr_eq(it, feed)) {
                feeds.push(Arc::clone(feed));
            }
        }
        feeds
    }
}
