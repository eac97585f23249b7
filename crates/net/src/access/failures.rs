//! Failed logins: of which networks there were any lately, and what that makes of the next.
//!
//! A network is an IPv4 address or an IPv6 /64; failures of a /64 count for the /56 and the /48 around it too, though for less, so that
//! who holds those is not as many as they have networks.  Wider networks forget what is older than a ban, since many people
//! who fail now and then share them.  Without bans (`login.failures_max = 0`) failures of a name are counted besides, by network.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use ipnet::IpNet;
use newsreel_wire::{network_of, networks_around};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::login::LoginConfig;
use super::turns::SHARES;

/// Networks whose failed logins are remembered.
pub const FAILURES_KEPT_MAX: usize = 10_000;

/// The first failed login is answered after this, each further one after twice as long.
const PAUSE: Duration = Duration::from_secs(1);

/// No answer takes longer than this, unless judging it did.
pub(super) const PAUSE_MAX: Duration = Duration::from_secs(16);

/// Whose failures are counted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Of {
    Network(IpNet),
    /// A name, as somebody in this network says it.
    Name(IpAddr, Box<str>),
}

#[derive(Debug, Clone, Copy)]
struct Failed {
    count: u32,
    first: Instant,
    last: Instant,
}

impl Failed {
    /// So many that still count, where they are counted by `weight`.
    fn fresh(&self, weight: u32, config: &LoginConfig, now: Instant) -> u32 {
        let ban = Duration::from_secs(config.ban_s);
        let is_over = now - self.last >= ban;
        // Of a wider network those of one ban's time count together, and a ban lasts.
        let is_old = weight > 1 && now - self.first >= ban;
        let is_banned = config.failures_max > 0 && self.count / weight >= config.failures_max;
        match is_over || is_old && !is_banned {
            true => 0,
            false => self.count,
        }
    }
}

/// A network that is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ban {
    /// The network.
    pub network: IpNet,
    /// Logins of it that failed.
    pub failures: u32,
    /// How long it still is.
    pub left: Duration,
}

/// Failed logins by network.
#[derive(Debug, Default)]
pub(super) struct Failures(Mutex<Tables>);

#[derive(Debug, Default)]
struct Tables {
    failed: HashMap<Of, Failed>,
}

/// The networks around an address, and how many failures of each are one.
pub(super) fn around(address: IpAddr) -> impl Iterator<Item = (IpNet, u32)> {
    networks_around(address)
        .filter_map(|((network, bits), weight)| Some((IpNet::new(network, bits).ok()?, weight)))
}

/// What a network was counted by.
fn weight_of(network: &IpNet) -> u32 {
    let mut around = around(network.addr());
    around
        .find(|(it, _)| it == network)
        .map_or(1, |(_, weight)| weight)
}

/// Room for one more: the oldest goes, where there are as many as there may be.
fn make_room(table: &mut HashMap<Of, Failed>) {
    if table.len() < FAILURES_KEPT_MAX {
        return;
    }
    let oldest = table.iter().min_by_key(|(_, failed)| failed.last);
    if let Some(oldest) = oldest.map(|(of, _)| of.clone()) {
        table.remove(&oldest);
    }
}

impl Tables {
    /// The failed logins of an address that still count: of its network, or of a wider one for less.
    fn standing(&self, address: IpAddr, config: &LoginConfig) -> u32 {
        let now = Instant::now();
        let fresh = around(address).map(|(network, weight)| {
            let failed = self.failed.get(&Of::Network(network));
            failed.map_or(0, |failed| failed.fresh(weight, config, now) / weight)
        });
        fresh.max().unwrap_or(0)
    }

    fn of_name(&self, address: IpAddr, name: &str, config: &LoginConfig) -> u32 {
        let of = Of::Name(network_of(address), name.into());
        let failed = self.failed.get(&of);
        failed.map_or(0, |failed| failed.fresh(1, config, Instant::now()))
    }

    fn count(&mut self, of: Of, weight: u32, config: &LoginConfig) {
        let now = Instant::now();
        if !self.failed.contains_key(&of) {
            make_room(&mut self.failed);
        }
        let failed = self.failed.entry(of).or_insert(Failed {
            count: 0,
            first: now,
            last: now,
        });
        if failed.fresh(weight, config, now) == 0 {
            (failed.count, failed.first) = (0, now);
        }
        failed.count = failed.count.saturating_add(1);
        failed.last = now;
    }
}

impl Failures {
    /// Whether an address has failed too often to be let in.
    pub(super) fn are_too_many(&self, address: IpAddr, config: &LoginConfig) -> bool {
        let most = config.failures_max;
        most > 0 && self.0.lock().standing(address, config) >= most
    }

    /// The shares a login takes of those of its line: all where one has failed, and never so few that more could be judged than
    /// may fail.
    pub(super) fn shares(&self, address: IpAddr, name: &str, config: &LoginConfig) -> u32 {
        let tables = self.0.lock();
        match config.failures_max {
            0 if tables.of_name(address, name, config) > 0 => SHARES,
            0 => 1,
            _ if tables.standing(address, config) > 0 => SHARES,
            few => SHARES.div_ceil(few),
        }
    }

    /// The failed logins of an address that still count: of its network, or of a wider one for less.
    pub(super) fn standing(&self, address: IpAddr, config: &LoginConfig) -> u32 {
        self.0.lock().standing(address, config)
    }

    /// One more; how long its answer waits.
    pub(super) fn note(&self, address: IpAddr, name: &str, config: &LoginConfig) -> Duration {
        let mut tables = self.0.lock();
        for (network, weight) in around(address) {
            tables.count(Of::Network(network), weight, config);
        }
        let count = match config.failures_max {
            0 => {
                let of = Of::Name(network_of(address), name.into());
                tables.count(of, 1, config);
                tables.of_name(address, name, config)
            }
            _ => tables.standing(address, config),
        };
        let doubled = PAUSE.saturating_mul(1 << count.saturating_sub(1).min(16));
        doubled.min(PAUSE_MAX)
    }

    /// Networks that are refused, in their order.
    pub(super) fn bans(&self, config: &LoginConfig) -> Vec<Ban> {
        let now = Instant::now();
        let tables = self.0.lock();
        let banned = tables.failed.iter().filter_map(|(of, failed)| {
            let Of::Network(network) = of else {
                return None;
            };
            let weight = weight_of(network);
            let count = failed.fresh(weight, config, now);
            let is_banned = config.failures_max > 0 && count / weight >= config.failures_max;
            is_banned.then(|| Ban {
                network: *network,
                failures: count,
                left: Duration::from_secs(config.ban_s).saturating_sub(now - failed.last),
            })
        });
        let mut banned: Vec<Ban> = banned.collect();
        banned.sort_by_key(|ban| ban.network);
        banned
    }

    /// Forgets what failed in an address's networks, and in those within one; says whether that was anything.
    pub(super) fn lift(&self, what: IpNet) -> bool {
        let mut tables = self.0.lock();
        let had = tables.failed.len();
        tables.failed.retain(|of, _| match of {
            Of::Network(network) => !network.contains(&what) && !what.contains(network),
            Of::Name(network, _) => {
                let net = IpNet::from(*network);
                !what.contains(&net) && !around(what.addr()).any(|(it, _)| it.contains(&net))
            }
        });
        tables.failed.len() < had
    }
}

/// When a failed login is answered, counted from when its judging began: what that took does not show, as long as it took no more
/// than `least`.
pub(super) fn answered_after(pause: Duration, least: Duration, judged_in: Duration) -> Duration {
    let step = pause.max(least).max(PAUSE);
    let whole = judged_in.as_nanos().div_ceil(step.as_nanos().max(1));
    step.saturating_mul(u32::try_from(whole).unwrap_or(u32::MAX).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(failures_max: u32) -> LoginConfig {
        LoginConfig {
            failures_max,
            ..LoginConfig::default()
        }
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn failures_are_slowed_then_refused_then_forgotten() {
        let failures = Failures::default();
        let config = config(3);
        let bad = address("2001:db8::1");
        let pauses: Vec<u64> = (0..3)
            .map(|_| failures.note(bad, "ada", &config).as_secs())
            .collect();
        assert_eq!(pauses, [1, 2, 4]);
        assert!(failures.are_too_many(address("2001:db8::ffff"), &config));
        assert!(!failures.are_too_many(address("2001:db8:0:1::1"), &config));
        let never = LoginConfig {
            failures_max: 0,
            ..config.clone()
        };
        assert!(!failures.are_too_many(bad, &never));
        assert_eq!(
            (0..9).map(|_| failures.note(bad, "ada", &config)).max(),
            Some(PAUSE_MAX)
        );
        tokio::time::advance(Duration::from_secs(600)).await;
        assert!(!failures.are_too_many(bad, &config));
        assert_eq!(failures.note(bad, "ada", &config), PAUSE);
    }

    /// Who holds a /48 has 65,536 networks of /64, and could fail ten times from each.
    #[tokio::test(start_paused = true)]
    async fn who_holds_a_wide_network_is_few() {
        let failures = Failures::default();
        let config = config(10);
        let (mut tries, mut last) = (0, PAUSE);
        let of_56 = |n: u32| address(&format!("2001:db8:7:{:x}::1", n & 0xff));
        while !failures.are_too_many(of_56(tries), &config) {
            last = failures.note(of_56(tries), "ada", &config);
            tries += 1;
        }
        assert_eq!((tries, last), (40, PAUSE_MAX));
        assert!(!failures.are_too_many(address("2001:db8:7:100::1"), &config));
        let of_48 = |n: u32| address(&format!("2001:db8:8:{:x}::1", n * 0x100));
        let mut tries = 0;
        while !failures.are_too_many(of_48(tries), &config) {
            failures.note(of_48(tries), "ada", &config);
            tries += 1;
        }
        assert_eq!(tries, 160);
        assert!(!failures.are_too_many(address("2001:db8:9::1"), &config));
        // From the first of them that count as one they wait behind others.
        assert_eq!(failures.standing(address("2001:db8:9::1"), &config), 0);
        assert_eq!(
            failures.standing(address("2001:db8:8:ffff::1"), &config),
            10
        );
    }

    /// A campus where somebody errs every few minutes was refused once all those of a day had been counted.
    #[tokio::test(start_paused = true)]
    async fn errors_of_many_people_do_not_add_up_for_ever() {
        let failures = Failures::default();
        let config = config(10);
        for n in 0..1000_u32 {
            let one = address(&format!("2001:db8:7:{n:x}::1"));
            assert!(!failures.are_too_many(one, &config), "{n}");
            failures.note(one, "ada", &config);
            tokio::time::advance(Duration::from_secs(20)).await;
        }
    }

    /// A program that takes longer for names it knows told them, when it was slower than the pause.
    #[test]
    fn what_judging_took_does_not_show() {
        let after = |pause_s, least_s, judged_ms| {
            let judged_in = Duration::from_millis(judged_ms);
            let (pause, least) = (Duration::from_secs(pause_s), Duration::from_secs(least_s));
            answered_after(pause, least, judged_in).as_millis()
        };
        assert_eq!([0, 8, 1999, 2000].map(|ms| after(2, 0, ms)), [2000; 4]);
        assert_eq!([2001, 3500].map(|ms| after(2, 0, ms)), [4000; 2]);
        let told = [8, 900, 1900, 9900, 10_000].map(|ms| after(1, 10, ms));
        assert_eq!(told, [10_000; 5]);
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_are_judged_at_once_than_may_fail() {
        let failures = Failures::default();
        let one = address("192.0.2.1");
        let shares = |failures_max| failures.shares(one, "ada", &config(failures_max));
        assert_eq!([0, 1, 2, 3, 4, 10].map(shares), [1, 4, 2, 2, 1, 1]);
        failures.note(one, "ada", &config(10));
        assert_eq!([1, 2, 3, 4, 10].map(shares), [SHARES; 5]);
        assert_eq!(shares(0), 1, "no name of it has failed");
        failures.note(one, "ada", &config(0));
        assert_eq!(shares(0), SHARES);
        assert_eq!(failures.shares(one, "bob", &config(0)), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn the_tables_are_bounded_and_keep_the_newest() {
        let failures = Failures::default();
        let config = config(1);
        let address = |n: u32| IpAddr::V4(n.into());
        for n in 0..=FAILURES_KEPT_MAX as u32 {
            failures.note(address(n), "ada", &config);
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert_eq!(failures.0.lock().failed.len(), FAILURES_KEPT_MAX);
        assert!(!failures.are_too_many(address(0), &config));
        assert!(failures.are_too_many(address(1), &config));
    }

    #[tokio::test(start_paused = true)]
    async fn bans_are_listed_and_lifted() {
        let failures = Failures::default();
        let config = config(2);
        for text in [
            "192.0.2.1",
            "192.0.2.1",
            "192.0.2.2",
            "2001:db8::1",
            "2001:db8::2",
        ] {
            failures.note(address(text), "ada", &config);
        }
        tokio::time::advance(Duration::from_secs(100)).await;
        let listed = |failures: &Failures| {
            let bans = failures.bans(&config);
            let line = |ban: &Ban| {
                let (left, count) = (ban.left.as_secs(), ban.failures);
                format!("{} {count} {left}", ban.network)
            };
            bans.iter().map(line).collect::<Vec<_>>()
        };
        assert_eq!(
            listed(&failures),
            ["192.0.2.1/32 2 500", "2001:db8::/64 2 500"]
        );
        assert!(failures.lift(address("2001:db8::77").into()));
        assert!(!failures.lift(address("192.0.2.9").into()));
        assert_eq!(listed(&failures), ["192.0.2.1/32 2 500"]);
        assert!(failures.lift("192.0.2.0/24".parse().unwrap()));
        assert!(listed(&failures).is_empty() && failures.bans(&config).is_empty());
        assert!(failures.0.lock().failed.is_empty());
    }
}
