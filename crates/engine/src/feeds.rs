//! What outgoing feeds need of the engine: the articles in the order of the log, a word when there are more, and that the log
//! keeps what they have not read.
//!
//! An article's place in a feed is the sequence of its `feed` record.  An article without one, from before there were feeds or
//! from another spool, is fed to nobody.  Who reads may stop anywhere and go on there later; what was lost meanwhile is said.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use newsreel_journal::{Cursor, Error as JournalError};
use newsreel_wire::article::Content;
use newsreel_wire::{ArticleNumber, GroupId, Sequence, Token, UnixTime};
use tokio::sync::watch;

use crate::engine::Engine;
use crate::error::Error;
use crate::record::{ArticleRecord, FeedRecord, kind};
use crate::shared::Shared;

/// Stands for: there are no outgoing feeds.
const NOBODY: u64 = u64::MAX;

/// The engine's side of outgoing feeds.
#[derive(Debug)]
pub(crate) struct Feeds {
    /// The log is kept from here on, as far as it may be.
    needed_from: AtomicU64,
    /// What comes goes out by them.
    are_there: AtomicBool,
    /// What is before this goes at the next checkpoint, even if they need it.
    goes_before: AtomicU64,
    /// A feed chooses by what bodies are.
    asks_content: AtomicBool,
    committed: watch::Sender<Sequence>,
}

impl Feeds {
    pub(crate) fn new(committed: Sequence) -> Self {
        Self {
            needed_from: AtomicU64::new(NOBODY),
            are_there: AtomicBool::new(false),
            goes_before: AtomicU64::new(0),
            asks_content: AtomicBool::new(false),
            committed: watch::Sender::new(committed),
        }
    }

    /// Whether records for them are written.
    pub(crate) fn are_there(&self) -> bool {
        self.are_there.load(Ordering::Relaxed)
    }

    /// Whether such records say what bodies are.
    pub(crate) fn ask_content(&self) -> bool {
        self.asks_content.load(Ordering::Relaxed)
    }

    /// From where on they need the log.
    pub(crate) fn needed_from(&self) -> Option<Sequence> {
        let from = self.needed_from.load(Ordering::Relaxed);
        (from != NOBODY).then_some(Sequence(from))
    }

    /// Up to where the log goes, when it is to go up to `keep`: what feeds need stays until the next time, unless there is no room, so
    /// that they can name what they miss.
    pub(crate) fn let_go(&self, keep: Sequence, has_room: bool) -> Sequence {
        let told = Sequence(self.goes_before.swap(keep.0, Ordering::Relaxed));
        match self.needed_from() {
            Some(from) if has_room && from < keep => keep.min(from.max(told)),
            _ => keep,
        }
    }

    /// Everything up to here is committed.
    pub(crate) fn tell(&self, committed: Sequence) {
        self.committed.send_replace(committed);
    }
}

/// An article as a feed sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FedArticle<'a> {
    /// Its place.
    pub sequence: Sequence,
    /// When it arrived.
    pub arrival: UnixTime,
    /// Octets as served, without dot-stuffing and terminator.
    pub octets: u32,
    /// The first group it is filed in, and its number there.
    pub place: Option<(GroupId, ArticleNumber)>,
    /// Where its text was put when it came.
    pub token: Option<Token>,
    /// Its message-id, with brackets.
    pub id: &'a [u8],
    /// The content of Path as stored, our own name in front.
    pub path: &'a [u8],
    /// What it is chosen by first.
    pub groups: FedGroups<'a>,
    /// The content of Distribution; empty where there is none.
    pub distribution: &'a [u8],
    /// It was injected here.
    pub is_posted: bool,
    /// It is a control message.
    pub is_control: bool,
    /// What its body is; none: nobody asked when it came.
    pub content: Option<Content>,
}

/// How a step of reading came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FeedRead {
    /// Articles were shown, or passed over; there may be more.
    More,
    /// Everything committed has been read.
    End,
    /// Everything from one sequence to before another is not there any more.
    Missed {
        /// The first that is lost.
        from: Sequence,
        /// The first that is there again.
        before: Sequence,
        /// Why, in words.
        why: String,
    },
}

/// The groups by which an article is chosen: those that Newsgroups names, and the one of this server that a control message is
/// filed in; where it is filed in `junk`, as none of its groups is here, that one alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FedGroups<'a> {
    /// The content of Newsgroups, with the names that are not here.
    pub newsgroups: &'a [u8],
    /// `control`, `control.cancel` and the like, or `junk`, where it is filed there.
    pub filed_in: Option<&'a str>,
    /// It is filed in `junk`: what Newsgroups names is not why it goes anywhere.
    pub is_strange: bool,
}

impl<'a> FedGroups<'a> {
    /// Those that Newsgroups names, and no others.
    #[must_use]
    pub const fn named(newsgroups: &'a [u8]) -> Self {
        Self {
            newsgroups,
            filed_in: None,
            is_strange: false,
        }
    }

    /// ... and where it is filed.
    #[must_use]
    pub fn filed(newsgroups: &'a [u8], group: &'a str) -> Self {
        if !is_set_apart(group) {
            return Self::named(newsgroups);
        }
        Self {
            newsgroups,
            filed_in: Some(group),
            is_strange: group == "junk",
        }
    }
}

/// Whether articles are filed in a group for what they are, whatever Newsgroups says.
fn is_set_apart(group: &str) -> bool {
    group == "junk" || group == "control" || group.starts_with("control.")
}

/// A place in the order of all articles.
#[derive(Debug)]
pub struct FeedCursor {
    cursor: Cursor,
    shared: Arc<Shared>,
}

impl FeedCursor {
    /// What has not been read begins here.
    #[must_use]
    pub const fn position(&self) -> Sequence {
        self.cursor.position()
    }

    /// Goes elsewhere.
    pub fn seek(&mut self, to: Sequence) {
        self.cursor.seek(to);
    }

    /// Shows the articles of one commit until `visit` breaks off; the one it breaks off at is shown again.  Waits for the disk
    /// where the log is not in memory.
    ///
    /// # Errors
    /// When the disk fails, or a record is not what this newsreel writes.
    pub fn read(
        &mut self,
        mut visit: impl FnMut(&FedArticle<'_>) -> ControlFlow<()>,
    ) -> Result<FeedRead, Error> {
        let from = self.cursor.position();
        let frame = match self.cursor.next_frame() {
            Ok(Some(frame)) => frame,
            Ok(None) => return Ok(FeedRead::End),
            Err(JournalError::Gone { wanted, oldest }) => {
                self.cursor.seek(oldest);
                if wanted >= oldest {
                    // What was before it went while it stood at the end of that.
                    return Ok(FeedRead::More);
                }
                return Ok(FeedRead::Missed {
                    from: wanted,
                    before: oldest,
                    why: "the log was kept no longer".to_owned(),
                });
            }
            Err(JournalError::Damaged(damage)) => {
                return Ok(FeedRead::Missed {
                    from: damage.first,
                    before: damage.before,
                    why: format!("the log is damaged: {}", damage.why),
                });
            }
            Err(error) => return Err(error.into()),
        };
        let groups = self.shared.views.groups();
        let apart = groups.by_name("junk").map(|group| group.id());
        let (mut facts, mut stopped_at) = (None, None);
        for record in frame.records().since(from) {
            match record.kind {
                kind::FEED => {
                    let feed = FeedRecord::decode(record.sequence, record.payload)?;
                    facts = Some((record.sequence, feed));
                }
                kind::EXPIRES => {}
                kind::ARTICLE => {
                    let Some((sequence, feed)) = facts.take() else {
                        continue;
                    };
                    let article = ArticleRecord::decode(record.sequence, record.payload)?;
                    let first = article.groups.first().map(|(group, _)| *group);
                    let may_be_apart = feed.is_control || (first.is_some() && first == apart);
                    let group = first.filter(|_| may_be_apart);
                    let group = group.and_then(|group| groups.by_id(group));
                    let named = FedGroups::named(feed.newsgroups);
                    let filed = |group| FedGroups::filed(feed.newsgroups, group);
                    let chosen_by = group.as_ref().map_or(named, |group| filed(group.name()));
                    if visit(&fed(sequence, &feed, &article, chosen_by)).is_break() {
                        stopped_at = Some(sequence);
                        break;
                    }
                }
                _ => facts = None,
            }
        }
        if let Some(sequence) = stopped_at {
            self.cursor.seek(sequence);
        }
        Ok(FeedRead::More)
    }
}

fn fed<'a>(
    sequence: Sequence,
    feed: &FeedRecord<'a>,
    article: &ArticleRecord<'a>,
    groups: FedGroups<'a>,
) -> FedArticle<'a> {
    FedArticle {
        sequence,
        arrival: article.arrival,
        octets: article.octets,
        place: article.groups.first().copied(),
        token: Some(article.token),
        id: article.id,
        path: article.path,
        groups,
        distribution: feed.distribution,
        is_posted: feed.is_posted,
        is_control: feed.is_control,
        content: feed.content,
    }
}

impl Engine {
    /// Reads the articles of the log from a place on.
    #[must_use]
    pub fn feed_from(&self, from: Sequence) -> FeedCursor {
        FeedCursor {
            cursor: self.shared.journal.read_from(from),
            shared: Arc::clone(&self.shared),
        }
    }

    /// The texts that were put here will be read soon: they come into memory meanwhile.  May wait for the disk a little.
    pub fn will_need(&self, texts: &mut [Token]) {
        self.shared.store.will_need(texts);
    }

    /// Says whether a feed chooses by what bodies are; articles that come from then on are looked at for that.
    pub fn tell_feeds_content(&self, asks: bool) {
        self.shared
            .feeds
            .asks_content
            .store(asks, Ordering::Relaxed);
    }

    /// Says from where on outgoing feeds need the log, which is kept for them as far as `engine.log_keep_octets` lets it; `None`:
    /// there are no feeds.  From the first time on the log says what they must know.
    pub fn keep_for_feeds(&self, from: Option<Sequence>) {
        let feeds = &self.shared.feeds;
        feeds.are_there.store(from.is_some(), Ordering::Relaxed);
        let from = from.map_or(NOBODY, |from| from.0.min(NOBODY - 1));
        feeds.needed_from.store(from, Ordering::Relaxed);
    }

    /// The log is kept from here on for feeds that are not here, and to which nothing goes that comes now.
    pub fn hold_log(&self, from: Sequence) {
        let from = from.0.min(NOBODY - 1);
        self.shared.feeds.needed_from.store(from, Ordering::Relaxed);
    }

    /// What is before this goes from the log at the next checkpoint, at a moment of which nothing more is said, even if feeds need it.
    #[must_use]
    pub fn feeds_lose_before(&self) -> Sequence {
        Sequence(self.shared.feeds.goes_before.load(Ordering::Relaxed))
    }

    /// The last committed sequence, and word of each later one.
    #[must_use]
    pub fn watch_commits(&self) -> watch::Receiver<Sequence> {
        self.shared.feeds.committed.subscribe()
    }
}
