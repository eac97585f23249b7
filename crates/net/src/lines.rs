//! Lines of the log that others can cause as often as they like.
//!
//! At most one a second is written, and says how many were left out since the one before it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

const PAUSE: Duration = Duration::from_secs(1);

/// Bounds one kind of line.
#[derive(Debug, Default)]
pub struct LineLimit(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    last: Option<Instant>,
    left_out: u64,
}

impl LineLimit {
    /// Whether the line may be written now, and if so, how many were left out before it.
    pub fn admit(&self) -> Option<u64> {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if seen.last.is_some_and(|last| now - last < PAUSE) {
            seen.left_out += 1;
            return None;
        }
        seen.last = Some(now);
        Some(std::mem::take(&mut seen.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_a_line_a_second() {
        let lines = LineLimit::default();
        assert_eq!(lines.admit(), Some(0));
        for _ in 0..99 {
            assert_eq!(lines.admit(), None);
        }
        tokio::time::advance(PAUSE).await;
        assert_eq!(lines.admit(), Some(99));
        tokio::time::advance(PAUSE).await;
        assert_eq!(lines.admit(), Some(0));
    }
}
