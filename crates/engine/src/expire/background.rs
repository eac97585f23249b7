//! Expiry in the background: one thread that makes a pass whenever one is due, at a limited rate, until it is told to stop.
//!
//! Nothing of where it is is kept: a pass over what is too young costs a piece of each group, but the first one of a day or of a run of the
//! server, and after a start it begins somewhere else than last time, so that no group waits for ever on a server that is restarted often.

use std::sync::mpsc::Receiver;
use std::time::Duration;

use newsreel_wire::UnixTime;
use parking_lot::Mutex;

use super::pass::{Expirer, Pass};
use super::report::ExpiryStatus;
use crate::error::Error;
use crate::pace::{LOOK, Pace, rest};
use crate::shared::Shared;

/// After a failure it is tried again behind this.
const AGAIN: Duration = Duration::from_secs(60);

/// The first pass that begins on a day walks through all, and the first one of a run: that may end before the next day.
const DAY_S: u64 = 86_400;

/// What passes share.
#[derive(Debug, Default)]
pub(crate) struct Expiry {
    state: Mutex<Expiring>,
    /// Held by who lets articles go, and by who says that some have moved.
    pub(crate) one: Mutex<()>,
}

/// What is known of passes in the background.
#[derive(Debug, Default)]
struct Expiring {
    began: Option<UnixTime>,
    groups: (u64, u64),
    last_ended: Option<UnixTime>,
    /// When the last one began that walked through all, to its end.
    walked_all: Option<UnixTime>,
    last_articles: u64,
    held: Option<String>,
}

impl Shared {
    /// Why nothing may expire now.
    pub(super) fn expiry_held(&self) -> Option<String> {
        if self.time.judging().is_none() {
            return Some("the clock jumped, see `newsreel clock`".to_owned());
        }
        let most = self.config.expiry.withdrawn_max;
        let there = self.views.overview().withdrawn_len() as u64;
        (there >= most).then(|| {
            format!(
                "{there} articles that went lie behind older ones that stay, no more than expiry.withdrawn_max = {most} \
                 may: give more of it, or let the older ones go"
            )
        })
    }

    /// How expiry in the background stands.
    pub(crate) fn expiry_status(&self) -> ExpiryStatus {
        let rules = self.policy.load().expire.len() as u64;
        let state = self.expiry.state.lock();
        ExpiryStatus {
            rules,
            rows_per_s: self.config.expiry.rows_per_s,
            began: state.began.map(|began| began.0),
            groups: state.began.map(|_| state.groups),
            last_ended: state.last_ended.map(|ended| ended.0),
            last_articles: state.last_ended.map(|_| state.last_articles),
            held: state.held.clone(),
        }
    }
}

/// The thread's own.
struct Background<'a> {
    shared: &'a Shared,
    stop: &'a Receiver<()>,
    rows: Pace,
    articles: Pace,
}

/// Makes passes until it is told to stop.
pub(crate) fn run(shared: &Shared, stop: &Receiver<()>) {
    let config = &shared.config.expiry;
    let mut background = Background {
        shared,
        stop,
        rows: Pace::new(config.rows_per_s),
        articles: Pace::new(config.articles_per_s),
    };
    let every = Duration::from_secs(config.every_s);
    let mut next = shared.clock.monotonic();
    while background.rest(LOOK) {
        let now = shared.clock.monotonic();
        if now < next || shared.policy.load().expire.is_empty() {
            continue;
        }
        match background.pass() {
            Ok(true) => next = now.saturating_add(every),
            Ok(false) | Err(Error::Stopping) => return,
            Err(error) => {
                tracing::error!(%error, "expiry stopped; it is tried again");
                next = shared.clock.monotonic().saturating_add(AGAIN);
            }
        }
        shared.expiry.state.lock().began = None;
    }
}

impl Background<'_> {
    /// One pass; `false`: it is time to stop.
    fn pass(&mut self) -> Result<bool, Error> {
        let shared = self.shared;
        if self.is_held() {
            return Ok(true);
        }
        let groups = shared.views.groups().sorted();
        let now = shared.time.calendar();
        let mut pass = Pass::new(shared, now, (false, false));
        {
            let mut state = shared.expiry.state.lock();
            let day = |at: UnixTime| at.0 / DAY_S;
            pass.walks_all = state.walked_all.is_none_or(|last| day(last) != day(now));
            (state.began, state.groups) = (Some(now), (0, groups.len() as u64));
        }
        let first = usize::try_from(now.0).unwrap_or(0) % groups.len().max(1);
        let (before, behind) = groups.split_at(first);
        for id in behind.iter().chain(before) {
            if !pass.group(*id, self)? {
                return Ok(false);
            }
            shared.expiry.state.lock().groups.0 += 1;
        }
        let gone_on = pass.finish(self)? && pass.ungrouped(self)?;
        for why in &pass.report.unreadable {
            tracing::warn!("expiry passed over a group: {why}");
        }
        let mut state = shared.expiry.state.lock();
        state.last_ended = Some(shared.time.calendar());
        state.last_articles = pass.report.articles;
        if pass.walks_all && gone_on {
            state.walked_all = Some(now);
        }
        Ok(gone_on)
    }

    /// Whether nothing may expire now; that is told when it begins.
    fn is_held(&self) -> bool {
        let held = self.shared.expiry_held();
        let mut state = self.shared.expiry.state.lock();
        if let (Some(why), None) = (&held, &state.held) {
            tracing::warn!("nothing expires: {why}");
        }
        state.held = held;
        state.held.is_some()
    }

    /// Waits; `false` when it is time to stop.
    fn rest(&self, pause: Duration) -> bool {
        rest(self.shared.clock.as_ref(), self.stop, pause)
    }
}

impl Expirer for Background<'_> {
    fn worked(&mut self, rows: u64, articles: u64) -> bool {
        let now = self.shared.clock.monotonic();
        let by_rows = self.rows.pause(rows, now);
        let pause = by_rows.max(self.articles.pause(articles, now));
        self.rest(pause)
    }
}
