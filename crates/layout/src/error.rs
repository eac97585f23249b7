//! The one error of this crate.
//!
//! What the machine said comes through as it is; the rest is said in terms of views and buckets, with what to do.

use std::path::PathBuf;

use crate::convert::{Refusal, joined};

/// This crate's result.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The machine said no.
    #[error(transparent)]
    Host(#[from] newsreel_host::Error),
    /// The directory's mark is not one of ours, or of a later version.
    #[error(
        "{}: its attribute {} is {text:?}, which this version does not understand; if no later version wrote that, take it off (`setfattr -x {1}`) and \
         run `newsreel usenetfs verify`, which tells by how the files lie what it was",
        path.display(),
        crate::mark::ATTRIBUTE
    )]
    BadMark {
        /// The directory.
        path: PathBuf,
        /// The attribute's value.
        text: String,
    },
    /// A conversion is not begun, for these reasons; nothing was changed.
    #[error("{} is not converted: {}", path.display(), joined(reasons))]
    Refused {
        /// The directory.
        path: PathBuf,
        /// Why.
        reasons: Vec<Refusal>,
    },
    /// A conversion was stopped where it may be stopped.
    #[error("the conversion of {} was stopped; run it again to go on, or turn it round", path.display())]
    Interrupted {
        /// The directory.
        path: PathBuf,
    },
    /// Two different things have a claim to one place.
    #[error(
        "{} belongs where {} is, which is something else; move one of them away and run it again",
        path.display(),
        other.display()
    )]
    Clash {
        /// What was to be moved.
        path: PathBuf,
        /// What is there.
        other: PathBuf,
    },
    /// Something is in the directory's view, and nothing may be.
    #[error("{}: it is not empty", path.display())]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
}

impl Error {
    /// Whether there was no such file or directory.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Host(e) if e.kind() == newsreel_host::ErrorKind::NotFound)
    }
}
