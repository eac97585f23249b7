//! The one error of this crate.
//!
//! What the machine said comes through as it is; the rest is said in terms of views and buckets, with what to do.

use std::path::PathBuf;

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
        "{}: its attribute {} is {text:?}, which this version does not understand",
        path.display(),
        crate::mark::ATTRIBUTE
    )]
    BadMark {
        /// The directory.
        path: PathBuf,
        /// The attribute's value.
        text: String,
    },
    /// A conversion has begun and not ended.
    #[error("{}: a conversion from {from} to {to} is under way; run it again to its end", path.display())]
    UnderWay {
        /// The directory.
        path: PathBuf,
        /// What it was.
        from: crate::mark::Layout,
        /// What it will be.
        to: crate::mark::Layout,
    },
    /// Something is in the directory's view, and nothing may be.
    #[error("{}: it is not empty", path.display())]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// A bucket is removed by others as fast as it is made.
    #[error("{}: bucket {} is removed as fast as it is made", path.display(), bucket.display())]
    Vanishing {
        /// The directory.
        path: PathBuf,
        /// The bucket.
        bucket: PathBuf,
    },
}

impl Error {
    /// Whether there was no such file or directory.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Host(e) if e.kind() == newsreel_host::ErrorKind::NotFound)
    }
}
