//! Checkpoints: the views' memory parts go to sealed files, so that the log before can go.
//!
//! The sequencer freezes the views (cheap) and puts a state record into the log; once that record
//! is durable the checkpoint thread writes the frozen parts, sequentially, and switches the
//! manifest.  Between checkpoints the thread compacts sealed files in small steps.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

use newsreel_index::{Frozen, Views};
use newsreel_store::Checkpointer;
use newsreel_wire::Sequence;

use crate::error::Error;

/// A checkpoint as it goes to its thread.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) frozen: Frozen,
    /// The checkpoint covers everything up to here.
    pub(crate) upto: Sequence,
}

/// How a checkpoint came out.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) upto: Sequence,
    pub(crate) result: Result<Frozen, Error>,
}

/// The sequencer's side: when the next one is due, and the one under way.
#[derive(Debug)]
pub(crate) struct Checkpoints {
    pub(crate) tasks: SyncSender<Task>,
    /// Log written since the last one was begun.
    pub(crate) log_octets: u64,
    pub(crate) last_ms: u64,
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
}

/// How long the thread waits between steps of compaction.
const STEP: Duration = Duration::from_millis(50);

/// Runs until its queue is closed.
pub(crate) fn run(
    views: &Arc<Views>,
    store: &Checkpointer,
    tasks: &Receiver<Task>,
    mut written: impl FnMut(Written),
) {
    let mut wait = STEP;
    loop {
        match tasks.recv_timeout(wait) {
            Ok(task) => {
                let result = write(store, task.frozen);
                written(Written { upto: task.upto, result });
                wait = STEP;
            }
            Err(RecvTimeoutError::Timeout) => match views.compact_step() {
                Ok(true) => wait = STEP,
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

fn write(store: &Checkpointer, mut frozen: Frozen) -> Result<Frozen, Error> {
    // Headers and bitmaps are hints for tools; a failure there must not hold up the views.
    if let Err(error) = store.checkpoint() {
        tracing::warn!(%error, "buffer headers could not be brought up to date");
    }
    frozen.write()?;
    Ok(frozen)
}
