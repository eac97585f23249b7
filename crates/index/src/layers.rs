//! The layers of a view: its newest part in memory, one set aside for a checkpoint, sealed runs below them.
//!
//! Readers take a snapshot and wait for nobody; whoever changes the layers makes a new snapshot, one at a time.  History
//! and overview are both built so and differ in what a part and a run can answer; groups have only the runs.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};
use parking_lot::Mutex;

use crate::error::{Error, Result};
use crate::sealed::catalog::Catalog;
use crate::sealed::reader::RunFile;
use crate::sealed::set::{DamagedRun, Damages, RunSet, Slot};
use crate::sealed::writer::Place;
use crate::sealed::{RunKind, RunMeta, run_path};

/// A part in memory.
pub(crate) trait Part: Default + Debug {
    /// Empties it and keeps its memory for the next part.
    fn recycled(self) -> Self;
}

/// Nothing is in memory.
impl Part for () {
    fn recycled(self) -> Self {}
}

/// An open sealed run.
pub(crate) trait Run: Sized + Debug {
    const KIND: RunKind;

    /// What a checkpoint makes such a run of.
    type Part: Part;

    /// Reads what stays in memory.
    fn open(run: RunFile) -> Result<Self>;

    /// Its files.
    fn file(&self) -> &RunFile;

    /// Looks at a part of all its files; `false`: there is no such part.
    fn check_part(&self, nth: u64) -> Result<bool> {
        if nth == 0 {
            self.file().check_sections()?;
        }
        Ok(nth == 0)
    }
}

/// What readers look through.
#[derive(Debug)]
pub(crate) struct Snapshot<R: Run> {
    /// Takes what is new.
    pub(crate) active: Arc<R::Part>,
    /// A checkpoint writes it.
    pub(crate) frozen: Option<Arc<R::Part>>,
    pub(crate) runs: RunSet<R>,
    /// Grows when other rows than before are frozen or sealed: at a freeze, and when runs are made again or repacked.
    pub(crate) settled: u64,
    /// Grows when rows are to be sought in other runs than before: at an install, and when runs are made again.
    pub(crate) left_memory: u64,
}

impl<R: Run> Snapshot<R> {
    /// The parts in memory, from the oldest.
    pub(crate) fn parts(&self) -> impl DoubleEndedIterator<Item = &Arc<R::Part>> {
        self.frozen.iter().chain([&self.active])
    }
}

/// Why runs are replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The frozen part is in the new ones and goes out of memory.
    Installed,
    /// The new ones hold what is alive of the old ones.
    Merged,
    /// The new ones were made from elsewhere, because the old ones were damaged.
    Rebuilt,
    /// The new ones say of some articles that they lie elsewhere.
    Repacked,
}

/// The layers.
#[derive(Debug)]
pub(crate) struct Layers<R: Run> {
    snapshot: ArcSwap<Snapshot<R>>,
    /// Held while the snapshot is replaced; an empty part whose memory serves again.
    changing: Mutex<Option<R::Part>>,
    catalog: Arc<Catalog>,
    damages: Arc<Damages>,
}

impl<R: Run> Layers<R> {
    /// Opens the runs the manifest names; those that cannot be opened are noted as damaged.
    pub(crate) fn open(catalog: &Arc<Catalog>, damages: &Arc<Damages>) -> Result<Self> {
        let place = catalog.place();
        let mut slots = Vec::new();
        for meta in catalog.manifest().of_kind(R::KIND) {
            let run = match open_run(place, meta) {
                Ok(run) => Some(run),
                Err(error) => {
                    damages.unless_damage(&place.dir, meta, error)?;
                    None
                }
            };
            slots.push(Slot::new(*meta, run));
        }
        Ok(Self {
            snapshot: ArcSwap::from_pointee(Snapshot {
                active: Arc::default(),
                frozen: None,
                runs: RunSet::new(slots),
                settled: 0,
                left_memory: 0,
            }),
            changing: Mutex::default(),
            catalog: Arc::clone(catalog),
            damages: Arc::clone(damages),
        })
    }

    /// The layers as they are now.
    pub(crate) fn load(&self) -> Guard<Arc<Snapshot<R>>> {
        self.snapshot.load()
    }

    /// The part that takes what is new; it stays the right one until the next freeze.
    pub(crate) fn active(&self) -> Arc<R::Part> {
        Arc::clone(&self.load().active)
    }

    /// The runs as they are now.
    pub(crate) fn runs(&self) -> RunSet<R> {
        self.load().runs.clone()
    }

    /// Sets the newest part aside for a checkpoint.
    pub(crate) fn freeze(&self) -> Arc<R::Part> {
        let mut spare = self.changing.lock();
        let now = self.snapshot.load_full();
        let frozen = Arc::clone(&now.active);
        self.snapshot.store(Arc::new(Snapshot {
            active: Arc::new(spare.take().unwrap_or_default()),
            frozen: Some(Arc::clone(&frozen)),
            runs: now.runs.clone(),
            settled: now.settled + 1,
            left_memory: now.left_memory,
        }));
        frozen
    }

    /// Takes back the memory of a part that was installed, unless a reader is still in it.
    pub(crate) fn recycle(&self, part: Arc<R::Part>) {
        if let Some(part) = Arc::into_inner(part) {
            let part = part.recycled();
            *self.changing.lock() = Some(part);
        }
    }

    /// Opens a run that was just sealed.
    pub(crate) fn open_new(&self, meta: &RunMeta) -> Result<Slot<R>> {
        let run = open_run(self.catalog.place(), meta)?;
        Ok(Slot::new(*meta, Some(run)))
    }

    /// Opens a run that the log tells of; one that cannot be opened is noted as damaged.
    pub(crate) fn open_told(&self, meta: &RunMeta) -> Result<Slot<R>> {
        let run = open_run(self.catalog.place(), meta);
        let run = match run {
            Ok(run) => Some(run),
            Err(error) => {
                self.unless_damage(meta, error)?;
                None
            }
        };
        Ok(Slot::new(*meta, run))
    }

    /// Replaces the neighbours `old` (none: at the end) by new runs.
    pub(crate) fn replace(&self, old: &[u64], new: Vec<Slot<R>>, turn: Turn) {
        self.change(|runs| runs.replaced(old, new), turn);
    }

    /// Drops runs in which nothing is needed.
    pub(crate) fn drop_runs(&self, ids: &[u64]) {
        if !ids.is_empty() {
            self.change(|runs| runs.without(ids), Turn::Merged);
        }
    }

    fn change(&self, change: impl FnOnce(&RunSet<R>) -> RunSet<R>, turn: Turn) {
        let _changing = self.changing.lock();
        let now = self.snapshot.load_full();
        let frozen = now.frozen.clone();
        self.snapshot.store(Arc::new(Snapshot {
            active: Arc::clone(&now.active),
            frozen: frozen.filter(|_| turn != Turn::Installed),
            runs: change(&now.runs),
            settled: now.settled + u64::from(matches!(turn, Turn::Rebuilt | Turn::Repacked)),
            left_memory: now.left_memory
                + u64::from(matches!(turn, Turn::Installed | Turn::Rebuilt)),
        }));
    }

    /// Files that are bad while their copies answer.
    pub(crate) fn bad_files(&self) -> Vec<DamagedRun> {
        let layers = self.load();
        let open = layers.runs.open();
        open.flat_map(|run| run.file().bad_files()).collect()
    }

    /// Looks at everything in all files; what is bad is noted.
    pub(crate) fn check_files(&self) -> Result<()> {
        for run in self.runs().open() {
            let mut nth = 0;
            while self.check_part(run, nth)? {
                nth += 1;
            }
        }
        Ok(())
    }

    /// Looks at a part of all files of a run; `false`: there is no such part, or the run is lost.
    pub(crate) fn check_part(&self, run: &R, nth: u64) -> Result<bool> {
        match run.check_part(nth) {
            Ok(is_there) => Ok(is_there),
            Err(error) => {
                self.unless_damage(run.file().meta(), error)?;
                Ok(false)
            }
        }
    }

    /// Refuses to go on when a run is missing that might have the answer.
    pub(crate) fn all_there(&self, snapshot: &Snapshot<R>) -> Result<()> {
        match snapshot.runs.missing() {
            None => Ok(()),
            Some(meta) => Err(Error::Incomplete {
                path: self.path(meta),
            }),
        }
    }

    /// A run's (first) file.
    pub(crate) fn path(&self, meta: &RunMeta) -> PathBuf {
        run_path(&self.catalog.place().dir, meta.kind, meta.id)
    }

    /// The same error, noted if it is damage in this run.
    pub(crate) fn noted(&self, meta: &RunMeta, error: Error) -> Error {
        let dir = &self.catalog.place().dir;
        self.damages.note(dir, meta, &error);
        error
    }

    /// Notes damage in a run; other errors come back.
    pub(crate) fn unless_damage(&self, meta: &RunMeta, error: Error) -> Result<()> {
        let dir = &self.catalog.place().dir;
        self.damages.unless_damage(dir, meta, error)
    }
}

fn open_run<R: Run>(place: &Place, meta: &RunMeta) -> Result<Arc<R>> {
    let run = RunFile::open(place.disk.as_ref(), &place.dir, &place.spool, meta)?;
    Ok(Arc::new(R::open(run)?))
}
