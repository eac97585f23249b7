//! Asking for an article and the buffer its octets come in.
//!
//! An [`ArticleBuf`] belongs to one session and is used again for every article, so that serving one costs no
//! allocation: the service reads into [`ArticleBuf::storage_mut`] (record headers and all, the store's own read
//! buffer can be swapped in) and then says which part of it is the answer.  Of an article that is still coming from elsewhere it
//! may hold a portion at a time, where whoever asks says that this is enough.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use newsreel_wire::{ArticleNumber, GroupId, MessageId};
use smallvec::SmallVec;

use crate::arriving::Arriving;
use crate::error::ServiceError;

/// Which article.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArticleQuery<'a> {
    /// By message-id.
    ById(MessageId<'a>),
    /// By number in a group.
    ByNumber(GroupId, ArticleNumber),
}

/// How much of an article.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Part {
    /// Whether it is there, and its message-id: no octet of it is read.
    Stat,
    /// The header block.
    Head,
    /// The body.
    Body,
    /// All of it.
    Whole,
}

/// An article was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// Its number: as asked for by number; 0 when asked for by message-id.
    pub number: ArticleNumber,
}

/// The octets of one article, or part of it, and its message-id.
#[derive(Default)]
pub struct ArticleBuf {
    storage: Vec<u8>,
    content: Range<usize>,
    id: SmallVec<[u8; 80]>,
    takes_portions: bool,
    /// What follows the content, and from where on.
    rest: Option<(Arc<Arriving>, usize)>,
}

impl ArticleBuf {
    /// An empty buffer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets the content, keeps the memory.
    pub fn clear(&mut self) {
        self.content = 0..0;
        self.id.clear();
        self.rest = None;
    }

    /// Whether a service may answer with the beginning of an article or a body, whose rest [`ArticleBuf::more`] gives.
    pub const fn take_portions(&mut self, takes_portions: bool) {
        self.takes_portions = takes_portions;
    }

    /// Whether a beginning will do.
    #[must_use]
    pub const fn takes_portions(&self) -> bool {
        self.takes_portions
    }

    /// The answer is what has come of an article from a place on, and then what comes.
    pub fn set_rest(&mut self, arriving: &Arc<Arriving>, from: usize) {
        self.storage.clear();
        let taken = arriving.take(from, &mut self.storage);
        self.content = 0..self.storage.len();
        let is_all = taken.is_ok_and(|has_more| !has_more);
        let next = from + self.storage.len();
        self.rest = (!is_all).then(|| (Arc::clone(arriving), next));
    }

    /// Whether the content is not all of the answer.
    #[must_use]
    pub const fn has_more(&self) -> bool {
        self.rest.is_some()
    }

    /// What the content is a portion of, where more follows it.
    #[must_use]
    pub fn coming(&self) -> Option<&Arc<Arriving>> {
        self.rest.as_ref().map(|(arriving, _)| arriving)
    }

    /// Waits for what follows the content, which is the content then.
    ///
    /// # Errors
    /// When the rest of the article will not come: what was given is not the whole of it, and must not be taken for it.
    pub async fn more(&mut self) -> Result<(), ServiceError> {
        self.storage.clear();
        self.content = 0..0;
        let Some((arriving, from)) = self.rest.take() else {
            return Ok(());
        };
        if arriving.next(from, &mut self.storage).await? {
            self.rest = Some((arriving, from + self.storage.len()));
        }
        self.content = 0..self.storage.len();
        Ok(())
    }

    /// The memory, for the service to read into; what it holds is of no meaning until
    /// [`ArticleBuf::set_content`].  It may be longer than the content, so that it need not be zeroed again for
    /// every read, and may be swapped for another vector.
    pub const fn storage_mut(&mut self) -> &mut Vec<u8> {
        &mut self.storage
    }

    /// Says which part of the storage is the answer, always in wire form (CRLF, dot-stuffed):
    ///
    /// - the whole: from the first header octet to the terminating `.CRLF`, inclusive;
    /// - the body: what follows the empty line, up to and including the terminating `.CRLF`;
    /// - the head: all header lines with their CRLF, **without** the empty line and without a terminator;
    /// - for STAT nothing.
    ///
    /// A range outside the storage counts as empty.
    pub fn set_content(&mut self, content: Range<usize>) {
        debug_assert!(content.start <= content.end && content.end <= self.storage.len());
        self.content = content;
    }

    /// Copies the content in, for services that have it elsewhere.
    pub fn copy_content(&mut self, octets: &[u8]) {
        self.storage.clear();
        self.storage.extend_from_slice(octets);
        self.content = 0..octets.len();
    }

    /// Sets the message-id, brackets included.
    pub fn set_id(&mut self, id: &[u8]) {
        self.id.clear();
        self.id.extend_from_slice(id);
    }

    /// The answer.
    #[must_use]
    pub fn content(&self) -> &[u8] {
        self.storage.get(self.content.clone()).unwrap_or_default()
    }

    /// The article's message-id, brackets included.
    #[must_use]
    pub fn id(&self) -> &[u8] {
        &self.id
    }

    /// Octets of memory held.
    #[must_use]
    pub const fn capacity(&self) -> usize {
        self.storage.capacity()
    }
}

impl fmt::Debug for ArticleBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArticleBuf")
            .field("id", &String::from_utf8_lossy(&self.id))
            .field("content_len", &self.content().len())
            .field("capacity", &self.storage.capacity())
            .field("has_more", &self.has_more())
            .finish()
    }
}
