//! Room: accepting stops at a mark that leaves enough for a checkpoint, cancels and control, and resumes by itself.
//!
//! Looked at by the sequencer: the log's room each time round, the disk's and the memory's once a second, and when so much has
//! gone to the log that a second would be too long.  Articles are given back, readers and administrators go on, and a checkpoint is made, because it lets old segments of the
//! log be used again.  The stores are asked what may go by now, too, so that it goes without articles that come: now and then, and
//! at each look while there is no room.

use newsreel_host::said_octets;

use crate::checkpoint::Stage;
use crate::counters::Counters;
use crate::engine::Engine;
use crate::error::Error;
use crate::sequencer::Sequencer;
use crate::shared::Shared;

/// How often disk and memory are looked at, milliseconds.
const LOOK_EVERY_MS: u64 = 1000;

/// The stores are asked what may go by now at least this often, milliseconds.
const ASK_EVERY_MS: u64 = 60_000;

/// What goes to the log between two looks, octets.  What it makes the views grow by stays below the margin with it.
const LOOK_EVERY_OCTETS: u64 = 4 << 20;

/// Room of the log for state and groups, octets.
const CONTROL_OCTETS: u64 = 1 << 20;

/// Room of the disk beyond what can be computed, octets.
const MARGIN_OCTETS: u64 = 32 << 20;

/// Memory of the views beyond their limits at which nothing more is taken, whatever holds the checkpoint up; so much is
/// behind the last checkpoint at most, which `recover` counts on.
pub const MEMORY_TIMES_MAX: u64 = 4;

/// Segments that a log has soon: the one being written, and the next.
const SEGMENTS_AT_FIRST: u64 = 2;

/// What the spool's disk has and what must fit there, so that articles are taken.  The buffers are made already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskRoom {
    /// Octets that are free.
    pub free: u64,
    /// Octets of the first segments of the log that are not made yet.
    pub log: u64,
    /// Octets that stay free for checkpoints, the next segment and control.
    pub kept: u64,
}

impl DiskRoom {
    /// Octets that must be free.
    #[must_use]
    pub const fn needed(&self) -> u64 {
        self.log + self.kept
    }
}

impl Engine {
    /// Looks at the room of the spool's disk.
    pub fn disk_room(&self) -> Result<DiskRoom, Error> {
        let config = &self.shared.config;
        let disk = self.shared.disk.as_ref();
        let wanted = SEGMENTS_AT_FIRST * config.journal.segment_octets;
        let log = disk.list(&config.spool.join("log"))?;
        let made: u64 = log.iter().map(|entry| entry.len).sum();
        Ok(DiskRoom {
            free: disk.free_bytes(&config.spool)?,
            log: wanted.saturating_sub(made),
            kept: kept_octets(&self.shared),
        })
    }
}

/// What must be free of the disk, so that the next checkpoint and control have room.
fn kept_octets(shared: &Shared) -> u64 {
    let facts = shared.views.facts();
    let unsealed = facts.history.memory_bytes + facts.overview.memory_bytes;
    let commits = 2 * u64::from(shared.config.sequencer.commit_octets_max);
    shared.config.journal.segment_octets + 2 * unsealed + commits + MARGIN_OCTETS
}

/// What the sequencer knows of the room there is.
#[derive(Debug, Default)]
pub(crate) struct Room {
    next_look_ms: u64,
    /// What went to the log since the last look, octets.
    logged: u64,
    /// What disk and memory lacked at the last look.
    lacking: Option<String>,
    /// Nothing is taken.
    pub(crate) is_full: bool,
    /// When the stores were asked last what may go by now, and whether something did.
    asked_ms: u64,
    has_let_go: bool,
}

impl Room {
    /// So much goes to the log.
    pub(crate) const fn note(&mut self, octets: usize) {
        self.logged = self.logged.saturating_add(octets as u64);
    }

    /// The stores were asked what may go by now.
    pub(crate) const fn asked(&mut self, now_ms: u64, has_let_go: bool) {
        self.asked_ms = now_ms;
        self.has_let_go = has_let_go;
    }
}

impl Sequencer {
    /// Stops accepting when room runs out, and takes it up again when there is some.
    pub(crate) fn look_for_room(&mut self) {
        let now_ms = self.shared.now_ms();
        if self.room.next_look_ms <= now_ms || self.room.logged >= LOOK_EVERY_OCTETS {
            self.room.logged = 0;
            self.room.next_look_ms = now_ms + LOOK_EVERY_MS;
            self.room.lacking = self.lacking();
        }
        let why = match self.shared.journal.shortage(self.log_octets_kept()) {
            Some(why) => Some(format!("the log runs out of room: {why}")),
            None if self.room.lacking.is_some() => self.room.lacking.clone(),
            None if !self.room.is_full => return,
            None => None,
        };
        match (&why, self.room.is_full) {
            (Some(why), false) => {
                tracing::error!(why, "no room; articles are put off, readers go on");
                Counters::add(&self.shared.counters.full, 1);
                // It frees segments of the log.
                self.checkpoints.wanted = true;
            }
            (None, true) => {
                tracing::warn!("there is room again; articles are taken");
                self.retry_checkpoint_now();
            }
            _ => {}
        }
        self.room.is_full = why.is_some();
        self.shared.holds.lock().full = why;
    }

    /// Whether the stores are asked what may go by now, also if there is nothing to commit.  What they let go they do one by one, so
    /// that they are asked again soon.
    pub(crate) fn must_ask(&self) -> bool {
        let every_ms = match self.room.is_full || self.room.has_let_go {
            true => LOOK_EVERY_MS,
            false => ASK_EVERY_MS,
        };
        let since_ms = self.shared.now_ms().saturating_sub(self.room.asked_ms);
        since_ms >= every_ms && self.broken.is_none() && self.stopping.is_empty()
    }

    /// Room of the log for the commit under way, the open one, and control.
    fn log_octets_kept(&self) -> u64 {
        let record = self.shared.policy.load().articles.record_octets_max();
        let waiting = self.shared.pending.room(&self.shared.waiting_limits());
        let about_groups = self.shared.octets_about_groups();
        2 * (self.frame_octets_full as u64 + record)
            + waiting
            + about_groups as u64
            + CONTROL_OCTETS
    }

    /// What disk or memory lacks for the next checkpoint.
    fn lacking(&self) -> Option<String> {
        let facts = self.shared.views.facts();
        let limits = &self.shared.config.index;
        let times = match self.checkpoints.stage {
            Stage::Failed { .. } => 2,
            _ => MEMORY_TIMES_MAX,
        };
        if facts.history.memory_rows >= times * limits.history_rows_max
            || facts.overview.memory_bytes >= times * limits.tail_bytes_max
        {
            return Some(
                "checkpoints cannot keep up or fail, and the views fill memory".to_owned(),
            );
        }
        let config = &self.shared.config;
        let mut mark = kept_octets(&self.shared);
        if self.room.is_full {
            // Not to and fro at the mark.
            mark += mark / 4;
        }
        let free = self.shared.disk.free_bytes(&config.spool).ok()?;
        (free < mark).then(|| {
            format!(
                "the disk of {} has {} left, {} are kept for checkpoints and control; free some",
                config.spool.display(),
                said_octets(free),
                said_octets(mark)
            )
        })
    }
}
