//! What goes wrong, and when: faults addressed by operation, path and occurrence, a stop, and counters.
//!
//! Occurrences count from the moment a fault is added.  The counters let a test learn how many syncs a run makes and
//! then stop at each of them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use parking_lot::Mutex;

use crate::error::{Error, Op};

/// What a fault does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effect {
    /// The medium fails (EIO).  A sync that fails so leaves its pages clean and their data lost.
    Medium,
    /// No space left (ENOSPC).
    Full,
    /// Who runs the program may not (EACCES).
    Denied,
    /// Of a write only the first so many 512-octet sectors are done; then an error, or silence.
    Torn {
        /// How many sectors are written.
        sectors: usize,
        /// Whether the caller is told that all is well.
        silent: bool,
    },
    /// One bit is inverted, in what a read that covers it returns or in what a write that covers it leaves.
    FlipBit {
        /// Where in the file.
        offset: u64,
        /// Which bit of that octet.
        bit: u8,
    },
    /// Nothing is in memory: reads from the cache would have to wait.
    Cold,
    /// The operation takes so much longer.
    Slow(Duration),
    /// The machine stops before the operation: it and everything after fails as stopped.
    Stop,
}

/// One line of the script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    op: Op,
    path_part: String,
    nth: u64,
    times: u64,
    covering: Option<u64>,
    effect: Effect,
    seen: u64,
}

impl Fault {
    /// From now on the first `op` on a path that contains `path_part`.
    #[must_use]
    pub fn new(op: Op, path_part: &str, effect: Effect) -> Self {
        Self {
            op,
            path_part: path_part.to_owned(),
            nth: 1,
            times: 1,
            covering: None,
            effect,
            seen: 0,
        }
    }

    /// The `nth` such operation instead of the first, counted from 1.
    #[must_use]
    pub const fn nth(mut self, nth: u64) -> Self {
        self.nth = nth;
        self
    }

    /// So many of them in a row.
    #[must_use]
    pub const fn times(mut self, times: u64) -> Self {
        self.times = times;
        self
    }

    /// All of them from then on.
    #[must_use]
    pub const fn forever(self) -> Self {
        self.times(u64::MAX)
    }

    /// Only those whose range covers this octet of the file: a bad sector.
    #[must_use]
    pub const fn covering(mut self, offset: u64) -> Self {
        self.covering = Some(offset);
        self
    }

    /// Counts an operation and says whether the fault strikes it.
    fn strikes(&mut self, call: &Call<'_>) -> bool {
        let offset = match self.effect {
            Effect::FlipBit { offset, .. } => Some(offset),
            _ => self.covering,
        };
        let covered = offset.is_none_or(|offset| call.covers(offset));
        if self.op != call.op || !covered || !call.path_contains(&self.path_part) {
            return false;
        }
        self.seen += 1;
        self.seen >= self.nth && self.seen - self.nth < self.times
    }
}

/// One operation as the script sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) op: Op,
    pub(super) path: &'a Path,
    /// Whether it changes what a restart would find.
    pub(super) changes: bool,
    /// The range of a read or write.
    pub(super) offset: u64,
    pub(super) len: u64,
}

impl<'a> Call<'a> {
    pub(super) const fn new(op: Op, path: &'a Path) -> Self {
        Self {
            op,
            path,
            changes: op.changes(),
            offset: 0,
            len: 0,
        }
    }

    pub(super) const fn range(mut self, offset: u64, len: u64) -> Self {
        self.offset = offset;
        self.len = len;
        self
    }

    const fn covers(&self, offset: u64) -> bool {
        offset >= self.offset && offset - self.offset < self.len
    }

    fn path_contains(&self, part: &str) -> bool {
        self.path.to_string_lossy().contains(part)
    }
}

/// How often what was tried, since the disk was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpCounts {
    by_op: [u64; Op::ALL.len()],
    changes: u64,
    syncs: u64,
}

impl OpCounts {
    /// Operations of one kind.
    #[must_use]
    pub fn of(&self, op: Op) -> u64 {
        self.by_op.get(op as usize).copied().unwrap_or(0)
    }

    /// Operations that change what a restart would find, syncs included.
    #[must_use]
    pub const fn changes(&self) -> u64 {
        self.changes
    }

    /// Syncs of files and directories.
    #[must_use]
    pub const fn syncs(&self) -> u64 {
        self.syncs
    }
}

/// Sums for each path.
#[derive(Debug, Default)]
struct Sums(BTreeMap<PathBuf, u64>);

impl Sums {
    fn add(&mut self, path: &Path, more: u64) {
        match self.0.get_mut(path) {
            Some(sum) => *sum += more,
            None => {
                self.0.insert(path.to_path_buf(), more);
            }
        }
    }

    fn of(&self, path_part: &str) -> u64 {
        let counts = self.0.iter();
        counts
            .filter(|(path, _)| path.to_string_lossy().contains(path_part))
            .map(|(_, sum)| sum)
            .sum()
    }
}

#[derive(Debug, Default)]
struct State {
    faults: Vec<Fault>,
    counts: OpCounts,
    /// Octets written to each path.
    written: Sums,
    /// Where the last write to each path ended, and how many did not begin there.
    ends: BTreeMap<PathBuf, u64>,
    apart: Sums,
    /// Octets asked for from each path.
    read: Sums,
    /// Syncs of each path that failed.
    failed_syncs: BTreeMap<PathBuf, u64>,
    stop_at_change: Option<u64>,
    stop_at_sync: Option<u64>,
    stopped: bool,
}

/// The script of a faulty disk and its counters.
#[derive(Debug, Default)]
pub(super) struct Script(Mutex<State>);

impl Script {
    pub(super) fn add(&self, fault: Fault) {
        self.0.lock().faults.push(fault);
    }

    pub(super) fn clear(&self) {
        let mut state = self.0.lock();
        state.faults.clear();
        (state.stop_at_change, state.stop_at_sync, state.stopped) = (None, None, false);
    }

    pub(super) fn stop_at_change(&self, nth: u64) {
        self.0.lock().stop_at_change = Some(nth);
    }

    pub(super) fn stop_at_sync(&self, nth: u64) {
        self.0.lock().stop_at_sync = Some(nth);
    }

    pub(super) fn stop(&self) {
        self.0.lock().stopped = true;
    }

    pub(super) fn stopped(&self) -> bool {
        self.0.lock().stopped
    }

    pub(super) fn counts(&self) -> OpCounts {
        self.0.lock().counts
    }

    /// A sync of this path failed; how many did so far.
    pub(super) fn fail_sync(&self, path: &Path) -> u64 {
        let mut state = self.0.lock();
        let failed = state.failed_syncs.entry(path.to_path_buf()).or_default();
        *failed += 1;
        *failed
    }

    /// How many syncs of this path failed so far.
    pub(super) fn failed_syncs(&self, path: &Path) -> u64 {
        self.0.lock().failed_syncs.get(path).copied().unwrap_or(0)
    }

    pub(super) fn octets_written(&self, path_part: &str) -> u64 {
        self.0.lock().written.of(path_part)
    }

    pub(super) fn writes_apart(&self, path_part: &str) -> u64 {
        self.0.lock().apart.of(path_part)
    }

    pub(super) fn octets_read(&self, path_part: &str) -> u64 {
        self.0.lock().read.of(path_part)
    }

    /// Counts the operation and says what strikes it, if anything.
    pub(super) fn strike(&self, call: &Call<'_>) -> Result<Option<Effect>, Error> {
        let mut state = self.0.lock();
        let counts = &mut state.counts;
        if let Some(count) = counts.by_op.get_mut(call.op as usize) {
            *count += 1;
        }
        counts.changes += u64::from(call.changes);
        match call.op {
            Op::Write => {
                state.written.add(call.path, call.len);
                let end = state
                    .ends
                    .insert(call.path.to_path_buf(), call.offset + call.len);
                let is_apart = end.is_some_and(|end| end != call.offset);
                state.apart.add(call.path, u64::from(is_apart));
            }
            Op::Read => state.read.add(call.path, call.len),
            _ => {}
        }
        let counts = &mut state.counts;
        let is_sync = matches!(call.op, Op::Sync | Op::SyncDir);
        counts.syncs += u64::from(is_sync);
        let at_change = call.changes && state.stop_at_change == Some(state.counts.changes);
        let at_sync = is_sync && state.stop_at_sync == Some(state.counts.syncs);
        let mut effect = None;
        for fault in &mut state.faults {
            if fault.strikes(call) && effect.is_none() {
                effect = Some(fault.effect);
            }
        }
        state.stopped |= at_change || at_sync || effect == Some(Effect::Stop);
        if state.stopped {
            return Err(Error::Stopped {
                op: call.op,
                path: call.path.to_path_buf(),
            });
        }
        Ok(effect)
    }
}
