//! What the engine counts; cheap to add to, read by `status` and the metrics.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        /// Monotone counters since start.
        #[derive(Debug, Default)]
        pub struct Counters {
            $($(#[$doc])* pub(crate) $name: AtomicU64,)+
        }

        /// The counters at one moment.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
        pub struct CounterValues {
            $($(#[$doc])* pub $name: u64,)+
        }

        impl Counters {
            /// Reads all of them.
            pub fn values(&self) -> CounterValues {
                CounterValues { $($name: self.$name.load(Ordering::Relaxed),)+ }
            }
        }
    };
}

counters! {
    /// Articles committed.
    accepted,
    /// Octets of articles committed.
    accepted_octets,
    /// Articles refused for what they are (437, 439).
    rejected,
    /// Articles that a filter had dropped though their senders were told that they were taken.
    dropped,
    /// Copies of articles already here.
    duplicates,
    /// Articles that a cancel or a newer article took out, or kept out.
    cancelled,
    /// Cancels, and articles that notices list, that waited for their targets and were forgotten for want of room.
    forgotten,
    /// Articles that notices list behind those that have room, and were not looked at.
    unnoticed,
    /// Articles that the rules of expiry let go, with their last group.
    expired,
    /// Octets of them, as stored.
    expired_octets,
    /// Places that they let articles leave which stayed in other groups.
    expired_places,
    /// Articles that could not be taken because of a failure here.
    failed,
    /// CHECK and IHAVE offers answered "send it".
    wanted,
    /// Offers answered "already here".
    known,
    /// Offers and articles put off.
    deferred,
    /// Commits made.
    commits,
    /// Octets written to the log.
    log_octets,
    /// Microseconds spent in commits.
    commit_us,
    /// Checkpoints made.
    checkpoints,
    /// Commits repaired after a buffer failed.
    repaired,
    /// Syncs or writes that failed.
    disk_errors,
    /// Sealed files of the views that were found damaged.
    damaged_files,
    /// Damaged files that were rebuilt from the store.
    rebuilt_files,
    /// How often accepting stopped for lack of room.
    full,
    /// Articles read for readers and peers.
    reads,
    /// Reads that found a damaged record.
    corrupt_reads,
    /// Articles that scrubs compared and found sound.
    scrubbed,
    /// Octets that scrubs read.
    scrubbed_octets,
    /// Damaged places that scrubs found for the first time.
    damaged_articles,
}

impl Counters {
    /// Adds to one of them.
    pub(crate) fn add(counter: &AtomicU64, n: u64) {
        counter.fetch_add(n, Ordering::Relaxed);
    }
}
