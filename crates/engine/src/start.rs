//! The sequencer as it begins: its groups from the views, its first records in the open commit.
//!
//! What the first commit of a run must say (the hash key, a jump of all numbers, where the buffers stand) is said again
//! when that commit fails.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

use newsreel_journal::Recovered;
use newsreel_store::{BatchWrite, Store};
use newsreel_wire::{Sequence, UnixTime};
use parking_lot::Mutex;

use crate::applier::Applier;
use crate::checkpoint::{self, Checkpoints, Stage};
use crate::commit::{self, Commit, Committer};
use crate::config::Mode;
use crate::control::touched::Touched;
use crate::filing::{Filing, GroupSlot, GroupTable};
use crate::record::kind;
use crate::recover::Passed;
use crate::room::Room;
use crate::sequencer::{Lone, Scratch, Sequencer, SyncState};
use crate::shared::Shared;
use crate::timing::Timing;

/// What the sequencer's thread takes over.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) store: Store,
    pub(crate) applier: Applier,
    pub(crate) recovered: Recovered,
    pub(crate) is_new: bool,
    /// What the first commit writes besides.
    pub(crate) writes: Vec<Box<dyn BatchWrite>>,
    pub(crate) passed: Passed,
}

/// What the first commit says besides the state.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Prologue {
    is_new: bool,
    jump: u64,
}

/// What the sequencer writes with.
pub(crate) struct Writing {
    pub(crate) jobs: SyncSender<commit::Job>,
    pub(crate) committer: Arc<Mutex<Committer>>,
    pub(crate) frame_octets_max: u64,
}

/// The sequencer, ready to run.
pub(crate) fn sequencer(
    shared: &Arc<Shared>,
    parts: Parts,
    writing: Writing,
    tasks: SyncSender<checkpoint::Task>,
) -> Sequencer {
    let Parts {
        mut store,
        applier,
        recovered: Recovered { next, epoch, .. },
        is_new,
        writes,
        passed: passed @ Passed { jump, .. },
    } = parts;
    // What was acknowledged and lost may have been seen: nothing of it is used again.
    let next = Sequence(next.0 + jump + passed.unfinished);
    let now_ms = shared.now_ms();
    store.began(UnixTime(now_ms / 1000));
    let frame_octets_max = usize::try_from(writing.frame_octets_max).unwrap_or(usize::MAX);
    let commit_octets_max = shared.config.sequencer.commit_octets_max as usize;
    let mut sequencer = Sequencer {
        shared: Arc::clone(shared),
        store,
        groups: group_table(shared, jump),
        epoch,
        next,
        jobs: writing.jobs,
        committer: writing.committer,
        lone: Lone::default(),
        ended_here: None,
        checkpoints: Checkpoints {
            tasks,
            // What was replayed waits for one as what is written does; what made it jump need not be met again.
            log_octets: u64::from(passed.has_news),
            last_ms: now_ms,
            wanted: jump > 0,
            groups_by_ms: None,
            is_last: false,
            stage: Stage::Idle,
        },
        applier,
        open: Box::<Commit>::default(),
        spare: None,
        committing: false,
        broken: None,
        abort_again: None,
        in_vain: Vec::new(),
        sync: SyncState {
            durable_before: next,
            last_ms: now_ms,
            is_due: true,
            is_at_rest: true,
        },
        room: Room::default(),
        timing: Timing::starting(shared.time.jump_s().is_some()),
        prologue: Some(Prologue { is_new, jump }),
        frame_octets_full: (frame_octets_max / 2).min(commit_octets_max.max(1 << 20)),
        frame_octets_max,
        scratch: Scratch::default(),
        stopping: Vec::new(),
        unsettled: HashMap::new(),
        touched: Touched::default(),
        moving: None,
        moves: 0,
    };
    sequencer.open.frame.start(next, epoch);
    sequencer.open.writes = writes;
    sequencer.write_prologue();
    sequencer
}

impl Sequencer {
    /// Puts into the open commit what the first one of a run says, unless one has said it.
    pub(crate) fn write_prologue(&mut self) {
        let Some(Prologue { is_new, jump }) = self.prologue else {
            return;
        };
        if is_new {
            let key = self.shared.hash_key;
            self.record(kind::SPOOL_MADE).extend_from_slice(&key);
        }
        if jump > 0 {
            let by = jump.to_le_bytes();
            self.record(kind::JUMPED).extend_from_slice(&by);
        }
        self.write_state();
        self.write_time();
    }
}

/// The groups as the views have them; their next numbers are `jump` higher.
pub(crate) fn group_table(shared: &Shared, jump: u64) -> GroupTable {
    let mut table = GroupTable::new(shared.config.sequencer.number_overflow);
    if shared.config.sequencer.mode == Mode::Transit {
        return table;
    }
    let groups = shared.views.groups();
    let mut after: Option<String> = None;
    loop {
        let mut last = None;
        let more = groups.list(after.as_deref(), "", 1024, |group| {
            last = Some(group.name().to_owned());
            let filing = match group.status() {
                "j" | "x" => Filing::Nowhere,
                status => match status.strip_prefix('=') {
                    Some(target) => groups
                        .by_name(target)
                        .map_or(Filing::Nowhere, |g| Filing::Alias(g.id())),
                    None => Filing::Here,
                },
            };
            let next = groups.high(group.id()).0 + jump + 1;
            table.set(
                group.id(),
                GroupSlot {
                    next,
                    name: group.name().into(),
                    filing,
                },
            );
        });
        if !more || last.is_none() {
            break;
        }
        after = last;
    }
    table.skip_ids(groups.next_id());
    table
}
