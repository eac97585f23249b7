//! Compaction in the background, a bounded step at a time: dead runs go, neighbours are merged, sparse runs rewritten.
//!
//! Dead runs go first, also while a merge is under way: that costs nothing but a manifest.  A run of which one file is bad
//! is written anew from the other.  Damaged runs are left as they are until they are rebuilt.  A step that fails gives its
//! merge up; what it was made from is still there.

use std::sync::Arc;

use crate::config::IndexConfig;
use crate::error::{Error, Result};
use crate::groups::seal::{GroupRun, pairs};
use crate::history::bucket::Bucket;
use crate::history::merge::BucketMerge;
use crate::layers::Turn;
use crate::overview::merge::PackMerge;
use crate::overview::pack::Pack;
use crate::sealed::catalog::Change;
use crate::sealed::set::{RunSet, Slot};
use crate::sealed::tiers::{Limits, RunSize, choose};
use crate::sealed::{RunKind, RunMeta};
use crate::views::Views;

/// What compaction is at.
#[derive(Debug, Default)]
pub(crate) struct Compaction {
    merge: Option<Merge>,
    /// Which kind is asked first.
    turn: usize,
}

/// History, overview and groups.
const KINDS: usize = 3;

#[derive(Debug)]
enum Merge {
    History(Vec<RunMeta>, Box<BucketMerge>),
    Overview(Vec<RunMeta>, Box<PackMerge>),
}

impl Merge {
    fn inputs(&self) -> &[RunMeta] {
        match self {
            Self::History(metas, _) | Self::Overview(metas, _) => metas,
        }
    }
}

fn ids(metas: &[RunMeta]) -> Vec<u64> {
    metas.iter().map(|meta| meta.id).collect()
}

impl Views {
    /// Does one bounded piece of compaction.  `false`: there is nothing to do now.
    ///
    /// # Errors
    /// When the disk fails or is full; a damaged run is noted besides.
    pub fn compact_step(&self) -> Result<bool> {
        let mut compaction = self.compaction.lock();
        if self.drop_dead(compaction.merge.as_ref())? {
            return Ok(true);
        }
        if let Some(merge) = compaction.merge.take() {
            compaction.merge = self.go_on(merge)?;
            return Ok(true);
        }
        // In turn, so that none waits for ever for another one that always has something to do.
        for nth in 0..KINDS {
            let kind = (compaction.turn + nth) % KINDS;
            let begun = match kind {
                0 => self.begin_history()?,
                1 => self.begin_overview()?,
                _ => {
                    if self.compact_groups()? {
                        compaction.turn = kind + 1;
                        return Ok(true);
                    }
                    None
                }
            };
            if begun.is_some() {
                (compaction.merge, compaction.turn) = (begun, kind + 1);
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether runs come faster than they are merged: then compaction should not rest between steps.
    #[must_use]
    pub fn is_compaction_behind(&self) -> bool {
        let most = 2 * self.config.runs_max;
        self.history.layers.runs().slots.len() > most
            || self.overview.layers.runs().slots.len() > most
    }

    /// Drops the runs in which nothing is needed, but for those that are being merged.
    fn drop_dead(&self, merge: Option<&Merge>) -> Result<bool> {
        let busy = merge.map_or_else(Vec::new, |merge| ids(merge.inputs()));
        let (mut floors, remember) = (self.history.floors(), self.remember());
        let buckets = dead(&self.history.layers.runs(), &busy, |bucket| {
            bucket.is_dead(&mut floors, remember)
        });
        let packs = dead(&self.overview.layers.runs(), &busy, |pack| {
            pack.is_dead(&mut floors)
        });
        if buckets.is_empty() && packs.is_empty() {
            return Ok(false);
        }
        let mut replace = Vec::new();
        for (kind, ids) in [(RunKind::History, &buckets), (RunKind::Overview, &packs)] {
            replace.extend(ids.chunks(1).map(|id| (kind, id, &[][..])));
        }
        let checkpoint = None;
        self.catalog.commit(&Change {
            replace,
            checkpoint,
        })?;
        self.damages.forget(&buckets);
        self.damages.forget(&packs);
        self.history.layers.drop_runs(&buckets);
        self.overview.layers.drop_runs(&packs);
        Ok(true)
    }

    fn go_on(&self, merge: Merge) -> Result<Option<Merge>> {
        let step = self.config.step_bytes;
        let metas = merge.inputs().to_vec();
        let result = match merge {
            Merge::History(metas, mut merge) => {
                let done = merge.step(&mut self.history.floors(), step);
                done.and_then(|done| {
                    if done {
                        return self.end_history(&metas, *merge).map(|()| None);
                    }
                    Ok(Some(Merge::History(metas, merge)))
                })
            }
            Merge::Overview(metas, mut merge) => {
                let is_gone = |group| !self.groups.exists(group);
                let floors = &mut self.overview.floors();
                let done = merge.step(floors, self.overview.cache(), &is_gone, step);
                done.and_then(|done| {
                    if done {
                        return self.end_overview(&metas, *merge).map(|()| None);
                    }
                    Ok(Some(Merge::Overview(metas, merge)))
                })
            }
        };
        if let Err(error) = &result {
            let dir = &self.catalog.place().dir;
            self.damages.note_by_path(dir, &metas, error);
        }
        result
    }

    fn end_history(&self, metas: &[RunMeta], merge: BucketMerge) -> Result<()> {
        let merged = merge.finish()?;
        let mut slots = Vec::new();
        if let Some(meta) = &merged {
            let slot = self.history.layers.open_new(meta);
            let mut slot = slot.inspect_err(|_| self.catalog.discard([meta]))?;
            slot.still_dead = self.bucket_size(&slot).dead;
            slots.push(slot);
        }
        self.commit(RunKind::History, &ids(metas), merged.as_slice())?;
        self.history
            .layers
            .replace(&ids(metas), slots, Turn::Merged);
        Ok(())
    }

    fn end_overview(&self, metas: &[RunMeta], merge: PackMerge) -> Result<()> {
        let merged = merge.finish()?;
        let mut slots = Vec::new();
        if let Some(meta) = &merged {
            let slot = self.overview.layers.open_new(meta);
            let mut slot = slot.inspect_err(|_| self.catalog.discard([meta]))?;
            slot.still_dead = self.pack_size(&slot).dead;
            slots.push(slot);
        }
        self.commit(RunKind::Overview, &ids(metas), merged.as_slice())?;
        self.overview
            .layers
            .replace(&ids(metas), slots, Turn::Merged);
        Ok(())
    }

    fn bucket_size(&self, slot: &Slot<Bucket>) -> RunSize {
        let (mut floors, remember) = (self.history.floors(), self.remember());
        let bucket = slot.run.as_deref();
        let dead = bucket.map_or(0, |bucket| bucket.dead(&mut floors, remember));
        RunSize {
            size: slot.meta.rows,
            dead: dead.saturating_sub(slot.still_dead),
            is_damaged: bucket.is_none() || self.damages.contains(slot.meta.id),
            is_worn: bucket.is_some_and(|bucket| bucket.run().is_worn()),
        }
    }

    fn pack_size(&self, slot: &Slot<Pack>) -> RunSize {
        let mut floors = self.overview.floors();
        let pack = slot.run.as_deref();
        let rows = pack.map_or(0, |pack| pack.dead(&mut floors));
        let dead = u128::from(rows) * u128::from(slot.meta.len) / u128::from(slot.meta.rows.max(1));
        RunSize {
            size: slot.meta.len,
            dead: (dead as u64).saturating_sub(slot.still_dead),
            is_damaged: pack.is_none() || self.damages.contains(slot.meta.id),
            is_worn: false,
        }
    }

    pub(crate) fn commit(&self, kind: RunKind, old: &[u64], new: &[RunMeta]) -> Result<()> {
        self.catalog.commit(&Change {
            replace: vec![(kind, old, new)],
            checkpoint: None,
        })?;
        self.damages.forget(old);
        Ok(())
    }

    /// Begins the merge that is most useful for the history; `None`: none is.
    fn begin_history(&self) -> Result<Option<Merge>> {
        let buckets = self.history.layers.runs();
        let sizes = buckets.slots.iter().map(|slot| self.bucket_size(slot));
        let limits = limits(&self.config, self.config.bucket_rows_max);
        let Some(window) = choose(&sizes.collect::<Vec<_>>(), &limits) else {
            return Ok(None);
        };
        let (metas, open) = inputs(&buckets.slots[window]);
        let (place, id) = (self.catalog.place(), self.catalog.new_run());
        let merge = BucketMerge::begin(place, id, &open, self.remember())?;
        Ok(Some(Merge::History(metas, Box::new(merge))))
    }

    /// Begins the merge that is most useful for the overview; `None`: none is.
    fn begin_overview(&self) -> Result<Option<Merge>> {
        let packs = self.overview.layers.runs();
        let sizes = packs.slots.iter().map(|slot| self.pack_size(slot));
        let limits = limits(&self.config, self.config.pack_bytes_max);
        let Some(window) = choose(&sizes.collect::<Vec<_>>(), &limits) else {
            return Ok(None);
        };
        let (metas, open) = inputs(&packs.slots[window]);
        let (place, id) = (self.catalog.place(), self.catalog.new_run());
        let merge = PackMerge::begin(place, id, &open, &self.config)?;
        Ok(Some(Merge::Overview(metas, Box::new(merge))))
    }

    /// Merges files of group rows: small ones, in one go.  Of two copies one is enough.
    fn compact_groups(&self) -> Result<bool> {
        let metas: Vec<RunMeta> = self
            .catalog
            .manifest()
            .of_kind(RunKind::Groups)
            .copied()
            .collect();
        let pairs = pairs(&metas);
        let size = |pair: &&[RunMeta]| RunSize {
            size: pair.iter().map(|meta| meta.len).sum(),
            dead: 0,
            is_damaged: pair.iter().all(|meta| self.damages.contains(meta.id)),
            is_worn: false,
        };
        let sizes: Vec<RunSize> = pairs.iter().map(size).collect();
        let Some(window) = choose(&sizes, &limits(&self.config, u64::MAX)) else {
            return Ok(false);
        };
        let note = |meta: &RunMeta, error: &Error| {
            self.damages.note(&self.catalog.place().dir, meta, error);
        };
        let mut runs = Vec::new();
        for pair in &pairs[window.clone()] {
            runs.push(GroupRun::read_any(&self.catalog, pair, note)?);
        }
        let old = pairs[window].concat();
        let merged = GroupRun::merged(runs, &mut self.overview.floors());
        let first = old.iter().map(|meta| meta.first).min().unwrap_or_default();
        let last = old.iter().map(|meta| meta.last).max().unwrap_or_default();
        let new = merged.write(&self.catalog, (first, last))?;
        self.commit(RunKind::Groups, &ids(&old), &new)?;
        let withdrawn = self.overview.withdrawn();
        withdrawn.drop_dead(&mut self.overview.floors());
        Ok(true)
    }
}

fn limits(config: &IndexConfig, size_max: u64) -> Limits {
    Limits {
        runs_max: config.runs_max,
        merge_max: config.merge_runs_max,
        size_max,
        dead_percent_max: config.dead_percent_max,
    }
}

/// The ids of open runs that are dead and not `busy`.
fn dead<R>(runs: &RunSet<R>, busy: &[u64], mut is_dead: impl FnMut(&R) -> bool) -> Vec<u64> {
    let free = runs
        .slots
        .iter()
        .filter(|slot| !busy.contains(&slot.meta.id));
    let dead = free.filter(|slot| slot.run.as_deref().is_some_and(&mut is_dead));
    dead.map(|slot| slot.meta.id).collect()
}

/// The runs of a window; none of them is missing, or the window would not have been chosen.
fn inputs<R>(slots: &[Slot<R>]) -> (Vec<RunMeta>, Vec<Arc<R>>) {
    let metas = slots.iter().map(|slot| slot.meta).collect();
    let open = slots.iter().filter_map(|slot| slot.run.clone()).collect();
    (metas, open)
}
