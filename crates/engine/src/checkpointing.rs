//! The sequencer's side of checkpoints: when one is due, its state record in the log, what comes back from the thread that writes it, and what
//! of the log may go then; and the end, which is the last checkpoint.

use std::sync::mpsc::SendError;

use newsreel_wire::Sequence;

use crate::checkpoint::{Stage, Task, Written};
use crate::config::Durability;
use crate::counters::Counters;
use crate::error::Error;
use crate::record::{StateRecord, kind};
use crate::sequencer::Sequencer;

/// A checkpoint that failed is tried again after this, milliseconds.
const RETRY_MS: u64 = 10_000;

/// Octets of what the engine says of its own state, the cancels that wait apart: some for each of many buffers.
const STATE_OCTETS: usize = 16 * 1024;

impl Sequencer {
    /// Begins a checkpoint when one is due, and the last one when the server stops.
    pub(crate) fn checkpoint_if_due(&mut self) {
        let now_ms = self.shared.now_ms();
        self.retry_checkpoint(now_ms);
        let config = &self.shared.config.sequencer;
        let checkpoints = &self.checkpoints;
        let moved = checkpoints.log_octets > 0;
        let old = now_ms.saturating_sub(checkpoints.last_ms) >= config.checkpoint_s_max * 1000;
        let stops = !self.stopping.is_empty() && !checkpoints.is_last;
        let due = checkpoints.wanted
            || checkpoints.log_octets >= config.checkpoint_log_octets
            || self.shared.views.checkpoint_due()
            || checkpoints.groups_by_ms.is_some_and(|by| now_ms >= by)
            || (moved && old)
            || stops;
        if !due || !matches!(checkpoints.stage, Stage::Idle) || self.broken.is_some() {
            return;
        }
        let about_groups = self.shared.octets_about_groups();
        let told = self.shared.pending.octets() + about_groups + STATE_OCTETS;
        if !self.open.frame.is_empty() && !self.fits(told) {
            // The next frame has room.
            return;
        }
        if let Err(error) = self.begin_checkpoint(stops) {
            tracing::error!(%error, "a checkpoint could not be begun");
        }
        self.checkpoints.log_octets = 0;
        self.checkpoints.last_ms = now_ms;
        self.checkpoints.wanted = false;
        self.checkpoints.groups_by_ms = None;
    }

    fn begin_checkpoint(&mut self, is_last: bool) -> Result<(), Error> {
        let frozen = self.applier.freeze(self.shared.committed())?;
        let state = self.next;
        self.write_state();
        self.write_time();
        if is_last {
            self.checkpoints.is_last = true;
            let _ = self.record(kind::STOPPED);
        }
        let mut hints = Vec::new();
        self.store.checkpoint(&mut hints);
        self.checkpoints.stage = Stage::Frozen {
            task: Box::new(Task {
                frozen,
                hints,
                draining: self.store.draining(),
            }),
            state,
        };
        Ok(())
    }

    /// Puts the engine's own state into the open commit.
    pub(crate) fn write_state(&mut self) {
        let mut marks = Vec::new();
        self.store.marks(&mut marks);
        let state = StateRecord {
            hash_key: self.shared.hash_key,
            is_volatile: self.shared.config.sequencer.durability == Durability::None,
            buffers: marks
                .iter()
                .map(|mark| (mark.buffer, mark.end, mark.reserved))
                .collect(),
        };
        state.encode(self.record(kind::STATE));
        self.write_pending();
        self.write_heeded();
        self.write_waiting();
        self.write_due();
    }

    /// Sends a frozen checkpoint to its thread once its state record is durable.
    pub(crate) fn checkpoint_after(&mut self, last: Sequence) {
        match std::mem::replace(&mut self.checkpoints.stage, Stage::Idle) {
            Stage::Frozen { task, state } if state <= last => self.send_checkpoint(*task),
            other => self.checkpoints.stage = other,
        }
    }

    fn send_checkpoint(&mut self, task: Task) {
        self.checkpoints.stage = Stage::Writing;
        if let Err(SendError(task)) = self.checkpoints.tasks.send(task) {
            tracing::error!("the checkpoint thread has ended");
            let (task, retry_ms) = (Box::new(task), u64::MAX);
            self.checkpoints.stage = Stage::Failed { task, retry_ms };
        }
    }

    fn retry_checkpoint(&mut self, now_ms: u64) {
        match std::mem::replace(&mut self.checkpoints.stage, Stage::Idle) {
            Stage::Failed { task, retry_ms } if retry_ms <= now_ms => self.send_checkpoint(*task),
            other => self.checkpoints.stage = other,
        }
    }

    /// What it failed for may be over, or there is no time left to wait.
    pub(crate) fn retry_checkpoint_now(&mut self) {
        if let Stage::Failed { retry_ms, .. } = &mut self.checkpoints.stage {
            *retry_ms = 0;
        }
    }

    /// A checkpoint came back: from now on the views read its files, and the log before may go.
    pub(crate) fn checkpoint_written(&mut self, written: Written) {
        let Written {
            frozen,
            error,
            has_emptied,
        } = written;
        self.checkpoints.stage = Stage::Idle;
        let is_over = self.checkpoints.is_last || self.broken.is_some();
        if has_emptied && self.open.frame.is_empty() && !is_over {
            // There may be no other commit for long.
            let _ = self.record(kind::HOLE);
        }
        if let Some(error) = error {
            tracing::error!(%error, "a checkpoint failed; the log is kept and it is tried again");
            let task = Box::new(Task {
                frozen,
                hints: Vec::new(),
                draining: Vec::new(),
            });
            let retry_ms = self.shared.now_ms() + RETRY_MS;
            self.checkpoints.stage = Stage::Failed { task, retry_ms };
            return;
        }
        let before = Sequence(frozen.sequence().0 + 1);
        if let Err(error) = self.shared.views.install(frozen) {
            tracing::error!(%error, "a written checkpoint could not be taken up");
            return;
        }
        Counters::add(&self.shared.counters.checkpoints, 1);
        self.shared.journal.retire_before(self.keep_from(before));
    }

    /// The log is kept for outgoing feeds up to its configured size, and what is beyond until the next checkpoint; where there are some, only
    /// what they have not read.
    fn keep_from(&self, checkpoint: Sequence) -> Sequence {
        let mut room = match self.room.is_full {
            true => 0,
            false => self.shared.config.sequencer.log_keep_octets,
        };
        let mut keep = checkpoint;
        for segment in self.shared.journal.segments().iter().rev() {
            if segment.first >= checkpoint {
                continue;
            }
            let Some(rest) = room.checked_sub(segment.octets) else {
                break;
            };
            if self
                .shared
                .feeds
                .needed_from()
                .is_some_and(|from| keep <= from)
            {
                break;
            }
            room = rest;
            keep = segment.first;
        }
        self.shared.feeds.let_go(keep, !self.room.is_full)
    }

    /// True when everything is done that had to be done before the end.
    pub(crate) fn has_stopped(&self) -> bool {
        if self.stopping.is_empty() || self.committing || !self.open.is_idle() {
            return false;
        }
        match self.checkpoints.stage {
            Stage::Idle => self.checkpoints.is_last || self.broken.is_some(),
            // The log has everything.
            Stage::Failed { .. } => {
                tracing::warn!(
                    "the last checkpoint could not be written: the next start replays the log"
                );
                true
            }
            // While the log is broken it waits for nothing that can come.
            Stage::Frozen { .. } => self.broken.is_some(),
            Stage::Writing => false,
        }
    }
}
