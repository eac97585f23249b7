//! Compaction in the background, a bounded step at a time: dead runs go, neighbours are merged, sparse runs rewritten.
//!
//! Dead runs go first, also while a merge is under way: that costs nothing but a manifest.  A run of which one file is bad
//! is written anew from the other.  Damaged runs are left as they are until they are rebuilt.  A step that fails gives its
//! merge up; what it was made from is still there.  Where there is nothing to do, what is kept twice is looked at.

use std::cell::OnceCell;
use std::fmt::Debug;
use std::sync::Arc;

use crate::config::IndexConfig;
use crate::error::Result;
use crate::groups::merge::GroupMerge;
use crate::groups::seal::GroupFile;
use crate::history::bucket::{Bucket, Remember};
use crate::history::merge::BucketMerge;
use crate::layers::{Layers, Run, Turn};
use crate::overview::merge::PackMerge;
use crate::overview::pack::Pack;
use crate::sealed::catalog::Change;
use crate::sealed::set::{RunSet, Slot};
use crate::sealed::tiers::{Limits, RunSize, choose, mergeable};
use crate::sealed::{RunKind, RunMeta};
use crate::views::Views;

/// What compaction is at.
#[derive(Debug)]
pub(crate) struct Compaction {
    merge: Option<Box<dyn Merging>>,
    /// In what order they are asked.
    kinds: [RunKind; RunKind::ALL.len()],
    looks_at: LooksAt,
}

/// What is looked at next of what is kept twice.
#[derive(Debug)]
struct LooksAt {
    kind: RunKind,
    /// This run's id, or that of the next one.
    run: u64,
    part: u64,
}

impl LooksAt {
    const fn first(kind: RunKind) -> Self {
        Self {
            kind,
            run: 0,
            part: 0,
        }
    }
}

impl Compaction {
    /// Whether a merge is under way.
    pub(crate) const fn is_at_work(&self) -> bool {
        self.merge.is_some()
    }
}

impl Default for Compaction {
    fn default() -> Self {
        Self {
            merge: None,
            kinds: RunKind::ALL,
            looks_at: LooksAt::first(RunKind::History),
        }
    }
}

/// What a kind of run brings to compaction.
trait Compact: Run + 'static {
    /// A merge under way; it writes one new run.
    type Merge: Debug + Send;

    fn layers(views: &Views) -> &Layers<Self>;

    /// The largest run a merge may make, in the measure of `size`.
    fn size_max(config: &IndexConfig) -> u64;

    /// How large it is: octets, or anything in proportion.
    fn size(meta: &RunMeta) -> u64;

    /// About how much of that is dead; what is remembered is asked once for all that are looked at.
    fn dead(&self, views: &Views, remember: &OnceCell<Remember>) -> u64;

    /// Begins to merge neighbours, given from the oldest to the newest, into a run with this id.
    fn begin(views: &Views, id: u64, inputs: &[Arc<Self>]) -> Result<Self::Merge>;

    /// Does a bounded piece of it.  `true`: all is written.
    fn step(views: &Views, merge: &mut Self::Merge) -> Result<bool>;

    /// Closes the new run; `None` when nothing was left to keep.
    fn finish(merge: Self::Merge) -> Result<Option<RunMeta>>;
}

impl Compact for Bucket {
    type Merge = BucketMerge;

    fn layers(views: &Views) -> &Layers<Self> {
        &views.history.layers
    }

    fn size_max(config: &IndexConfig) -> u64 {
        config.bucket_rows_max
    }

    fn size(meta: &RunMeta) -> u64 {
        meta.rows
    }

    fn dead(&self, views: &Views, remember: &OnceCell<Remember>) -> u64 {
        let remember = remember.get_or_init(|| views.remember());
        Self::dead(self, &mut views.history.forgetting(remember))
    }

    fn begin(views: &Views, id: u64, inputs: &[Arc<Self>]) -> Result<BucketMerge> {
        BucketMerge::begin(views.catalog.place(), id, inputs)
    }

    fn step(views: &Views, merge: &mut BucketMerge) -> Result<bool> {
        let remember = views.remember();
        let forgetting = &mut views.history.forgetting(&remember);
        merge.step(forgetting, views.config.step_bytes)
    }

    fn finish(merge: BucketMerge) -> Result<Option<RunMeta>> {
        merge.finish()
    }
}

impl Compact for Pack {
    type Merge = PackMerge;

    fn layers(views: &Views) -> &Layers<Self> {
        &views.overview.layers
    }

    fn size_max(config: &IndexConfig) -> u64 {
        config.pack_bytes_max
    }

    fn size(meta: &RunMeta) -> u64 {
        meta.len
    }

    fn dead(&self, views: &Views, _: &OnceCell<Remember>) -> u64 {
        let (rows, meta) = (Self::dead(self, &mut views.overview.floors()), self.meta());
        let dead = u128::from(rows) * u128::from(meta.len) / u128::from(meta.rows.max(1));
        u64::try_from(dead).unwrap_or(u64::MAX)
    }

    fn begin(views: &Views, id: u64, inputs: &[Arc<Self>]) -> Result<PackMerge> {
        let place = views.catalog.place();
        PackMerge::begin(place, id, inputs, &views.config, Arc::default())
    }

    fn step(views: &Views, merge: &mut PackMerge) -> Result<bool> {
        let is_gone = |group| !views.groups.exists(group);
        let (floors, cache) = (&mut views.overview.floors(), views.overview.cache());
        merge.step(floors, cache, &is_gone, views.config.step_bytes)
    }

    fn finish(merge: PackMerge) -> Result<Option<RunMeta>> {
        merge.finish()
    }
}

impl Compact for GroupFile {
    type Merge = GroupMerge;

    fn layers(views: &Views) -> &Layers<Self> {
        &views.group_files
    }

    fn size_max(_: &IndexConfig) -> u64 {
        u64::MAX
    }

    fn size(meta: &RunMeta) -> u64 {
        meta.len
    }

    fn dead(&self, _: &Views, _: &OnceCell<Remember>) -> u64 {
        0
    }

    fn begin(_: &Views, id: u64, inputs: &[Arc<Self>]) -> Result<GroupMerge> {
        Ok(GroupMerge::begin(id, inputs))
    }

    fn step(views: &Views, merge: &mut GroupMerge) -> Result<bool> {
        let floors = &mut views.overview.floors();
        views.overview.withdrawn().drop_dead(floors);
        merge.write(views.catalog.place(), floors).map(|()| true)
    }

    fn finish(merge: GroupMerge) -> Result<Option<RunMeta>> {
        Ok(merge.finish())
    }
}

/// A merge under way, of whatever kind.
trait Merging: Debug + Send {
    fn inputs(&self) -> &[RunMeta];

    /// Does a bounded piece of it.  `true`: all is written.
    fn step(&mut self, views: &Views) -> Result<bool>;

    /// Puts the new run in the place of the old ones.
    fn end(self: Box<Self>, views: &Views) -> Result<()>;
}

#[derive(Debug)]
struct Merge<R: Compact> {
    inputs: Vec<RunMeta>,
    merge: R::Merge,
}

impl<R: Compact> Merging for Merge<R> {
    fn inputs(&self) -> &[RunMeta] {
        &self.inputs
    }

    fn step(&mut self, views: &Views) -> Result<bool> {
        R::step(views, &mut self.merge)
    }

    fn end(self: Box<Self>, views: &Views) -> Result<()> {
        let layers = R::layers(views);
        let (old, merged) = (ids(&self.inputs), R::finish(self.merge)?);
        let mut slots = Vec::new();
        if let Some(meta) = &merged {
            let slot = layers.open_new(meta);
            let mut slot = slot.inspect_err(|_| views.catalog.discard([meta]))?;
            slot.still_dead = views.run_size(&slot, &OnceCell::new()).dead;
            slots.push(slot);
        }
        views.commit(R::KIND, &old, merged.as_slice())?;
        layers.replace(&old, slots, Turn::Merged);
        Ok(())
    }
}

fn ids(metas: &[RunMeta]) -> Vec<u64> {
    metas.iter().map(|meta| meta.id).collect()
}

impl Views {
    /// Does one bounded piece of compaction.  `false`: there is nothing to do now; then a piece of what is kept twice was
    /// looked at, and it is good.
    ///
    /// # Errors
    /// When the disk fails or is full; a damaged run is noted besides.
    pub fn compact_step(&self) -> Result<bool> {
        let mut compaction = self.compaction.lock();
        if self.is_at_rest() && compaction.merge.is_none() {
            return Ok(false);
        }
        let busy = compaction.merge.as_deref();
        if self.drop_dead(&busy.map_or_else(Vec::new, |merge| ids(merge.inputs())))? {
            return Ok(true);
        }
        if let Some(merge) = compaction.merge.take() {
            compaction.merge = self.go_on(merge)?;
            return Ok(true);
        }
        for _ in RunKind::ALL {
            // Whatever comes of it, the others are asked before it is asked again: none waits for ever for one that always
            // has something to do, or always fails.
            let [kind, ..] = compaction.kinds;
            compaction.kinds.rotate_left(1);
            compaction.merge = match kind {
                RunKind::History => self.begin::<Bucket>()?,
                RunKind::Overview => self.begin::<Pack>()?,
                RunKind::Groups => self.begin::<GroupFile>()?,
            };
            if compaction.merge.is_some() {
                return Ok(true);
            }
        }
        let looks_at = &mut compaction.looks_at;
        match looks_at.kind {
            RunKind::History => self.look::<Bucket>(looks_at, RunKind::Groups),
            RunKind::Groups | RunKind::Overview => {
                self.look::<GroupFile>(looks_at, RunKind::History)
            }
        }
    }

    /// Looks at a part of both files of a run; `true`: one of them was found to be bad.  Nobody reads the second file
    /// otherwise, and what rots there unseen is no help when the first one does.
    fn look<R: Compact>(&self, at: &mut LooksAt, then: RunKind) -> Result<bool> {
        let (layers, runs) = (R::layers(self), R::layers(self).runs());
        let rest = runs.open().filter(|open| open.file().meta().id >= at.run);
        let Some(open) = rest.min_by_key(|open| open.file().meta().id) else {
            *at = LooksAt::first(then);
            return Ok(false);
        };
        let (id, was_worn) = (open.file().meta().id, open.file().is_worn());
        if id != at.run {
            (at.run, at.part) = (id, 0);
        }
        match layers.check_part(open, at.part)? {
            true => at.part += 1,
            false => (at.run, at.part) = (id + 1, 0),
        }
        Ok(open.file().is_worn() && !was_worn)
    }

    /// Whether runs come faster than they are merged: then compaction should not rest between steps.
    #[must_use]
    pub fn is_compaction_behind(&self) -> bool {
        let most = self.config.runs_max.saturating_mul(4) / 3;
        self.mergeable::<Bucket>() > most
            || self.mergeable::<Pack>() > most
            || self.mergeable::<GroupFile>() > most
    }

    /// Drops the runs in which nothing is needed, but for those that are being merged.
    fn drop_dead(&self, busy: &[u64]) -> Result<bool> {
        let remember = self.remember();
        let mut forgetting = self.history.forgetting(&remember);
        let buckets = dead(&self.history.layers, busy, |bucket| {
            bucket.is_dead(&mut forgetting)
        });
        let mut floors = self.overview.floors();
        let packs = dead(&self.overview.layers, busy, |pack| {
            pack.is_dead(&mut floors)
        });
        if buckets.is_empty() && packs.is_empty() {
            return Ok(false);
        }
        let mut replace = Vec::new();
        for (kind, ids) in [(RunKind::History, &buckets), (RunKind::Overview, &packs)] {
            replace.extend(ids.chunks(1).map(|id| (kind, id, &[][..])));
        }
        self.catalog.commit(&Change {
            replace,
            ..Change::default()
        })?;
        self.damages.forget(&buckets);
        self.damages.forget(&packs);
        self.history.layers.drop_runs(&buckets);
        self.overview.layers.drop_runs(&packs);
        Ok(true)
    }

    fn go_on(&self, mut merge: Box<dyn Merging>) -> Result<Option<Box<dyn Merging>>> {
        let inputs = merge.inputs().to_vec();
        let result = match merge.step(self) {
            Ok(true) => merge.end(self).map(|()| None),
            Ok(false) => Ok(Some(merge)),
            Err(error) => Err(error),
        };
        if let Err(error) = &result {
            let dir = &self.catalog.place().dir;
            self.damages.note_by_path(dir, &inputs, error);
        }
        result
    }

    fn run_size<R: Compact>(&self, slot: &Slot<R>, remember: &OnceCell<Remember>) -> RunSize {
        let run = slot.run.as_deref();
        RunSize {
            size: R::size(&slot.meta),
            dead: run
                .map_or(0, |run| R::dead(run, self, remember))
                .saturating_sub(slot.still_dead),
            is_damaged: run.is_none() || self.damages.contains(slot.meta.id),
            is_worn: run.is_some_and(|run| run.file().is_worn()),
        }
    }

    fn run_sizes<R: Compact>(&self, runs: &RunSet<R>) -> Vec<RunSize> {
        let (remember, slots) = (OnceCell::new(), runs.slots.iter());
        slots.map(|slot| self.run_size(slot, &remember)).collect()
    }

    fn mergeable<R: Compact>(&self) -> usize {
        let sizes = self.run_sizes(&R::layers(self).runs());
        mergeable(&sizes, &self.limits::<R>())
    }

    fn limits<R: Compact>(&self) -> Limits {
        Limits {
            runs_max: self.config.runs_max,
            merge_max: self.config.merge_runs_max,
            size_max: R::size_max(&self.config),
            dead_percent_max: self.config.dead_percent_max,
        }
    }

    pub(crate) fn commit(&self, kind: RunKind, old: &[u64], new: &[RunMeta]) -> Result<()> {
        self.catalog.commit(&Change {
            replace: vec![(kind, old, new)],
            floors: Some(self.history.floors()),
            ..Change::default()
        })?;
        self.damages.forget(old);
        Ok(())
    }

    /// Begins the merge of a kind that is most useful; `None`: none is.
    fn begin<R: Compact>(&self) -> Result<Option<Box<dyn Merging>>> {
        let runs = R::layers(self).runs();
        let Some(window) = choose(&self.run_sizes(&runs), &self.limits::<R>()) else {
            return Ok(None);
        };
        // None of them is missing, or the window would not have been chosen.
        let slots = &runs.slots[window];
        let open: Vec<Arc<R>> = slots.iter().filter_map(|slot| slot.run.clone()).collect();
        Ok(Some(Box::new(Merge::<R> {
            merge: R::begin(self, self.catalog.new_run(), &open)?,
            inputs: slots.iter().map(|slot| slot.meta).collect(),
        })))
    }
}

/// The ids of open runs that are dead and not `busy`.
fn dead<R: Run>(layers: &Layers<R>, busy: &[u64], mut is_dead: impl FnMut(&R) -> bool) -> Vec<u64> {
    let runs = layers.runs();
    let free = runs
        .slots
        .iter()
        .filter(|slot| !busy.contains(&slot.meta.id));
    let dead = free.filter(|slot| slot.run.as_deref().is_some_and(&mut is_dead));
    dead.map(|slot| slot.meta.id).collect()
}
