//! Sealed runs: the one mechanism behind history buckets, overview packs and group rows.
//!
//! A run is an immutable file written once, sequentially, and found through the manifest, which is switched
//! atomically.  Everything in it carries a checksum that also knows the run and the place, so that rot, a torn write
//! and a misplaced block are all noticed.  Runs of a kind have an age order, and only neighbours are ever merged.
//! What the payloads mean is the business of the three users.  Layout: `docs/formats/sealed-run.md`.

pub(crate) mod catalog;
pub(crate) mod filter;
pub(crate) mod frame;
pub(crate) mod manifest;
pub(crate) mod reader;
pub(crate) mod set;
pub(crate) mod tiers;
pub(crate) mod window;
pub(crate) mod writer;

use std::fmt;
use std::path::{Path, PathBuf};

use newsreel_wire::Sequence;

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

const SUFFIX: &str = ".run";

/// A run's file.
pub(crate) fn run_path(dir: &Path, kind: RunKind, id: u64) -> PathBuf {
    dir.join(format!("{}-{id:016x}{SUFFIX}", kind.stem()))
}

/// Whether a file of that name is a run, whoever refers to it.
pub(crate) fn is_run_name(name: &str) -> bool {
    let Some((stem, id)) = name
        .strip_suffix(SUFFIX)
        .and_then(|name| name.split_once('-'))
    else {
        return false;
    };
    RunKind::ALL.iter().any(|kind| kind.stem() == stem)
        && id.len() == 16
        && id.bytes().all(|octet| octet.is_ascii_hexdigit())
}
