//! How a mounted view is, as JSON: what `newsreel usenetfs status` shows.

use std::sync::atomic::Ordering;

use serde_json::{Map, Value, json};

use super::View;
use crate::counters::Op;

/// The extended attribute of the mounted directory in which the status is read.
pub const STATUS_ATTRIBUTE: &str = "user.usenetfs.status";

impl View {
    /// Counters and sizes of tables.
    #[must_use]
    pub fn status(&self) -> String {
        let counts = Op::ALL.iter().map(|op| {
            let count = Value::from(self.counters.of(*op));
            (op.name().to_owned(), count)
        });
        let counts: Map<String, Value> = counts.collect();
        let process = newsreel_host::process::own_facts().ok();
        json!({
            "lower": self.top.path().to_string_lossy(),
            "pid": newsreel_host::process::own_pid(),
            "algorithm": self.settings.algorithm.to_string(),
            "everybody": self.is_for_everybody(),
            "shared": self.settings.is_shared,
            "inherit": self.settings.inherits,
            "strict": self.settings.is_strict,
            "inodes_known": self.nodes.len(),
            "directories_open": self.folders.len(),
            "inodes_without_names": self.graves.len(),
            "files_open": self.files.len(),
            "listings_open": self.streams.len(),
            "listing_names_held": self.names_held.load(Ordering::Relaxed),
            // Who may read this may not know all names.
            "suid_kept_last_inode": self.notices.last_inode(),
            "memory_bytes": process.map(|facts| facts.rss_bytes),
            "operations": counts,
        })
        .to_string()
    }
}
