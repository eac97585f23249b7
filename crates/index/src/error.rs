//! The one error of this crate: what cannot be read or written, where, and what follows from it.
//!
//! Damage is expected input: it names the sealed file and the octet, and the caller goes on with what is sound
//! ([`Views::damaged`](crate::Views::damaged) lists what must be rebuilt).  Nothing here logs.

use std::path::{Path, PathBuf};

use newsreel_host::{Error as HostError, ErrorKind};

/// This crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The disk said no.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A sealed file does not hold what was written into it.
    #[error("{} is damaged at octet {at}: {what}", path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// Where in it.
        at: u64,
        /// What is wrong there.
        what: &'static str,
    },
    /// A sealed file of a later version.
    #[error("{} is of a version this newsreel does not know; run the newsreel that wrote it", path.display())]
    Newer {
        /// Which file.
        path: PathBuf,
    },
    /// The manifest cannot be used, and [`Views::regain`](crate::Views::regain) must not or cannot help.
    #[error("{} cannot be used ({why}); restore its directory from a copy of this spool", path.display())]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The manifest is lost, so nobody knows which sealed files count; [`Views::regain`](crate::Views::regain) finds out.
    #[error("{} cannot be used ({why}); `newsreel serve` makes it again from the sealed files beside it", path.display())]
    ManifestLost {
        /// The manifest.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// What was asked for was not found, but a sealed file that might have it is missing: nothing is known of it.
    #[error("it cannot be told yet: {} has to be rebuilt first", path.display())]
    Incomplete {
        /// The file that is missing.
        path: PathBuf,
    },
    /// The answer is not in memory and the caller did not want to wait for the disk.
    #[error("the answer has to be read from the disk")]
    WouldBlock,
    /// A checkpoint is frozen and not installed yet; there is never more than one.
    #[error("a checkpoint is under way; write and install it first")]
    Busy,
    /// The memory part can address no more text: a checkpoint is long overdue.
    #[error("the overview's memory part is full; a checkpoint must be written first")]
    TailFull,
    /// More groups were made, removed ones counted, than there is room for.
    #[error("there can be no more than {limit} groups in the life of a spool")]
    TooManyGroups {
        /// How many there can be.
        limit: usize,
    },
    /// A run that was to be rebuilt is not on the list of damaged ones.
    #[error("sealed file {run:016x} is not damaged")]
    NotDamaged {
        /// Its id.
        run: u64,
    },
}

impl Error {
    /// Damage at a place in a file.
    pub(crate) fn damaged(path: &Path, at: u64, what: &'static str) -> Self {
        Self::Damaged {
            path: path.to_path_buf(),
            at,
            what,
        }
    }

    /// Whether a sealed file is to blame (damaged, missing, something else in its place, too short, or on a failing medium), so that rebuilding it
    /// would help.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Damaged { .. } => true,
            Self::Host(error) => {
                error.is_medium()
                    || matches!(
                        error.kind(),
                        ErrorKind::NotFound | ErrorKind::ShortRead | ErrorKind::NotAFile
                    )
            }
            _ => false,
        }
    }
}
