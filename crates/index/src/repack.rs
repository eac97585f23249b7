//! A pack written anew because articles of its rows were moved: the same rows, with other tokens.
//!
//! The new file is written beside the old one, and nobody reads it before the log tells of it.  Then it takes the old one's
//! place in memory, at a replay of the log as well; the manifest names it with the next checkpoint, in one change with that.
//! So what the manifest says is still what the log says up to its checkpoint.  Compaction rests meanwhile, or the pack would
//! not be there any more that the log is about to replace.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use newsreel_wire::{BufferId, GroupId, Position, Sequence, Token};
use parking_lot::{Mutex, MutexGuard};

use crate::apply::Applier;
use crate::error::Result;
use crate::layers::Turn;
use crate::liveness::{BufferFacts, Share};
use crate::overview::merge::PackMerge;
use crate::overview::{Column, Overview};
use crate::sealed::reader::Wait;
use crate::sealed::{RunKind, RunMeta};
use crate::views::Views;

/// Where articles lie by now, by where they lay.
#[derive(Debug, Default)]
pub struct Moves {
    tokens: HashMap<(BufferId, Position), Token>,
    /// Where they lay: a block with no row there is none of theirs.
    from: BTreeSet<BufferId>,
}

impl Moves {
    /// An article that lay at `old` lies at `new`.
    pub fn insert(&mut self, old: Token, new: Token) {
        self.from.insert(old.buffer());
        self.tokens.insert((old.buffer(), old.position()), new);
    }

    /// Where the article lies by now; `None`: where it lay.
    pub(crate) fn of(&self, token: &Token) -> Option<Token> {
        let place = (token.buffer(), token.position());
        self.tokens.get(&place).copied()
    }

    /// Whether rows of which this is known may be of such articles.
    pub(crate) fn concern(&self, mut facts: impl Iterator<Item = BufferFacts>) -> bool {
        facts.any(|facts| self.from.contains(&facts.buffer))
    }
}

/// A pack, as the log tells of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackFacts {
    /// Its id, never given to another file of the views.
    pub id: u64,
    /// Octets of its file.
    pub octets: u64,
    /// The first log sequence it covers.
    pub first: Sequence,
    /// The last log sequence it covers.
    pub last: Sequence,
    /// Its rows.
    pub rows: u64,
}

impl PackFacts {
    const fn of(meta: &RunMeta) -> Self {
        Self {
            id: meta.id,
            octets: meta.len,
            first: meta.first,
            last: meta.last,
            rows: meta.rows,
        }
    }

    const fn meta(&self) -> RunMeta {
        RunMeta {
            kind: RunKind::Overview,
            id: self.id,
            len: self.octets,
            first: self.first,
            last: self.last,
            rows: self.rows,
        }
    }
}

/// A pack that the log has replaced.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Told {
    old: u64,
    new: Option<RunMeta>,
}

impl Told {
    /// The change of the manifest.
    pub(crate) fn replace(&self) -> (RunKind, &[u64], &[RunMeta]) {
        (
            RunKind::Overview,
            slice::from_ref(&self.old),
            self.new.as_slice(),
        )
    }
}

/// What the views know of packs that are written anew.
#[derive(Debug, Default)]
pub(crate) struct Repacks {
    /// Those that the log has replaced and the manifest not yet, in the order of the log.
    told: Mutex<Vec<Told>>,
    /// So many want compaction to rest.
    rests: AtomicUsize,
}

impl Repacks {
    /// What the next checkpoint tells the manifest.
    pub(crate) fn told(&self) -> Vec<Told> {
        self.told.lock().clone()
    }

    /// The manifest knows of the first of them.
    pub(crate) fn named(&self, count: usize) {
        self.told.lock().drain(..count);
    }

    /// The files that no manifest names and the log does.
    pub(crate) fn files(&self) -> Vec<(RunKind, u64)> {
        let told = self.told.lock();
        let new = told.iter().filter_map(|told| told.new);
        new.map(|meta| (meta.kind, meta.id)).collect()
    }

    /// The log replaces nothing meanwhile.
    pub(crate) fn hold(&self) -> MutexGuard<'_, Vec<Told>> {
        self.told.lock()
    }
}

/// Compaction begins nothing as long as somebody holds this.
#[derive(Debug)]
pub struct Rest(Arc<Views>);

impl Drop for Rest {
    fn drop(&mut self) {
        self.0.repacks.rests.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Rest {
    /// Whether it has ended what it had begun.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        !self.0.compaction.lock().is_at_work()
    }

    /// Begins to write a pack anew; `None` when there is no such pack, or it is damaged.  Only when the rest [has
    /// begun](Rest::has_begun), and to be used before it ends.
    ///
    /// # Errors
    /// When the disk fails or is full.
    pub fn repack(&self, pack: u64, moves: &Arc<Moves>) -> Result<Option<Repack>> {
        let views = &self.0;
        let runs = views.overview.layers.runs();
        let there = runs.open().find(|open| open.meta().id == pack);
        let Some(old) = there.filter(|_| !views.damages.contains(pack)) else {
            return Ok(None);
        };
        let (place, id) = (views.catalog.place(), views.catalog.new_run());
        let packs = slice::from_ref(old);
        Ok(Some(Repack {
            merge: PackMerge::begin(place, id, packs, &views.config, Arc::clone(moves))?,
            old: *old.meta(),
            views: Arc::clone(views),
        }))
    }
}

/// A pack that is being written anew; dropped unfinished, it leaves everything as it was.
#[derive(Debug)]
pub struct Repack {
    views: Arc<Views>,
    old: RunMeta,
    merge: PackMerge,
}

impl Repack {
    /// Does a bounded piece of it.  `true`: all is written.
    ///
    /// # Errors
    /// When the disk fails or is full, or the pack is damaged, which is noted.
    pub fn step(&mut self) -> Result<bool> {
        let views = &self.views;
        let is_gone = |group| !views.groups.exists(group);
        let (floors, cache) = (&mut views.overview.floors(), views.overview.cache());
        let step = self
            .merge
            .step(floors, cache, &is_gone, views.config.step_bytes);
        step.map_err(|error| views.overview.layers.noted(&self.old, error))
    }

    /// Closes the new pack, which is durable then, its name too.
    ///
    /// # Errors
    /// When the disk fails or is full.
    pub fn finish(self) -> Result<Repacked> {
        let repacked = Repacked {
            old: self.old.id,
            new: self.merge.finish()?,
            views: self.views,
            is_kept: false,
        };
        let place = repacked.views.catalog.place();
        place.disk.sync_dir(&place.dir)?;
        Ok(repacked)
    }
}

/// A pack that was written anew.  Dropped before it was [told](Repacked::tell), it goes.
#[derive(Debug)]
pub struct Repacked {
    views: Arc<Views>,
    old: u64,
    new: Option<RunMeta>,
    is_kept: bool,
}

impl Repacked {
    /// Whether the old pack is still there and good, so that it can be replaced.
    #[must_use]
    pub fn is_current(&self) -> bool {
        let runs = self.views.overview.layers.runs();
        let is_there = runs.slots.iter().any(|slot| slot.meta.id == self.old);
        is_there && !self.views.damages.contains(self.old)
    }

    /// The id of the new pack; `None`: nothing was left of the old one.
    #[must_use]
    pub fn new_pack(&self) -> Option<u64> {
        self.new.map(|meta| meta.id)
    }

    /// The old pack, and the new one, as the log must say it.  The file stays from now on: whether the log took that may not be
    /// known.
    pub fn tell(&mut self) -> (u64, Option<PackFacts>) {
        self.is_kept = true;
        (self.old, self.new.as_ref().map(PackFacts::of))
    }
}

impl Drop for Repacked {
    fn drop(&mut self) {
        if !self.is_kept {
            self.views.catalog.discard(&self.new);
        }
    }
}

impl Applier {
    /// A pack was written anew (`None`: nothing was left of it): readers find its rows there from now on.  Where the manifest
    /// has told of that already, nothing happens.
    ///
    /// # Errors
    /// When the disk fails otherwise than by damage: a pack that is lost is rebuilt.
    pub fn repacked(&mut self, old: u64, new: Option<&PackFacts>) -> Result<()> {
        self.publish()?;
        let (views, meta) = (&self.views, new.map(PackFacts::meta));
        let layers = &views.overview.layers;
        if let Some(meta) = &meta {
            views.catalog.skip_run(meta.id);
        }
        let mut told = views.repacks.hold();
        if layers.runs().slots.iter().all(|slot| slot.meta.id != old) {
            return Ok(());
        }
        let slot = meta
            .as_ref()
            .map(|meta| layers.open_told(meta))
            .transpose()?;
        layers.replace(&[old], slot.into_iter().collect(), Turn::Repacked);
        views.damages.forget(&[old]);
        told.push(Told { old, new: meta });
        Ok(())
    }
}

impl Views {
    /// Has compaction begin nothing until this is dropped.
    #[must_use]
    pub fn rest(self: &Arc<Self>) -> Rest {
        self.repacks.rests.fetch_add(1, Ordering::AcqRel);
        Rest(Arc::clone(self))
    }

    /// Whether compaction is to begin nothing: somebody wants it, or the next checkpoint names packs in the place of others.
    pub(crate) fn is_at_rest(&self) -> bool {
        let is_wanted = self.repacks.rests.load(Ordering::Acquire) > 0;
        is_wanted || !self.repacks.told.lock().is_empty()
    }
}

impl Overview {
    /// The packs, from the oldest; those that cannot be read are not among them.
    #[must_use]
    pub fn packs(&self) -> Vec<PackFacts> {
        let layers = self.layers.load();
        let open = layers.runs.open();
        open.map(|pack| PackFacts::of(pack.meta())).collect()
    }

    /// Rows of a pack that are of one of these groups and lie in one of these buffers, about: what is withdrawn is counted, too.
    #[must_use]
    pub fn rows_in(
        &self,
        pack: u64,
        is_in: &dyn Fn(BufferId) -> bool,
        is_meant: &dyn Fn(GroupId) -> bool,
    ) -> u64 {
        let runs = self.layers.runs();
        let Some(pack) = runs.open().find(|open| open.meta().id == pack) else {
            return 0;
        };
        let mut floors = self.floors();
        let blocks = (0..pack.blocks()).filter_map(|nth| pack.block(nth));
        let mut rows = 0;
        for block in blocks.filter(|block| is_meant(GroupId(block.group))) {
            let facts = pack.buffers_of(&block);
            let live = facts.filter(|it| is_in(it.buffer) && it.last >= floors.floor(it.buffer));
            rows += live.map(|facts| u64::from(facts.rows)).sum::<u64>();
        }
        rows
    }

    /// Visits the rows of a pack that are of one of these groups and whose articles are alive and lie in one of these buffers, by
    /// group, from a block on, until the visitor breaks: then the rest of that block is visited, and the block to go on from
    /// comes back.
    ///
    /// # Errors
    /// When a block cannot be read.
    pub fn pack_rows(
        &self,
        (pack, from): (u64, usize),
        is_in: &dyn Fn(BufferId) -> bool,
        is_meant: &dyn Fn(GroupId) -> bool,
        mut visit: impl FnMut(&Column) -> ControlFlow<()>,
    ) -> Result<Option<usize>> {
        let runs = self.layers.runs();
        let Some(pack) = runs.open().find(|open| open.meta().id == pack) else {
            return Ok(None);
        };
        let mut floors = self.floors();
        for nth in from..pack.blocks() {
            let Some(block) = pack.block(nth) else { break };
            let group = GroupId(block.group);
            let is_dead = pack.alive(&block, &mut floors).share == Share::None;
            let has_some = pack.buffers_of(&block).any(|facts| is_in(facts.buffer));
            if is_dead || !has_some || !is_meant(group) {
                continue;
            }
            let columns = pack.columns(&block, self.cache(), Wait::Yes);
            let columns = columns.map_err(|error| self.layers.noted(pack.meta(), error))?;
            let withdrawn = self.withdrawn().of(group);
            let mut is_over = false;
            for row in 0..columns.len() {
                let column = columns.without_text(row);
                let is_gone = withdrawn.as_ref().is_some_and(|it| it.has(column.number.0));
                if is_in(column.token.buffer()) && !is_gone && floors.is_live(&column.token) {
                    is_over |= visit(&column).is_break();
                }
            }
            if is_over {
                return Ok(Some(nth + 1));
            }
        }
        Ok(None)
    }
}
