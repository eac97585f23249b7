//! One feed: its filter, its articles, and what its connections are doing.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use newsreel_host::Clock;
use newsreel_net::{Drain, DrainWatch};
use newsreel_service::ServiceError;
use newsreel_wire::UnixTime;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::config::{FeedConfig, FeedKind, PeerConfig};
use crate::filter::Filter;
use crate::place::Place;
use crate::queue::{GONE_NAMED_MAX, Item, LOOKS_EVERY, Offered, Queue, Tally};
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
    /// There is none: the feed was taken out of the configuration.
    Removed {
        /// How long its place is kept from now on, seconds.
        kept_s: u64,
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
            Self::Removed { kept_s } => write!(
                f,
                "taken out of the configuration; its place is kept for {kept_s} s"
            ),
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

    pub(crate) fn now(&self) -> UnixTime {
        UnixTime(self.clock.now().secs)
    }

    /// An article is gone, or cannot be read now (why): that holds no other up.
    pub(crate) fn textless(&self, mut item: Item, why: Option<&ServiceError>) {
        let Some(why) = why else {
            return self.feed.is_gone(&item.offered, self.now());
        };
        item.is_unreadable = true;
        let is_first = item.tries == 0;
        let id = item.offered.id.to_string();
        let mut queue = self.feed.queue.lock();
        queue.defer(item, self.now_ms());
        let (many, _) = queue.unreadable();
        drop(queue);
        if is_first && many <= GONE_NAMED_MAX {
            let (peer, feed) = (&self.feed.peer.name, &self.feed.config.name);
            tracing::warn!(
                peer,
                feed,
                id,
                "the article cannot be read, and is put off: {why}"
            );
        }
    }
}

/// Pauses between attempts, each twice as long as the one before until something was settled.
#[derive(Debug)]
pub(crate) struct Pauses {
    next_s: u64,
    settled: u64,
}

const PAUSE_S_MIN: u64 = 5;
const PAUSE_S_MAX: u64 = 300;

impl Pauses {
    pub(crate) const fn new() -> Self {
        Self {
            next_s: PAUSE_S_MIN,
            settled: 0,
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
        let settled = feed.queue.lock().tally.settled();
        if settled > self.settled {
            (self.settled, self.next_s) = (settled, PAUSE_S_MIN);
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
    /// It is not in the configuration any more, and its place is kept for so long, seconds.
    pub kept_s: Option<u64>,
    /// Articles that wait to be sent, are under way, or are tried again later.
    pub open: usize,
    /// What came of the others since the server started, or, of those that were missed, since the feed began.
    pub tally: Tally,
    /// The newest of those that were gone before they could be sent, by message-id.
    pub gone: Vec<String>,
    /// The newest of those that the log kept no longer, by message-id.
    pub missed: Vec<String>,
    /// How many of those that are tried again later cannot be read from the store at present.
    pub unreadable: usize,
    /// Some of them, by message-id.
    pub unreadable_ids: Vec<String>,
    /// When an article was rejected last since the server started, and what the peer said.
    pub rejection: Option<(UnixTime, String)>,
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
    /// Nobody works for it any more since it was told to stop.
    pub(crate) has_ended: AtomicBool,
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
            has_ended: AtomicBool::new(false),
            batching: tokio::sync::Mutex::default(),
            links: Mutex::new(links),
        }
    }

    /// The name under which its place is kept.
    pub(crate) fn key(&self) -> String {
        format!("{}/{}", self.peer.name, self.config.name)
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    /// Goes on for one of the same name that has ended: counts, quota and pause are as they were.
    pub(crate) fn continues(&self, before: &Self) {
        self.pause(before.is_paused());
        self.queue.lock().continues(&before.queue.lock());
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

    /// Says that an article is never sent, for which the peer has no answer.
    pub(crate) fn tell_rejected(&self, item: &Item, why: &str) {
        let (peer, feed, id) = (&self.peer.name, &self.config.name, &*item.offered.id);
        tracing::warn!(
            peer,
            feed,
            id,
            "the article is rejected, and not sent again: {why}"
        );
    }

    pub(crate) fn link_is(&self, link: u32, state: LinkState) {
        self.links.lock().insert(link, state);
    }

    /// Waits until so many articles wait and may go.
    pub(crate) async fn until_waiting(&self, least: usize, now_ms: impl Fn() -> u64) {
        loop {
            let more = self.more.notified();
            let now_ms = now_ms();
            if !self.is_paused() && self.queue.lock().waiting(now_ms) >= least {
                return;
            }
            // What was put off becomes due, and a quota is open again, without a word.
            let looks_after = self.queue.lock().looks_after(now_ms);
            let _ = timeout(looks_after.unwrap_or(LOOKS_EVERY), more).await;
        }
    }

    /// What keeps its articles here for now, in words.
    pub(crate) fn held(&self, now_ms: u64) -> Vec<String> {
        let mut held = Vec::new();
        if self.is_paused() {
            held.push("the feed is paused".to_owned());
        }
        if let Some(until) = self.queue.lock().closed_until_ms(now_ms) {
            let seconds = until.saturating_sub(now_ms).div_ceil(1000);
            held.push(format!("its quota is used up for {seconds} s"));
        }
        if self.config.delay_s > 0 {
            let seconds = self.config.delay_s;
            held.push(format!(
                "it waits {seconds} s from its arrival on (`delay_s`)"
            ));
        }
        if self.config.kind == FeedKind::Batch {
            held.push("`newsreel batch` writes it".to_owned());
        }
        held
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

    /// An article was gone before it could be sent: it is counted and named.
    pub(crate) fn is_gone(&self, offered: &Offered, now: UnixTime) {
        self.queue.lock().is_gone(offered, now);
        self.tell_gone(&offered.id);
    }

    /// Names in the log an article that was gone; of many the first, and how many there were.
    pub(crate) fn tell_gone(&self, id: &str) {
        let many = self.queue.lock().tally.gone;
        let (peer, feed) = (&self.peer.name, &self.config.name);
        if many <= GONE_NAMED_MAX as u64 {
            tracing::warn!(
                peer,
                feed,
                id,
                "the article was gone before it could be sent"
            );
        } else if many.is_multiple_of(GONE_NAMED_MAX as u64) {
            tracing::warn!(
                peer,
                feed,
                many,
                "so many articles were gone before they could be sent; `newsreel peer show` names the newest"
            );
        }
    }

    /// A part of the log is not there any more, with so many articles at the most: the log says so.
    pub(crate) fn tell_missed(&self, many: u64, why: &str) {
        let (peer, feed) = (&self.peer.name, &self.config.name);
        if many > 0 {
            tracing::error!(peer, feed, "missed up to {many} articles: {why}");
        }
    }

    pub(crate) fn report(&self, now_ms: u64) -> FeedReport {
        let queue = self.queue.lock();
        let closed = queue.closed_until_ms(now_ms);
        let [gone, missed] = queue.gone_and_missed();
        let (unreadable, unreadable_ids) = queue.unreadable();
        FeedReport {
            peer: self.peer.name.clone(),
            feed: self.config.name.clone(),
            address: self.destination(),
            is_paused: self.is_paused(),
            next: queue.place().next.0,
            needs_from: queue.place().needs_from().0,
            passed_over: queue.passed_over(),
            quota_s: closed.map(|until| until.saturating_sub(now_ms).div_ceil(1000)),
            kept_s: None,
            open: queue.open(),
            tally: queue.tally,
            gone,
            missed,
            unreadable,
            unreadable_ids,
            rejection: queue.rejection(),
            links: self.links.lock().values().cloned().collect(),
        }
    }
}
