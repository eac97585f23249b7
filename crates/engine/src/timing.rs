//! The sequencer's eye on the clock: an alarm when the calendar jumps, and records of what time it is.
//!
//! The views forget by the records only, so that a replay forgets the same.  While the time is not known none is
//! written, and nothing is forgotten.

use newsreel_wire::UnixTime;

use crate::record::kind;
use crate::sequencer::Sequencer;
use crate::timekeeper;

/// How often the calendar is compared, milliseconds.
const LOOK_EVERY_MS: u64 = 1000;

/// The log is told the time at least this often, also when nothing happens.
const TELL_EVERY_MS: u64 = 3_600_000;

/// When to look and to tell again.
#[derive(Debug, Default)]
pub(crate) struct Timing {
    next_look_ms: u64,
    next_tell_ms: u64,
    /// The jump was told of.
    is_alarmed: bool,
}

impl Timing {
    /// Of a run at whose start a jump was told of, or there was none.
    pub(crate) fn starting(has_jumped: bool) -> Self {
        Self {
            is_alarmed: has_jumped,
            ..Self::default()
        }
    }
}

impl Sequencer {
    /// Follows the calendar in small steps; raises the alarm when it makes a large one.
    pub(crate) fn keep_time(&mut self) {
        let now_ms = self.shared.now_ms();
        if now_ms < self.timing.next_look_ms && !self.timing.is_alarmed {
            return;
        }
        self.timing.next_look_ms = now_ms + LOOK_EVERY_MS;
        match self.shared.time.jump_s() {
            Some(jump_s) => {
                if !std::mem::replace(&mut self.timing.is_alarmed, true) {
                    tracing::error!("{}", timekeeper::describe(jump_s));
                }
            }
            None => {
                if std::mem::take(&mut self.timing.is_alarmed) {
                    tracing::warn!("the clock is as expected again");
                }
                self.shared.time.trust();
                if self.timing.next_tell_ms <= now_ms && self.broken.is_none() {
                    self.write_time();
                }
            }
        }
    }

    /// Somebody said that the calendar is right.
    pub(crate) fn trust_clock(&mut self) {
        let had_jumped = self.shared.time.jump_s().is_some();
        self.shared.time.trust();
        if had_jumped {
            tracing::warn!("the clock was confirmed");
        }
        self.timing.is_alarmed = false;
        self.write_time();
    }

    /// Puts the time into the open commit, if it is known.
    pub(crate) fn write_time(&mut self) {
        if let Some(UnixTime(now)) = self.shared.time.judging() {
            self.record(kind::TIME)
                .extend_from_slice(&now.to_le_bytes());
            self.timing.next_tell_ms = self.shared.now_ms() + TELL_EVERY_MS;
        }
    }
}
