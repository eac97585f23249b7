//! Batches: the articles of a feed from its place in the log on, written to files.
//!
//! A feed of batches has nothing in memory and no connection; it stands in the log until somebody asks for its batches.  Each batch
//! moves the place by itself, on disk, before it gets its name: whoever is killed loses nothing, and no article is in two of them.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use newsreel_engine::{Engine, FeedCursor, FeedRead};
use newsreel_service::{ArticleBuf, ArticleQuery, NewsService as _, Part};
use newsreel_wire::nntp::framing::wire_to_lf;
use newsreel_wire::{ArticleNumber, GroupId, MessageId, Sequence, UnixTime, batch};
use serde::{Deserialize, Serialize};

use crate::config::{FeedConfig, FeedKind, Packing};
use crate::feed::Feed;
use crate::folders::folder_of;
use crate::outgoing::{Outgoing, Whole, Wrapping, Writing};
use crate::peers::Peers;
use crate::queue::{GONE_NAMED_MAX, Settled};

/// What is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct Batching {
    /// A peer, or one feed as `peer/feed`.
    pub name: String,
    /// Instead of the feed's `batch_octets_max`.
    pub octets_max: Option<u64>,
    /// Instead of the feed's `packing`.
    pub packing: Option<Packing>,
    /// Only count what would go.
    pub dry_run: bool,
}

/// A batch that is written.
#[derive(Debug, Clone, Serialize)]
pub struct Batch {
    /// Where it is.
    pub file: PathBuf,
    /// Articles in it.
    pub articles: u64,
    /// Its octets before it is packed.
    pub octets: u64,
    /// Octets of the file.
    pub packed_octets: u64,
}

/// What came of one feed.
#[derive(Debug, Clone, Serialize)]
pub struct Batched {
    /// The peer.
    pub peer: String,
    /// The feed.
    pub feed: String,
    /// Where its batches are.
    pub folder: PathBuf,
    /// Batches that waited there before.
    pub waiting: Vec<PathBuf>,
    /// Those that were added.
    pub batches: Vec<Batch>,
    /// Articles of them; with `dry_run` those that would go.
    pub articles: u64,
    /// Octets of those articles; before packing.
    pub octets: u64,
    /// Articles that were gone before they could be written, in all.
    pub gone: u64,
    /// Some of them, by message-id.
    pub gone_ids: Vec<String>,
    /// The most articles that can have been missed, of a part of the log that is gone.
    pub missed: u64,
    /// Why not everything was written, if it was not.
    pub stopped: Option<String>,
}

/// Says how far it is, of how many; `false`: that is enough.
pub type Told<'t> = &'t mut dyn FnMut(u64, u64) -> bool;

/// An article that goes.
struct Going {
    sequence: Sequence,
    filed: Option<(GroupId, ArticleNumber)>,
    id: Box<str>,
    /// None: the log does not say it any more.
    octets: Option<u32>,
}

/// So many articles of what the log loses next are read ahead of the batch that is written.
const AHEAD_MAX: usize = 10_000;

/// After so many of one reading it is asked whether anybody still waits for them.
const ASKED_EVERY: usize = 100;

/// Why a run ends whose articles were dropped.
const DROPPED: &str = "what waited was dropped meanwhile";

/// The longest line in front of an article in a batch.
const HEADER_OCTETS_MAX: u64 = "#! rnews 4294967295\n".len() as u64;

impl Going {
    /// No more than this it takes in a batch, whose lines are shorter than those that are served.
    fn octets_max(&self) -> u64 {
        u64::from(self.octets.unwrap_or(0)) + HEADER_OCTETS_MAX
    }
}

/// What was missed, as the log has it no longer.
#[derive(Default)]
struct Lost {
    /// The most articles that can be.
    many: u64,
    why: String,
}

impl Lost {
    fn add(&mut self, more: Self) {
        if more.many > 0 {
            self.many += more.many;
            self.why = more.why;
        }
    }
}

impl Peers {
    /// Writes what waits for feeds of batches.  Waits for the disk.
    ///
    /// # Errors
    /// When there is no such feed, or nothing can be written or noted; what is named so far is sound and counts.
    pub async fn batch(
        &self,
        wanted: &Batching,
        told: Told<'_>,
    ) -> Result<Vec<Batched>, io::Error> {
        let feeds = self.named(&wanted.name);
        let batches = |feed: &&Arc<Feed>| feed.config.kind == FeedKind::Batch;
        let those: Vec<_> = feeds.iter().filter(batches).collect();
        if those.is_empty() {
            let why = match feeds.is_empty() {
                true => format!("there is no peer {:?} in the configuration", wanted.name),
                false => format!(
                    "no feed of {:?} has `kind = \"batch\"` in the configuration",
                    wanted.name
                ),
            };
            return Err(io::Error::other(why));
        }
        let mut all = Vec::new();
        for feed in those {
            // One at a time: the place is this one's until it is done.
            let _alone = feed.batching.lock().await;
            let run = Run::new(self, feed, wanted);
            all.push(match wanted.dry_run {
                true => run.count(told).await?,
                false => run.write(told).await?,
            });
        }
        Ok(all)
    }

    /// What runs left that were killed counts or goes, before anything else moves a place.
    pub(crate) fn tidy_batches(&self) {
        let feeds = self.feeds.lock().clone();
        for feed in feeds.iter().filter(|it| it.config.kind == FeedKind::Batch) {
            let settled = feed.queue.lock().place().settled_before();
            let folder = self.outgoing(feed);
            if let Err(error) = folder.tidy(settled) {
                let (peer, feed, folder) = (&feed.peer.name, &feed.config.name, folder.path());
                tracing::error!(peer, feed, ?folder, %error, "what a run left cannot be tidied up");
            }
        }
    }

    fn outgoing(&self, feed: &Feed) -> Outgoing {
        let path = self.folder_of(feed);
        Outgoing::new(Arc::clone(&self.disk), path, &feed.config.name)
    }

    /// Where a feed's batches go.
    pub(crate) fn folder_of(&self, feed: &Feed) -> PathBuf {
        folder_of(&self.spool, &feed.peer, &feed.config)
    }
}

/// One feed's batches.
struct Run<'p> {
    peers: &'p Peers,
    feed: &'p Feed,
    folder: Outgoing,
    wrapping: Wrapping,
    octets_max: u64,
    /// What the directory may still take.
    room: u64,
    /// Missed before what is read next, and not counted by the feed: that it is when the place moves behind it.
    missed: Lost,
    /// What went into the batch or its window since the place moved.
    taken: BTreeMap<Sequence, Box<str>>,
    /// What of that was gone; it is counted when the place moves behind it.
    gone: Vec<(Sequence, Box<str>)>,
    /// How often the feed's articles had been dropped when this began.
    drops: u64,
    done: Batched,
}

impl<'p> Run<'p> {
    fn new(peers: &'p Peers, feed: &'p Feed, wanted: &Batching) -> Self {
        let folder = peers.outgoing(feed);
        Self {
            peers,
            feed,
            wrapping: Wrapping {
                packing: wanted.packing.unwrap_or(feed.config.packing),
                unpacker: feed.config.unpacker.clone(),
            },
            octets_max: wanted.octets_max.unwrap_or(feed.config.batch_octets_max),
            room: 0,
            missed: Lost::default(),
            taken: BTreeMap::new(),
            gone: Vec::new(),
            drops: feed.queue.lock().drops(),
            done: Batched {
                peer: feed.peer.name.clone(),
                feed: feed.config.name.clone(),
                folder: folder.path().to_owned(),
                waiting: Vec::new(),
                batches: Vec::new(),
                articles: 0,
                octets: 0,
                gone: 0,
                gone_ids: Vec::new(),
                missed: 0,
                stopped: None,
            },
            folder,
        }
    }

    /// Says what would go.
    async fn count(mut self, told: Told<'_>) -> Result<Batched, io::Error> {
        (self.done.waiting, _) = self.folder.finished()?;
        let (mut going, mut framed) = (VecDeque::new(), Framed::default());
        let mut steps = Steps::new(self.peers, self.feed);
        while steps.next(&mut going)? && told(steps.done(), steps.total()) {
            for mut article in going.drain(..) {
                framed.measure(self.peers, &mut article).await?;
                self.done.articles += 1;
                self.done.octets += u64::from(article.octets.unwrap_or(0));
            }
            self.done.missed += std::mem::take(&mut steps.lost).many;
        }
        Ok(self.done)
    }

    async fn write(mut self, told: Told<'_>) -> Result<Batched, io::Error> {
        if self.feed.is_paused() {
            self.done.stopped = Some("the feed is paused".to_owned());
            return Ok(self.done);
        }
        if self.feed.stop.is_started() {
            // Another has its place by now.
            self.done.stopped = Some("the configuration of the feed was changed".to_owned());
            return Ok(self.done);
        }
        // What a write that failed left undone: batches are judged by the place as the disk has it.
        self.peers.places.write().map_err(io::Error::other)?;
        let settled = self.feed.queue.lock().place().settled_before();
        self.folder.tidy(settled)?;
        let (waiting, octets) = self.folder.finished()?;
        self.done.waiting = waiting;
        self.room = self.feed.config.waiting_octets_max.saturating_sub(octets);
        let mut going = VecDeque::new();
        let mut steps = Steps::new(self.peers, self.feed);
        let mut ended = self.write_all(&mut steps, &mut going, told).await;
        if let Err(why) = self.leave(going, &mut steps) {
            ended = ended.and(Err(why));
        }
        ended.map(|()| self.done)
    }

    /// Writes what there is, or as much of it as may be.
    async fn write_all(
        &mut self,
        steps: &mut Steps<'_>,
        going: &mut VecDeque<Going>,
        told: Told<'_>,
    ) -> Result<(), io::Error> {
        let mut window = Window::new(self.feed);
        while self.done.stopped.is_none() && steps.next(going)? {
            while self.done.stopped.is_none() && !going.is_empty() {
                steps.read_ahead(going)?;
                let asks = going.len().is_multiple_of(ASKED_EVERY);
                if !self.is_to_end(!asks || told(steps.done(), steps.total())) {
                    self.write_next(&mut window, going).await?;
                }
            }
            if going.is_empty() {
                self.missed.add(std::mem::take(&mut steps.lost));
                let is_wanted = told(steps.done(), steps.total());
                self.is_to_end(is_wanted);
            }
        }
        self.put(&mut window).await?;
        let rest = going.front().map(|article| article.sequence);
        let to = rest.unwrap_or(steps.cursor.position());
        match window.batch {
            Some(batch) => self.finish(batch, to),
            None => self.move_to(to).map(|_| ()),
        }
    }

    /// Whether it ends before everything is written; it says why.
    fn is_to_end(&mut self, is_wanted: bool) -> bool {
        if self.feed.queue.lock().drops() != self.drops {
            self.done.stopped = Some(DROPPED.to_owned());
        } else if !is_wanted || self.feed.stop.is_started() {
            self.done.stopped = Some("it was interrupted".to_owned());
        }
        self.done.stopped.is_some()
    }

    /// Puts the next article into the window, and what has room no more into its batch.
    async fn write_next(
        &mut self,
        window: &mut Window,
        going: &mut VecDeque<Going>,
    ) -> Result<(), io::Error> {
        let Some(article) = going.front_mut() else {
            return Ok(());
        };
        window.framed.measure(self.peers, article).await?;
        if window.begins_batch(article, self.octets_max) {
            self.put(window).await?;
            if let Some(full) = window.batch.take() {
                self.finish(full, article.sequence)?;
            }
        }
        if window.is_at_begin() && self.room == 0 {
            let octets = self.feed.config.waiting_octets_max;
            let stopped = self.done.stopped.get_or_insert_default();
            *stopped = format!(
                "finished batches in {} have `waiting_octets_max`, {octets} octets, already",
                self.folder.path().display()
            );
            return Ok(());
        }
        if let Some(article) = going.pop_front() {
            self.taken.insert(article.sequence, article.id.clone());
            window.push(article);
        }
        if window.articles.len() >= window.articles_max {
            self.put(window).await?;
        }
        Ok(())
    }

    /// Puts the articles of a window into its batch.
    async fn put(&mut self, window: &mut Window) -> Result<(), io::Error> {
        window.articles.sort_by_key(|article| article.filed);
        window.octets_max = 0;
        for article in window.articles.drain(..) {
            let framed = &mut window.framed;
            if !framed.read(self.peers, &article.id).await? {
                self.taken.remove(&article.sequence);
                self.gone.push((article.sequence, article.id));
                continue;
            }
            let batch = match &mut window.batch {
                Some(batch) => batch,
                none => none.insert(self.folder.begin(window.from, &self.wrapping)?),
            };
            batch.write(&framed.batch)?;
        }
        Ok(())
    }

    /// A batch is complete: it is on disk, the place moves behind it, on disk too, and it gets its name.
    fn finish(&mut self, batch: Writing, to: Sequence) -> Result<(), io::Error> {
        let whole: Whole = self.folder.finish(batch, to)?;
        let written = std::mem::take(&mut self.taken);
        if !self.move_to(to)? {
            return self.folder.discard(&whole);
        }
        let mut queue = self.feed.queue.lock();
        queue.tally.accepted += whole.articles;
        queue.tally.octets += whole.octets;
        drop(queue);
        let file = self.folder.name(&whole)?;
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let now = UnixTime(self.peers.clock.now().secs);
        let mut queue = self.feed.queue.lock();
        for id in written.values() {
            queue.remember(id, Settled::Written, &name, now);
        }
        drop(queue);
        self.done.batches.push(Batch {
            file,
            articles: whole.articles,
            octets: whole.octets,
            packed_octets: whole.packed_octets,
        });
        self.done.articles += whole.articles;
        self.done.octets += whole.octets;
        self.room = self.room.saturating_sub(whole.packed_octets);
        Ok(())
    }

    /// Everything before is settled, or missed; `false`: it was dropped.
    fn move_to(&mut self, to: Sequence) -> Result<bool, io::Error> {
        self.pass(to, BTreeMap::new())
    }

    /// What was read, and is in no batch, stays open by its message-id where the log loses it next: the next run does not find it there.
    fn leave(&mut self, going: VecDeque<Going>, steps: &mut Steps<'_>) -> Result<(), io::Error> {
        let mut open = std::mem::take(&mut self.taken);
        open.extend(going.into_iter().map(|it| (it.sequence, it.id)));
        let read = steps.cursor.position();
        // What was missed behind them is counted here, and read no more.
        let lost = match self.missed.many + steps.lost.many {
            0 => read.min(self.peers.engine.feeds_lose_before()),
            _ => read,
        };
        drop(open.split_off(&lost));
        if open.is_empty() {
            return Ok(());
        }
        self.missed.add(std::mem::take(&mut steps.lost));
        self.pass(lost, open).map(|_| ())
    }

    /// Everything before is settled, but for these; `false`: it was dropped.
    fn pass(
        &mut self,
        to: Sequence,
        open: BTreeMap<Sequence, Box<str>>,
    ) -> Result<bool, io::Error> {
        let gone = std::mem::take(&mut self.gone).into_iter();
        let gone: Vec<_> = gone.filter(|(at, _)| *at < to).collect();
        let missed = std::mem::take(&mut self.missed);
        let mut queue = self.feed.queue.lock();
        if queue.drops() != self.drops {
            self.done.stopped = Some(DROPPED.to_owned());
            return Ok(false);
        }
        queue.miss(missed.many);
        queue.pass_leaving(to, open);
        queue.tally.gone += gone.len() as u64;
        gone.iter().for_each(|(_, id)| queue.name_gone(id));
        drop(queue);
        self.feed.tell_missed(missed.many, &missed.why);
        self.done.missed += missed.many;
        self.done.gone += gone.len() as u64;
        for (_, id) in gone {
            self.feed.tell_gone(&id);
            if self.done.gone_ids.len() < GONE_NAMED_MAX {
                self.done.gone_ids.push(id.into());
            }
        }
        self.peers.places.write().map_err(io::Error::other)?;
        Ok(true)
    }
}

/// The batch that is written, and articles that are still to be put into it: in the order of groups and numbers, where that is wanted,
/// or each by itself.
struct Window {
    articles: Vec<Going>,
    articles_max: usize,
    /// No more than this they take.
    octets_max: u64,
    /// The first of the batch, by the log.
    from: Sequence,
    batch: Option<Writing>,
    framed: Framed,
}

impl Window {
    fn new(feed: &Feed) -> Self {
        let FeedConfig {
            by_group,
            articles_max,
            ..
        } = &feed.config;
        Self {
            articles: Vec::new(),
            articles_max: if *by_group { *articles_max as usize } else { 1 },
            octets_max: 0,
            from: Sequence(0),
            batch: None,
            framed: Framed::default(),
        }
    }

    fn is_at_begin(&self) -> bool {
        self.batch.is_none() && self.articles.is_empty()
    }

    /// Whether an article has no room in the batch any more.
    fn begins_batch(&self, article: &Going, octets_max: u64) -> bool {
        let written = self.batch.as_ref().map_or(0, Writing::octets);
        !self.is_at_begin() && written + self.octets_max + article.octets_max() > octets_max
    }

    fn push(&mut self, article: Going) {
        if self.is_at_begin() {
            self.from = article.sequence;
        }
        self.octets_max += article.octets_max();
        self.articles.push(article);
    }
}

/// An article with its header line, as batches have it.
#[derive(Default)]
struct Framed {
    memory: ArticleBuf,
    text: Vec<u8>,
    batch: Vec<u8>,
}

impl Framed {
    /// Reads an article; `false`: it is gone.
    async fn read(&mut self, peers: &Peers, id: &str) -> Result<bool, io::Error> {
        if !self.find(peers, id).await? {
            return Ok(false);
        }
        self.text.clear();
        self.batch.clear();
        wire_to_lf(self.memory.content(), &mut self.text);
        batch::write_article(&self.text, &mut self.batch);
        Ok(true)
    }

    /// Finds out how large an article is, if nobody knows.
    async fn measure(&mut self, peers: &Peers, article: &mut Going) -> Result<(), io::Error> {
        if article.octets.is_none() {
            let is_here = self.find(peers, &article.id).await?;
            let octets = u32::try_from(self.memory.content().len()).unwrap_or(u32::MAX);
            article.octets = Some(if is_here { octets } else { 0 });
        }
        Ok(())
    }

    async fn find(&mut self, peers: &Peers, id: &str) -> Result<bool, io::Error> {
        let Ok(id) = MessageId::parse(id.as_bytes()) else {
            return Ok(false);
        };
        let service = peers.engine.service();
        let query = ArticleQuery::ById(id);
        let found = service.article(query, Part::Whole, &mut self.memory).await;
        Ok(found.map_err(io::Error::other)?.is_some())
    }
}

/// The log from a feed's place to where it ended when this began; what it loses meanwhile is read in time, and goes as well.
struct Steps<'p> {
    engine: &'p Engine,
    feed: &'p Feed,
    cursor: FeedCursor,
    from: Sequence,
    end: Sequence,
    now_s: u64,
    /// What is open by its message-id.
    named: BTreeMap<Sequence, Box<str>>,
    /// Missed before the next that is read.
    lost: Lost,
    /// The next article is too young.
    is_over: bool,
}

impl<'p> Steps<'p> {
    fn new(peers: &'p Peers, feed: &'p Feed) -> Self {
        let place = feed.queue.lock().place().clone();
        let from = place.needs_from();
        Self {
            engine: &peers.engine,
            feed,
            cursor: peers.engine.feed_from(from),
            from,
            end: peers.engine.watch_commits().borrow().next(),
            now_s: peers.clock.now().secs,
            named: place.named,
            lost: Lost::default(),
            is_over: false,
        }
    }

    fn total(&self) -> u64 {
        self.end.0.saturating_sub(self.from.0)
    }

    fn done(&self) -> u64 {
        self.cursor.position().0.saturating_sub(self.from.0)
    }

    /// The next articles that go; `false`: there are no more.
    fn next(&mut self, going: &mut VecDeque<Going>) -> Result<bool, io::Error> {
        self.read_ahead(going)?;
        match going.is_empty() && self.lost.many == 0 {
            true => self.next_commit(going),
            false => Ok(true),
        }
    }

    /// Reads what the log loses next, as far as that is not much.
    fn read_ahead(&mut self, going: &mut VecDeque<Going>) -> Result<(), io::Error> {
        let lost = self.engine.feeds_lose_before();
        self.end = self.end.max(lost);
        let may_go_on = |it: &Self| it.lost.many == 0 && !it.is_over && it.cursor.position() < lost;
        while may_go_on(self) && going.len() < AHEAD_MAX {
            self.next_commit(going)?;
        }
        Ok(())
    }

    /// The articles of one commit that go; `false`: there are no more commits.
    fn next_commit(&mut self, going: &mut VecDeque<Going>) -> Result<bool, io::Error> {
        if self.is_over || self.cursor.position() >= self.end {
            self.take_named(self.cursor.position(), going);
            return Ok(!going.is_empty());
        }
        let (feed, end, now_s, is_over) = (self.feed, self.end, self.now_s, &mut self.is_over);
        let read = self.cursor.read(|article| {
            let mut queue = feed.queue.lock();
            let (at, is_open) = (article.sequence, queue.is_in_log(article.sequence));
            let is_unseen = !is_open && queue.is_unseen(at);
            // What is open waited for its delay before.
            *is_over = at >= end || is_unseen && queue.is_too_young(article.arrival, now_s);
            if *is_over {
                return ControlFlow::Break(());
            }
            if is_open || is_unseen && feed.filter.takes(article) {
                going.push_back(Going {
                    sequence: at,
                    filed: article.place,
                    id: String::from_utf8_lossy(article.id).into(),
                    octets: Some(article.octets),
                });
            }
            ControlFlow::Continue(())
        });
        match read.map_err(io::Error::other)? {
            FeedRead::End => self.is_over = true,
            FeedRead::Missed { from, before, why } => {
                let many = self.feed.queue.lock().unseen_at_most(from, before);
                self.lost.add(Lost { many, why });
            }
            FeedRead::More => {}
        }
        self.take_named(self.cursor.position(), going);
        Ok(true)
    }

    /// What is open by its message-id, and was in the log before this, goes at its place.
    fn take_named(&mut self, before: Sequence, going: &mut VecDeque<Going>) {
        if self.named.is_empty() {
            return;
        }
        let later = self.named.split_off(&before);
        let named = std::mem::replace(&mut self.named, later).into_iter();
        going.extend(named.map(|(sequence, id)| Going {
            sequence,
            filed: None,
            id,
            octets: None,
        }));
        going.make_contiguous().sort_by_key(|it| it.sequence);
    }
}
