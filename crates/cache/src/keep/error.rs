//! What can go wrong with what is kept.
//!
//! None of it is a reader's business: what cannot be read or kept is fetched.

use std::path::PathBuf;

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
    /// The table cannot be used.
    #[error("the cache's table {}: {why}; it begins anew with the next start", path.display())]
    Table {
        /// Its file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// The settings contradict themselves.
    #[error("the cache: {0}")]
    Settings(String),
}

/// Its result.
pub(super) type Result<T> = std::result::Result<T, KeepError>;
