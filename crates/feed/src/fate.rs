//! What became of an article by a feed, as far as that is known: its last word if it is remembered, else where the feed stands.

use std::ops::ControlFlow;
use std::sync::Arc;

use newsreel_engine::{Engine, FeedRead};
use newsreel_wire::{Sequence, UnixTime};

use crate::config::FeedKind;
use crate::feed::Feed;
use crate::queue::{Held, Settled};

/// How far back the log is searched for an article, in sequences: some hundred thousand articles.
pub const SEARCHED_MAX: u64 = 1_000_000;

/// What became of an article.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// The peer took it.
    Accepted(UnixTime),
    /// It is in a batch; the name that its file got.
    Written(UnixTime, Option<String>),
    /// The peer did not want it when it was offered.
    Refused(UnixTime),
    /// It was sent, or nearly, and is not sent again; why, where that is known.
    Rejected(UnixTime, Option<String>),
    /// It was gone before it could be sent.
    Gone(UnixTime),
    /// The log kept it no longer before the feed came to it.
    Missed(UnixTime),
    /// It is in memory and waits for a connection.
    Waits,
    /// It is offered or sent at this moment.
    UnderWay,
    /// It is tried again.
    PutOff {
        /// How often it was put off.
        times: u32,
        /// In how many seconds it is tried again.
        seconds: u64,
    },
    /// It was in memory and not settled when the server stopped: it is sent, perhaps again, when one runs.
    Open,
    /// It is in the log, where the feed has not come yet.
    InLog,
    /// The feed is past it, and the last word on it is not remembered.
    Passed,
    /// The log was not searched as far back as the feed stands, or is not kept so far.
    TooFarBack,
}

/// Where an article is in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// There.
    At(Sequence),
    /// Nowhere from there on, or not for feeds.
    NotFrom(Sequence),
}

/// Where an article is in the log.  Waits for the disk.
pub(crate) fn find(engine: &Engine, id: &[u8]) -> Found {
    let end = engine.watch_commits().borrow().next();
    let oldest = engine.status().log.oldest;
    let from = Sequence(end.0.saturating_sub(SEARCHED_MAX).max(oldest));
    let (mut cursor, mut found) = (engine.feed_from(from), None);
    loop {
        let read = cursor.read(|article| {
            if article.id != id {
                return ControlFlow::Continue(());
            }
            found = Some(article.sequence);
            ControlFlow::Break(())
        });
        match read {
            Ok(FeedRead::More | FeedRead::Missed { .. }) if found.is_none() => {}
            // Where the log cannot be read, its reader says so.
            _ => return found.map_or(Found::NotFrom(from), Found::At),
        }
    }
}

/// The last word of a feed on an article, if it is remembered.
pub(crate) fn remembered(feed: &Feed, id: &str) -> Option<Fate> {
    let queue = feed.queue.lock();
    let word = queue.remembered(id)?;
    Some(match word.how {
        Settled::Accepted => Fate::Accepted(word.at),
        Settled::Written => Fate::Written(word.at, word.said.as_deref().map(str::to_owned)),
        Settled::Refused => Fate::Refused(word.at),
        Settled::Rejected => Fate::Rejected(word.at, word.said.as_deref().map(str::to_owned)),
        Settled::Gone => Fate::Gone(word.at),
        Settled::Missed => Fate::Missed(word.at),
    })
}

/// What becomes of an article by a feed without a last word, by where it stands in the log, or stood while it is open.
pub(crate) fn by_place(feed: &Arc<Feed>, id: &str, found: Found, now_ms: u64) -> Fate {
    let queue = feed.queue.lock();
    let place = queue.place();
    let at = match queue.sequence_of(id).map_or(found, Found::At) {
        Found::At(at) => at,
        Found::NotFrom(from) if place.needs_from() < from => return Fate::TooFarBack,
        Found::NotFrom(_) => return Fate::Passed,
    };
    let is_ahead = place.next <= at;
    if is_ahead
        || place
            .behind
            .iter()
            .any(|(from, to)| *from <= at && at < *to)
    {
        return Fate::InLog;
    }
    match queue.held(at, now_ms) {
        // Of batches nothing is in memory.
        Some(_) if feed.config.kind == FeedKind::Batch => Fate::InLog,
        Some(_) if !queue.is_in_memory(at) => Fate::Open,
        Some(Held::Waits) => Fate::Waits,
        Some(Held::UnderWay) => Fate::UnderWay,
        Some(Held::PutOff { times, seconds }) => Fate::PutOff { times, seconds },
        None => Fate::Passed,
    }
}
