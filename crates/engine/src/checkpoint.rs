//! Checkpoints: the views' memory parts go to sealed files, so that the log before can go.
//!
//! The sequencer freezes the views (cheap) and puts a state record into the log; once that record
//! is durable the checkpoint thread writes the frozen parts, sequentially, and switches the
//! manifest.  Between checkpoints the thread compacts sealed files, and rebuilds damaged ones, in small steps.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

use newsreel_index::Frozen;
use newsreel_store::CheckpointWrite;
use newsreel_wire::{BufferId, Position, Sequence};

use crate::emptied::Emptied;
use crate::mend::Mender;
use crate::shared::Shared;
use crate::vacating::Vacating;

/// A checkpoint as it goes to its thread.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) frozen: Frozen,
    /// Headers and bitmaps of the buffers.
    pub(crate) hints: Vec<Box<dyn CheckpointWrite>>,
    /// Retired buffers, and where they stood.
    pub(crate) draining: Vec<(BufferId, Position)>,
}

/// How a checkpoint came out.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) frozen: Frozen,
    pub(crate) error: Option<newsreel_index::Error>,
    /// Nothing is left in a retired buffer: it drains with the next commit.
    pub(crate) has_emptied: bool,
}

/// The sequencer's side: when the next one is due, and the one under way.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    pub(crate) tasks: SyncSender<Task>,
    /// Log written since the last one was begun.
    pub(crate) log_octets: u64,
    pub(crate) last_ms: u64,
    /// Somebody asked for one.
    pub(crate) wanted: bool,
    /// By then there is one with the groups that were changed: no buffer has what the log says of them.
    pub(crate) groups_by_ms: Option<u64>,
    /// The last one of this run has been begun.
    pub(crate) is_last: bool,
    pub(crate) stage: Stage,
}

/// Where a checkpoint stands.
#[derive(Debug)]
pub(crate) enum Stage {
    /// None is under way.
    Idle,
    /// Frozen; it goes to the thread when the state record is durable.
    Frozen { task: Box<Task>, state: Sequence },
    /// The thread writes it.
    Writing,
    /// Writing failed; it is tried again from this time on.
    Failed { task: Box<Task>, retry_ms: u64 },
}

/// How long the thread waits between steps of compaction, unless that is behind.
const STEP: Duration = Duration::from_millis(50);

/// ... and between steps of a rebuild, which everyone waits for who asks for what is damaged.
const MENDING: Duration = Duration::from_millis(1);

/// Runs until its queue is closed.
pub(crate) fn run(shared: &Arc<Shared>, tasks: &Receiver<Task>, mut written: impl FnMut(Written)) {
    let mut mender = Mender::new(Arc::clone(shared));
    let mut vacating = Vacating::new(Arc::clone(shared));
    let mut emptied = Emptied::new(Arc::clone(shared));
    let mut wait = STEP;
    loop {
        match tasks.recv_timeout(wait) {
            Ok(task) => {
                let has_emptied = emptied.look(&task.draining);
                written(Written {
                    has_emptied,
                    ..write(task)
                });
                wait = pace(shared);
            }
            Err(RecvTimeoutError::Timeout) if mender.step() => wait = MENDING,
            Err(RecvTimeoutError::Timeout) if shared.mail_again() => wait = STEP,
            Err(RecvTimeoutError::Timeout) => match shared.views.compact_step() {
                Ok(true) => wait = pace(shared),
                Ok(false) if vacating.step() => wait = STEP,
                Ok(false) => wait = STEP * 20,
                Err(error) => {
                    tracing::error!(%error, "compaction failed; it is tried again later");
                    wait = STEP * 200;
                }
            },
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// The rest before a step of compaction: none when more comes in than is merged.
fn pace(shared: &Shared) -> Duration {
    match shared.views.is_compaction_behind() {
        true => Duration::ZERO,
        false => STEP,
    }
}

fn write(mut task: Task) -> Written {
    for mut hint in task.hints {
        // Headers and bitmaps are hints for tools; a failure there must not hold up the views.
        if let Err(error) = hint.write() {
            tracing::warn!(%error, "a buffer's header could not be brought up to date");
        }
    }
    let error = task.frozen.write().err();
    Written {
        frozen: task.frozen,
        error,
        has_emptied: false,
    }
}
