//! How fast work in the background goes: so many octets, rows or articles a second, whatever is counted.
//!
//! Time that was not used is not saved up.  Who works is told how long to rest, and rests so that a stop is not waited for.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use newsreel_host::Clock;

/// Who rests longer looks at the clock this often: it may be one that is set.
pub(crate) const LOOK: Duration = Duration::from_secs(1);

/// Waits; `false` when it is time to stop: `stop` was closed, or says so.
pub(crate) fn rest(clock: &dyn Clock, stop: &Receiver<()>, pause: Duration) -> bool {
    let until = clock.monotonic().saturating_add(pause);
    loop {
        let left = until.saturating_sub(clock.monotonic());
        match stop.recv_timeout(left.min(LOOK)) {
            Err(RecvTimeoutError::Timeout) if left.is_zero() => return true,
            Err(RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
}

/// A rate, and how far it is used up.
#[derive(Debug)]
pub(crate) struct Pace {
    /// 0: as fast as it goes.
    per_s: u64,
    /// When what was done so far should have been done.
    due: Duration,
}

impl Pace {
    pub(crate) const fn new(per_s: u64) -> Self {
        Self {
            per_s,
            due: Duration::ZERO,
        }
    }

    /// The pause behind so much work.
    pub(crate) fn pause(&mut self, count: u64, now: Duration) -> Duration {
        if self.per_s == 0 {
            return Duration::ZERO;
        }
        let nanos = u128::from(count) * 1_000_000_000 / u128::from(self.per_s);
        let takes = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        self.due = self.due.max(now).saturating_add(takes);
        self.due.saturating_sub(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_is_kept_and_nothing_is_saved_up() {
        let (second, ms) = (Duration::from_secs(1), Duration::from_millis);
        let mut pace = Pace::new(1000);
        assert_eq!(pace.pause(500, second), ms(500));
        assert_eq!(pace.pause(500, second + ms(200)), ms(800));
        // The disk took its time.
        assert_eq!(pace.pause(100, 10 * second), ms(100));
        assert_eq!(Pace::new(0).pause(u64::MAX, second), Duration::ZERO);
        assert!(Pace::new(1).pause(u64::MAX, second) > 100 * second);
    }
}
