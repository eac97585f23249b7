//! Lines of the log that others can cause as often as they like.
//!
//! At most one a second of each kind is written, and says how many were left out since the one before it.

use std::time::Duration;

use parking_lot::Mutex;

const PAUSE: Duration = Duration::from_secs(1);

/// Bounds one kind of line.
#[derive(Debug, Default)]
pub struct LineLimit(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    last: Option<Duration>,
    left_out: u64,
}

impl LineLimit {
    /// Whether the line may be written at this time of a clock that never steps, and if so, how many were left out before it.
    pub fn admit_at(&self, now: Duration) -> Option<u64> {
        let mut seen = self.0.lock();
        if seen
            .last
            .is_some_and(|last| now.saturating_sub(last) < PAUSE)
        {
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

    #[test]
    fn a_flood_is_a_line_a_second() {
        let lines = LineLimit::default();
        let at = |ms| lines.admit_at(Duration::from_millis(ms));
        assert_eq!(at(5000), Some(0));
        for ms in 5001..5100 {
            assert_eq!(at(ms), None);
        }
        assert_eq!(at(6000), Some(99));
        assert_eq!(at(6999), None);
        assert_eq!(at(7000), Some(1));
    }
}
