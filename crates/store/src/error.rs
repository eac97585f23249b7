//! What can go wrong with stored articles, told to the person who reads it.

use std::path::PathBuf;

use newsreel_wire::BufferId;

/// This crate's result.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of the store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The machine failed.
    #[error(transparent)]
    Host(#[from] newsreel_host::Error),
    /// A buffer file is not what it should be.
    #[error("buffer {name} ({}): {why}", path.display())]
    Buffer {
        /// The buffer's name.
        name: String,
        /// Its file.
        path: PathBuf,
        /// What is wrong and what to do.
        why: String,
    },
    /// Buffers, sets or rules contradict each other.
    #[error("storage configuration: {0}")]
    Config(String),
}

/// Why an article got no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// The next region must be reserved in the log first: commit what is collected, then try again.
    #[error("no reserved room left; commit and try again")]
    NeedsReservation,
    /// It can never fit.
    #[error("larger than the {limit} octets that fit into a buffer of its set")]
    TooLarge {
        /// The largest article the set takes, octets.
        limit: u64,
    },
    /// Every buffer of the set failed and is suspended.
    #[error("every buffer of its set is suspended")]
    Suspended,
    /// There is no such set.
    #[error("no such set")]
    NoSet,
}

/// Why an article could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// It was overwritten, or its buffer is not there.
    #[error("overwritten")]
    Gone,
    /// It is not in memory and the caller did not want to wait.
    #[error("not in memory")]
    WouldBlock,
    /// Its octets are damaged.
    #[error("damaged record in buffer {buffer:?} at {offset:#x}: {what}")]
    Corrupt {
        /// The buffer.
        buffer: BufferId,
        /// The record's offset in the buffer's file.
        offset: u64,
        /// What does not agree.
        what: &'static str,
    },
    /// The disk failed.
    #[error(transparent)]
    Host(#[from] newsreel_host::Error),
}
