//! Logging in: what a name and a password are held against.

use std::fmt::Debug;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

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
    /// Failed logins of one address (IPv6: one /64 network; of a /56 four times, of a /48 sixteen times as many) after which it
    /// is refused, on connections that are open too; 0: any number. Each is answered later than the one before, by up to 16 s,
    /// and one at a time; with 0 that holds for each name by itself, so that the users of a gateway do not wait for each other.
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
    /// How long it may take, seconds; then it is killed, and nobody is let in. A failed login is answered no sooner (but for 16 s
    /// at most) until it is known how long the program takes for somebody who errs, and then no sooner than its slowest answer
    /// lately, with half of it on top, so that its time does not tell which names it knows.
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

    /// Who has this name and password and may log in.  It takes as long for a name that nobody has.  Takes a processor, and
    /// blocks.
    ///
    /// # Errors
    /// Why it cannot be said now, for the log.
    fn check(&self, said: &Credentials) -> Result<Option<User>, String>;

    /// Whom `login.program` knows by this name and password; asked of everybody whom `check` did not know, and of nobody else.
    /// Waits for it, and blocks.
    ///
    /// # Errors
    /// Why it cannot be said now, for the log.
    fn ask_program(&self, login: &LoginConfig, said: &Credentials) -> Result<Option<User>, String>;

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
    let is_of_name = |c: char| !c.is_whitespace() && !c.is_control() && !",:*".contains(c);
    !name.is_empty() && name.chars().all(is_of_name) && !name.starts_with('@')
}
