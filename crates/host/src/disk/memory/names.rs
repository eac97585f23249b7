//! The names of a memory disk, and which of them the medium has.
//!
//! A change of names stays pending until its directory is synced; a rename is one change that a crash either keeps
//! or takes whole.  Directories are durable at once, as [`crate::Disk::create_dir_all`] promises.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::RwLock;

use super::content::Content;
use super::dice::{Dice, Survival};

pub(super) type Shared = Arc<RwLock<Content>>;
pub(super) type Files = BTreeMap<PathBuf, Shared>;

#[derive(Debug)]
enum Change {
    Create(PathBuf, Shared),
    Remove(PathBuf),
    Rename(PathBuf, PathBuf, Shared),
}

impl Change {
    fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        let (first, second) = match self {
            Self::Create(path, _) | Self::Remove(path) => (path, None),
            Self::Rename(from, to, _) => (from, Some(to)),
        };
        std::iter::once(first).chain(second)
    }

    fn apply(&self, files: &mut Files) {
        match self {
            Self::Create(path, content) => {
                files.insert(path.clone(), Arc::clone(content));
            }
            Self::Remove(path) => {
                files.remove(path);
            }
            Self::Rename(from, to, content) => {
                if files.remove(from).is_none() {
                    // An earlier change of this file's name was lost: it has that one name no more.
                    files.retain(|_, other| !Arc::ptr_eq(other, content));
                }
                files.insert(to.clone(), Arc::clone(content));
            }
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Names {
    files: Files,
    durable: Files,
    pending: Vec<Change>,
    pub(super) dirs: BTreeSet<PathBuf>,
    pub(super) locked: BTreeSet<PathBuf>,
}

impl Names {
    pub(super) fn has_dir(&self, dir: &Path) -> bool {
        let top = dir.as_os_str().is_empty() || dir == Path::new("/") || dir == Path::new(".");
        top || self.dirs.contains(dir)
    }

    pub(super) const fn files(&self) -> &Files {
        &self.files
    }

    pub(super) fn create(&mut self, path: &Path, content: Shared) {
        self.change(Change::Create(path.to_path_buf(), content));
    }

    /// Whether there was such a file.
    pub(super) fn remove(&mut self, path: &Path) -> bool {
        let known = self.files.contains_key(path);
        if known {
            self.change(Change::Remove(path.to_path_buf()));
        }
        known
    }

    /// Whether there was such a file.
    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> bool {
        let Some(content) = self.files.get(from).cloned() else {
            return false;
        };
        if from != to {
            self.change(Change::Rename(
                from.to_path_buf(),
                to.to_path_buf(),
                content,
            ));
        }
        true
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.files);
        self.pending.push(change);
    }

    /// Makes the directory's pending changes durable, with the earlier ones they rest on.
    pub(super) fn sync_dir(&mut self, dir: &Path) {
        let mut needed: BTreeSet<PathBuf> = BTreeSet::new();
        let mut keep = vec![false; self.pending.len()];
        for (change, keep) in self.pending.iter().zip(&mut keep).rev() {
            let here = change.paths().any(|path| path.parent() == Some(dir));
            if here || change.paths().any(|path| needed.contains(path)) {
                needed.extend(change.paths().cloned());
                *keep = true;
            }
        }
        let mut later = Vec::new();
        for (change, keep) in std::mem::take(&mut self.pending).into_iter().zip(keep) {
            if keep {
                change.apply(&mut self.durable);
            } else {
                later.push(change);
            }
        }
        self.pending = later;
    }

    /// Makes every pending change durable.
    pub(super) fn sync_all(&mut self) {
        for change in std::mem::take(&mut self.pending) {
            change.apply(&mut self.durable);
        }
    }

    /// The names a power cut leaves.
    pub(super) fn crashed(&self, dice: &mut Dice, worst: bool) -> Files {
        let how = if worst {
            Survival::Nothing
        } else {
            dice.survival()
        };
        let mut files = self.durable.clone();
        for (at, change) in self.pending.iter().enumerate() {
            if dice.survives(how, at, self.pending.len()) {
                change.apply(&mut files);
            }
        }
        files
    }

    /// Takes over names as the medium has them.
    pub(super) fn from_medium(files: Files, dirs: BTreeSet<PathBuf>) -> Self {
        Self {
            durable: files.clone(),
            files,
            dirs,
            ..Self::default()
        }
    }
}
