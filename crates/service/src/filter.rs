//! What judges articles before they are taken, as a service asks it.
//!
//! Every article gets a verdict in bounded time, whatever the filter does: what that costs is the filter's to keep.  Knows no
//! filter and speaks to none.

use std::fmt::Debug;
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;

use bytes::Bytes;
use serde::Serialize;

/// An article to be judged: sound, wanted and not here.
#[derive(Debug, Clone)]
pub struct Subject {
    /// Wire form, terminator included.
    pub article: Bytes,
    /// Where it came from.
    pub from: Option<IpAddr>,
    /// Whether it is posted here, and not from a peer.
    pub is_post: bool,
}

/// What becomes of an article.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is taken.
    Accept,
    /// It is taken, and stored in a set of this class.
    Class(&'static str),
    /// It is refused with this text: printable, of at most [`TEXT_OCTETS_MAX`](crate::TEXT_OCTETS_MAX) octets.
    Reject(&'static str),
    /// Whoever sent it is told that it was taken, and it is not kept.
    Drop,
    /// Nobody can say now; it is put off.
    Later,
}

/// What a filter has said of articles since it began.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FilterCounts {
    /// Its name.
    pub name: String,
    /// Articles that it took, those with a label or a class among them.
    pub accepted: u64,
    /// Articles that it labelled.
    pub labelled: u64,
    /// Articles for which it named a class.
    pub classed: u64,
    /// Articles that it refused.
    pub rejected: u64,
    /// Articles that it had dropped.
    pub dropped: u64,
    /// Articles that it did not judge in time, for which `filter.when_down` held.
    pub unjudged: u64,
}

/// The verdicts, when they are there.
pub type Verdicts<'a> = Pin<Box<dyn Future<Output = Vec<Verdict>> + Send + 'a>>;

/// Something that judges articles.
pub trait ArticleFilter: Debug + Send + Sync + 'static {
    /// One verdict for each, in their order.
    fn judge(&self, subjects: Vec<Subject>) -> Verdicts<'_>;

    /// What each of its parts has said, in the order in which they are asked.
    fn counts(&self) -> Vec<FilterCounts> {
        Vec::new()
    }

    /// When it judges, or has failed to begin, or does not begin soon.
    fn begun(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}
