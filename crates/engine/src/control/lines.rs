//! Lines of the log about control messages, and of filters: whoever sends articles causes them, so each kind has its limit.

use newsreel_host::LineLimit;

use crate::shared::Shared;

/// A limit for each kind of line.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    pub(super) malformed: LineLimit,
    pub(super) not_signed: LineLimit,
    pub(super) not_verified: LineLimit,
    pub(super) waits: LineLimit,
    pub(super) not_listed: LineLimit,
    pub(super) not_mailed: LineLimit,
    /// What was heeded and changed something.
    pub(super) changes: LineLimit,
    /// What was heeded and had nothing to change.
    pub(super) heeded: LineLimit,
    pub(super) not_done: LineLimit,
    pub(super) notice_malformed: LineLimit,
    pub(super) notice_not_signed: LineLimit,
    pub(super) notice_not_heeded: LineLimit,
    /// Of filters.
    pub(crate) no_set_of_class: LineLimit,
}

impl Shared {
    /// Whether a line of this kind may be written now, and if so, how many were left out before it.
    pub(crate) fn may_say(&self, kind: impl Fn(&Lines) -> &LineLimit) -> Option<u64> {
        kind(&self.lines).admit_at(self.clock.monotonic())
    }
}
