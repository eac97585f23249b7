//! An article on its way by a feed: what it is, what it does, and how it ends.

use std::sync::Arc;

use newsreel_wire::{ArticleNumber, GroupId, Sequence};

/// An article on its way, the same for all feeds that it goes out by.
#[derive(Debug)]
pub(crate) struct Offered {
    /// Its place in the log.
    pub(crate) sequence: Sequence,
    /// The first group it is filed in, and its number there.
    pub(crate) filed: Option<(GroupId, ArticleNumber)>,
    /// Its message-id, with brackets.
    pub(crate) id: Box<str>,
    /// Its octets as served; none: that is not known.
    pub(crate) octets: Option<u32>,
    /// Its text while somebody may want it again.
    pub(crate) text: crate::text::Slot,
}

impl Offered {
    /// One of which no more is known.
    pub(crate) fn by_id(sequence: Sequence, id: &str) -> Self {
        Self {
            sequence,
            filed: None,
            id: id.into(),
            octets: None,
            text: crate::text::Slot::default(),
        }
    }
}

/// An article on its way by one feed.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) offered: Arc<Offered>,
    /// How often the peer has put it off.
    pub(crate) tries: u32,
    /// It is put off because its text cannot be read.
    pub(crate) is_unreadable: bool,
    /// It is of a backlog that goes out behind what is newer.
    pub(crate) is_late: bool,
    /// How often a connection ended at it.
    pub(crate) ends: u32,
    /// How often one did while other articles went through.
    pub(crate) blamed: u32,
    /// What was settled in all when one did last.
    pub(crate) settled_then: u64,
}

impl Item {
    pub(crate) const fn new(offered: Arc<Offered>, is_late: bool) -> Self {
        Self {
            offered,
            tries: 0,
            is_unreadable: false,
            is_late,
            ends: 0,
            blamed: 0,
            settled_then: 0,
        }
    }
}

/// How an article was settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settled {
    /// The peer took it.
    Accepted,
    /// It is in a batch.
    Written,
    /// The peer has it (438, 435), or did not want it when asked.
    Refused,
    /// The peer did not want it when it came (439, 437).
    Rejected,
    /// It was gone before it could be sent.
    Gone,
    /// The log kept it no longer before it could be looked at.
    Missed,
}

/// What an article in memory is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held {
    /// It waits for a connection.
    Waits,
    /// A connection has it.
    UnderWay,
    /// It is tried again.
    PutOff { times: u32, seconds: u64 },
}

/// What came of a feed's articles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Articles the peer took.
    pub accepted: u64,
    /// Articles the peer did not want when asked.
    pub refused: u64,
    /// Articles the peer did not want when they came.
    pub rejected: u64,
    /// How often an article was put off.
    pub deferred: u64,
    /// Articles that were gone before they could be sent.
    pub gone: u64,
    /// Octets of the articles that were sent, as on the wire.
    pub octets: u64,
    /// Articles of the log that it kept no longer before they could be looked at, since the feed began; of a part that is gone already, as many
    /// as it can have had.
    pub missed: u64,
}

impl Tally {
    /// Articles on which the peer has said its last word.
    pub(crate) const fn settled(&self) -> u64 {
        self.accepted + self.refused + self.rejected
    }
}
