//! Asking for an article and the buffer its octets come in.
//!
//! An [`ArticleBuf`] belongs to one session and is used again for every article, so that serving one costs no
//! allocation: the service reads into [`ArticleBuf::storage_mut`] (record headers and all, the store's own read
//! buffer can be swapped in) and then says which part of it is the answer.

use std::fmt;
use std::ops::Range;

use newsreel_wire::{ArticleNumber, GroupId, MessageId};
use smallvec::SmallVec;

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
            .finish()
    }
}
