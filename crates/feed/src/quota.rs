//! How much a feed may send: octets in a second, octets in a day.
//!
//! Pure: time comes in.  What a connection takes up counts from then on, and no longer when it comes back unsent; so no more than one
//! article is too much, however many are under way.  One whose size nobody knows lets no other follow until it was sent.  What is too much is
//! waited off.  A day is 24 hours, from the first article on; counting begins anew with the server.

use std::collections::BTreeMap;

use newsreel_wire::Sequence;

use crate::config::FeedConfig;

const DAY_MS: u64 = 86_400_000;
/// Of what the rate let go and nobody sent, so much may be sent later: who sends wakes no oftener than a clock ticks.
const RATE_KEPT_US: u64 = 100_000;

/// What a feed may send and has sent.
#[derive(Debug)]
pub(crate) struct Quota {
    per_s: u64,
    per_day: u64,
    /// The rate lets the next article go from then on.
    rate_open_us: u64,
    day_ends_ms: u64,
    sent_in_day: u64,
    /// What is taken up and not sent, with its octets if they are known.
    taken: BTreeMap<Sequence, Option<u32>>,
    taken_octets: u64,
    /// How many of those have a size that nobody knows.
    taken_unknown: usize,
}

impl Quota {
    pub(crate) const fn new(config: &FeedConfig) -> Self {
        Self {
            per_s: config.octets_per_s_max,
            per_day: config.octets_per_day_max,
            rate_open_us: 0,
            day_ends_ms: 0,
            sent_in_day: 0,
            taken: BTreeMap::new(),
            taken_octets: 0,
            taken_unknown: 0,
        }
    }

    /// What another one let go today counts: a day is the same whatever may go in it.
    pub(crate) const fn continues(&mut self, before: &Self) {
        (self.day_ends_ms, self.sent_in_day) = (before.day_ends_ms, before.sent_in_day);
    }

    /// When something may go again, by what was sent; none: now.
    pub(crate) fn closed_until_ms(&self, now_ms: u64) -> Option<u64> {
        let day_is_used = self.per_day > 0 && self.sent_in_day >= self.per_day;
        let day = if day_is_used { self.day_ends_ms } else { 0 };
        let until = day.max(self.rate_open_us.div_ceil(1000));
        (until > now_ms).then_some(until)
    }

    /// Whether one more article may be taken up.
    pub(crate) fn lets_go(&self, now_ms: u64) -> bool {
        let sent = match now_ms < self.day_ends_ms {
            true => self.sent_in_day,
            false => 0,
        };
        let has_rest = self.per_day == 0 || sent.saturating_add(self.taken_octets) < self.per_day;
        has_rest && self.taken_unknown == 0 && self.closed_until_ms(now_ms).is_none()
    }

    /// An article is taken up.
    pub(crate) fn take(&mut self, article: Sequence, octets: Option<u32>, now_ms: u64) {
        if self.per_s == 0 && self.per_day == 0 {
            return;
        }
        self.give_back(article);
        self.taken.insert(article, octets);
        match octets {
            Some(octets) => {
                self.taken_octets += u64::from(octets);
                self.rate_goes_on(u64::from(octets), now_ms);
            }
            None => self.taken_unknown += 1,
        }
    }

    /// An article is not under way any more; what was not sent of it does not count.
    pub(crate) fn give_back(&mut self, article: Sequence) {
        let octets = self.no_more_taken(article).unwrap_or(0);
        self.rate_open_us = self.rate_open_us.saturating_sub(self.takes_us(octets));
    }

    /// So much was sent of an article that was taken up.
    pub(crate) fn spend(&mut self, article: Sequence, octets: u64, now_ms: u64) {
        match self.no_more_taken(article) {
            Some(taken) => {
                let rate_open_us = self.rate_open_us.saturating_add(self.takes_us(octets));
                self.rate_open_us = rate_open_us.saturating_sub(self.takes_us(taken));
            }
            None => self.rate_goes_on(octets, now_ms),
        }
        if now_ms >= self.day_ends_ms {
            self.day_ends_ms = now_ms.saturating_add(DAY_MS);
            self.sent_in_day = 0;
        }
        self.sent_in_day = self.sent_in_day.saturating_add(octets);
    }

    /// Takes an article out of those that are taken up; its octets, if it was one and they were known.
    fn no_more_taken(&mut self, article: Sequence) -> Option<u64> {
        let octets = self.taken.remove(&article)?;
        match octets {
            Some(octets) => self.taken_octets -= u64::from(octets),
            None => self.taken_unknown -= 1,
        }
        octets.map(u64::from)
    }

    fn rate_goes_on(&mut self, octets: u64, now_ms: u64) {
        let kept_from = now_ms.saturating_mul(1000).saturating_sub(RATE_KEPT_US);
        let from = self.rate_open_us.max(kept_from);
        self.rate_open_us = from.saturating_add(self.takes_us(octets));
    }

    /// How long so many octets take.
    fn takes_us(&self, octets: u64) -> u64 {
        let takes = octets.saturating_mul(1_000_000).checked_div(self.per_s);
        takes.unwrap_or(0)
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

    /// Takes up an article, and sends it.
    fn send(quota: &mut Quota, octets: u32, now_ms: u64) {
        quota.take(Sequence(1), Some(octets), now_ms);
        quota.spend(Sequence(1), octets.into(), now_ms);
    }

    #[test]
    fn a_rate_is_kept_on_average() {
        let mut quota = quota(1000, 0);
        let (mut now_ms, mut sent) = (5_000, 0);
        while now_ms < 65_000 {
            match quota.closed_until_ms(now_ms) {
                None => {
                    send(&mut quota, 700, now_ms);
                    sent += 700;
                }
                Some(until) => now_ms = until,
            }
        }
        assert!((59_000..=61_000).contains(&sent), "{sent}");
        // Who sent nothing for long may send no more at once for that than in a tenth of a second.
        assert_eq!(quota.closed_until_ms(10_000_000), None);
        send(&mut quota, 3000, 10_000_000);
        assert_eq!(quota.closed_until_ms(10_000_000), Some(10_002_900));
    }

    /// Articles that take less than the clock tells apart passed any rate.
    #[test]
    fn a_high_rate_is_kept_by_small_articles() {
        let mut quota = quota(10_000_000, 0);
        let mut sent = 0;
        for now_ms in 1_000..2_000 {
            while quota.lets_go(now_ms) {
                send(&mut quota, 3000, now_ms);
                sent += 3000;
            }
        }
        assert!((9_990_000..=11_010_000).contains(&sent), "{sent}");
    }

    #[test]
    fn a_day_is_used_up_and_another_begins() {
        let mut quota = quota(0, 1000);
        assert_eq!(quota.closed_until_ms(7), None);
        send(&mut quota, 999, 7);
        assert_eq!(quota.closed_until_ms(8), None);
        send(&mut quota, 999, 8);
        assert_eq!(quota.closed_until_ms(9), Some(7 + DAY_MS));
        assert!(!quota.lets_go(9));
        assert_eq!(quota.closed_until_ms(7 + DAY_MS), None);
        assert!(quota.lets_go(7 + DAY_MS));
        send(&mut quota, 1, 7 + DAY_MS);
        assert_eq!(quota.closed_until_ms(8 + DAY_MS), None);
        let mut none = self::quota(0, 0);
        send(&mut none, u32::MAX, 1);
        assert!(none.lets_go(1));
    }

    /// What connections had taken up when a quota was used up was sent all the same.
    #[test]
    fn what_is_under_way_counts_until_it_comes_back() {
        let mut quota = quota(0, 1000);
        for n in 1..=3 {
            assert!(quota.lets_go(5), "{n}");
            quota.take(Sequence(n), Some(400), 5);
        }
        assert!(!quota.lets_go(5) && quota.closed_until_ms(5).is_none());
        // The peer has it.
        quota.give_back(Sequence(2));
        assert!(quota.lets_go(5));
        quota.spend(Sequence(1), 410, 5);
        quota.give_back(Sequence(1));
        // Nobody knows how large it is.
        quota.take(Sequence(4), None, 5);
        assert!(!quota.lets_go(5));
        quota.spend(Sequence(4), 100, 5);
        assert!(quota.lets_go(5));
        quota.spend(Sequence(3), 500, 5);
        assert_eq!(quota.closed_until_ms(5), Some(5 + DAY_MS));
        let mut rate = self::quota(1000, 0);
        rate.take(Sequence(1), Some(500), 10_000);
        assert!(!rate.lets_go(10_000));
        rate.give_back(Sequence(1));
        assert!(rate.lets_go(10_000));
    }
}
