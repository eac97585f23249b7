//! The log: one ordered, durable list of what happened, from which every view is derived.
//!
//! Records are collected in a [`FrameBuilder`]; a frame is written and made durable as a whole by the one
//! [`JournalWriter`], and is there after a crash as a whole or not at all.  [`Journal`] is the shared side: readers
//! follow the log from any sequence up to what was published as committed, old segments are retired.
//! [`Recovery`] opens a log, finds its end and lets the caller judge the frames nobody vouched for.
//! The byte layout is in `docs/formats/log.md`.  What a record means beyond its kind is not known here.

mod builder;
mod config;
mod cursor;
mod error;
mod format;
mod fuzz;
mod prepare;
mod recovery;
mod shared;
mod source;
mod table;
mod walk;
mod writer;

pub use builder::FrameBuilder;
pub use config::JournalConfig;
pub use cursor::Cursor;
pub use error::{Damage, Error, Result};
pub use format::{Frame, Record, Records};
pub use fuzz::{SegmentDigest, decode_made_segment, decode_segment};
pub use recovery::{Cut, DAMAGE_LISTED_MAX, Recovered, Recovery, Strange};
pub use shared::Journal;
pub use table::SegmentFacts;
pub use writer::JournalWriter;

/// The spool's identity, carried by every file of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpoolId(pub [u8; 16]);

impl std::fmt::Display for SpoolId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}
