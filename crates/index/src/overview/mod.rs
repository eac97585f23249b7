//! Overview: the rows of each group by number, in memory while they are new, in sealed packs when they are older.
//!
//! A row appears to readers when it is applied, which is after its commit, and is offered as long as its article is
//! alive.  Rows rise by number: packs hold lower numbers than the frozen part, that lower ones than the newest part.
//! Nothing here reads article bytes or a clock.

pub(crate) mod block;
pub(crate) mod cache;
mod facts;
mod gaps;
pub(crate) mod interleave;
pub(crate) mod merge;
pub(crate) mod pack;
mod read;
pub(crate) mod tail;
pub(crate) mod withdrawn;
mod within;
pub(crate) mod write;

use std::sync::Arc;

use newsreel_wire::{ArticleNumber, GroupId, Token, UnixTime};

use crate::config::IndexConfig;
use crate::error::Result;
use crate::groups::HighMarks;
use crate::layers::{Layers, Snapshot};
use crate::liveness::{Floors, Liveness};
use crate::sealed::catalog::Catalog;
use crate::sealed::set::Damages;
use cache::BlockCache;
use facts::FactsCache;
use pack::{Block, Pack};
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
pub(crate) type Parts = Snapshot<Pack>;

/// The view.
#[derive(Debug)]
pub struct Overview {
    pub(crate) layers: Layers<Pack>,
    withdrawn: WithdrawnSet,
    facts: FactsCache,
    cache: BlockCache,
    liveness: Arc<dyn Liveness>,
    /// The groups' own high marks.
    marks: Arc<HighMarks>,
}

impl Overview {
    /// Opens the packs the manifest names; those that cannot be opened are noted as damaged.
    pub(crate) fn open(
        catalog: &Arc<Catalog>,
        config: &IndexConfig,
        liveness: &Arc<dyn Liveness>,
        damages: &Arc<Damages>,
        marks: &Arc<HighMarks>,
    ) -> Result<Self> {
        Ok(Self {
            layers: Layers::open(catalog, damages)?,
            withdrawn: WithdrawnSet::default(),
            facts: FactsCache::new(config.facts_groups_max),
            cache: BlockCache::new(config.cache_bytes_max),
            liveness: Arc::clone(liveness),
            marks: Arc::clone(marks),
        })
    }

    /// Numbers for reports.
    #[must_use]
    pub fn facts(&self) -> OverviewFacts {
        let layers = self.layers.load();
        let mut floors = self.floors();
        let mut facts = OverviewFacts {
            cache_bytes: self.cache.octets(),
            withdrawn: self.withdrawn.len(),
            ..OverviewFacts::default()
        };
        for part in layers.parts() {
            facts.memory_rows += part.rows();
            facts.memory_bytes += part.octets();
        }
        for slot in layers.runs.slots.iter() {
            facts.packs += 1;
            facts.sealed_rows += slot.meta.rows;
            facts.file_bytes += slot.meta.len;
        }
        for pack in layers.runs.open() {
            facts.blocks += pack.blocks() as u64;
            facts.block_list_bytes += pack.octets();
            facts.dead_rows += pack.dead(&mut floors);
        }
        facts
    }

    /// Octets in the part that a freeze would take.
    pub(crate) fn active_octets(&self) -> u64 {
        self.layers.load().active.octets()
    }

    /// How many articles are withdrawn and not overwritten yet, once for each group; each takes memory.
    #[must_use]
    pub fn withdrawn_len(&self) -> usize {
        self.withdrawn.len()
    }

    /// Whether the article of this number was withdrawn from this group, and is not overwritten yet.
    #[must_use]
    pub fn is_withdrawn(&self, group: GroupId, number: ArticleNumber) -> bool {
        let withdrawn = self.withdrawn.of(group);
        withdrawn.is_some_and(|withdrawn| withdrawn.has(number.0))
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

    /// The last number of every block, for when the groups' own marks are lost.
    pub(crate) fn last_numbers(&self, mut visit: impl FnMut(GroupId, ArticleNumber)) {
        for pack in self.layers.load().runs.open() {
            for block in (0..pack.blocks()).filter_map(|nth| pack.block(nth)) {
                visit(GroupId(block.group), ArticleNumber(block.last));
            }
        }
    }

    /// The blocks of a group that may hold numbers of `from..=to`, from the oldest.
    fn blocks(
        parts: &Parts,
        group: GroupId,
        from: u64,
        to: u64,
    ) -> impl Iterator<Item = (&Arc<Pack>, Block)> {
        parts.runs.open().flat_map(move |pack| {
            pack.find(group, from, to)
                .filter_map(move |nth| Some((pack, pack.block(nth)?)))
        })
    }
}
