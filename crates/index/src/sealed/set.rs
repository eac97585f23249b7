//! The runs of one kind as a reader sees them: a snapshot in age order, with places for those that could not be opened.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_wire::Sequence;
use parking_lot::Mutex;

use super::{RunKind, RunMeta, run_path};
use crate::error::{Error, Result};

/// One run's place.
#[derive(Debug)]
pub(crate) struct Slot<R> {
    pub(crate) meta: RunMeta,
    /// `None`: it is missing or too damaged to be opened.
    pub(crate) run: Option<Arc<R>>,
    /// What was estimated to be dead in it right after a merge had cleared it: rewriting it for that gains nothing.
    pub(crate) still_dead: u64,
}

impl<R> Slot<R> {
    pub(crate) const fn new(meta: RunMeta, run: Option<Arc<R>>) -> Self {
        Self {
            meta,
            run,
            still_dead: 0,
        }
    }
}

impl<R> Clone for Slot<R> {
    fn clone(&self) -> Self {
        Self {
            meta: self.meta,
            run: self.run.clone(),
            still_dead: self.still_dead,
        }
    }
}

/// All runs of a kind, from the oldest to the newest.
#[derive(Debug)]
pub(crate) struct RunSet<R> {
    pub(crate) slots: Arc<[Slot<R>]>,
}

impl<R> Clone for RunSet<R> {
    fn clone(&self) -> Self {
        Self {
            slots: Arc::clone(&self.slots),
        }
    }
}

impl<R> RunSet<R> {
    pub(crate) fn new(slots: Vec<Slot<R>>) -> Self {
        Self {
            slots: slots.into(),
        }
    }

    /// The runs that are open, from the oldest.
    pub(crate) fn open(&self) -> impl DoubleEndedIterator<Item = &Arc<R>> {
        self.slots.iter().filter_map(|slot| slot.run.as_ref())
    }

    /// A run that could not be opened.
    pub(crate) fn missing(&self) -> Option<&RunMeta> {
        self.slots
            .iter()
            .find(|slot| slot.run.is_none())
            .map(|slot| &slot.meta)
    }

    /// The set without these.
    pub(crate) fn without(&self, ids: &[u64]) -> Self {
        let slots = self
            .slots
            .iter()
            .filter(|slot| !ids.contains(&slot.meta.id));
        Self::new(slots.cloned().collect())
    }

    /// The set with `new` in the place of the neighbours `old` (none: at the end).
    pub(crate) fn replaced(&self, old: &[u64], new: Vec<Slot<R>>) -> Self {
        let mut slots = self.slots.to_vec();
        let at = old
            .first()
            .and_then(|first| slots.iter().position(|slot| slot.meta.id == *first))
            .unwrap_or(slots.len());
        let until = (at + old.len()).min(slots.len());
        slots.splice(at..until, new);
        Self::new(slots)
    }
}

/// A sealed run, or one of the two files of one, that has to be made anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedRun {
    /// What it holds.
    pub kind: RunKind,
    /// Its id.
    pub run: u64,
    /// Its file.
    pub path: PathBuf,
    /// The first log sequence it covers.
    pub first: Sequence,
    /// The last log sequence it covers.
    pub last: Sequence,
    /// Rows it had.
    pub rows: u64,
    /// What was found.
    pub why: String,
    /// The run's other file is there and answers: compaction writes both anew, and nothing has to be rebuilt.
    pub is_readable: bool,
    /// Groups that nobody knows any more: a person has to put the file back, or to make do without it.
    pub is_lost: bool,
}

impl DamagedRun {
    pub(crate) fn new(meta: &RunMeta, path: &Path, why: String) -> Self {
        Self {
            kind: meta.kind,
            run: meta.id,
            path: path.to_path_buf(),
            first: meta.first,
            last: meta.last,
            rows: meta.rows,
            why,
            is_readable: false,
            is_lost: false,
        }
    }
}

/// The runs known to be damaged.
#[derive(Debug, Default)]
pub(crate) struct Damages {
    runs: Mutex<Vec<DamagedRun>>,
}

impl Damages {
    /// Notes a damaged run, once, if the error is of that kind.
    pub(crate) fn note(&self, dir: &Path, meta: &RunMeta, error: &Error) {
        let mut runs = self.runs.lock();
        if !error.is_damage() || runs.iter().any(|run| run.run == meta.id) {
            return;
        }
        let path = run_path(dir, meta.kind, meta.id);
        runs.push(DamagedRun::new(meta, &path, error.to_string()));
    }

    /// Notes damage in a run; other errors come back.
    pub(crate) fn unless_damage(&self, dir: &Path, meta: &RunMeta, error: Error) -> Result<()> {
        self.note(dir, meta, &error);
        match error.is_damage() {
            true => Ok(()),
            false => Err(error),
        }
    }

    /// Notes the run whose file an error names, if it names one of these.
    pub(crate) fn note_by_path(&self, dir: &Path, metas: &[RunMeta], error: &Error) {
        let path = match error {
            Error::Damaged { path, .. } => path.as_path(),
            Error::Host(error) => error.path(),
            _ => return,
        };
        let named = metas
            .iter()
            .find(|meta| meta.paths(dir).iter().any(|own| own == path));
        if let Some(meta) = named {
            self.note(dir, meta, error);
        }
    }

    /// What a run of group rows held is not in memory either.
    pub(crate) fn lose(&self, id: u64) {
        let mut runs = self.runs.lock();
        for run in runs.iter_mut().filter(|run| run.run == id) {
            run.is_lost = true;
        }
    }

    /// The run counts no more.
    pub(crate) fn forget(&self, ids: &[u64]) {
        self.runs.lock().retain(|run| !ids.contains(&run.run));
    }

    pub(crate) fn contains(&self, id: u64) -> bool {
        self.runs.lock().iter().any(|run| run.run == id)
    }

    pub(crate) fn list(&self) -> Vec<DamagedRun> {
        self.runs.lock().clone()
    }
}
