//! The shared side of an open log: readers, retention, what `status` shows.
//!
//! Nothing is readable before it was published as committed; whoever publishes does so after the commit's sync (or,
//! without durability, after the write).

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use newsreel_host::{Disk, File, OpenMode};
use newsreel_wire::Sequence;
use parking_lot::Mutex;

use crate::SpoolId;
use crate::cursor::Cursor;
use crate::error::Result;
use crate::prepare::Preparer;
use crate::table::{Segment, SegmentFacts, Table};

/// What writer, readers and the preparing thread share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) dir: PathBuf,
    pub(crate) spool: SpoolId,
    pub(crate) seed: u32,
    /// Everything before this sequence may be read.
    pub(crate) committed: AtomicU64,
    pub(crate) table: Mutex<Table>,
}

impl Shared {
    pub(crate) fn committed(&self) -> Sequence {
        Sequence(self.committed.load(Ordering::Acquire))
    }

    pub(crate) fn open(&self, segment: &Segment) -> Result<Arc<dyn File>> {
        Ok(self.disk.open(&segment.path, OpenMode::Read)?)
    }
}

/// The log as everyone but its writer sees it; clones are the same log.
#[derive(Debug, Clone)]
pub struct Journal {
    pub(crate) shared: Arc<Shared>,
    pub(crate) preparer: Option<Arc<Preparer>>,
}

impl Journal {
    /// Reads from `from` on; see [`Cursor::next_frame`].
    #[must_use]
    pub fn read_from(&self, from: Sequence) -> Cursor {
        Cursor::new(Arc::clone(&self.shared), from)
    }

    /// Everything before this sequence is committed and readable.
    #[must_use]
    pub fn committed_before(&self) -> Sequence {
        self.shared.committed()
    }

    /// Publishes what is committed; never goes back.
    pub fn publish_before(&self, before: Sequence) {
        self.shared.committed.fetch_max(before.0, Ordering::AcqRel);
    }

    /// The oldest sequence that can still be read.
    #[must_use]
    pub fn oldest(&self) -> Sequence {
        self.shared
            .table
            .lock()
            .oldest()
            .unwrap_or_else(|| self.shared.committed())
    }

    /// The segments in use, oldest first.
    #[must_use]
    pub fn segments(&self) -> Vec<SegmentFacts> {
        self.shared.table.lock().facts()
    }

    /// Why the log may not have room for so many octets of frames: the next segment could not be made, and the present
    /// one is nearly full.  It is tried again by itself.
    #[must_use]
    pub fn shortage(&self, octets: u64) -> Option<String> {
        self.preparer.as_ref()?.shortage(octets)
    }

    /// Gives back the segments that hold nothing at or behind `before`; their files are recycled or removed in the
    /// background.  A log opened for reading keeps them all.
    pub fn retire_before(&self, before: Sequence) {
        let Some(preparer) = &self.preparer else {
            return;
        };
        let retired = self.shared.table.lock().retire_before(before);
        preparer.give_back(retired.into_iter().map(|segment| segment.path));
    }
}
