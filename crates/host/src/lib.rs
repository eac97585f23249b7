//! What newsreel takes from the machine: disk, clock, randomness, and facts about its own process.
//!
//! Everything above gets a [`Disk`] and a [`Clock`] passed in, so that tests can hold both still, break them, or
//! pull the plug.  This crate knows nothing about news.  What lies in a spool or a managed directory is touched through
//! it alone; who opens another file (a list to import, a report, a socket) says so where clippy would forbid it.

pub mod caller;
pub mod clock;
pub mod disk;
mod error;
pub mod folder;
mod line_limit;
mod log_writer;
mod memory;
pub mod mounts;
pub mod node;
pub mod process;
mod random;
pub mod sealed;
mod size;

pub use caller::Caller;
pub use clock::{Clock, FakeClock, RealClock, WallTime};
pub use disk::{
    AlignedBuf, Appended, DIRECT_ALIGN_BYTES, DirEntry, Disk, Effect, Fault, FaultyDisk, File,
    FileFacts, Lock, MemoryDisk, OpCounts, OpenMode, RealDisk, is_aside, read_what_is_left,
    read_whole, replace_file, set_aside,
};
pub use error::{Error, ErrorKind, Op, Result};
pub use folder::Folder;
pub use line_limit::LineLimit;
pub use log_writer::{LOG_LINES_MAX, LogWriter};
pub use memory::{machine_octets, take_small_pages};
pub use random::random_bytes;
pub use size::said_octets;
