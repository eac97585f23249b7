//! All peers: their feeds, who reads the log for them, their connections, and the file of their places.
//!
//! The places are written at most once a second, never ahead of what peers have said: after a crash the articles of the last second
//! are offered again, by CHECK first, and nothing is left out.  A change of the configuration touches the feeds it changes and no other.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use newsreel_engine::{Engine, FedArticle, FedGroups};
use newsreel_host::{Clock, Disk};
use newsreel_net::DrainWatch;
use newsreel_service::{ArticleBuf, ArticleQuery, NewsService as _, Part, ServiceError};
use newsreel_wire::article::{Content, Headers, Known};
use newsreel_wire::path::{self, Diagnostic};
use newsreel_wire::{MessageId, Sequence, UnixTime};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::backlog::{self, Backlog, LOOKS_MAX, Standing};
use crate::changing::{Changed, Work};
use crate::config::{FeedContent, FeedKind, PeerConfig};
use crate::dial::Dial;
use crate::dispatch::Dispatcher;
use crate::fate::{self, Fate, Found};
use crate::feed::{Feed, FeedReport, Worker};
use crate::filter::Refusal;
use crate::kept::{Forgotten, Kept};
use crate::link::Link;
use crate::noted::{self, Found as Noted};
use crate::place::{self, Place};
use crate::sink::Sink;
use crate::text::Texts;

/// The file of the places in the spool.
const FILE: &str = "feeds";
/// A line of it that says nothing of a feed, and that is written no more.
const GAPS: &str = "!gaps";
/// How often the places are written.
const SAVE_EVERY: Duration = Duration::from_secs(1);

/// What a feed says of an article.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// The peer.
    pub peer: String,
    /// The feed.
    pub feed: String,
    /// Why it does not go out by it, all reasons; none: it does.
    pub refusals: Vec<Refusal>,
    /// What holds the feed at present, in words.
    pub held: Vec<String>,
    /// What became of it; none: it does not go out by it, and has not.
    pub fate: Option<Fate>,
}

/// The file of the places.
#[derive(Debug)]
pub(crate) struct Places {
    disk: Arc<dyn Disk>,
    file: PathBuf,
    feeds: Arc<Mutex<Vec<Arc<Feed>>>>,
    kept: Arc<Kept>,
    engine: Arc<Engine>,
    written: Mutex<Written>,
}

/// What the file says, or has in the place of that.
#[derive(Debug)]
struct Written {
    text: String,
    /// What was damaged, until it is written.
    damaged: Option<Vec<u8>>,
}

impl Places {
    fn now(&self) -> BTreeMap<String, Place> {
        let feeds = self.feeds.lock();
        let places = feeds
            .iter()
            .map(|feed| (feed.key(), feed.queue.lock().place().clone()));
        places.chain(self.kept.lines()).collect()
    }

    /// Writes how far the feeds are now, if it says something else, and lets the log go so far.  Who comes later writes what is newer.
    pub(crate) fn write(&self) -> Result<bool, newsreel_host::Error> {
        let mut written = self.written.lock();
        let places = self.now();
        let text = place::print_within(&places, noted::OCTETS_MAX);
        if text == written.text {
            return Ok(false);
        }
        noted::write(self.disk.as_ref(), &self.file, &text, &mut written.damaged)?;
        written.text = text;
        self.hold_log(&places);
        Ok(true)
    }

    /// Says from where on the log is needed: never more of it goes than the file says.
    fn hold_log(&self, places: &BTreeMap<String, Place>) {
        let needed = places.values().map(Place::needs_from);
        self.engine.keep_for_feeds(needed.min());
    }
}

/// All peers.
#[derive(Debug)]
pub struct Peers {
    pub(crate) engine: Arc<Engine>,
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) spool: PathBuf,
    pub(crate) clock: Arc<dyn Clock>,
    dial: Arc<dyn Dial>,
    texts: Arc<Texts>,
    pub(crate) feeds: Arc<Mutex<Vec<Arc<Feed>>>>,
    pub(crate) kept: Arc<Kept>,
    pub(crate) places: Arc<Places>,
    /// The configuration that is to be in force.
    wanted: Mutex<Option<Vec<PeerConfig>>>,
    pub(crate) changed: Arc<Changed>,
    /// A feed wants more of the log.
    settled: Arc<Notify>,
}

impl Peers {
    /// Finds out how far each feed has come; a new one begins at the end of the log.  From now on the log is kept for them.
    ///
    /// # Errors
    /// When the file that says so cannot be read, or a later newsreel wrote it.
    pub fn open(
        engine: Arc<Engine>,
        disk: Arc<dyn Disk>,
        spool: &Path,
        clock: Arc<dyn Clock>,
        dial: Arc<dyn Dial>,
        peers: &[PeerConfig],
    ) -> Result<Self, io::Error> {
        let this = Self::found(engine, disk, spool, clock, dial, peers)?;
        this.note_begin();
        this.places.hold_log(&this.places.now());
        this.tidy_batches();
        Ok(this)
    }

    /// The same, to look at only.
    ///
    /// # Errors
    /// When the file that says so cannot be read, or a later newsreel wrote it.
    pub fn found(
        engine: Arc<Engine>,
        disk: Arc<dyn Disk>,
        spool: &Path,
        clock: Arc<dyn Clock>,
        dial: Arc<dyn Dial>,
        peers: &[PeerConfig],
    ) -> Result<Self, io::Error> {
        let file = spool.join(FILE);
        let end = engine.watch_commits().borrow().next();
        let found = place::KIND.find(disk.as_ref(), &file, place::parse);
        // Whoever sees to the file finds the log as it is.
        let found = found.inspect_err(|_| engine.keep_for_feeds(Some(Sequence::ZERO)));
        let (mut all, begin, damaged) = match found? {
            Noted::Noted(all) => (all, end, None),
            Noted::Nothing => (BTreeMap::new(), end, None),
            // What waited is somewhere in the log: all of it is offered again, and peers refuse what they have.
            Noted::Damaged(octets) => {
                let oldest = Sequence(engine.status().log.oldest);
                (BTreeMap::new(), oldest, Some(octets))
            }
        };
        let now = UnixTime(clock.now().secs);
        all.remove(GAPS);
        let kept = Arc::new(Kept::new(all, now));
        let feeds: Arc<Mutex<Vec<Arc<Feed>>>> = Arc::default();
        let this = Self {
            texts: Arc::new(Texts::new(engine.service())),
            engine: Arc::clone(&engine),
            spool: spool.to_owned(),
            clock,
            dial,
            places: Arc::new(Places {
                disk: Arc::clone(&disk),
                file,
                feeds: Arc::clone(&feeds),
                kept: Arc::clone(&kept),
                engine,
                written: Mutex::new(Written {
                    text: place::print(&BTreeMap::new()),
                    damaged,
                }),
            }),
            disk,
            feeds,
            kept,
            wanted: Mutex::new(None),
            changed: Arc::default(),
            settled: Arc::default(),
        };
        this.tell_content(peers);
        let feeds = this.made(peers, &[], begin);
        *this.feeds.lock() = feeds;
        this.kept.tell();
        Ok(this)
    }

    /// Says whether articles are to be looked at for what their bodies are.
    pub(crate) fn tell_content(&self, peers: &[PeerConfig]) {
        let mut feeds = peers.iter().flat_map(|peer| &peer.feed);
        let asks = feeds.any(|feed| feed.content != FeedContent::Any);
        self.engine.tell_feeds_content(asks);
    }

    /// Writes how far the feeds are.
    ///
    /// # Errors
    /// When the disk fails.
    pub fn note(&self) -> Result<(), newsreel_host::Error> {
        self.places.write().map(|_| ())
    }

    /// Where new feeds begin is on disk before anything comes: after a crash in the first second it would be the end of the log.
    fn note_begin(&self) {
        if let Err(error) = self.note() {
            tracing::error!(%error, "how far the feeds are cannot be noted; it is tried again");
        }
    }

    /// Says how long the place of a feed is kept that is taken out of the configuration.
    pub fn keep_removed_for(&self, seconds: u64) {
        self.kept.keep_for(seconds);
    }

    /// How long that is, seconds.
    #[must_use]
    pub fn keeps_removed_s(&self) -> u64 {
        self.kept.seconds()
    }

    /// Takes over another configuration.
    pub fn reload(&self, peers: &[PeerConfig]) {
        *self.wanted.lock() = Some(peers.to_vec());
        // Whoever is new needs the log from now on.
        if self.feeds.lock().is_empty() && self.kept.is_empty() && !peers.is_empty() {
            let end = self.engine.watch_commits().borrow().next();
            self.engine.keep_for_feeds(Some(end));
        }
        self.changed.tell();
    }

    /// Whether a configuration is still being taken over: connections that end take a moment.
    #[must_use]
    pub fn is_changing(&self) -> bool {
        self.wanted.lock().is_some()
    }

    /// Sends until told to stop.
    pub async fn run(self: Arc<Self>, mut stop: DrainWatch) {
        let mut work = Work::default();
        while !stop.is_started() {
            let feeds = self.feeds.lock().clone();
            let stay = feeds.iter().filter(|feed| !feed.stop.is_started());
            let staying: Vec<Arc<Feed>> = stay.cloned().collect();
            for feed in &staying {
                work.begin(feed, || self.links_of(feed));
            }
            if feeds.is_empty() && self.kept.is_empty() {
                tokio::select! {
                    () = self.changed.told() => {}
                    () = stop.started() => {}
                }
            } else {
                let dispatcher =
                    Dispatcher::new(Arc::clone(&self.engine), staying, Arc::clone(&self.clock));
                self.read_on(dispatcher, &mut stop).await;
            }
            let is_changed = self.changed.take();
            let wanted = self.wanted.lock().clone();
            if let Some(wanted) = wanted.filter(|_| is_changed) {
                let is_all = self.change_to(&wanted, &mut work);
                self.save().await;
                self.wanted.lock().take_if(|it| is_all && *it == wanted);
            }
        }
        let feeds = self.feeds.lock().clone();
        work.finish(&feeds).await;
        // The log may go before the next start; the store has them then.
        for feed in &feeds {
            feed.queue.lock().name_open(Sequence(u64::MAX));
        }
        self.save().await;
    }

    /// Those who take a feed's articles away.
    fn links_of(&self, feed: &Arc<Feed>) -> JoinSet<()> {
        let mut links = JoinSet::new();
        let many = match feed.config.kind {
            FeedKind::Batch => 0,
            // A file has one end only.
            FeedKind::File => 1,
            FeedKind::Nntp | FeedKind::Program => feed.config.connections,
        };
        for number in 0..many {
            let worker = Worker {
                feed: Arc::clone(feed),
                number,
                texts: Arc::clone(&self.texts),
                clock: Arc::clone(&self.clock),
                settled: Arc::clone(&self.settled),
            };
            let stop = feed.stop.watch();
            if feed.config.kind == FeedKind::Nntp {
                let dial = Arc::clone(&self.dial);
                links.spawn(Link { worker, dial }.run(stop));
            } else {
                let disk = Arc::clone(&self.disk);
                links.spawn(Sink { worker, disk }.run(stop));
            }
        }
        links
    }

    /// Reads the log for the feeds until something is changed.
    async fn read_on(&self, mut dispatcher: Dispatcher, stop: &mut DrainWatch) {
        let mut commits = self.engine.watch_commits();
        let mut saved_at = self.clock.monotonic();
        loop {
            if self.clock.monotonic().saturating_sub(saved_at) >= SAVE_EVERY {
                saved_at = self.clock.monotonic();
                self.save().await;
            }
            let step = move || {
                let got_further = dispatcher.step();
                (dispatcher, got_further)
            };
            let Ok((back, got_further)) = tokio::task::spawn_blocking(step).await else {
                tracing::error!("the log cannot be read for feeds: a thread ended");
                // It may end again at the same place.
                let _ = timeout(SAVE_EVERY, stop.started()).await;
                return;
            };
            dispatcher = back;
            if got_further && !stop.is_started() && !self.changed.is_so() {
                continue;
            }
            let word = async {
                tokio::select! {
                    _ = commits.changed() => false,
                    () = self.settled.notified() => false,
                    () = self.changed.told() => true,
                    () = stop.started() => true,
                }
            };
            if timeout(SAVE_EVERY, word).await == Ok(true) {
                return;
            }
        }
    }

    /// Writes the places, if one is another than before.
    async fn save(&self) {
        let end = self.engine.watch_commits().borrow().next();
        let old = self.kept.forget_old(UnixTime(self.clock.now().secs), end);
        let (places, engine) = (Arc::clone(&self.places), Arc::clone(&self.engine));
        let lost = self.engine.feeds_lose_before();
        for feed in self.feeds.lock().iter() {
            feed.queue.lock().name_open(lost);
        }
        let writing = move || {
            tell_forgotten(&engine, old);
            places.write()
        };
        if let Ok(Err(error)) = tokio::task::spawn_blocking(writing).await {
            tracing::error!(%error, "how far the feeds are cannot be noted; it is tried again");
        }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.clock.monotonic().as_millis()).unwrap_or(u64::MAX)
    }

    /// How every feed stands.
    #[must_use]
    pub fn reports(&self) -> Vec<FeedReport> {
        self.standings().into_iter().map(|(it, _)| it).collect()
    }

    /// The same, with where it stands.
    fn standings(&self) -> Vec<(FeedReport, Standing)> {
        let (now_ms, end) = (self.now_ms(), self.engine.watch_commits().borrow().next());
        let feeds = self.feeds.lock();
        let here = feeds.iter().map(|feed| {
            let standing = Standing::new(Some(Arc::clone(feed)), feed.queue.lock().place(), end);
            (feed.report(now_ms), standing)
        });
        let now = UnixTime(self.clock.now().secs);
        here.chain(self.kept.reports(now, end)).collect()
    }

    /// How those feeds stand that are asked for, and what waits for them, counted as far as `looks_max` articles go.  Waits for the disk
    /// where the log is not in memory.
    #[must_use]
    pub fn with_backlogs(
        &self,
        is_it: impl Fn(&FeedReport) -> bool,
        looks_max: u64,
    ) -> Vec<(FeedReport, Backlog)> {
        let those = self.standings().into_iter().filter(|(it, _)| is_it(it));
        let (reports, standings): (Vec<_>, Vec<_>) = those.unzip();
        let counted = backlog::count(&self.engine, standings, looks_max);
        reports.into_iter().zip(counted).collect()
    }

    /// Articles read from the store for feeds, and articles sent.
    #[must_use]
    pub fn reads_and_sent(&self) -> (u64, u64) {
        self.texts.counts()
    }

    /// The feeds of a peer, or one of them, as `peer/feed`.
    pub(crate) fn named(&self, name: &str) -> Vec<Arc<Feed>> {
        let is_it = |feed: &&Arc<Feed>| feed.peer.name == name || feed.key() == name;
        self.feeds.lock().iter().filter(is_it).cloned().collect()
    }

    /// Stops sending to a peer, or goes on; how many feeds that are.
    pub fn pause(&self, name: &str, paused: bool) -> usize {
        let feeds = self.named(name);
        feeds.iter().for_each(|feed| feed.pause(paused));
        self.settled.notify_one();
        feeds.len()
    }

    /// Tries now what waits to be tried again; how many feeds that are.
    pub fn flush(&self, name: &str) -> usize {
        let feeds = self.named(name);
        for feed in &feeds {
            feed.queue.lock().hurry();
            feed.hurry.notify_waiters();
            feed.more.notify_waiters();
        }
        feeds.len()
    }

    /// Gives up what waits for a peer, or only says what it would be: how many feeds that are, what the log has for them, and how many articles
    /// are in memory.  Waits for the disk where the log is not in memory.
    pub fn drop_backlog(&self, name: &str, dry_run: bool) -> (usize, Backlog, usize) {
        let feeds = self.named(name);
        let end = self.engine.watch_commits().borrow().next();
        let removed = self.kept.drop_all(name, end, dry_run);
        let many = feeds.len() + removed.len();
        let mut articles: usize = removed.iter().map(|it| it.in_memory).sum();
        let mut standings: Vec<_> = removed.into_iter().map(|it| it.standing).collect();
        for feed in &feeds {
            let mut queue = feed.queue.lock();
            standings.push(Standing::new(Some(Arc::clone(feed)), queue.place(), end));
            articles += match dry_run {
                true => queue.open(),
                false => queue.drop_all(end),
            };
        }
        if !dry_run {
            self.settled.notify_one();
        }
        let counted = backlog::count(&self.engine, standings, LOOKS_MAX);
        let all = counted.into_iter().fold(Backlog::default(), Backlog::with);
        (many, all, articles)
    }

    /// What each feed says of an article, or, where it is not here any more, those that know what became of it; `None`: nobody knows it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn explain(&self, id: MessageId<'_>) -> Result<Option<Vec<Explained>>, ServiceError> {
        let mut memory = ArticleBuf::new();
        let named = String::from_utf8_lossy(id.as_bytes());
        let service = self.engine.service();
        let query = ArticleQuery::ById(id);
        if service
            .article(query, Part::Whole, &mut memory)
            .await?
            .is_none()
        {
            return Ok(self.explain_gone(&named));
        }
        let Ok(headers) = Headers::scan_stored(memory.content()) else {
            return Ok(None);
        };
        let content = |known| headers.content(known).unwrap_or_default();
        let path = path::Path::parse(content(Known::Path)).ok();
        let first = path.and_then(|path| path.entries().next());
        let article = FedArticle {
            sequence: Sequence::ZERO,
            arrival: UnixTime(0),
            octets: u32::try_from(memory.content().len()).unwrap_or(u32::MAX),
            place: None,
            token: None,
            id: id.as_bytes(),
            path: content(Known::Path),
            groups: Self::groups_of(content(Known::Newsgroups), content(Known::Xref)),
            distribution: content(Known::Distribution),
            is_posted: first.is_some_and(|it| matches!(it.diagnostic, Diagnostic::Posted(_))),
            is_control: headers.get(Known::Control).is_some(),
            content: Some(Content::of(&headers)),
        };
        let (feeds, now_ms) = (self.feeds.lock().clone(), self.now_ms());
        let mut said: Vec<Explained> = feeds
            .iter()
            .map(|feed| Explained {
                peer: feed.peer.name.clone(),
                feed: feed.config.name.clone(),
                refusals: feed.filter.refusals(&article),
                held: feed.held(now_ms),
                fate: fate::remembered(feed, &named),
            })
            .collect();
        let is_open = |it: &Explained| it.fate.is_none() && it.refusals.is_empty();
        if said.iter().any(is_open) {
            let at = self.place_of(&named).await;
            for (feed, it) in feeds.iter().zip(&mut said).filter(|(_, it)| is_open(it)) {
                it.fate = Some(fate::by_place(feed, &named, at, now_ms));
            }
        }
        Ok(Some(said))
    }

    /// What an article is chosen by, by the first group in its Xref.
    fn groups_of<'a>(newsgroups: &'a [u8], xref: &'a [u8]) -> FedGroups<'a> {
        let xref = str::from_utf8(xref).unwrap_or_default();
        let place = xref.split_whitespace().nth(1);
        let group = place.and_then(|place| place.rsplit_once(':'));
        let filed = |(group, _)| FedGroups::filed(newsgroups, group);
        group.map_or(FedGroups::named(newsgroups), filed)
    }

    /// What the feeds say of an article that is not here, if one of them remembers it.
    fn explain_gone(&self, id: &str) -> Option<Vec<Explained>> {
        let feeds = self.feeds.lock().clone();
        let known = feeds.iter().filter_map(|feed| {
            let fate = fate::remembered(feed, id)?;
            Some(Explained {
                peer: feed.peer.name.clone(),
                feed: feed.config.name.clone(),
                refusals: Vec::new(),
                held: Vec::new(),
                fate: Some(fate),
            })
        });
        let known: Vec<_> = known.collect();
        (!known.is_empty()).then_some(known)
    }

    /// Where an article is in the log.
    async fn place_of(&self, id: &str) -> Found {
        let (engine, id) = (Arc::clone(&self.engine), id.to_owned());
        let finding = tokio::task::spawn_blocking(move || fate::find(&engine, id.as_bytes()));
        finding.await.unwrap_or(Found::NotFrom(Sequence(u64::MAX)))
    }
}

/// Has a spool's log kept for the feeds whose places are noted in it, for whoever changes the spool and feeds nobody.
pub fn hold_log(engine: &Engine, disk: &dyn Disk, spool: &Path) {
    let from = match place::KIND.find(disk, &spool.join(FILE), place::parse) {
        Ok(Noted::Noted(mut all)) => {
            all.remove(GAPS);
            all.values().map(Place::needs_from).min()
        }
        Ok(Noted::Nothing) => None,
        // Who sees to it finds the log as it is.
        Ok(Noted::Damaged(_)) | Err(_) => Some(Sequence::ZERO),
    };
    if let Some(from) = from {
        engine.hold_log(from);
    }
}

/// Says what is given up with places that were kept for long enough.
fn tell_forgotten(engine: &Engine, forgotten: Vec<Forgotten>) {
    for it in forgotten {
        let (feed, in_memory) = (it.feed, it.in_memory);
        let counted = backlog::count(engine, vec![it.standing], LOOKS_MAX);
        let all = counted.into_iter().fold(Backlog::default(), Backlog::with);
        let (least, behind) = (if all.is_more { "at least " } else { "" }, all.behind);
        tracing::warn!(
            feed,
            "the place of a feed that is not in the configuration is kept no longer (`feeds.removed_s`): {in_memory} articles that were in \
             memory and {least}{behind} of the log are never sent by it"
        );
    }
}
