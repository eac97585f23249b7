//! Logging in: what a name and a password are held against, and who has tried too often.

use std::collections::HashMap;
use std::fmt::Debug;
use std::net::IpAddr;
use std::time::Duration;

use newsreel_wire::network_of;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

/// Passwords held against their hashes at the same time: each takes a core and some 20 MiB for a moment.
pub const CHECKS_AT_ONCE: usize = 4;

/// Networks whose failed logins are remembered.
pub const FAILURES_KEPT_MAX: usize = 10_000;

/// The first failed login is answered after this, each further one after twice as long.
const PAUSE: Duration = Duration::from_secs(1);

/// No answer takes longer than this.
const PAUSE_MAX: Duration = Duration::from_secs(16);

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
    /// Failed logins of one address (IPv6: one /64 network) after which it is refused; 0: any number. Each is answered
    /// later than the one before, by up to 16 s.
    pub failures_max: u32,
    /// How long that lasts, from the last failed login on, seconds. Counted in memory: a start begins anew.
    pub ban_s: u64,
    /// Whether users can log in by SCRAM-SHA-256 (RFC 7677), which shows no password to anybody on the way. What it needs is
    /// kept when a user is added or gets another password, from then on; it is easier to try passwords against than the
    /// hash that is kept besides, for whoever gets hold of the file.
    pub scram: bool,
    /// A program that is asked of whom the spool's users do not have, or not with this password, as INN asks its
    /// authenticators (`ckpasswd`, `radius`): its path and arguments, with spaces between them. It reads the name and the
    /// password from its standard input and says who that is. Empty: none.
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
        let failed = self.0.lock().get(&network_of(address)).copied();
        failed.is_some_and(|failed| {
            let is_fresh = failed.last.elapsed() < Duration::from_secs(config.ban_s);
            config.failures_max > 0 && failed.count >= config.failures_max && is_fresh
        })
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
