//! What a conversion would do and what speaks against it, found without changing anything.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use newsreel_host::folder::{Entry, Kind};
use newsreel_host::{Folder, Op, process};

use super::{Course, STAGING};
use crate::algorithm::{Algorithm, Bucket, OTHERS};
use crate::error::Result;
use crate::managed::open_if_there;
use crate::mark::{Layout, Mark, Step};
use crate::name::Name;
use crate::of_set;
use crate::walk::walk;

/// The bit of a directory in which all that is made has its group.
const SET_GID: u32 = 0o2000;

/// What a conversion would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// What the directory is, or was when a conversion began.
    pub from: Layout,
    /// What it is to become; the same as `from` when there is nothing to do.
    pub to: Layout,
    /// The step in which a conversion that has begun goes on.
    pub goes_on: Option<Step>,
    /// Entries that are not yet where they belong.
    pub entries: u64,
    /// Of them, names of digits.
    pub articles: u64,
    /// Of them, directories.
    pub folders: u64,
    /// Of them, symbolic links whose targets are relative: seen from below they lead elsewhere.
    pub relative_links: u64,
    /// Directories to make: inodes and blocks needed.
    pub new_folders: u64,
    /// Why it is not done, if it is not.
    pub refusals: Vec<Refusal>,
}

/// Why a conversion is not begun.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// It is managed by another algorithm, and only turning it on was asked for.
    ManagedBy(Algorithm),
    /// It has a mark without its bit.
    WithoutBit(Algorithm),
    /// A conversion between two others has begun.
    UnderWay {
        /// What the directory was.
        from: Layout,
        /// What it will be.
        to: Layout,
    },
    /// The directory is a bucket of a managed one, or lies in one that is being converted.
    Bucket,
    /// Something has the name of the staging directory.
    ReservedName,
    /// Something is mounted in the directory.
    MountPoint(OsString),
    /// So many things in the directory are in no view.
    Strays(u64),
    /// Too few inodes.
    NoInodes {
        /// How many are needed.
        needed: u64,
        /// How many there are.
        free: u64,
    },
    /// Too little room.
    NoRoom {
        /// How many octets are needed.
        needed: u64,
        /// How many there are.
        free: u64,
    },
    /// The file system keeps no extended attributes, so a conversion cannot be marked.
    NoAttributes,
    /// Only root, or who is in the directory's group, can give it and its buckets that group or the set-gid bit.
    Group(u32),
    /// It is, lies in or holds the directory of a set of newsreel's own spool.
    OfSet(PathBuf),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ManagedBy(algorithm) => {
                write!(
                    f,
                    "it is managed by {algorithm} already; convert it `to` another algorithm"
                )
            }
            Self::WithoutBit(algorithm) => write!(
                f,
                "it is marked as managed by {algorithm}, but its set-uid bit is off; verify --repair it first"
            ),
            Self::UnderWay { from, to } => write!(
                f,
                "a conversion from {from} to {to} is under way; finish that one, or the one back, first"
            ),
            Self::Bucket => f.write_str("it is a bucket of a managed directory"),
            Self::ReservedName => {
                write!(f, "something in it is called {STAGING}; rename that first")
            }
            Self::MountPoint(name) => write!(
                f,
                "something is mounted on {} in it; unmount that first",
                Path::new(name).display()
            ),
            Self::Strays(count) => write!(
                f,
                "{count} things in it are where its view does not find them; verify --repair it first"
            ),
            Self::NoInodes { needed, free } => {
                write!(f, "it needs {needed} more inodes, and {free} are free")
            }
            Self::NoRoom { needed, free } => {
                write!(f, "it needs {needed} octets, and {free} are free")
            }
            Self::NoAttributes => f.write_str("its file system keeps no extended attributes"),
            Self::Group(gid) => write!(
                f,
                "its group ({gid}) or its set-gid bit would be lost, because you are not in that group; have root convert it"
            ),
            Self::OfSet(set) => write!(
                f,
                "{} is the directory of a set of newsreel's own spool ({} is in it), whose server would take the files for removed; how the \
                 directories of its groups lie, `layouts` of the [[set]] says, for articles that come from then on; `convert off` takes a mark off \
                 that is there already",
                set.display(),
                of_set::SET_MARK
            ),
        }
    }
}

/// Several reasons in one sentence.
#[must_use]
pub fn joined(reasons: &[Refusal]) -> String {
    let reasons: Vec<_> = reasons.iter().map(ToString::to_string).collect();
    reasons.join("; ")
}

/// What is counted on the way.
struct Count {
    plan: Plan,
    to: Option<Algorithm>,
    buckets: BTreeSet<Bucket>,
    strays: u64,
}

/// Looks at everything that is to be moved.
pub(super) fn make(folder: &Folder, course: Course, to: Layout) -> Result<Plan> {
    let (from, goes_on) = match course {
        Course::Settled(layout) => (layout, None),
        Course::UnderWay(under_way) => (under_way.from, Some(under_way.step)),
    };
    let mut count = Count {
        plan: Plan {
            from,
            to,
            goes_on,
            entries: 0,
            articles: 0,
            folders: 0,
            relative_links: 0,
            new_folders: 0,
            refusals: Vec::new(),
        },
        to: match to {
            Layout::Flat => None,
            Layout::Managed(algorithm) => Some(algorithm),
        },
        buckets: BTreeSet::new(),
        strays: 0,
    };
    if goes_on.is_none() && from == to {
        return Ok(count.plan);
    }
    if goes_on.is_none() && is_bucket(folder)? {
        count.refuse(Refusal::Bucket);
    }
    count.of_set(folder)?;
    count.group(folder)?;
    let staging = match goes_on {
        Some(_) => open_if_there(folder, Path::new(STAGING))?,
        None => None,
    };
    match (from, goes_on) {
        (Layout::Flat, None | Some(Step::Scatter)) => count.flat(folder)?,
        (Layout::Managed(from), None | Some(Step::Scatter)) => count.managed(folder, from)?,
        // Some buckets are in the one, some in the other; all that is in them is to be spread then.
        (Layout::Managed(from), Some(Step::Lower)) => {
            count.managed(folder, from)?;
            count.staged(staging.as_ref(), from)?;
        }
        (Layout::Managed(from), Some(Step::Spread)) => count.staged(staging.as_ref(), from)?,
        (_, Some(Step::Raise)) => {
            if let Layout::Managed(to) = to {
                count.staged(staging.as_ref(), to)?;
            }
        }
        // `lower` and `spread` come from buckets.
        (Layout::Flat, Some(Step::Lower | Step::Spread)) => {}
    }
    count.room(folder, staging.as_ref())?;
    Ok(count.plan)
}

impl Count {
    fn refuse(&mut self, refusal: Refusal) {
        self.plan.refusals.push(refusal);
    }

    fn flat(&mut self, folder: &Folder) -> Result<()> {
        for entry in folder.entries()? {
            let entry = entry?;
            if entry.name != STAGING {
                self.entry(folder, &entry)?;
            } else if self.plan.goes_on.is_none() {
                self.refuse(Refusal::ReservedName);
            }
        }
        Ok(())
    }

    fn managed(&mut self, folder: &Folder, from: Algorithm) -> Result<()> {
        let fresh = self.plan.goes_on.is_none();
        walk(folder, from, &mut |lot| {
            for entry in &lot.entries {
                if !fresh && lot.path.as_os_str().is_empty() && entry.name == STAGING {
                    continue;
                }
                if !lot.is_in_view(from, entry) {
                    self.strays += 1;
                } else if entry.name == STAGING && self.plan.to == Layout::Flat && fresh {
                    self.refuse(Refusal::ReservedName);
                }
                self.entry(lot.folder, entry)?;
            }
            Ok(())
        })?;
        if self.strays > 0 && fresh {
            self.refuse(Refusal::Strays(self.strays));
        }
        Ok(())
    }

    /// What lies in the buckets of the staging directory.
    fn staged(&mut self, staging: Option<&Folder>, algorithm: Algorithm) -> Result<()> {
        staging.map_or(Ok(()), |staging| self.managed(staging, algorithm))
    }

    /// What newsreel's own server keeps; a mark that somebody has set there all the same may be taken off.
    fn of_set(&mut self, folder: &Folder) -> Result<()> {
        let is_the_way_back = self.to.is_none() && of_set::is_marked(folder)?;
        let found = match is_the_way_back {
            true => None,
            false => of_set::set_at_or_above(folder)?,
        };
        found
            .into_iter()
            .for_each(|set| self.refuse(Refusal::OfSet(set)));
        Ok(())
    }

    fn entry(&mut self, folder: &Folder, entry: &Entry) -> Result<()> {
        let plan = &mut self.plan;
        plan.entries += 1;
        if let Ok(name) = Name::parse(&entry.name) {
            plan.articles += u64::from(name.digits().is_some());
            self.buckets.extend(self.to.map(|to| to.bucket(name)));
        }
        match entry.kind {
            Kind::Folder => {
                plan.folders += 1;
                if folder.facts_of(entry.path())?.is_mount_point {
                    plan.refusals.push(Refusal::MountPoint(entry.name.clone()));
                }
                if of_set::is_of_set(folder, entry.path())? && self.to.is_some() {
                    let set = folder.path().join(entry.path());
                    plan.refusals.push(Refusal::OfSet(set));
                }
            }
            Kind::Link => {
                let target = folder.read_link(entry.path())?;
                plan.relative_links += u64::from(!target.starts_with(b"/"));
            }
            Kind::File | Kind::Other => {}
        }
        Ok(())
    }

    /// What the kernel takes away without a word: a set-gid bit whose group is not the caller's, when a mode is set; and
    /// buckets are made in the caller's group.
    fn group(&mut self, folder: &Folder) -> Result<()> {
        let is = folder.facts()?;
        let is_at_stake = is.mode & SET_GID != 0 || self.to.is_some();
        if !is_at_stake || process::own_uid() == 0 {
            return Ok(());
        }
        let in_group = process::is_in_group(is.gid)
            .map_err(|source| newsreel_host::Error::from_io(Op::Stat, folder.path(), source))?;
        if !in_group {
            self.refuse(Refusal::Group(is.gid));
        }
        Ok(())
    }

    /// Buckets cost an inode and a block each, and so do the directories they lie in.
    fn room(&mut self, folder: &Folder, staging: Option<&Folder>) -> Result<()> {
        let Some(to) = self.to else {
            return Ok(());
        };
        let mut folders = BTreeSet::new();
        for bucket in &self.buckets {
            let path = to.bucket_path(*bucket);
            folders.extend(path.parent().map(Path::to_path_buf));
            folders.insert(path);
        }
        folders.remove(Path::new(""));
        // The run before made some.
        let goes_on = self.plan.goes_on;
        let made_in = match goes_on {
            None => None,
            Some(Step::Scatter | Step::Raise) => staging,
            Some(Step::Lower | Step::Spread) => Some(folder),
        };
        // The buckets that are in the directory while they are lowered are those of the other layout.
        if let Some(made_in) = made_in.filter(|_| goes_on != Some(Step::Lower)) {
            folders.retain(|path| made_in.facts_of(path).is_err());
        }
        let needed = folders.len() as u64;
        self.plan.new_folders = needed;
        let system = folder.file_system()?;
        if system.has_no_limit {
            return Ok(());
        }
        if let Some(free) = system.free_inodes.filter(|free| *free < needed) {
            self.refuse(Refusal::NoInodes { needed, free });
        }
        let needed = needed.saturating_mul(system.block_bytes);
        if needed > system.free_bytes {
            let free = system.free_bytes;
            self.refuse(Refusal::NoRoom { needed, free });
        }
        Ok(())
    }
}

/// Whether the directory is part of a layout: then its names are not a view's.
pub fn is_bucket(folder: &Folder) -> Result<bool> {
    let up = Path::new("..");
    let parent = folder.open_folder(up)?;
    if parent.facts()?.is_same_as(&folder.facts()?) {
        return Ok(false);
    }
    if matches!(Mark::read(&parent)?, Mark::Managed(_) | Mark::UnderWay(_)) {
        return Ok(true);
    }
    let above = parent.open_folder(up)?;
    match Mark::read(&above)? {
        Mark::UnderWay(_) => Ok(true),
        // Two levels down in the algorithms with two levels is a bucket, but below `aaa` is the view.
        Mark::Managed(algorithm) if algorithm.has_two_levels() => {
            let others = open_if_there(&above, Path::new(OTHERS))?;
            let parent = parent.facts()?;
            Ok(match others {
                Some(others) => !others.facts()?.is_same_as(&parent),
                None => true,
            })
        }
        _ => Ok(false),
    }
}
