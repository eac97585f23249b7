//! History: which message-ids are known, and where their articles are.
//!
//! The newest entries are in memory (the log covers them), older ones in sealed buckets, at most about a dozen.  An
//! entry outlives its article: then it has no token and only says that the id was here.  All reads run beside the one
//! applier thread; nothing here reads a clock.

pub(crate) mod bucket;
pub(crate) mod cache;
pub(crate) mod memory;
pub(crate) mod merge;
pub(crate) mod page;
pub(crate) mod write;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use newsreel_wire::{IdHash, Token, UnixTime};
use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::liveness::{Floors, Liveness};
use crate::sealed::catalog::Catalog;
use crate::sealed::reader::{RunFile, Wait};
use crate::sealed::set::{Damages, RunSet, Slot};
use crate::sealed::{RunKind, RunMeta, run_path};
use bucket::Bucket;
use cache::PageCache;
use memory::MemoryPart;
use page::Stored;

/// What is known about a message-id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryEntry {
    /// Where the article is; `None` when it is gone, cancelled or only remembered.
    pub token: Option<Token>,
    /// When it arrived.
    pub arrival: UnixTime,
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
    /// Pages that were rotten and read with the help of their parity.
    pub repaired_pages: u64,
}

/// A snapshot: what readers look through, newest first.
#[derive(Debug)]
struct Parts {
    active: Arc<MemoryPart>,
    frozen: Option<Arc<MemoryPart>>,
    buckets: RunSet<Bucket>,
}

/// The view.
#[derive(Debug)]
pub struct History {
    parts: ArcSwap<Parts>,
    /// Held while `parts` is replaced; an empty part whose memory serves again.
    changing: Mutex<Option<MemoryPart>>,
    cache: PageCache,
    generation: AtomicU64,
    liveness: Arc<dyn Liveness>,
    catalog: Arc<Catalog>,
    damages: Arc<Damages>,
}

impl History {
    /// Opens the buckets the manifest names; those that cannot be opened are noted as damaged.
    pub(crate) fn open(
        catalog: &Arc<Catalog>,
        liveness: &Arc<dyn Liveness>,
        damages: &Arc<Damages>,
        cache_octets: u64,
    ) -> Result<Self> {
        let manifest = catalog.manifest();
        let mut slots = Vec::new();
        for meta in manifest.of_kind(RunKind::History) {
            slots.push(open_slot(catalog, damages, meta)?);
        }
        Ok(Self {
            parts: ArcSwap::from_pointee(Parts {
                active: Arc::default(),
                frozen: None,
                buckets: RunSet::new(slots),
            }),
            changing: Mutex::default(),
            cache: PageCache::new(cache_octets),
            generation: AtomicU64::new(1),
            liveness: Arc::clone(liveness),
            catalog: Arc::clone(catalog),
            damages: Arc::clone(damages),
        })
    }

    /// What is known about an id.
    ///
    /// # Errors
    /// When a bucket cannot be read, or ([`Error::Incomplete`]) when the id was not found but a missing bucket might
    /// have it: then it must not be taken for unknown.
    pub fn lookup(&self, hash: &IdHash) -> Result<Option<HistoryEntry>> {
        self.find(hash, Wait::Yes)
    }

    /// The same, from memory and page cache only.
    ///
    /// # Errors
    /// As [`History::lookup`], and [`Error::WouldBlock`] when the disk has to be asked.
    pub fn lookup_now(&self, hash: &IdHash) -> Result<Option<HistoryEntry>> {
        self.find(hash, Wait::No)
    }

    fn find(&self, hash: &IdHash, wait: Wait) -> Result<Option<HistoryEntry>> {
        let parts = self.parts.load();
        if let Some(stored) = recent(&parts, hash) {
            return Ok(Some(self.judged(&stored)));
        }
        for bucket in parts.buckets.open().rev() {
            match bucket.get(hash, &self.cache, wait) {
                Ok(None) => {}
                Ok(Some(stored)) => return Ok(Some(self.judged(&stored))),
                Err(error) => {
                    if error.is_damage() {
                        let dir = &self.catalog.place().dir;
                        self.damages.note(dir, bucket.meta(), &error);
                    }
                    return Err(error);
                }
            }
        }
        match parts.buckets.missing() {
            None => Ok(None),
            Some(meta) => Err(Error::Incomplete {
                path: run_path(&self.catalog.place().dir, meta.kind, meta.id),
            }),
        }
    }

    /// The same, but only among the newest entries, which are in memory.
    #[must_use]
    pub fn lookup_recent(&self, hash: &IdHash) -> Option<HistoryEntry> {
        let parts = self.parts.load();
        recent(&parts, hash).map(|stored| self.judged(&stored))
    }

    /// Changes when entries leave memory.  Whoever took it before a full look-up that found nothing needs only
    /// [`History::lookup_recent`] later, as long as this (read after that) is still the same.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
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
        self.parts.load().active.insert(stored);
    }

    /// The part that entries go to; it stays the right one until the next freeze.
    pub(crate) fn active(&self) -> Arc<MemoryPart> {
        Arc::clone(&self.parts.load().active)
    }

    /// Numbers for reports.
    #[must_use]
    pub fn facts(&self) -> HistoryFacts {
        let parts = self.parts.load();
        let mut facts = HistoryFacts {
            cache_bytes: self.cache.octets(),
            ..HistoryFacts::default()
        };
        for part in parts.frozen.iter().chain([&parts.active]) {
            facts.memory_rows += part.rows();
            facts.memory_bytes += part.octets();
        }
        for slot in parts.buckets.slots.iter() {
            facts.buckets += 1;
            facts.sealed_rows += slot.meta.rows;
            facts.file_bytes += slot.meta.len;
        }
        for bucket in parts.buckets.open() {
            facts.filter_bytes += bucket.octets();
            facts.repaired_pages += bucket.repaired();
        }
        facts
    }

    /// Entries in the part that a freeze would take.
    pub(crate) fn active_rows(&self) -> u64 {
        self.parts.load().active.rows()
    }

    /// Sets the newest part aside for a checkpoint.
    pub(crate) fn freeze(&self) -> Arc<MemoryPart> {
        let mut spare = self.changing.lock();
        let parts = self.parts.load_full();
        let frozen = Arc::clone(&parts.active);
        self.parts.store(Arc::new(Parts {
            active: Arc::new(spare.take().unwrap_or_default()),
            frozen: Some(Arc::clone(&frozen)),
            buckets: parts.buckets.clone(),
        }));
        frozen
    }

    /// Takes back the memory of a part that was installed, unless a reader is still in it.
    pub(crate) fn recycle(&self, part: Arc<MemoryPart>) {
        if let Some(part) = Arc::into_inner(part) {
            let part = part.recycled();
            *self.changing.lock() = Some(part);
        }
    }

    /// Opens a bucket that was just sealed.
    pub(crate) fn open_new(&self, meta: &RunMeta) -> Result<Slot<Bucket>> {
        let place = self.catalog.place();
        let run = RunFile::open(place.disk.as_ref(), &place.dir, &place.spool, meta)?;
        Ok(Slot {
            meta: *meta,
            run: Some(Arc::new(Bucket::open(run)?)),
            still_dead: 0,
        })
    }

    /// Replaces buckets; with `installs`, the frozen part is in `new` and goes out of memory.
    pub(crate) fn replace(&self, old: &[u64], new: Vec<Slot<Bucket>>, installs: bool) {
        let _changing = self.changing.lock();
        let parts = self.parts.load_full();
        if installs {
            // First the number, then the parts: whoever sees the new parts sees the new number.
            self.generation.fetch_add(1, Ordering::AcqRel);
        }
        self.parts.store(Arc::new(Parts {
            active: Arc::clone(&parts.active),
            frozen: parts.frozen.clone().filter(|_| !installs),
            buckets: parts.buckets.replaced(old, new),
        }));
    }

    /// The buckets as they are now.
    pub(crate) fn buckets(&self) -> RunSet<Bucket> {
        self.parts.load().buckets.clone()
    }

    pub(crate) fn floors(&self) -> Floors<'_> {
        Floors::new(self.liveness.as_ref())
    }
}

fn recent(parts: &Parts, hash: &IdHash) -> Option<Stored> {
    let frozen = || parts.frozen.as_ref().and_then(|frozen| frozen.get(hash));
    parts.active.get(hash).or_else(frozen)
}

fn open_slot(catalog: &Catalog, damages: &Damages, meta: &RunMeta) -> Result<Slot<Bucket>> {
    let place = catalog.place();
    let opened =
        RunFile::open(place.disk.as_ref(), &place.dir, &place.spool, meta).and_then(Bucket::open);
    let run = match opened {
        Ok(bucket) => Some(Arc::new(bucket)),
        Err(error) if error.is_damage() => {
            damages.note(&place.dir, meta, &error);
            None
        }
        Err(error) => return Err(error),
    };
    Ok(Slot {
        meta: *meta,
        run,
        still_dead: 0,
    })
}
