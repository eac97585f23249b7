//! What can go wrong with the log, and what a reader is told about a damaged stretch of it.
//!
//! Corruption is expected input: it is an error that says which sequences are concerned, and reading goes on behind
//! it.  Nothing here logs.

use std::path::PathBuf;

use newsreel_wire::Sequence;

/// This crate's result.
pub type Result<T> = std::result::Result<T, Error>;

/// A stretch of the log that cannot be read although it was durable once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The segment's id.
    pub segment: u64,
    /// Where in the segment the damage begins, octets.
    pub offset: u64,
    /// The first sequence that is lost.
    pub first: Sequence,
    /// The first sequence behind the damage.
    pub before: Sequence,
    /// What was seen there.
    pub why: &'static str,
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            segment,
            offset,
            first,
            before,
            why,
        } = self;
        write!(
            f,
            "sequences {first} to before {before} are lost in log segment {segment:016x} at {offset}: {why}"
        )
    }
}

/// An error of the log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The disk said no.
    #[error(transparent)]
    Disk(#[from] newsreel_host::Error),
    /// Something that is none of this spool's stands where a segment may be missing.
    #[error(
        "{} {what}, and a segment of this spool's log may be missing in its place: put that segment back; if there is \
         none any more, move {} out of the directory, and the server goes on without what was in the segment",
        path.display(), path.display()
    )]
    InTheWay {
        /// What stands there.
        path: PathBuf,
        /// What it is.
        what: String,
    },
    /// A segment was written by a later version.
    #[error("{} has log format {found}, this version reads {known}; use a newer newsreel", path.display())]
    Version {
        /// The segment.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The version known here.
        known: u32,
    },
    /// A frame that no segment could hold.
    #[error(
        "a log frame of {octets} octets does not fit a segment (at most {octets_max}); commit fewer articles at once or enlarge segment_octets"
    )]
    FrameTooLarge {
        /// Its size.
        octets: u64,
        /// The largest possible.
        octets_max: u64,
    },
    /// A frame that does not go behind what is in the log.
    #[error(
        "log frame of sequence {first}, epoch {epoch} offered where sequence {next}, epoch {own_epoch} is next"
    )]
    OutOfOrder {
        /// The frame's first sequence.
        first: Sequence,
        /// The frame's epoch.
        epoch: u64,
        /// The sequence that is next.
        next: Sequence,
        /// The writer's epoch.
        own_epoch: u64,
    },
    /// A record was made shorter after it was begun.
    #[error(
        "the log frame of sequence {first} has a record without an end; this is a bug, please report it"
    )]
    Malformed {
        /// The frame's first sequence.
        first: Sequence,
    },
    /// A write or a sync failed before; what followed must be given up by `abort` first.
    #[error(
        "the log's segment {segment:016x} failed; abort what is not committed to go on in a new one"
    )]
    Abandoned {
        /// The segment.
        segment: u64,
    },
    /// The log does not reach back so far.
    #[error("the log begins at sequence {oldest}, {wanted} was retired")]
    Gone {
        /// The sequence asked for.
        wanted: Sequence,
        /// The oldest sequence there is.
        oldest: Sequence,
    },
    /// A damaged stretch; reading goes on behind it.
    #[error("{0}")]
    Damaged(Damage),
    /// The thread that prepares segments could not be started.
    #[error("cannot start the thread that prepares log segments: {source}")]
    Thread {
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
}
