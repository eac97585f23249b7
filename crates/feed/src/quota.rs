//! How much a feed may send: octets in a second, octets in a day.
//!
//! Pure: time comes in.  An article goes out whole, so that both are kept on average; what is too much is waited off.  A day is 24
//! hours, from the first article on; counting begins anew with the server.

use crate::config::FeedConfig;

const DAY_MS: u64 = 86_400_000;

/// What a feed may send and has sent.
#[derive(Debug)]
pub(crate) struct Quota {
    per_s: u64,
    per_day: u64,
    /// The rate lets the next article go from then on.
    rate_open_ms: u64,
    day_ends_ms: u64,
    sent_in_day: u64,
}

impl Quota {
    pub(crate) const fn new(config: &FeedConfig) -> Self {
        Self {
            per_s: config.octets_per_s_max,
            per_day: config.octets_per_day_max,
            rate_open_ms: 0,
            day_ends_ms: 0,
            sent_in_day: 0,
        }
    }

    /// What another one let go today counts: a day is the same whatever may go in it.
    pub(crate) const fn continues(&mut self, before: &Self) {
        (self.day_ends_ms, self.sent_in_day) = (before.day_ends_ms, before.sent_in_day);
    }

    /// When something may go again; none: now.
    pub(crate) fn closed_until_ms(&self, now_ms: u64) -> Option<u64> {
        let day_is_used = self.per_day > 0 && self.sent_in_day >= self.per_day;
        let day = if day_is_used { self.day_ends_ms } else { 0 };
        let until = day.max(self.rate_open_ms);
        (until > now_ms).then_some(until)
    }

    /// So much was sent.
    pub(crate) fn spend(&mut self, octets: u64, now_ms: u64) {
        if let Some(takes_ms) = octets.saturating_mul(1000).checked_div(self.per_s) {
            self.rate_open_ms = self.rate_open_ms.max(now_ms).saturating_add(takes_ms);
        }
        if now_ms >= self.day_ends_ms {
            self.day_ends_ms = now_ms.saturating_add(DAY_MS);
            self.sent_in_day = 0;
        }
        self.sent_in_day = self.sent_in_day.saturating_add(octets);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota(octets_per_s_max: u64, octets_per_day_max: u64) -> Quota {
        Quota::new(&FeedConfig {
            octets_per_s_max,
            octets_per_day_max,
            ..FeedConfig::default()
        })
    }

    #[test]
    fn a_rate_is_kept_on_average() {
        let mut quota = quota(1000, 0);
        let (mut now_ms, mut sent) = (5_000, 0);
        while now_ms < 65_000 {
            match quota.closed_until_ms(now_ms) {
                None => {
                    quota.spend(700, now_ms);
                    sent += 700;
                }
                Some(until) => now_ms = until,
            }
        }
        assert!((59_000..=61_000).contains(&sent), "{sent}");
        // Who sent nothing for long may not send more at once for that.
        assert_eq!(quota.closed_until_ms(10_000_000), None);
        quota.spend(3000, 10_000_000);
        assert_eq!(quota.closed_until_ms(10_000_000), Some(10_003_000));
    }

    #[test]
    fn a_day_is_used_up_and_another_begins() {
        let mut quota = quota(0, 1000);
        assert_eq!(quota.closed_until_ms(7), None);
        quota.spend(999, 7);
        assert_eq!(quota.closed_until_ms(8), None);
        quota.spend(999, 8);
        assert_eq!(quota.closed_until_ms(9), Some(7 + DAY_MS));
        assert_eq!(quota.closed_until_ms(7 + DAY_MS), None);
        quota.spend(1, 7 + DAY_MS);
        assert_eq!(quota.closed_until_ms(8 + DAY_MS), None);
        let mut none = self::quota(0, 0);
        none.spend(u64::MAX, 1);
        assert_eq!(none.closed_until_ms(1), None);
    }
}
