//! One feed: its filter, its articles, and what its connections are doing.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use newsreel_net::Drain;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::config::{FeedConfig, PeerConfig};
use crate::filter::Filter;
use crate::place::Place;
use crate::queue::{Queue, Tally};

/// What a connection of a feed is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkState {
    /// There is nothing to send on it.
    Idle,
    /// It is being made.
    Connecting,
    /// It is there; whether CHECK is left out at present.
    Sending {
        /// IHAVE, because the peer does not stream.
        ihave: bool,
        /// CHECK is left out.
        skips_check: bool,
    },
    /// It is made again later.
    Waiting {
        /// How long it waits in all, seconds.
        seconds: u64,
        /// Why it ended.
        why: String,
    },
}

impl fmt::Display for LinkState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Idle => f.write_str("nothing to send"),
            Self::Connecting => f.write_str("connecting"),
            Self::Sending { ihave: true, .. } => f.write_str("sending by IHAVE"),
            Self::Sending { skips_check, .. } => f.write_str(match skips_check {
                true => "sending by TAKETHIS",
                false => "sending by CHECK and TAKETHIS",
            }),
            Self::Waiting { seconds, why } => write!(f, "tries again after {seconds} s: {why}"),
        }
    }
}

/// How a feed stands.
#[derive(Debug, Clone)]
pub struct FeedReport {
    /// The peer.
    pub peer: String,
    /// The feed.
    pub feed: String,
    /// Where it sends to.
    pub address: String,
    /// Whether somebody stopped it.
    pub is_paused: bool,
    /// Everything before was looked at.
    pub next: u64,
    /// Everything before is settled.
    pub needs_from: u64,
    /// Articles that wait to be sent, are under way, or are tried again later.
    pub open: usize,
    /// What came of the others since the server started.
    pub tally: Tally,
    /// Its connections.
    pub links: Vec<LinkState>,
}

/// A feed.
#[derive(Debug)]
pub(crate) struct Feed {
    pub(crate) peer: PeerConfig,
    pub(crate) config: FeedConfig,
    pub(crate) filter: Filter,
    pub(crate) queue: Mutex<Queue>,
    /// There are articles, or a pause began or ended.
    pub(crate) more: Notify,
    pub(crate) is_paused: AtomicBool,
    /// Who waits to connect again tries now.
    pub(crate) hurry: Notify,
    /// Ends its connections.
    pub(crate) stop: Drain,
    links: Mutex<BTreeMap<u32, LinkState>>,
}

impl Feed {
    pub(crate) fn new(
        peer: &PeerConfig,
        config: &FeedConfig,
        filter: Filter,
        place: Place,
    ) -> Self {
        Self {
            peer: peer.clone(),
            config: config.clone(),
            filter,
            queue: Mutex::new(Queue::new(place, config)),
            more: Notify::new(),
            is_paused: AtomicBool::new(false),
            hurry: Notify::new(),
            stop: Drain::new(),
            links: Mutex::default(),
        }
    }

    /// The name under which its place is kept.
    pub(crate) fn key(&self) -> String {
        format!("{}/{}", self.peer.name, self.config.name)
    }

    /// Whether a configuration says of it what it is.
    pub(crate) fn is_as(&self, peer: &PeerConfig, config: &FeedConfig) -> bool {
        let mut peer = peer.clone();
        peer.feed.clone_from(&self.peer.feed);
        self.peer == peer && self.config == *config
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.is_paused.load(Ordering::Acquire)
    }

    pub(crate) fn pause(&self, paused: bool) {
        self.is_paused.store(paused, Ordering::Release);
        self.more.notify_waiters();
    }

    pub(crate) fn link_is(&self, link: u32, state: LinkState) {
        self.links.lock().insert(link, state);
    }

    pub(crate) fn report(&self) -> FeedReport {
        let queue = self.queue.lock();
        FeedReport {
            peer: self.peer.name.clone(),
            feed: self.config.name.clone(),
            address: self.peer.address.clone(),
            is_paused: self.is_paused(),
            next: queue.place().next.0,
            needs_from: queue.place().needs_from().0,
            open: queue.open(),
            tally: queue.tally,
            links: self.links.lock().values().cloned().collect(),
        }
    }
}
