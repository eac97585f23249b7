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
use newsreel_wire::{ArticleNumber, GroupId, MessageId, Sequence, batch};
use serde::{Deserialize, Serialize};

use crate::config::{FeedConfig, FeedKind, Packing};
use crate::feed::Feed;
use crate::outgoing::{Outgoing, Whole, Wrapping, Writing};
use crate::peers::Peers;
use crate::queue::GONE_NAMED_MAX;

/// Where batches go in a spool, unless the configuration says.
const FOLDER: &str = "batches/out";

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
    id: String,
    octets: u32,
}

/// So many articles of what the log loses next are read ahead of the batch that is written.
const AHEAD_MAX: usize = 10_000;

/// After so many of one reading it is asked whether anybody still waits for them.
const ASKED_EVERY: usize = 100;

/// The longest line in front of an article in a batch.
const HEADER_OCTETS_MAX: u64 = "#! rnews 4294967295\n".len() as u64;

impl Going {
    /// No more than this it takes in a batch, whose lines are shorter than those that are served.
    fn octets_max(&self) -> u64 {
        u64::from(self.octets) + HEADER_OCTETS_MAX
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
                true => run.count(told)?,
                false => run.write(told).await?,
            });
        }
        Ok(all)
    }

    /// Where a feed's batches go.
    pub(crate) fn folder_of(&self, feed: &Feed) -> PathBuf {
        match feed.config.folder.as_os_str().is_empty() {
            true => self.spool.join(FOLDER).join(&feed.peer.name),
            false => feed.config.folder.clone(),
        }
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
    missed: u64,
    done: Batched,
}

impl<'p> Run<'p> {
    fn new(peers: &'p Peers, feed: &'p Feed, wanted: &Batching) -> Self {
        let path = peers.folder_of(feed);
        Self {
            peers,
            feed,
            wrapping: Wrapping {
                packing: wanted.packing.unwrap_or(feed.config.packing),
                unpacker: feed.config.unpacker.clone(),
            },
            octets_max: wanted.octets_max.unwrap_or(feed.config.batch_octets_max),
            room: 0,
            missed: 0,
            done: Batched {
                peer: feed.peer.name.clone(),
                feed: feed.config.name.clone(),
                folder: path.clone(),
                waiting: Vec::new(),
                batches: Vec::new(),
                articles: 0,
                octets: 0,
                gone: 0,
                gone_ids: Vec::new(),
                missed: 0,
                stopped: None,
            },
            folder: Outgoing::new(Arc::clone(&peers.disk), path, &feed.config.name),
        }
    }

    /// Says what would go.
    fn count(mut self, told: Told<'_>) -> Result<Batched, io::Error> {
        (self.done.waiting, _) = self.folder.finished()?;
        let mut going = VecDeque::new();
        let mut steps = Steps::new(self.peers, self.feed);
        while steps.next(&mut going)? && told(steps.done(), steps.total()) {
            for article in going.drain(..) {
                self.done.articles += 1;
                self.done.octets += u64::from(article.octets);
            }
            self.done.missed += std::mem::take(&mut steps.missed);
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
        let settled = self.feed.queue.lock().place().needs_from();
        self.folder.tidy(settled)?;
        let (waiting, octets) = self.folder.finished()?;
        self.done.waiting = waiting;
        self.room = self.feed.config.waiting_octets_max.saturating_sub(octets);
        let mut going = VecDeque::new();
        let mut steps = Steps::new(self.peers, self.feed);
        let mut window = Window::new(self.feed);
        while steps.next(&mut going)? {
            while let Some(article) = going.pop_front() {
                steps.read_ahead(&mut going)?;
                let asks = going.len() % ASKED_EVERY == ASKED_EVERY - 1;
                let is_wanted = !asks || told(steps.done(), steps.total());
                if !is_wanted || self.feed.stop.is_started() {
                    going.push_front(article);
                    break;
                }
                if window.begins_batch(&article, self.octets_max) {
                    self.put(&mut window).await?;
                    if let Some(full) = window.batch.take() {
                        self.finish(full, article.sequence)?;
                    }
                }
                if window.is_at_begin() && self.room == 0 {
                    self.move_to(article.sequence)?;
                    let octets = self.feed.config.waiting_octets_max;
                    self.done.stopped = Some(format!(
                        "finished batches in {} have `waiting_octets_max`, {octets} octets, already",
                        self.folder.path().display()
                    ));
                    return Ok(self.done);
                }
                window.push(article);
                if window.articles.len() >= window.articles_max {
                    self.put(&mut window).await?;
                }
            }
            if going.is_empty() {
                self.missed += std::mem::take(&mut steps.missed);
            }
            let is_wanted = told(steps.done(), steps.total());
            if !is_wanted || self.feed.stop.is_started() {
                self.done.stopped = Some("it was interrupted".to_owned());
                break;
            }
        }
        self.put(&mut window).await?;
        let rest = going.front().map(|article| article.sequence);
        let to = rest.unwrap_or(steps.cursor.position());
        match window.batch {
            Some(batch) => self.finish(batch, to)?,
            None => self.move_to(to)?,
        }
        Ok(self.done)
    }

    /// Puts the articles of a window into its batch.
    async fn put(&mut self, window: &mut Window) -> Result<(), io::Error> {
        window.articles.sort_by_key(|article| article.filed);
        window.octets_max = 0;
        for article in window.articles.drain(..) {
            let framed = &mut window.framed;
            if !framed
                .read(self.peers, &article.id, &mut window.memory)
                .await?
            {
                self.gone(article.id);
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
        self.move_to(to)?;
        let mut queue = self.feed.queue.lock();
        queue.tally.accepted += whole.articles;
        queue.tally.octets += whole.octets;
        drop(queue);
        self.done.batches.push(Batch {
            file: self.folder.name(&whole)?,
            articles: whole.articles,
            octets: whole.octets,
            packed_octets: whole.packed_octets,
        });
        self.done.articles += whole.articles;
        self.done.octets += whole.octets;
        self.room = self.room.saturating_sub(whole.packed_octets);
        Ok(())
    }

    /// Everything before is settled, or missed.
    fn move_to(&mut self, to: Sequence) -> Result<(), io::Error> {
        let missed = std::mem::take(&mut self.missed);
        self.done.missed += missed;
        let mut queue = self.feed.queue.lock();
        queue.miss(missed);
        queue.pass(to);
        drop(queue);
        self.peers.places.write().map_err(io::Error::other)?;
        self.peers.hold_log();
        Ok(())
    }

    fn gone(&mut self, id: String) {
        let mut queue = self.feed.queue.lock();
        queue.tally.gone += 1;
        queue.name_gone(&id);
        drop(queue);
        self.feed.tell_gone(&id);
        self.done.gone += 1;
        if self.done.gone_ids.len() < GONE_NAMED_MAX {
            self.done.gone_ids.push(id);
        }
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
    memory: ArticleBuf,
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
            memory: ArticleBuf::new(),
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
    text: Vec<u8>,
    batch: Vec<u8>,
}

impl Framed {
    /// Reads an article; `false`: it is gone.
    async fn read(
        &mut self,
        peers: &Peers,
        id: &str,
        memory: &mut ArticleBuf,
    ) -> Result<bool, io::Error> {
        let Ok(id) = MessageId::parse(id.as_bytes()) else {
            return Ok(false);
        };
        let service = peers.engine.service();
        let query = ArticleQuery::ById(id);
        let found = service.article(query, Part::Whole, memory).await;
        if found.map_err(io::Error::other)?.is_none() {
            return Ok(false);
        }
        self.text.clear();
        self.batch.clear();
        wire_to_lf(memory.content(), &mut self.text);
        batch::write_article(&self.text, &mut self.batch);
        Ok(true)
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
    /// The most articles that can have been missed before the next that is read.
    missed: u64,
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
            missed: 0,
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
        match going.is_empty() && self.missed == 0 {
            true => self.next_commit(going),
            false => Ok(true),
        }
    }

    /// Reads what the log loses next, as far as that is not much.
    fn read_ahead(&mut self, going: &mut VecDeque<Going>) -> Result<(), io::Error> {
        let lost = self.engine.feeds_lose_before();
        self.end = self.end.max(lost);
        let may_go_on = |it: &Self| it.missed == 0 && !it.is_over && it.cursor.position() < lost;
        while may_go_on(self) && going.len() < AHEAD_MAX {
            self.next_commit(going)?;
        }
        Ok(())
    }

    /// The articles of one commit that go; `false`: there are no more commits.
    fn next_commit(&mut self, going: &mut VecDeque<Going>) -> Result<bool, io::Error> {
        if self.is_over || self.cursor.position() >= self.end {
            self.take_named(self.end, going);
            return Ok(!going.is_empty());
        }
        let (mut queue, now_s) = (self.feed.queue.lock(), self.now_s);
        let (filter, end, is_over) = (&self.feed.filter, self.end, &mut self.is_over);
        let read = self.cursor.read(|article| {
            *is_over = article.sequence >= end || queue.is_too_young(article.arrival, now_s);
            if *is_over {
                return ControlFlow::Break(());
            }
            let place = queue.place();
            let goes = match article.sequence < place.next {
                true => place.is_open_in_log(article.sequence),
                false => filter.takes(article),
            };
            if goes {
                going.push_back(Going {
                    sequence: article.sequence,
                    filed: article.place,
                    id: String::from_utf8_lossy(article.id).into_owned(),
                    octets: article.octets,
                });
            }
            ControlFlow::Continue(())
        });
        match read.map_err(io::Error::other)? {
            FeedRead::End => self.is_over = true,
            FeedRead::Missed { from, before, why } => {
                self.missed += self.feed.tell_missed(from, before, &why);
            }
            FeedRead::More => {}
        }
        drop(queue);
        self.take_named(self.cursor.position(), going);
        Ok(true)
    }

    /// What is open by its message-id, and was in the log before this, goes at its place; how large it is nobody knows any more.
    fn take_named(&mut self, before: Sequence, going: &mut VecDeque<Going>) {
        if self.named.is_empty() {
            return;
        }
        let later = self.named.split_off(&before);
        let named = std::mem::replace(&mut self.named, later).into_iter();
        going.extend(named.map(|(sequence, id)| Going {
            sequence,
            filed: None,
            id: id.into(),
            octets: 0,
        }));
        going.make_contiguous().sort_by_key(|it| it.sequence);
    }
}
