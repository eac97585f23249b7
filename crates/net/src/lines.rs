//! Lines of the log that strangers can cause, by the clock that connections go by.

use tokio::time::Instant;

/// Bounds one kind of line to one a second, which says how many were left out since the one before it.
#[derive(Debug)]
pub struct LineLimit {
    lines: newsreel_host::LineLimit,
    since: Instant,
}

impl Default for LineLimit {
    fn default() -> Self {
        Self {
            lines: newsreel_host::LineLimit::default(),
            since: Instant::now(),
        }
    }
}

impl LineLimit {
    /// Whether the line may be written now, and if so, how many were left out before it.
    pub fn admit(&self) -> Option<u64> {
        self.lines.admit_at(self.since.elapsed())
    }
}
