//! How long a `login.program` takes to answer, so that no failed login is answered sooner than the slowest one lately, whoever it
//! was of.
//!
//! A program may take longer for names that it knows.  Until it has refused a name that it let in from the same network as well, which is
//! somebody who erred, nothing is known of that, and a failed login is answered when the program's time is over.  From then on the slowest
//! answer is what counts, with half of it on top, for half a day at least, and until somebody has erred again.  Who guesses from elsewhere
//! does not bring that about: else it would tell them that they had guessed a name.  What was known before a restart counts in the same way
//! behind it.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::time::Duration;

use newsreel_wire::network_of;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::failures::PAUSE_MAX;
use super::login::{Credentials, LoginConfig};

/// Names, each with a network, that a program let in or refused which are remembered; beyond it all are forgotten.
const NAMES_MAX: usize = 1_000;

/// So long a slowest answer is the slowest of its time.
const TIME: Duration = Duration::from_secs(12 * 3600);

/// Answers come at whole ones of these.
const STEP: Duration = Duration::from_secs(1);

/// The slowest answers of a program.
#[derive(Debug, Default)]
pub(super) struct Answers(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    program: String,
    of: Option<Times>,
}

#[derive(Debug)]
struct Times {
    hasher: RandomState,
    let_in: HashSet<u64>,
    refused: HashSet<u64>,
    /// The slowest of the time before.
    before: Option<Duration>,
    now: Duration,
    /// Whether somebody erred in the time that is.
    is_told: bool,
    since: Instant,
}

fn remember(names: &mut HashSet<u64>, name: u64) {
    if names.len() >= NAMES_MAX {
        names.clear();
    }
    names.insert(name);
}

impl Times {
    fn new(before: Option<Duration>) -> Self {
        Self {
            hasher: RandomState::new(),
            let_in: HashSet::new(),
            refused: HashSet::new(),
            before,
            now: Duration::ZERO,
            is_told: false,
            since: Instant::now(),
        }
    }

    fn note(&mut self, (name, address): (&str, IpAddr), took: Duration, is_right: bool) {
        if self.is_told && self.since.elapsed() >= TIME {
            self.before = Some(self.now);
            (self.now, self.is_told, self.since) = (Duration::ZERO, false, Instant::now());
        }
        self.now = self.now.max(took);
        let name = self.hasher.hash_one((name, network_of(address)));
        let (own, other) = match is_right {
            true => (&mut self.let_in, &self.refused),
            false => (&mut self.refused, &self.let_in),
        };
        self.is_told |= other.contains(&name);
        remember(own, name);
    }

    /// The slowest lately, once it is known.
    fn slowest(&self) -> Option<Duration> {
        match self.before {
            None => self.is_told.then_some(self.now),
            Some(before) => Some(before.max(self.now)),
        }
    }
}

impl Answers {
    /// Notes how long a program took for what somebody said; the slowest of it lately, once that is known.  `before` is what was known of
    /// this program before the start.
    pub(super) fn note(
        &self,
        login: &LoginConfig,
        said: &Credentials,
        (took, is_right): (Duration, bool),
        before: impl FnOnce() -> Option<Duration>,
    ) -> Option<Duration> {
        let mut seen = self.0.lock();
        if seen.program != login.program {
            *seen = Seen {
                program: login.program.clone(),
                of: None,
            };
        }
        let times = seen.of.get_or_insert_with(|| Times::new(before()));
        times.note((&said.name, said.address), took, is_right);
        times.slowest()
    }

    /// No failed login is answered sooner after the program was begun.
    pub(super) fn least(
        &self,
        login: &LoginConfig,
        before: impl FnOnce() -> Option<Duration>,
    ) -> Duration {
        let most = Duration::from_secs(login.program_s_max).min(PAUSE_MAX);
        let seen = self.0.lock();
        let times = seen.of.as_ref().filter(|_| seen.program == login.program);
        match times.map_or_else(before, Times::slowest) {
            None => most,
            Some(slowest) => {
                let with_half = slowest + slowest / 2;
                let steps = with_half.as_nanos().div_ceil(STEP.as_nanos()).max(1);
                STEP.saturating_mul(u32::try_from(steps).unwrap_or(u32::MAX))
                    .min(most)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: [u8; 4] = [192, 0, 2, 1];

    fn said(name: &str, address: [u8; 4]) -> Credentials {
        Credentials {
            name: name.to_owned(),
            password: String::new(),
            address: address.into(),
        }
    }

    /// Each typing error waited for ten seconds where a program knows the users, however fast it was.
    #[tokio::test(start_paused = true)]
    async fn a_failed_login_waits_for_the_slowest_answer_and_no_longer() {
        let answers = Answers::default();
        let mut login = LoginConfig {
            program: "/bin/a".to_owned(),
            ..LoginConfig::default()
        };
        let least = |login: &LoginConfig| answers.least(login, || None).as_secs_f32();
        let note = |login: &LoginConfig, name: &str, ms, is_right| {
            let took = (Duration::from_millis(ms), is_right);
            answers.note(login, &said(name, HERE), took, || None)
        };
        assert_eq!(least(&login), 10.0);
        // Of names that it may not know nothing is learned.
        for n in 0..100 {
            note(&login, &format!("nobody{n}"), 20, false);
            note(&login, &format!("user{n}"), 30, true);
        }
        let guess = said("user3", [198, 51, 100, 1]);
        answers.note(&login, &guess, (Duration::ZERO, false), || None);
        assert_eq!(
            least(&login),
            10.0,
            "who guesses a name is not told that it is one"
        );
        note(&login, "user3", 40, false);
        assert_eq!(least(&login), 1.0);
        // Whoever it was of: the slowest counts, and no more than the program has.
        note(&login, "nobody1", 1_900, false);
        assert_eq!(least(&login), 3.0);
        note(&login, "user1", 9_000, true);
        assert_eq!(least(&login), 10.0);
        // Another program is another one.
        login.program.push('2');
        assert_eq!(least(&login), 10.0);
        // Who errs first and is right then has told as much.
        note(&login, "ada", 500, false);
        note(&login, "ada", 100, true);
        assert_eq!(least(&login), 1.0);
        login.program_s_max = 60;
        note(&login, "eve", 30_000, false);
        assert_eq!(least(&login), PAUSE_MAX.as_secs_f32());
    }

    /// One slow answer would have made each typing error wait for as long as the server ran; and were it just forgotten, a night in
    /// which nobody erred would have told the first name that is asked for then.
    #[tokio::test(start_paused = true)]
    async fn a_slow_answer_is_forgotten_after_faster_ones_of_names_that_are_known() {
        let answers = Answers::default();
        let login = LoginConfig {
            program: "/bin/a".to_owned(),
            ..LoginConfig::default()
        };
        let note = |name: &str, ms, is_right| {
            let took = (Duration::from_millis(ms), is_right);
            answers.note(&login, &said(name, HERE), took, || None)
        };
        note("ada", 100, true);
        note("ada", 3_000, false);
        let mut seen = Vec::new();
        for name in ["nobody", "nobody", "ada", "nobody", "ada", "nobody"] {
            tokio::time::advance(TIME).await;
            note(name, 100, false);
            seen.push(answers.least(&login, || None).as_secs());
        }
        assert_eq!(seen, [5, 5, 5, 1, 1, 1]);
    }

    /// After each start a typing error waited for as long as the program may take.
    #[tokio::test(start_paused = true)]
    async fn what_was_known_before_a_start_counts() {
        let login = LoginConfig {
            program: "/bin/a".to_owned(),
            ..LoginConfig::default()
        };
        let answers = Answers::default();
        let before = || Some(Duration::from_millis(1_900));
        let note = |name: &str, ms, is_right| {
            let took = (Duration::from_millis(ms), is_right);
            answers.note(&login, &said(name, HERE), took, before)
        };
        assert_eq!(answers.least(&login, before).as_secs(), 3);
        assert_eq!(note("nobody", 100, false), before());
        assert_eq!(answers.least(&login, || None).as_secs(), 3);
        let slower = Some(Duration::from_millis(3_000));
        assert_eq!(note("ada", 3_000, true), slower);
        assert_eq!(answers.least(&login, || None).as_secs(), 5);
    }

    #[test]
    fn names_are_bounded() {
        let mut times = Times::new(None);
        for n in 0..3 * NAMES_MAX {
            times.note((&n.to_string(), HERE.into()), STEP, n % 2 == 0);
        }
        assert!(times.let_in.len() <= NAMES_MAX && times.refused.len() <= NAMES_MAX);
    }
}
