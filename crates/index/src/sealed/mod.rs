//! Sealed runs: the one mechanism behind history buckets, overview packs and group rows.
//!
//! A run is an immutable file written once, sequentially, and found through the manifest, which is switched
//! atomically.  Everything in it carries a checksum that also knows the run and the place, so that rot, a torn write
//! and a misplaced block are all noticed.  Runs of a kind have an age order, and only neighbours are ever merged.
//! What the payloads mean is the business of the three users.  Layout: `docs/formats/sealed-run.md`.

pub(crate) mod catalog;
pub(crate) mod ends;
pub(crate) mod filter;
pub(crate) mod frame;
pub(crate) mod manifest;
pub(crate) mod reader;
pub(crate) mod regain;
pub(crate) mod set;
pub(crate) mod tiers;
pub(crate) mod window;
pub(crate) mod writer;

use std::fmt;
use std::path::{Path, PathBuf};

use newsreel_wire::Sequence;
use smallvec::SmallVec;

/// What a run holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RunKind {
    /// Message-id hashes and where their articles are.
    History,
    /// Overview rows by group and number.
    Overview,
    /// Groups that changed.
    Groups,
}

impl RunKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::History, Self::Overview, Self::Groups];

    /// The octet that stands for it on disk; a number, once given, keeps its meaning.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::History => 1,
            Self::Overview => 2,
            Self::Groups => 3,
        }
    }

    pub(crate) fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }

    /// Whether each run is written as two files: what is in it may be nowhere else.
    pub(crate) const fn is_double(self) -> bool {
        matches!(self, Self::History | Self::Groups)
    }

    /// The first part of its files' names.
    const fn stem(self) -> &'static str {
        match self {
            Self::History => "history",
            Self::Overview => "overview",
            Self::Groups => "groups",
        }
    }
}

impl fmt::Display for RunKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.stem())
    }
}

/// The spool's UUID, in every file's header.
pub(crate) type SpoolId = [u8; 16];

/// A run as the manifest names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunMeta {
    pub(crate) kind: RunKind,
    /// Never used twice in a spool.
    pub(crate) id: u64,
    /// Octets of the file.
    pub(crate) len: u64,
    /// The log sequences it covers.
    pub(crate) first: Sequence,
    pub(crate) last: Sequence,
    /// Entries of a bucket, rows of a pack, groups.
    pub(crate) rows: u64,
}

impl RunMeta {
    /// A run of which nothing is written yet.
    pub(crate) const fn unwritten(
        kind: RunKind,
        id: u64,
        (first, last): (Sequence, Sequence),
    ) -> Self {
        Self {
            kind,
            id,
            len: 0,
            first,
            last,
            rows: 0,
        }
    }

    /// The run's files; more than one are equal.
    pub(crate) fn paths(&self, dir: &Path) -> RunPaths {
        run_paths(dir, self.kind, self.id)
    }
}

const SUFFIX: &str = ".run";
const COPY_SUFFIX: &str = ".copy";

/// A run's files.
pub(crate) type RunPaths = SmallVec<[PathBuf; 2]>;

/// A run's (first) file.
pub(crate) fn run_path(dir: &Path, kind: RunKind, id: u64) -> PathBuf {
    dir.join(format!("{}-{id:016x}{SUFFIX}", kind.stem()))
}

/// The second file of a run that is written twice.
pub(crate) fn copy_path(dir: &Path, kind: RunKind, id: u64) -> Option<PathBuf> {
    let name = || format!("{}-{id:016x}{COPY_SUFFIX}", kind.stem());
    kind.is_double().then(|| dir.join(name()))
}

/// A run's files.
pub(crate) fn run_paths(dir: &Path, kind: RunKind, id: u64) -> RunPaths {
    let first = run_path(dir, kind, id);
    [first]
        .into_iter()
        .chain(copy_path(dir, kind, id))
        .collect()
}

/// The run that a file of that name belongs to, whoever refers to it.
pub(crate) fn parse_run_name(name: &str) -> Option<(RunKind, u64)> {
    let stem = name
        .strip_suffix(SUFFIX)
        .or_else(|| name.strip_suffix(COPY_SUFFIX));
    let (stem, id) = stem?.split_once('-')?;
    let kind = RunKind::ALL.into_iter().find(|kind| kind.stem() == stem)?;
    let is_id = id.len() == 16 && id.bytes().all(|octet| octet.is_ascii_hexdigit());
    let id = u64::from_str_radix(id, 16).ok().filter(|_| is_id)?;
    Some((kind, id))
}
