//! One feed: its filter, its articles, and what its connections are doing.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use newsreel_host::Clock;
use newsreel_net::{Drain, DrainWatch};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::config::{FeedConfig, FeedKind, PeerConfig};
use crate::filter::Filter;
use crate::place::Place;
use crate::queue::{Queue, Tally};
use crate::text::Texts;

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
    /// Articles go to a program or a file.
    Working,
    /// Nothing is sent: batches are written when somebody asks for them.
    Batches,
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
            Self::Working => f.write_str("working"),
            Self::Batches => f.write_str("waits for `newsreel batch`"),
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

/// One of those that take a feed's articles away, wherever to: a connection, a program, a file.
pub(crate) struct Worker {
    pub(crate) feed: Arc<Feed>,
    /// Which of the feed's it is.
    pub(crate) number: u32,
    pub(crate) texts: Arc<Texts>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Told when the feed wants more of the log.
    pub(crate) settled: Arc<Notify>,
}

impl Worker {
    pub(crate) fn now_ms(&self) -> u64 {
        u64::try_from(self.clock.monotonic().as_millis()).unwrap_or(u64::MAX)
    }
}

/// Pauses between attempts, each twice as long as the one before until something was taken.
#[derive(Debug)]
pub(crate) struct Pauses {
    next_s: u64,
    accepted: u64,
}

const PAUSE_S_MIN: u64 = 5;
const PAUSE_S_MAX: u64 = 300;

impl Pauses {
    pub(crate) const fn new() -> Self {
        Self {
            next_s: PAUSE_S_MIN,
            accepted: 0,
        }
    }

    /// Waits after a failure; `false`: it is told to stop.
    pub(crate) async fn after(
        &mut self,
        feed: &Feed,
        link: u32,
        why: String,
        stop: &mut DrainWatch,
    ) -> bool {
        let accepted = feed.queue.lock().tally.accepted;
        if accepted > self.accepted {
            (self.accepted, self.next_s) = (accepted, PAUSE_S_MIN);
        }
        let seconds = self.next_s;
        let (peer, name) = (&feed.peer.name, &feed.config.name);
        tracing::warn!(
            peer,
            feed = name,
            "sending ended; the next try is in {seconds} s: {why}"
        );
        feed.link_is(link, LinkState::Waiting { seconds, why });
        self.next_s = (seconds * 2).min(PAUSE_S_MAX);
        tokio::select! {
            () = stop.started() => return false,
            () = sleep(Duration::from_secs(seconds)) => {}
            () = feed.hurry.notified() => {}
        }
        true
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
    /// Sequences before `next` that were passed over, and are looked at while there is nothing newer.
    pub passed_over: u64,
    /// How long the quota is used up, seconds; none: it is not.
    pub quota_s: Option<u64>,
    /// Articles that wait to be sent, are under way, or are tried again later.
    pub open: usize,
    /// What came of the others since the server started.
    pub tally: Tally,
    /// The newest of those that were gone before they could be sent, by message-id.
    pub gone: Vec<String>,
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
    /// Held while its batches are written.
    pub(crate) batching: tokio::sync::Mutex<()>,
    links: Mutex<BTreeMap<u32, LinkState>>,
}

impl Feed {
    pub(crate) fn new(
        peer: &PeerConfig,
        config: &FeedConfig,
        filter: Filter,
        place: Place,
    ) -> Self {
        let links = match config.kind {
            FeedKind::Batch => BTreeMap::from([(0, LinkState::Batches)]),
            _ => BTreeMap::new(),
        };
        Self {
            peer: peer.clone(),
            config: config.clone(),
            filter,
            queue: Mutex::new(Queue::new(place, config)),
            more: Notify::new(),
            is_paused: AtomicBool::new(false),
            hurry: Notify::new(),
            stop: Drain::new(),
            batching: tokio::sync::Mutex::default(),
            links: Mutex::new(links),
        }
    }

    /// The name under which its place is kept.
    pub(crate) fn key(&self) -> String {
        format!("{}/{}", self.peer.name, self.config.name)
    }

    /// Whether a configuration says of it what it is.
    pub(crate) fn is_as(&self, peer: &PeerConfig, config: &FeedConfig) -> bool {
        self.config == *config && self.peer.sends_as(peer)
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

    /// Waits until so many articles wait and may go.
    pub(crate) async fn until_waiting(&self, least: usize, now_ms: impl Fn() -> u64) {
        loop {
            let more = self.more.notified();
            if !self.is_paused() && self.queue.lock().waiting(now_ms()) >= least {
                return;
            }
            // What was put off becomes due without a word.
            let _ = timeout(Duration::from_secs(1), more).await;
        }
    }

    /// Where its articles go.
    fn destination(&self) -> String {
        match self.config.kind {
            FeedKind::Nntp => self.peer.address.clone(),
            FeedKind::Batch => "batches".to_owned(),
            FeedKind::Program => self.config.program.clone(),
            FeedKind::File => self.config.file.display().to_string(),
        }
    }

    pub(crate) fn report(&self, now_ms: u64) -> FeedReport {
        let queue = self.queue.lock();
        let closed = queue.closed_until_ms(now_ms);
        FeedReport {
            peer: self.peer.name.clone(),
            feed: self.config.name.clone(),
            address: self.destination(),
            is_paused: self.is_paused(),
            next: queue.place().next.0,
            needs_from: queue.place().needs_from().0,
            passed_over: queue.passed_over(),
            quota_s: closed.map(|until| until.saturating_sub(now_ms).div_ceil(1000)),
            open: queue.open(),
            tally: queue.tally,
            gone: queue.gone(),
            links: self.links.lock().values().cloned().collect(),
        }
    }
}
