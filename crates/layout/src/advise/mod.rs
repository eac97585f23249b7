//! Advice whether a directory should be managed: from what it holds, how its file system finds names, what was measured,
//! and what is done with it all day.
//!
//! An estimate in the manner of the paper's figure 6 but per file system: its rule of 10,000 articles holds for directories that are searched
//! from end to end, and for no others.  It is made twice: for a program that uses the layout itself, and for one that has nothing but a mount, of which
//! each operation is a request.

mod figures;

use std::fmt;

use newsreel_host::Folder;
use newsreel_host::folder::FileSystemKind;

use crate::algorithm::Algorithm;
use crate::error::Result;
use crate::mark::{Layout, Mark, UnderWay};
use crate::name::Name;
use crate::walk::walk;

/// How a file system finds a name in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Search {
    /// From end to end: ext2 and ext3 without `dir_index`.
    Linear,
    /// By a hash: ext4.
    Hashed,
    /// In a tree: XFS.
    Tree,
}

/// A directory in figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Census {
    /// How it is laid out; while it is being converted, as it was.
    pub layout: Layout,
    /// Entries of the view.
    pub entries: u64,
    /// Of them, names of digits.
    pub articles: u64,
    /// Octets of the directory itself and of its buckets.
    pub folder_bytes: u64,
    /// The kind of its file system.
    pub file_system: FileSystemKind,
    /// How names are found in it; `None` where that is not known.
    pub search: Option<Search>,
}

/// What is done with one directory in a day.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mix {
    /// Names looked up.
    pub lookups: f64,
    /// Entries made.
    pub adds: f64,
    /// Entries removed, the oldest first.
    pub removes: f64,
    /// Listings of the whole.
    pub listings: f64,
}

/// What a day costs, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Day {
    /// In a flat directory.
    pub flat: f64,
    /// In one managed by `range1024`, natively.
    pub managed: f64,
    /// In the same through a mount.
    pub mounted: f64,
}

/// What to do with a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It should be managed by this algorithm.
    Manage(Algorithm),
    /// It should be flat.
    Flat,
    /// It does not matter; leave it as it is.
    Either,
    /// Nothing was measured on such a file system.
    Unknown,
}

/// Advice with its reasons.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Advice {
    /// What to do for a program that uses the layout itself.
    pub natively: Verdict,
    /// What to do for one that has nothing but a mount, against the flat directory without one.
    pub mounted: Verdict,
    /// A day when everything is in memory.
    pub in_memory: Option<Day>,
    /// A day when nothing is, and a read takes [`READ_US`].
    pub on_disk: Option<Day>,
}

/// A read of a solid-state disk.
pub const READ_US: f64 = 100.0;

/// A difference below this is none: the figures come from a busy machine.
const MATTERS: f64 = 1.5;

/// Below this a directory has a bucket or two, and nothing to gain from them.
const ENTRIES_MIN: u64 = 2048;

/// Counts a directory.
pub fn census(folder: &Folder) -> Result<Census> {
    let layout = match Mark::read(folder)? {
        Mark::None | Mark::WithoutBit(_) => Layout::Flat,
        Mark::Managed(algorithm) => Layout::Managed(algorithm),
        Mark::UnderWay(UnderWay { from, .. }) => from,
    };
    let file_system = folder.file_system()?;
    let mut census = Census {
        layout,
        entries: 0,
        articles: 0,
        folder_bytes: 0,
        file_system: file_system.kind,
        search: match file_system.kind {
            FileSystemKind::Ext => Some(Search::Hashed),
            FileSystemKind::Xfs => Some(Search::Tree),
            // Of btrfs, and of what is in memory, nothing was measured.
            _ => None,
        },
    };
    match layout {
        Layout::Flat => {
            census.folder(folder, file_system.block_bytes)?;
            for entry in folder.entries()? {
                census.entry(&entry?.name);
            }
        }
        Layout::Managed(algorithm) => walk(folder, algorithm, &mut |lot| {
            census.folder(lot.folder, file_system.block_bytes)?;
            let seen = lot.entries.iter().filter(|e| lot.is_in_view(algorithm, e));
            seen.for_each(|entry| census.entry(&entry.name));
            Ok(())
        })?,
    }
    Ok(census)
}

impl Census {
    fn entry(&mut self, name: &std::ffi::OsStr) {
        self.entries += 1;
        let digits = Name::parse(name).is_ok_and(|name| name.digits().is_some());
        self.articles += u64::from(digits);
    }

    /// A directory of one block is hashed nowhere, and need not be.
    fn folder(&mut self, folder: &Folder, block_bytes: u64) -> Result<()> {
        let len = folder.facts()?.len;
        self.folder_bytes += len;
        if len > block_bytes && folder.is_indexed()? == Some(false) {
            self.search = Some(Search::Linear);
        }
        Ok(())
    }
}

impl Mix {
    /// The paper's Table 1, for a directory that has its share by size of a spool of 1.2 million articles in 11,017
    /// groups.
    #[must_use]
    pub fn of_1998(entries: u64) -> Self {
        let share = entries as f64 / 1_200_000.0;
        Self {
            lookups: 7_068_838.0 * share,
            adds: 345_647.0 * share,
            removes: 432_269.0 * share,
            listings: 38_371.0 / 11_017.0,
        }
    }
}

/// What a day costs in a directory of so many entries, when a read of the device takes `read_us`.
#[must_use]
pub fn day(search: Search, entries: u64, mix: Mix, read_us: f64) -> Day {
    let (flat, managed) = figures::at(search, entries);
    let mounted = figures::mounted(&managed, entries);
    let seconds = |costs: &figures::Costs| {
        let of = |cost: &figures::Cost| cost.cpu_us + cost.reads * read_us;
        let work = mix.lookups * of(&costs.lookup) + mix.adds * of(&costs.add);
        let work = work + mix.removes * of(&costs.remove) + mix.listings * of(&costs.list);
        work / 1e6
    };
    Day {
        flat: seconds(&flat),
        managed: seconds(&managed),
        mounted: seconds(&mounted),
    }
}

/// Weighs a directory: managed pays where it is clearly cheaper in memory or on disk, and clearly dearer in neither.
#[must_use]
pub fn advise(census: &Census, mix: Mix) -> Advice {
    let days = |read_us| {
        census
            .search
            .map(|search| day(search, census.entries, mix, read_us))
    };
    let (in_memory, on_disk) = (days(0.0), days(READ_US));
    let verdict = |is_mounted: bool| match (in_memory, on_disk) {
        (Some(_), Some(_)) if census.entries < ENTRIES_MIN => Verdict::Either,
        (Some(memory), Some(disk)) => {
            let costs = |day: &Day| match is_mounted {
                true => day.mounted,
                false => day.managed,
            };
            let days = [memory, disk];
            let managed = days.iter().any(|day| day.flat > costs(day) * MATTERS);
            let flat = days.iter().any(|day| costs(day) > day.flat * MATTERS);
            match (managed, flat) {
                (true, false) => Verdict::Manage(Algorithm::default()),
                (false, true) => Verdict::Flat,
                _ => Verdict::Either,
            }
        }
        _ => Verdict::Unknown,
    };
    Advice {
        natively: verdict(false),
        mounted: verdict(true),
        in_memory,
        on_disk,
    }
}

impl Verdict {
    /// The verdict in words, for a directory that is laid out like this: what is so already is said to be.
    #[must_use]
    pub fn said(self, layout: Layout) -> String {
        match (self, layout) {
            (Self::Manage(to), Layout::Managed(is)) if to == is => {
                format!("managed by {is}: keep it so")
            }
            (Self::Manage(_), Layout::Managed(is)) => format!("{self}, instead of {is}"),
            (Self::Flat, Layout::Flat) => "flat: keep it so".to_owned(),
            (Self::Flat, Layout::Managed(_)) => "make it flat".to_owned(),
            _ => self.to_string(),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Manage(algorithm) => write!(f, "manage it by {algorithm}"),
            Self::Flat => f.write_str("keep it flat"),
            Self::Either => f.write_str("leave it as it is"),
            Self::Unknown => f.write_str("not measured on such a file system"),
        }
    }
}
