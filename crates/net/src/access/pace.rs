//! How fast something may go: a second's worth at once, then only so much a second.

use std::time::Duration;

use tokio::time::Instant;

/// What may be run up before it must be waited for.
const AT_ONCE: Duration = Duration::from_secs(1);

/// One connection's pace of one thing.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    per_s: u64,
    /// When what has been spent will have been paid for.
    paid_at: Option<Instant>,
}

impl Pace {
    /// So many a second; 0: any number.
    #[must_use]
    pub const fn new(per_s: u64) -> Self {
        Self {
            per_s,
            paid_at: None,
        }
    }

    /// The most that is spent at once; none: any number.
    #[must_use]
    pub fn at_once_max(&self) -> Option<usize> {
        (self.per_s > 0).then(|| usize::try_from(self.per_s).unwrap_or(usize::MAX))
    }

    /// So many were spent now; how long to wait before anything more is.
    pub fn spend(&mut self, count: u64) -> Duration {
        if self.per_s == 0 {
            return Duration::ZERO;
        }
        let now = Instant::now();
        let from = self.paid_at.map_or(now, |paid_at| paid_at.max(now));
        // A day is more than anything that is sent at once costs; a clock has room for it.
        const LONGEST: Duration = Duration::from_secs(86_400);
        let cost = Duration::try_from_secs_f64(count as f64 / self.per_s as f64);
        let paid_at = from + cost.unwrap_or(LONGEST).min(LONGEST);
        self.paid_at = Some(paid_at);
        (paid_at - now).saturating_sub(AT_ONCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_second_at_once_then_only_so_much() {
        let mut pace = Pace::new(100);
        assert_eq!(pace.spend(100), Duration::ZERO);
        assert_eq!(pace.spend(50), Duration::from_millis(500));
        tokio::time::advance(Duration::from_millis(1500)).await;
        assert_eq!(pace.spend(100), Duration::ZERO);
        // What was not used is not saved up.
        tokio::time::advance(Duration::from_secs(100)).await;
        assert_eq!(pace.spend(100), Duration::ZERO);
        assert_eq!(pace.spend(100), Duration::from_secs(1));
        assert_eq!(pace.spend(u64::MAX), Duration::from_secs(86_400 + 1));
        assert_eq!(pace.at_once_max(), Some(100));
        assert_eq!(Pace::new(0).at_once_max(), None);
        assert_eq!(Pace::new(0).spend(u64::MAX), Duration::ZERO);
    }
}
