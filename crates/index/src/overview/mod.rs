//! Overview: the rows of each group by number, in memory while they are new, in sealed packs when they are older.
//!
//! A row appears to readers when it is applied, which is after its commit, and is offered as long as its article is
//! alive.  Rows rise by number: packs hold lower numbers than the frozen part, that lower ones than the newest part.
//! Nothing here reads article bytes or a clock.

pub(crate) mod block;
pub(crate) mod cache;
mod facts;
pub(crate) mod merge;
pub(crate) mod pack;
mod read;
pub(crate) mod tail;
pub(crate) mod withdrawn;
pub(crate) mod write;

use std::sync::Arc;

use arc_swap::ArcSwap;
use newsreel_wire::{ArticleNumber, GroupId, Token, UnixTime};
use parking_lot::Mutex;

use crate::config::IndexConfig;
use crate::error::{Error, Result};
use crate::liveness::{Floors, Liveness};
use crate::sealed::catalog::Catalog;
use crate::sealed::reader::RunFile;
use crate::sealed::set::{Damages, RunSet, Slot};
use crate::sealed::{RunKind, RunMeta};
use cache::BlockCache;
use facts::FactsCache;
use pack::{Block, Pack};
use tail::TailPart;
use withdrawn::WithdrawnSet;

pub use facts::LiveFacts;

/// What a row says without its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Its number.
    pub number: ArticleNumber,
    /// Where the article is.
    pub token: Token,
    /// When it arrived.
    pub arrival: UnixTime,
    /// As it was given with the row.
    pub flags: u16,
}

/// What the overview holds and takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OverviewFacts {
    /// Rows in memory.
    pub memory_rows: u64,
    /// Octets those take.
    pub memory_bytes: u64,
    /// Rows in packs, dead ones that were not cleared yet included.
    pub sealed_rows: u64,
    /// About how many of those are dead.
    pub dead_rows: u64,
    /// Blocks in packs.
    pub blocks: u64,
    /// Octets of memory for the lists of blocks.
    pub block_list_bytes: u64,
    /// Octets of the packs' files.
    pub file_bytes: u64,
    /// Packs.
    pub packs: usize,
    /// Octets of decoded blocks in memory.
    pub cache_bytes: u64,
    /// Articles withdrawn and not overwritten yet, once for each group.
    pub withdrawn: usize,
}

/// A snapshot: what readers look through.
#[derive(Debug)]
pub(crate) struct Parts {
    active: Arc<TailPart>,
    frozen: Option<Arc<TailPart>>,
    packs: RunSet<Pack>,
    /// Counts freezes: what is not in `active` is the same rows while this holds.
    freezes: u64,
}

/// The view.
#[derive(Debug)]
pub struct Overview {
    parts: ArcSwap<Parts>,
    /// Held while `parts` is replaced; an empty part whose memory serves again.
    changing: Mutex<Option<TailPart>>,
    withdrawn: WithdrawnSet,
    facts: FactsCache,
    cache: BlockCache,
    liveness: Arc<dyn Liveness>,
    catalog: Arc<Catalog>,
    damages: Arc<Damages>,
}

impl Overview {
    /// Opens the packs the manifest names; those that cannot be opened are noted as damaged.
    pub(crate) fn open(
        catalog: &Arc<Catalog>,
        config: &IndexConfig,
        liveness: &Arc<dyn Liveness>,
        damages: &Arc<Damages>,
    ) -> Result<Self> {
        let place = catalog.place();
        let mut slots = Vec::new();
        for meta in catalog.manifest().of_kind(RunKind::Overview) {
            let opened = RunFile::open(place.disk.as_ref(), &place.dir, &place.spool, meta)
                .and_then(Pack::open);
            let run = match opened {
                Ok(pack) => Some(Arc::new(pack)),
                Err(error) if error.is_damage() => {
                    damages.note(&place.dir, meta, &error);
                    None
                }
                Err(error) => return Err(error),
            };
            slots.push(Slot {
                meta: *meta,
                run,
                still_dead: 0,
            });
        }
        Ok(Self {
            parts: ArcSwap::from_pointee(Parts {
                active: Arc::default(),
                frozen: None,
                packs: RunSet::new(slots),
                freezes: 0,
            }),
            changing: Mutex::default(),
            withdrawn: WithdrawnSet::default(),
            facts: FactsCache::new(config.facts_groups_max),
            cache: BlockCache::new(config.cache_bytes_max),
            liveness: Arc::clone(liveness),
            catalog: Arc::clone(catalog),
            damages: Arc::clone(damages),
        })
    }

    /// Numbers for reports.
    #[must_use]
    pub fn facts(&self) -> OverviewFacts {
        let parts = self.parts.load();
        let mut floors = self.floors();
        let mut facts = OverviewFacts {
            cache_bytes: self.cache.octets(),
            withdrawn: self.withdrawn.len(),
            ..OverviewFacts::default()
        };
        for part in parts.frozen.iter().chain([&parts.active]) {
            facts.memory_rows += part.rows();
            facts.memory_bytes += part.octets();
        }
        for slot in parts.packs.slots.iter() {
            facts.packs += 1;
            facts.sealed_rows += slot.meta.rows;
            facts.file_bytes += slot.meta.len;
        }
        for pack in parts.packs.open() {
            facts.blocks += pack.blocks() as u64;
            facts.block_list_bytes += pack.octets();
            facts.dead_rows += pack.dead(&mut floors);
        }
        facts
    }

    /// Octets in the part that a freeze would take.
    pub(crate) fn active_octets(&self) -> u64 {
        self.parts.load().active.octets()
    }

    /// The part that rows go to; it stays the right one until the next freeze.
    pub(crate) fn active(&self) -> Arc<TailPart> {
        Arc::clone(&self.parts.load().active)
    }

    pub(crate) fn withdrawn(&self) -> &WithdrawnSet {
        &self.withdrawn
    }

    pub(crate) fn cache(&self) -> &BlockCache {
        &self.cache
    }

    pub(crate) fn floors(&self) -> Floors<'_> {
        Floors::new(self.liveness.as_ref())
    }

    /// Sets the newest part aside for a checkpoint.
    pub(crate) fn freeze(&self) -> Arc<TailPart> {
        let mut spare = self.changing.lock();
        let parts = self.parts.load_full();
        let frozen = Arc::clone(&parts.active);
        self.parts.store(Arc::new(Parts {
            active: Arc::new(spare.take().unwrap_or_default()),
            frozen: Some(Arc::clone(&frozen)),
            packs: parts.packs.clone(),
            freezes: parts.freezes + 1,
        }));
        frozen
    }

    /// Takes back the memory of a part that was installed, unless a reader is still in it.
    pub(crate) fn recycle(&self, part: Arc<TailPart>) {
        if let Some(part) = Arc::into_inner(part) {
            let part = part.recycled();
            *self.changing.lock() = Some(part);
        }
    }

    /// Opens a pack that was just sealed.
    pub(crate) fn open_new(&self, meta: &RunMeta) -> Result<Slot<Pack>> {
        let place = self.catalog.place();
        let run = RunFile::open(place.disk.as_ref(), &place.dir, &place.spool, meta)?;
        Ok(Slot {
            meta: *meta,
            run: Some(Arc::new(Pack::open(run)?)),
            still_dead: 0,
        })
    }

    /// Replaces packs; with `installs`, the frozen part is in `new` and goes out of memory.
    pub(crate) fn replace(&self, old: &[u64], new: Vec<Slot<Pack>>, installs: bool, rebuilt: bool) {
        let _changing = self.changing.lock();
        let parts = self.parts.load_full();
        self.parts.store(Arc::new(Parts {
            active: Arc::clone(&parts.active),
            frozen: parts.frozen.clone().filter(|_| !installs),
            packs: parts.packs.replaced(old, new),
            freezes: parts.freezes + u64::from(rebuilt),
        }));
    }

    /// The packs as they are now.
    pub(crate) fn packs(&self) -> RunSet<Pack> {
        self.parts.load().packs.clone()
    }

    /// The last number of every block, for when the groups' own marks are lost.
    pub(crate) fn last_numbers(&self, mut visit: impl FnMut(GroupId, ArticleNumber)) {
        for pack in self.parts.load().packs.open() {
            for block in (0..pack.blocks()).filter_map(|nth| pack.block(nth)) {
                visit(GroupId(block.group), ArticleNumber(block.last));
            }
        }
    }

    /// Notes damage in a pack; other errors come back.
    fn note(&self, pack: &Pack, error: Error) -> Result<()> {
        if !error.is_damage() {
            return Err(error);
        }
        let dir = &self.catalog.place().dir;
        self.damages.note(dir, pack.meta(), &error);
        Ok(())
    }

    /// The blocks of a group that may hold numbers of `from..=to`, from the oldest.
    fn blocks(
        parts: &Parts,
        group: GroupId,
        from: u64,
        to: u64,
    ) -> impl Iterator<Item = (&Arc<Pack>, Block)> {
        parts.packs.open().flat_map(move |pack| {
            pack.find(group, from, to)
                .filter_map(move |nth| Some((pack, pack.block(nth)?)))
        })
    }
}
