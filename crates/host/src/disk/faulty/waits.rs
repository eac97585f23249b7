//! Who waited for the disk: reads that were not content with what is in memory, counted by thread.
//!
//! A thread that serves many connections must not wait for a disk; a test asks here whether it did.

use std::collections::HashMap;
use std::thread::ThreadId;

use parking_lot::Mutex;

/// The counts.
#[derive(Debug, Default)]
pub(super) struct Waits(Mutex<HashMap<ThreadId, u64>>);

impl Waits {
    /// This thread waits.
    pub(super) fn count(&self) {
        *self
            .0
            .lock()
            .entry(std::thread::current().id())
            .or_default() += 1;
    }

    /// How often this thread waited.
    pub(super) fn here(&self) -> u64 {
        let here = std::thread::current().id();
        self.0.lock().get(&here).copied().unwrap_or_default()
    }
}
