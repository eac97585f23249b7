//! History: which message-ids are known, and where their articles are.
//!
//! The newest entries are in memory (the log covers them), older ones in sealed buckets, at most about a dozen.  An
//! entry outlives its article: then it has no token and only says that the id was here.  All reads run beside the one
//! applier thread; nothing here reads a clock.

pub(crate) mod bucket;
pub(crate) mod cache;
pub(crate) mod census;
pub(crate) mod memory;
pub(crate) mod merge;
pub(crate) mod page;
pub(crate) mod tokens;
pub(crate) mod write;

use std::collections::BTreeSet;
use std::sync::Arc;

use newsreel_wire::{BufferId, IdHash, Position, Token, UnixTime};

use crate::error::Result;
use crate::layers::{Layers, Run as _, Snapshot};
use crate::liveness::Liveness;
use crate::sealed::catalog::Catalog;
use crate::sealed::reader::Wait;
use crate::sealed::set::Damages;
use bucket::{Bucket, Forgetting, Remember};
use cache::PageCache;
use page::Stored;

/// What is known about a message-id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryEntry {
    /// Where the article is; `None` when it is gone, cancelled or only remembered.
    pub token: Option<Token>,
    /// When it arrived.
    pub arrival: UnixTime,
}

impl HistoryEntry {
    /// Whether the article is there.
    #[must_use]
    pub fn leads_to(&self, token: &Token) -> bool {
        self.token.is_some_and(|known| known.same_place(token))
    }
}

/// What the history holds and takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HistoryFacts {
    /// Entries in memory.
    pub memory_rows: u64,
    /// Octets those take.
    pub memory_bytes: u64,
    /// Entries in sealed buckets.
    pub sealed_rows: u64,
    /// Octets of memory for filters and page lists.
    pub filter_bytes: u64,
    /// Octets of pages in memory.
    pub cache_bytes: u64,
    /// Octets of the buckets' files.
    pub file_bytes: u64,
    /// Buckets.
    pub buckets: usize,
}

/// The view.
#[derive(Debug)]
pub struct History {
    pub(crate) layers: Layers<Bucket>,
    cache: PageCache,
    liveness: Arc<dyn Liveness>,
}

impl History {
    /// Opens the buckets the manifest names; those that cannot be opened are noted as damaged.
    pub(crate) fn open(
        catalog: &Arc<Catalog>,
        liveness: &Arc<dyn Liveness>,
        damages: &Arc<Damages>,
        cache_octets: u64,
    ) -> Result<Self> {
        Ok(Self {
            layers: Layers::open(catalog, damages)?,
            cache: PageCache::new(cache_octets),
            liveness: Arc::clone(liveness),
        })
    }

    /// What is known about an id.
    ///
    /// # Errors
    /// When a bucket cannot be read, or ([`Error::Incomplete`](crate::Error::Incomplete)) when the id was not found but a missing bucket might
    /// have it: then it must not be taken for unknown.
    pub fn lookup(&self, hash: &IdHash) -> Result<Option<HistoryEntry>> {
        self.find(hash, Wait::Yes)
    }

    /// The same, from memory and page cache only.
    ///
    /// # Errors
    /// As [`History::lookup`], and [`Error::WouldBlock`](crate::Error::WouldBlock) when the disk has to be asked.
    pub fn lookup_now(&self, hash: &IdHash) -> Result<Option<HistoryEntry>> {
        self.find(hash, Wait::No)
    }

    fn find(&self, hash: &IdHash, wait: Wait) -> Result<Option<HistoryEntry>> {
        let layers = self.layers.load();
        if let Some(stored) = recent(&layers, hash) {
            return Ok(Some(self.judged(&stored)));
        }
        for bucket in layers.runs.open().rev() {
            match bucket.get(hash, &self.cache, wait) {
                Ok(None) => {}
                Ok(Some(stored)) => return Ok(Some(self.judged(&stored))),
                Err(error) => return Err(self.layers.noted(bucket.meta(), error)),
            }
        }
        self.layers.all_there(&layers).map(|()| None)
    }

    /// The same, but only among the newest entries, which are in memory.
    #[must_use]
    pub fn lookup_recent(&self, hash: &IdHash) -> Option<HistoryEntry> {
        let layers = self.layers.load();
        recent(&layers, hash).map(|stored| self.judged(&stored))
    }

    /// Changes whenever entries leave memory, and when what was lost is there again.  Whoever took it before a full look-up that found nothing needs only
    /// [`History::lookup_recent`] later, as long as this (read after that) is still the same.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.layers.load().left_memory
    }

    /// Takes the token off an entry whose article is gone.
    fn judged(&self, stored: &Stored) -> HistoryEntry {
        let mut entry = stored.entry();
        entry.token = entry
            .token
            .filter(|token| token.position() >= self.liveness.floor(token.buffer()));
        entry
    }

    /// Puts an entry in; readers see it at once.  From the applier thread only.
    pub(crate) fn insert(&self, stored: Stored) {
        self.layers.load().active.insert(stored);
    }

    /// Numbers for reports.
    #[must_use]
    pub fn facts(&self) -> HistoryFacts {
        let layers = self.layers.load();
        let mut facts = HistoryFacts {
            cache_bytes: self.cache.octets(),
            ..HistoryFacts::default()
        };
        for part in layers.parts() {
            facts.memory_rows += part.rows();
            facts.memory_bytes += part.octets();
        }
        for slot in layers.runs.slots.iter() {
            facts.buckets += 1;
            facts.sealed_rows += slot.meta.rows;
            let files = slot.run.as_ref().map_or(1, |bucket| bucket.file().files());
            facts.file_bytes += slot.meta.len * files;
        }
        for bucket in layers.runs.open() {
            facts.filter_bytes += bucket.octets();
        }
        facts
    }

    /// Entries in the part that a freeze would take.
    pub(crate) fn active_rows(&self) -> u64 {
        self.layers.load().active.rows()
    }

    /// What is needed no more, by what is remembered.
    pub(crate) fn forgetting<'a>(&'a self, remember: &'a Remember) -> Forgetting<'a> {
        Forgetting::new(remember, self.liveness.as_ref())
    }

    /// Where the floors stand of all buffers that the sealed buckets name.
    pub(crate) fn floors(&self) -> Vec<(BufferId, Position)> {
        let runs = self.layers.runs();
        let facts = runs.open().flat_map(|bucket| &bucket.facts.buffers);
        let buffers: BTreeSet<BufferId> = facts.map(|facts| facts.buffer).collect();
        let floors = buffers.into_iter();
        floors
            .map(|buffer| (buffer, self.liveness.floor(buffer)))
            .collect()
    }
}

fn recent(layers: &Snapshot<Bucket>, hash: &IdHash) -> Option<Stored> {
    layers.parts().rev().find_map(|part| part.get(hash))
}
