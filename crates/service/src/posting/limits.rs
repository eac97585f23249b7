//! How often somebody may post: a bucket that fills in a minute, pauses that double, a day's quota.
//!
//! Kept in memory for each user, IPv4 address and IPv6 /64 that posts, and for the /56 and /48 around it, which may post four times and
//! sixteen times as much; bounded: where there are too many, those who posted
//! longest ago are forgotten.  A pure state machine: the caller says what time it is (a clock that only goes on).

use std::collections::HashMap;
use std::net::IpAddr;

use newsreel_wire::networks_around;

use super::PostingConfig;
use crate::reject::Reject;

/// Users and addresses that are remembered.
pub const KEYS_MAX: usize = 65_536;

const MINUTE_MS: u64 = 60_000;
const DAY_MS: u64 = 86_400_000;

/// Who is counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    User(Box<str>),
    Network((IpAddr, u8)),
}

/// What one of them did.
#[derive(Debug, Clone, Copy)]
struct Count {
    /// The bucket's content, in milliseconds of its filling.
    room_ms: u64,
    /// When that was so.
    at_ms: u64,
    /// Nothing is taken before this.
    until_ms: u64,
    /// The last pause; 0 while there is none.
    pause_ms: u64,
    /// When the day began, and the articles since.
    day_ms: u64,
    today: u32,
}

/// Who is asked about a post, and how many times as much as one address each may; nobody where there are no limits.
fn keys(
    config: &PostingConfig,
    user: Option<&str>,
    address: Option<IpAddr>,
) -> impl Iterator<Item = (Key, u32)> {
    let is_limited = config.articles_per_minute_max > 0 || config.articles_per_day_max > 0;
    let user = user.map(|user| (Key::User(user.into()), 1));
    let networks = address.into_iter().flat_map(networks_around);
    let networks = networks.map(|(network, weight)| (Key::Network(network), weight));
    user.into_iter().chain(networks).filter(move |_| is_limited)
}

/// The counts of all who post.
#[derive(Debug, Default)]
pub struct PostLimits {
    counts: HashMap<Key, Count>,
}

impl PostLimits {
    /// Counts one more article of this user from this address, or says why it is one too many.
    ///
    /// # Errors
    /// [`Reject::PostedTooOften`] or [`Reject::QuotaUsed`].
    pub fn take(
        &mut self,
        config: &PostingConfig,
        user: Option<&str>,
        address: Option<IpAddr>,
        now_ms: u64,
    ) -> Result<(), Reject> {
        // All are asked before any is charged.
        self.may(config, user, address, now_ms)?;
        for (key, _) in keys(config, user, address) {
            self.count(&key, now_ms).charge(config);
        }
        Ok(())
    }

    /// Says why one more article would be one too many, and counts none.
    ///
    /// # Errors
    /// As [`PostLimits::take`].
    pub fn may(
        &mut self,
        config: &PostingConfig,
        user: Option<&str>,
        address: Option<IpAddr>,
        now_ms: u64,
    ) -> Result<(), Reject> {
        keys(config, user, address)
            .try_for_each(|(key, weight)| self.count(&key, now_ms).may(config, weight, now_ms))
    }

    fn count(&mut self, key: &Key, now_ms: u64) -> &mut Count {
        if self.counts.len() >= KEYS_MAX && !self.counts.contains_key(key) {
            self.forget();
        }
        self.counts.entry(key.clone()).or_insert(Count {
            room_ms: u64::MAX,
            at_ms: now_ms,
            until_ms: 0,
            pause_ms: 0,
            day_ms: now_ms,
            today: 0,
        })
    }

    /// Forgets the quarter that posted longest ago.
    fn forget(&mut self) {
        let mut times: Vec<u64> = self.counts.values().map(|count| count.at_ms).collect();
        let quarter = times.len() / 4;
        let (_, &mut border, _) = times.select_nth_unstable(quarter);
        let mut left = quarter + 1;
        self.counts.retain(|_, count| {
            let goes = count.at_ms <= border && left > 0;
            left -= usize::from(goes);
            !goes
        });
    }
}

impl Count {
    fn may(&mut self, config: &PostingConfig, weight: u32, now_ms: u64) -> Result<(), Reject> {
        let (passed_ms, weight_ms) = (now_ms.saturating_sub(self.at_ms), u64::from(weight));
        let room_ms = self.room_ms.saturating_add(passed_ms * weight_ms);
        self.room_ms = room_ms.min(MINUTE_MS * weight_ms);
        self.at_ms = now_ms;
        if now_ms.saturating_sub(self.day_ms) >= DAY_MS {
            (self.day_ms, self.today) = (now_ms, 0);
        }
        if let Some(cost_ms) = cost_ms(config) {
            if now_ms < self.until_ms || self.room_ms < cost_ms {
                let longest_ms = config.backoff_s_max.saturating_mul(1000);
                self.pause_ms = (self.pause_ms * 2).clamp(1000, longest_ms.max(1000));
                self.until_ms = now_ms.saturating_add(self.pause_ms.min(longest_ms));
                return Err(Reject::PostedTooOften);
            }
            // Whoever kept quiet until the bucket was full begins anew.
            if self.room_ms == MINUTE_MS * weight_ms {
                self.pause_ms = 0;
            }
        }
        let a_day = config.articles_per_day_max.saturating_mul(weight);
        if a_day > 0 && self.today >= a_day {
            return Err(Reject::QuotaUsed);
        }
        Ok(())
    }

    const fn charge(&mut self, config: &PostingConfig) {
        self.today = self.today.saturating_add(1);
        if let Some(cost_ms) = cost_ms(config) {
            self.room_ms = self.room_ms.saturating_sub(cost_ms);
        }
    }
}

/// What one article takes of the bucket.
const fn cost_ms(config: &PostingConfig) -> Option<u64> {
    MINUTE_MS.checked_div(config.articles_per_minute_max as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(minute: u32, day: u32) -> PostingConfig {
        PostingConfig {
            articles_per_minute_max: minute,
            articles_per_day_max: day,
            backoff_s_max: 300,
            ..PostingConfig::default()
        }
    }

    const ADA: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

    #[test]
    fn a_bucket_that_fills_and_pauses_that_double() {
        let (mut limits, config) = (PostLimits::default(), config(3, 0));
        let mut take = |at_s: u64| limits.take(&config, None, Some(ADA), at_s * 1000).is_ok();
        assert_eq!(
            [take(0), take(0), take(0), take(0)],
            [true, true, true, false]
        );
        assert!(!take(19), "room for one every twenty seconds");
        assert!(take(21) && !take(21));
        assert!(take(42));
        // Not heeded: 8, 16, 32 seconds; there is room again at 63, but the pause is not over, and grows to 64.
        assert_eq!(
            [take(42), take(43), take(45), take(63), take(126)],
            [false; 5]
        );
        assert!(take(254) && take(254) && take(254) && !take(254));
        assert!(!take(255) && take(275), "the pauses began anew");
    }

    #[test]
    fn a_days_quota_is_of_the_user_and_of_the_network() {
        let (mut limits, config) = (PostLimits::default(), config(0, 2));
        let six = |last: u16| IpAddr::from([0x2001, 0xdb8, 0, 7, 1, 2, 3, last]);
        let day = DAY_MS;
        let mut take = |user, address, at| limits.take(&config, user, address, at);
        assert_eq!(take(None, Some(six(1)), 0), Ok(()));
        assert_eq!(take(None, Some(six(2)), 1), Ok(()));
        assert_eq!(take(None, Some(six(3)), 2), Err(Reject::QuotaUsed));
        assert_eq!(take(Some("ada"), Some(ADA), 3), Ok(()));
        assert_eq!(take(Some("ada"), Some(six(1)), 4), Err(Reject::QuotaUsed));
        assert_eq!(
            take(Some("ada"), None, 5),
            Ok(()),
            "the refusal was not counted"
        );
        assert_eq!(take(Some("ada"), None, 6), Err(Reject::QuotaUsed));
        assert_eq!(take(Some("ada"), None, 3 + day), Ok(()));
        assert_eq!(take(None, None, 7), Ok(()), "the control socket");
    }

    /// Who has a /48 could post as much as 65,536 addresses.
    #[test]
    fn who_has_a_wide_network_posts_no_more_than_few() {
        let of_56 = |n: u16| IpAddr::from([0x2001, 0xdb8, 7, n & 0xff, 0, 0, 0, 1]);
        let of_48 = |n: u16| IpAddr::from([0x2001, 0xdb8, 8, n * 0x100, 0, 0, 0, 1]);
        let elsewhere = IpAddr::from([0x2001, 0xdb8, 9, 0, 0, 0, 0, 1]);
        for (config, refused, ms) in [
            (config(3, 0), Reject::PostedTooOften, MINUTE_MS),
            (config(0, 3), Reject::QuotaUsed, DAY_MS),
        ] {
            let mut limits = PostLimits::default();
            let mut take = |address, at_ms| limits.take(&config, None, Some(address), at_ms);
            let taken = |take: &mut dyn FnMut(u16) -> Result<(), Reject>| {
                (0..100).take_while(|n| take(*n).is_ok()).count()
            };
            assert_eq!(taken(&mut |n| take(of_56(n), 0)), 12);
            assert_eq!(take(of_56(99), 0), Err(refused));
            assert_eq!(taken(&mut |n| take(of_48(n), 0)), 48);
            assert_eq!(take(of_48(99), 0), Err(refused));
            assert_eq!(take(elsewhere, 0), Ok(()));
            assert_eq!(taken(&mut |n| take(of_48(n), ms)), 48);
        }
    }

    #[test]
    fn without_limits_nothing_is_kept_and_the_table_is_bounded() {
        let mut limits = PostLimits::default();
        assert!(
            limits
                .take(&config(0, 0), Some("ada"), Some(ADA), 0)
                .is_ok()
        );
        assert!(limits.counts.is_empty());
        for n in 0..KEYS_MAX as u32 + 1000 {
            let address = IpAddr::V4(std::net::Ipv4Addr::from_bits(n));
            limits
                .take(&config(1, 0), None, Some(address), u64::from(n))
                .unwrap();
            assert!(limits.counts.len() <= KEYS_MAX);
        }
        let last = IpAddr::V4(std::net::Ipv4Addr::from_bits(KEYS_MAX as u32 + 999));
        assert!(limits.counts.contains_key(&Key::Network((last, 32))));
    }
}
