//! Which articles lie in a stretch of a buffer, as the history knows them: a walk over all of it, a piece at a time.
//!
//! Entries are sorted by hash and not by place, so that all of those buckets are read which say that they have some of the stretch.
//! An older entry of a hash is shown beside a newer one, unless only the newest are wanted, which filters tell, and one that was withdrawn as
//! that: who needs to be sure asks for the hash.  What comes into the history
//! behind the beginning of the walk is not in it; what leaves memory meanwhile is.

use std::ops::Range;
use std::sync::Arc;

use newsreel_wire::{BufferId, IdHash, Position, Token};

use super::History;
use super::bucket::Bucket;
use super::memory::MemoryPart;
use super::page::Stored;
use crate::Wait;
use crate::error::Result;
use crate::sealed::window::Window;

/// Pages looked at in one step: half a megabyte.
const PAGES_AT_ONCE: u64 = 512;

/// What an entry says of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Led {
    /// The hash of the message-id.
    pub hash: IdHash,
    /// Where the article lies, or lay.
    pub token: Token,
    /// It was withdrawn: nobody is led there any more.
    pub is_withdrawn: bool,
}

/// A walk over the entries that lead, or led, to articles in a stretch of a buffer.
#[derive(Debug)]
pub struct TokenWalk {
    buffer: BufferId,
    stretch: Range<Position>,
    /// From the newest on, and memory first.
    parts: Vec<Arc<MemoryPart>>,
    buckets: Vec<Arc<Bucket>>,
    page: u64,
    window: Window,
    entries: Vec<Stored>,
    /// All buckets, the newest last, where what is in older ones is not shown.
    all: Option<Vec<Arc<Bucket>>>,
}

impl History {
    /// Begins a walk over what lies in a stretch of a buffer.
    ///
    /// # Errors
    /// When a bucket is missing that might have some of it.
    pub fn tokens_in(&self, buffer: BufferId, stretch: Range<Position>) -> Result<TokenWalk> {
        let layers = self.layers.load();
        self.layers.all_there(&layers)?;
        let has_some = |bucket: &&Arc<Bucket>| {
            let mut facts = bucket.facts.buffers.iter();
            facts.any(|facts| {
                facts.buffer == buffer && facts.first < stretch.end && facts.last >= stretch.start
            })
        };
        Ok(TokenWalk {
            parts: layers.parts().map(Arc::clone).collect(),
            buckets: layers
                .runs
                .open()
                .filter(has_some)
                .map(Arc::clone)
                .collect(),
            buffer,
            stretch,
            page: 0,
            window: Window::default(),
            entries: Vec::new(),
            all: None,
        })
    }

    /// The same, but for entries of which something newer is known: that the article was withdrawn, or lies elsewhere.
    ///
    /// # Errors
    /// As [`History::tokens_in`].
    pub fn newest_tokens_in(
        &self,
        buffer: BufferId,
        stretch: Range<Position>,
    ) -> Result<TokenWalk> {
        let all = self.layers.load().runs.open().map(Arc::clone).collect();
        Ok(TokenWalk {
            all: Some(all),
            ..self.tokens_in(buffer, stretch)?
        })
    }

    /// Whether memory, or one of these buckets, leads elsewhere than this entry.  Where that cannot be read it does not.
    fn is_overtaken(&self, stored: &Stored, newer: &[Arc<Bucket>]) -> bool {
        let is_other = |newer: &Stored| {
            let both = newer.token().zip(stored.token());
            newer.is_withdrawn || both.is_none_or(|(newer, token)| !newer.same_place(&token))
        };
        let hash = &stored.hash;
        if let Some(newest) = super::recent(&self.layers.load(), hash) {
            return is_other(&newest);
        }
        let mut found = newer
            .iter()
            .rev()
            .filter_map(|bucket| bucket.get(hash, &self.cache, Wait::Yes).ok().flatten());
        found.next().is_some_and(|newest| is_other(&newest))
    }
}

impl TokenWalk {
    /// A piece further; `false` when all was shown.
    ///
    /// # Errors
    /// When a bucket cannot be read.
    pub fn step(&mut self, history: &History, mut visit: impl FnMut(Led)) -> Result<bool> {
        let (buffer, stretch) = (self.buffer, self.stretch.clone());
        // Of what is in memory itself, which is looked at under its locks, all is shown.
        let here = self.buckets.last().filter(|_| self.parts.is_empty());
        let newer = self.all.as_ref().zip(here).map(|(all, here)| {
            let at = all.iter().position(|bucket| Arc::ptr_eq(bucket, here));
            all.get(at.map_or(0, |at| at + 1)..).unwrap_or_default()
        });
        let mut show = |stored: &Stored| {
            let is_here =
                |token: &Token| token.buffer() == buffer && stretch.contains(&token.position());
            let is_shown =
                |_: &Token| newer.is_none_or(|newer| !history.is_overtaken(stored, newer));
            if let Some(token) = stored.token().filter(is_here).filter(is_shown) {
                visit(Led {
                    hash: stored.hash,
                    token,
                    is_withdrawn: stored.is_withdrawn,
                });
            }
        };
        if let Some(part) = self.parts.pop() {
            part.visit_first(0, show);
            return Ok(true);
        }
        let Some(bucket) = self.buckets.last() else {
            return Ok(false);
        };
        let until = bucket.pages().min(self.page + PAGES_AT_ONCE);
        for page in self.page..until {
            let read = bucket.read_page(page, &mut self.window, &mut self.entries);
            read.map_err(|error| history.layers.noted(bucket.meta(), error))?;
            self.entries.iter().for_each(&mut show);
        }
        self.page = until;
        if until == bucket.pages() {
            self.buckets.pop();
            self.page = 0;
            // Its octets are those of another file.
            let read = self.window.read;
            self.window = Window::default();
            self.window.read = read;
        }
        Ok(true)
    }

    /// Octets that were read so far.
    #[must_use]
    pub fn octets_read(&self) -> u64 {
        self.window.read
    }
}
