//! What can go wrong with what is kept.
//!
//! None of it is a reader's business: what cannot be read or kept is fetched.

use std::path::PathBuf;

use newsreel_host::ErrorKind;

/// An error of the cache's own files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeepError {
    /// The machine failed.
    #[error(transparent)]
    Host(#[from] newsreel_host::Error),
    /// The articles' files cannot be used.
    #[error(transparent)]
    Store(#[from] newsreel_store::Error),
    /// What is to stay of a segment that goes gets no place.
    #[error("what stays of the articles that are to go gets no place, so they stay: {0}")]
    Place(#[from] newsreel_store::PlaceError),
    /// The table cannot be used.
    #[error("the cache's table {}: {why}; it begins anew", path.display())]
    Table {
        /// Its file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The table's disk cannot be used.
    #[error("the cache's table {}: {why}; nothing of it was removed", path.display())]
    Disk {
        /// Its file.
        path: PathBuf,
        /// What the disk said.
        why: String,
    },
    /// The settings contradict themselves.
    #[error("the cache: {0}")]
    Settings(String),
}

impl KeepError {
    /// Whether the disk failed or is full, so that what lies there may be good.
    pub(super) fn is_of_disk(&self) -> bool {
        match self {
            Self::Host(error) | Self::Store(newsreel_store::Error::Host(error)) => {
                is_of_disk(error)
            }
            Self::Disk { .. } => true,
            _ => false,
        }
    }
}

/// Whether it is the disk that failed, and not a file that is cut, gone or something else.
pub(crate) const fn is_of_disk(error: &newsreel_host::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Full | ErrorKind::Io | ErrorKind::Stopped
    )
}

/// Its result.
pub(super) type Result<T> = std::result::Result<T, KeepError>;
