//! A clock that pretends another time: for tests, and to take in a feed of long ago.

use std::time::Duration;

use newsreel_host::{Clock, RealClock, WallTime};

/// The machine's clock, shifted so that it began at a given time.
#[derive(Debug)]
pub(crate) struct ShiftedClock {
    real: RealClock,
    begin_s: u64,
}

impl ShiftedClock {
    /// It is `begin_s` seconds after the beginning of 1970 now.
    pub(crate) fn new(begin_s: u64) -> Self {
        Self {
            real: RealClock::new(),
            begin_s,
        }
    }
}

impl Clock for ShiftedClock {
    fn now(&self) -> WallTime {
        let passed = self.real.monotonic();
        WallTime {
            secs: self.begin_s.saturating_add(passed.as_secs()),
            nanos: passed.subsec_nanos(),
        }
    }

    fn monotonic(&self) -> Duration {
        self.real.monotonic()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_begins_where_it_is_told_to() {
        let clock = ShiftedClock::new(1_000_000_000);
        let first = clock.now();
        assert_eq!(first.secs, 1_000_000_000);
        assert!(clock.now() >= first);
    }
}
