//! The machine's clocks.
//!
//! The only place that asks the operating system for the time.

#![expect(
    clippy::disallowed_methods,
    reason = "this is the clock everyone else is passed"
)]

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::{Clock, WallTime};

/// The machine's wall clock and its monotonic clock, the latter counted from when this was made.
#[derive(Debug, Clone)]
pub struct RealClock {
    started: Instant,
}

impl RealClock {
    /// A clock whose monotonic time starts now.
    #[must_use]
    pub fn new() -> Self {
        Self {
            started: Instant::now(),
        }
    }
}

impl Default for RealClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for RealClock {
    fn now(&self) -> WallTime {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        WallTime {
            secs: since.as_secs(),
            nanos: since.subsec_nanos(),
        }
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn real_time_is_after_2024_and_monotonic() {
        let clock = RealClock::new();
        assert!(clock.now().secs > 1_704_067_200);
        let first = clock.monotonic();
        assert!(clock.monotonic() >= first);
    }
}
