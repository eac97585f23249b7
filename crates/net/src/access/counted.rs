//! What is counted and remembered of connections and logins, whatever the rules are.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use newsreel_host::Disk;

use super::answers::Answers;
use super::checks::{Checks, LOOKUPS_AT_ONCE, PROGRAMS_AT_ONCE, PROGRAMS_KEPT, checks_at_once};
use super::failures::Failures;
use super::known::Known;
use super::login::{Credentials, LoginConfig, Logins};
use super::places::Places;
use super::turns::Turns;
use crate::lines::LineLimit;

/// What outlives a change of the rules.
#[derive(Debug)]
pub struct Counted {
    pub(super) places: Arc<Places>,
    pub(super) failures: Arc<Failures>,
    pub(super) turns: Turns,
    pub(super) known: Known,
    pub(super) lookups: Checks,
    pub(super) checks: Checks,
    pub(super) programs: Checks,
    answers: Answers,
    pub(super) lines: Lines,
    pub(super) logins: Option<Arc<dyn Logins>>,
}

/// Lines of the log that logins cause, of each kind.
#[derive(Debug, Default)]
pub(super) struct Lines {
    pub(super) failed: LineLimit,
    pub(super) late: LineLimit,
    pub(super) unsaid: LineLimit,
}

impl Counted {
    /// Nothing counted yet; without `logins` nobody can log in.
    #[must_use]
    pub fn new(logins: Option<Arc<dyn Logins>>) -> Arc<Self> {
        Self::knowing(Known::default(), logins)
    }

    /// The same, with the networks where somebody has logged in as a file has them; they are written there again.
    #[must_use]
    pub fn remembering(logins: Arc<dyn Logins>, disk: Arc<dyn Disk>, path: PathBuf) -> Arc<Self> {
        Self::knowing(Known::of_file(disk, path), Some(logins))
    }

    fn knowing(known: Known, logins: Option<Arc<dyn Logins>>) -> Arc<Self> {
        Arc::new(Self {
            places: Arc::default(),
            failures: Arc::default(),
            turns: Turns::default(),
            known,
            lookups: Checks::new(LOOKUPS_AT_ONCE),
            checks: Checks::new(checks_at_once()),
            programs: Checks::keeping(PROGRAMS_AT_ONCE, PROGRAMS_KEPT),
            answers: Answers::default(),
            lines: Lines::default(),
            logins,
        })
    }

    /// Writes where somebody has logged in, if that is not written yet; at a stop, as else it is seldom done.  Blocks.
    pub fn remember(&self) {
        self.known.write();
    }

    /// Notes how long the program took for what somebody said.
    pub(super) fn note_answer(
        &self,
        login: &LoginConfig,
        said: &Credentials,
        took: (Duration, bool),
    ) {
        let before = || self.known.slowest(&login.program);
        if let Some(slowest) = self.answers.note(login, said, took, before) {
            self.known.note_slowest(&login.program, slowest);
        }
    }

    /// No failed login is answered sooner after the program was begun.
    pub(super) fn least(&self, login: &LoginConfig) -> Duration {
        let before = || self.known.slowest(&login.program);
        self.answers.least(login, before)
    }

    /// How long a login waits behind others, when many wait: the less, the sooner it is judged.
    pub(super) fn rank(&self, address: IpAddr, login: &LoginConfig, is_known: bool) -> u32 {
        let is_stranger = || !self.known.has_network(address);
        match is_known {
            true => 0,
            false => {
                let standing = self.failures.standing(address, login);
                standing.saturating_add(is_stranger().into())
            }
        }
    }
}
