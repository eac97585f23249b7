//! Logging in: what a name and a password are held against, and who has tried too often.

use std::collections::HashMap;
use std::fmt::Debug;
use std::net::IpAddr;
use std::time::Duration;

use newsreel_wire::network_of;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::turns::SHARES;

/// Passwords held against their hashes at the same time: each takes a core and some 20 MiB for a moment.
pub const CHECKS_AT_ONCE: usize = 4;

/// Networks whose failed logins are remembered.
pub const FAILURES_KEPT_MAX: usize = 10_000;

/// The first failed login is answered after this, each further one after twice as long.
const PAUSE: Duration = Duration::from_secs(1);

/// No answer takes longer than this.
const PAUSE_MAX: Duration = Duration::from_secs(16);

/// Nobody waits longer for their login to be judged while those of their network fail.
pub const TURN_WAIT_MAX: Duration = Duration::from_secs(32);

/// Where passwords may be sent in clear.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum ClearText {
    /// From this machine.
    #[default]
    Loopback,
    /// From everywhere: whoever listens in on the way has the password.
    Everywhere,
    /// From nowhere.
    Nowhere,
}

/// `[login]`: how users say who they are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LoginConfig {
    /// From where passwords are taken that come in clear.
    pub clear_text: ClearText,
    /// Failed logins of one address (IPv6: one /64 network) after which it is refused, on connections that are open too; 0:
    /// any number. Each is answered later than the one before, by up to 16 s, and one at a time.
    pub failures_max: u32,
    /// How long that lasts, from the last failed login on, seconds. Counted in memory: a start begins anew.
    pub ban_s: u64,
    /// Whether users can log in by SCRAM-SHA-256 (RFC 7677), which shows no password to anybody on the way. What it needs is
    /// kept when a user is added or gets another password, from then on; it is easier to try passwords against than the
    /// hash that is kept besides, for whoever gets hold of the file.
    pub scram: bool,
    /// A program that knows names which the spool's users do not have, as INN's authenticators do (`ckpasswd`, `radius`): its
    /// path and arguments, with spaces between them. It reads the name and the password from its standard input and says who
    /// that is. It is asked of a name that the spool has, too, when the password is wrong, so that the time does not tell; its
    /// word does not count then. Empty: none.
    pub program: String,
    /// How long it may take, seconds; then it is killed, and nobody is let in.
    pub program_s_max: u64,
}

impl Default for LoginConfig {
    fn default() -> Self {
        Self {
            clear_text: ClearText::Loopback,
            failures_max: 10,
            ban_s: 600,
            scram: false,
            program: String::new(),
            program_s_max: 10,
        }
    }
}

/// Somebody who proved who they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Their name.
    pub name: String,
    /// The groups they are in.
    pub groups: Vec<String>,
}

/// What a proof of SCRAM-SHA-256 is held against (RFC 5802 section 3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScramKeys {
    /// What is mixed with the password.
    pub salt: Vec<u8>,
    /// Rounds over it.
    pub iterations: u32,
    /// The hash of the client's key.
    pub stored: [u8; 32],
    /// The server's key.
    pub server: [u8; 32],
}

/// What somebody says of who they are.
#[derive(Clone)]
pub struct Credentials {
    /// The name.
    pub name: String,
    /// The password.
    pub password: String,
    /// Where they are.
    pub address: IpAddr,
}

impl Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The password is nobody's business.
        f.debug_struct("Credentials")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// What names and passwords are held against.
pub trait Logins: Debug + Send + Sync + 'static {
    /// Whether there may be anybody who can log in.  Asked on the threads of sessions.
    fn may_be_any(&self) -> bool;

    /// Who has this name and password and may log in, by the settings in force.  It takes as long for a name that nobody has.
    /// Blocks.
    ///
    /// # Errors
    /// Why it cannot be said now, for the log.
    fn check(&self, login: &LoginConfig, said: &Credentials) -> Result<Option<User>, String>;

    /// What a proof of this name is held against, and who has it and may log in so.  Nothing tells from the keys whether
    /// there is such a user.  Blocks.
    ///
    /// # Errors
    /// Why it cannot be said now, for the log.
    fn scram(&self, name: &str) -> Result<(ScramKeys, Option<User>), String>;

    /// Who has this name, for which an authority vouches, and may log in; a name that is not here is one of nobody's group.
    /// Blocks.
    ///
    /// # Errors
    /// Why it cannot be said now, for the log.
    fn vouched(&self, name: &str) -> Result<Option<User>, String>;
}

/// Whether this can be the name of a user, as entries of `[[access]]` write it.
pub(super) fn is_user_name(name: &str) -> bool {
    let is_of_name = |c: char| !c.is_whitespace() && !c.is_control() && !"@,:*".contains(c);
    !name.is_empty() && name.chars().all(is_of_name)
}

/// Failed logins by network.
#[derive(Debug, Default)]
pub(super) struct Failures(Mutex<HashMap<IpAddr, Failed>>);

#[derive(Debug, Clone, Copy)]
struct Failed {
    count: u32,
    last: Instant,
}

impl Failures {
    /// Whether an address has failed too often to be let in.
    pub(super) fn are_too_many(&self, address: IpAddr, config: &LoginConfig) -> bool {
        config.failures_max > 0 && self.fresh(address, config) >= config.failures_max
    }

    /// The failed logins of an address that still count.
    fn fresh(&self, address: IpAddr, config: &LoginConfig) -> u32 {
        let failed = self.0.lock().get(&network_of(address)).copied();
        let is_fresh = |failed: &Failed| failed.last.elapsed() < Duration::from_secs(config.ban_s);
        failed.filter(is_fresh).map_or(0, |failed| failed.count)
    }

    /// The shares a login of an address takes of its network's: all where one has failed, and never so few that more could be
    /// judged than may fail.
    pub(super) fn shares(&self, address: IpAddr, config: &LoginConfig) -> u32 {
        match config.failures_max {
            _ if self.fresh(address, config) > 0 => SHARES,
            0 => 1,
            few => SHARES.div_ceil(few),
        }
    }

    /// One more; how long its answer waits.
    pub(super) fn note(&self, address: IpAddr, config: &LoginConfig) -> Duration {
        let (now, kept_for) = (Instant::now(), Duration::from_secs(config.ban_s));
        let network = network_of(address);
        let mut table = self.0.lock();
        if table.len() >= FAILURES_KEPT_MAX && !table.contains_key(&network) {
            table.retain(|_, failed| now - failed.last < kept_for);
            let oldest = table.iter().min_by_key(|(_, failed)| failed.last);
            let oldest = oldest.map(|(network, _)| *network);
            if let Some(oldest) = oldest.filter(|_| table.len() >= FAILURES_KEPT_MAX) {
                table.remove(&oldest);
            }
        }
        let failed = table.entry(network).or_insert(Failed {
            count: 0,
            last: now,
        });
        if now - failed.last >= kept_for {
            failed.count = 0;
        }
        failed.count = failed.count.saturating_add(1);
        failed.last = now;
        let doubled = PAUSE.saturating_mul(1 << (failed.count - 1).min(16));
        doubled.min(PAUSE_MAX)
    }
}

/// When a failed login is answered, counted from when its judging began: what that took does not show.
pub(super) fn answered_after(pause: Duration, judged_in: Duration) -> Duration {
    let whole = judged_in.as_nanos().div_ceil(pause.as_nanos().max(1));
    pause.saturating_mul(u32::try_from(whole).unwrap_or(u32::MAX).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn failures_are_slowed_then_refused_then_forgotten() {
        let failures = Failures::default();
        let config = LoginConfig {
            failures_max: 3,
            ..LoginConfig::default()
        };
        let bad: IpAddr = "2001:db8::1".parse().unwrap();
        let pauses: Vec<u64> = (0..3)
            .map(|_| failures.note(bad, &config).as_secs())
            .collect();
        assert_eq!(pauses, [1, 2, 4]);
        assert!(failures.are_too_many("2001:db8::ffff".parse().unwrap(), &config));
        assert!(!failures.are_too_many("2001:db8:0:1::1".parse().unwrap(), &config));
        let never = LoginConfig {
            failures_max: 0,
            ..config.clone()
        };
        assert!(!failures.are_too_many(bad, &never));
        assert_eq!(
            (0..9).map(|_| failures.note(bad, &config)).max(),
            Some(PAUSE_MAX)
        );
        tokio::time::advance(Duration::from_secs(600)).await;
        assert!(!failures.are_too_many(bad, &config));
        assert_eq!(failures.note(bad, &config), PAUSE);
    }

    /// A program that takes longer for names it knows would else tell them.
    #[test]
    fn what_judging_took_does_not_show() {
        let at = |judged_ms| {
            let judged_in = Duration::from_millis(judged_ms);
            answered_after(Duration::from_secs(2), judged_in).as_millis()
        };
        assert_eq!([0, 8, 1999, 2000].map(at), [2000; 4]);
        assert_eq!([2001, 3500].map(at), [4000; 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_are_judged_at_once_than_may_fail() {
        let failures = Failures::default();
        let address = "192.0.2.1".parse().unwrap();
        let shares = |failures_max| {
            let config = LoginConfig {
                failures_max,
                ..LoginConfig::default()
            };
            failures.shares(address, &config)
        };
        assert_eq!([0, 1, 2, 3, 4, 10].map(shares), [1, 4, 2, 2, 1, 1]);
        failures.note(address, &LoginConfig::default());
        assert_eq!([0, 1, 2, 3, 4, 10].map(shares), [SHARES; 6]);
    }

    #[tokio::test(start_paused = true)]
    async fn the_table_is_bounded_and_keeps_the_newest() {
        let failures = Failures::default();
        let config = LoginConfig {
            failures_max: 1,
            ..LoginConfig::default()
        };
        let address = |n: u32| IpAddr::V4(n.into());
        for n in 0..=FAILURES_KEPT_MAX as u32 {
            failures.note(address(n), &config);
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert_eq!(failures.0.lock().len(), FAILURES_KEPT_MAX);
        assert!(!failures.are_too_many(address(0), &config));
        assert!(failures.are_too_many(address(1), &config));
    }
}
