//! What can go wrong with stored articles, told to the person who reads it.
//!
//! Corruption is an outcome of reading like any other: it says where and never panics.

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
    /// A buffer file has other sizes than the configuration.
    #[error("buffer {name} ({}): {why}", path.display())]
    Sizes {
        /// The buffer's name.
        name: String,
        /// Its file.
        path: PathBuf,
        /// Which, and what to do.
        why: String,
    },
    /// A buffer failed earlier and takes nothing more.
    #[error("buffer {name} is suspended ({why}); its articles must be placed elsewhere")]
    Suspended {
        /// The buffer's name.
        name: String,
        /// What happened to it.
        why: String,
    },
    /// There is no such cyclic buffer.
    #[error("there is no cyclic buffer {name:?}; there are {there}")]
    NoBuffer {
        /// What was asked for.
        name: String,
        /// Those that there are.
        there: String,
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
    #[error(
        "larger than the {limit} octets a buffer of its set takes; send such articles to a set of larger buffers"
    )]
    TooLarge {
        /// The largest article the set takes, octets.
        limit: u64,
    },
    /// Every buffer of the set failed or is read-only.
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
    /// It is a file of its own, and that is not there.
    #[error("its file was removed")]
    Removed,
    /// It is not in memory and the caller did not want to wait.
    #[error("not in memory")]
    WouldBlock,
    /// Its octets are damaged, or another article lies there.
    #[error("damaged record in buffer {buffer} at {offset:#x}: {what}")]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_say_what_to_do() {
        let error = Error::Buffer {
            name: "C0".to_owned(),
            path: PathBuf::from("/spool/buffers/C0"),
            why: "it belongs to another spool; attach it instead".to_owned(),
        };
        assert_eq!(
            error.to_string(),
            "buffer C0 (/spool/buffers/C0): it belongs to another spool; attach it instead"
        );
        let error = ReadError::Corrupt {
            buffer: BufferId(3),
            offset: 0x4000,
            what: "checksum of the body",
        };
        assert_eq!(
            error.to_string(),
            "damaged record in buffer 3 at 0x4000: checksum of the body"
        );
        let error = PlaceError::TooLarge { limit: 1000 };
        assert!(error.to_string().contains("1000 octets"), "{error}");
    }
}
