//! A clock that stands still until a test moves it.

use std::time::Duration;

use parking_lot::Mutex;

use super::{Clock, WallTime};

/// Wall and monotonic time under a test's control.
#[derive(Debug)]
pub struct FakeClock {
    times: Mutex<(Duration, Duration)>,
}

impl FakeClock {
    /// A clock standing at `secs` since 1970, monotonic time 0.
    #[must_use]
    pub const fn new(secs: u64) -> Self {
        Self {
            times: Mutex::new((Duration::from_secs(secs), Duration::ZERO)),
        }
    }

    /// Lets time pass: both times go forward.
    pub fn advance(&self, by: Duration) {
        let mut times = self.times.lock();
        times.0 = times.0.saturating_add(by);
        times.1 = times.1.saturating_add(by);
    }

    /// Sets the calendar, as an administrator or NTP would; monotonic time is not touched.
    pub fn set(&self, to: WallTime) {
        self.times.lock().0 = Duration::new(to.secs, to.nanos);
    }
}

impl Clock for FakeClock {
    fn now(&self) -> WallTime {
        let wall = self.times.lock().0;
        WallTime {
            secs: wall.as_secs(),
            nanos: wall.subsec_nanos(),
        }
    }

    fn monotonic(&self) -> Duration {
        self.times.lock().1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setting_the_calendar_leaves_monotonic_time_alone() {
        let clock = FakeClock::new(1000);
        clock.advance(Duration::from_millis(1500));
        assert_eq!(
            clock.now(),
            WallTime {
                secs: 1001,
                nanos: 500_000_000
            }
        );
        clock.set(WallTime { secs: 7, nanos: 0 });
        assert_eq!(clock.now(), WallTime { secs: 7, nanos: 0 });
        assert_eq!(clock.monotonic(), Duration::from_millis(1500));
    }
}
