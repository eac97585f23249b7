//! What the log says about the engine itself, gathered while it is replayed: the key, where the buffers stand, what was
//! placed and withdrawn behind the checkpoint, and under which durability.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use newsreel_host::Disk;
use newsreel_index::Views;
use newsreel_journal::{Record, SpoolId};
use newsreel_store::methods::end_of;
use newsreel_store::{Left, Marks, STARTS_MAX};
use newsreel_wire::{BufferId, Position, Sequence, Token};

use crate::control::heeded;
use crate::error::Error;
use crate::record::{
    ArticleRecord, CopyRecord, DueRecord, HeededRecord, MovedRecord, PendingRecord, ReservedRecord,
    StateRecord, WaitingRecord, WithdrawnRecord, decode_forgotten, decode_spool_made, kind,
};
use crate::recover::whole_log;

/// Whether records of this kind change articles or groups, beside those that place one: others tell of the engine itself, or are said again at each checkpoint.
const fn is_news(kind: u8) -> bool {
    matches!(
        kind,
        kind::MOVED
            | kind::REPACKED
            | kind::WITHDRAWN
            | kind::LEFT
            | kind::GROUP_MADE
            | kind::GROUP_CHANGED
            | kind::GROUP_REMOVED
    )
}

/// What the log says about the engine itself.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    pub(crate) hash_key: Option<[u8; 32]>,
    pub(crate) marks: BTreeMap<BufferId, (Position, Position)>,
    /// Where the last article of each buffer begins by the views; its record says where it ends.
    known: BTreeMap<BufferId, Position>,
    /// The articles behind the checkpoint, for the tools of the buffers, and those withdrawn there.
    pub(crate) placed: Vec<Token>,
    pub(crate) withdrawn: Vec<Token>,
    /// Cancels that came before their targets.
    pub(crate) pending: Vec<PendingRecord>,
    /// Messages about groups that were heeded.
    pub(crate) heeded: heeded::Table,
    /// Such that wait for approval.
    pub(crate) waiting: Vec<WaitingRecord>,
    /// What is due behind control messages, and what is over, in order.
    pub(crate) due: Vec<DueRecord>,
    pub(crate) is_volatile: bool,
    pub(crate) stopped: bool,
    /// It tells of what a checkpoint is made for when it is old enough.
    pub(crate) has_news: bool,
    /// Frames of the log that are good.
    pub(crate) frames: u64,
    /// There is no log, but there was one.
    pub(crate) is_lost: bool,
}

impl Replay {
    /// Takes a record in.
    pub(crate) fn note(&mut self, record: &Record<'_>) -> Result<(), Error> {
        let Record {
            sequence,
            kind,
            payload,
        } = *record;
        // What is reserved in the same commit lies behind it.
        self.stopped = kind == kind::STOPPED || self.stopped && kind == kind::RESERVED;
        self.has_news |= is_news(kind);
        match kind {
            kind::SPOOL_MADE => self.hash_key = Some(decode_spool_made(sequence, payload)?),
            kind::STATE => {
                let state = StateRecord::decode(sequence, payload)?;
                self.hash_key = Some(state.hash_key);
                self.is_volatile = state.is_volatile;
                for (buffer, end, reserved) in state.buffers {
                    self.raise(buffer, end, reserved);
                }
            }
            kind::RESERVED => {
                let reserved = ReservedRecord::decode(sequence, payload)?;
                self.raise(reserved.buffer, Position::ZERO, reserved.up_to);
            }
            kind::ARTICLE => {
                let article = ArticleRecord::decode(sequence, payload)?;
                self.placed(&article.token);
            }
            kind::COPY => {
                let copy = CopyRecord::decode(sequence, payload)?;
                self.placed(&copy.token);
            }
            kind::MOVED => {
                let moved = MovedRecord::decode(sequence, payload)?;
                self.withdrawn
                    .extend(Some(moved.token).filter(|_| moved.is_withdrawn));
            }
            kind::WITHDRAWN => {
                let withdrawn = WithdrawnRecord::decode(sequence, payload)?;
                self.withdrawn.push(withdrawn.token);
            }
            kind::HEEDED => self.heeded.note(HeededRecord::decode(sequence, payload)?),
            kind::FORGOTTEN => self.heeded.forget(decode_forgotten(sequence, payload)?),
            kind::WAITING => self.waiting.push(WaitingRecord::decode(sequence, payload)?),
            kind::DUE => self.due.push(DueRecord::decode(sequence, payload)?),
            kind::CANCEL_PENDING => self.pending.push(PendingRecord::decode(sequence, payload)?),
            _ => {}
        }
        Ok(())
    }

    /// An article lies here.
    pub(crate) fn placed(&mut self, token: &Token) {
        self.raise(token.buffer(), end_of(token), Position::ZERO);
        self.has_news = true;
        if self.placed.len() < STARTS_MAX {
            self.placed.push(*token);
        }
    }

    /// Whether everything was durable before the log told of it.  Only a state says that it was not: where none can be read,
    /// more is believed than may be there, and what is not there is told.
    pub(crate) const fn is_durable(&self) -> bool {
        !self.is_volatile
    }

    /// Takes from the whole log what the part behind the checkpoint does not tell.
    pub(crate) fn look_back(
        &mut self,
        disk: &Arc<dyn Disk>,
        log: &Path,
        id: SpoolId,
    ) -> Result<(), Error> {
        let (_, mut recovery) = whole_log(disk, log, id)?;
        let mut whole = Self::default();
        while let Some(frame) = recovery.next_frame()? {
            for record in frame.records() {
                whole.note(&record)?;
            }
        }
        self.hash_key = whole.hash_key;
        self.stopped |= whole.stopped;
        self.is_volatile |= whole.is_volatile;
        for marks in whole.marks() {
            self.raise(marks.buffer, marks.end, marks.reserved);
        }
        // All that the part behind the checkpoint told is in there, too.
        self.heeded = whole.heeded;
        self.waiting = whole.waiting;
        self.due = whole.due;
        Ok(())
    }

    /// There is no log, but there was one.
    pub(crate) fn without_log(&mut self, views: &Views, from: Sequence) {
        tracing::error!(
            sequence = from.0 - 1,
            "the log of this spool is lost: it goes on from the last checkpoint; articles, cancels, \
             groups and feeds behind it may be missing, and no number of theirs is used again"
        );
        self.raise_to(views);
        self.is_lost = true;
    }

    /// The buffers stand at least behind the last article of which the views know.
    pub(crate) fn raise_to(&mut self, views: &Views) {
        for (buffer, last) in views.last_positions() {
            self.raise(buffer, Position::ZERO, Position::ZERO);
            self.known.insert(buffer, last);
        }
    }

    /// So much was found in a buffer.  Where nothing was, its end is as uncertain as before.
    pub(crate) fn left(&mut self, left: &Left) {
        let end = match left.articles.is_empty() {
            true => Position::ZERO,
            false => left.end,
        };
        self.raise(left.buffer, end, left.reserved);
    }

    pub(crate) fn raise(&mut self, buffer: BufferId, end: Position, reserved: Position) {
        let marks = self.marks.entry(buffer).or_default();
        *marks = (marks.0.max(end), marks.1.max(reserved));
    }

    pub(crate) fn marks(&self) -> Vec<Marks> {
        let marks = |(buffer, (end, reserved)): (&BufferId, &(Position, Position))| Marks {
            buffer: *buffer,
            end: *end,
            reserved: *reserved,
            known: self.known.get(buffer).copied(),
        };
        self.marks.iter().map(marks).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that stopped behind a crash reserved in its last commit, and was then taken for one that was killed.
    #[test]
    fn what_is_reserved_behind_the_stop_does_not_undo_it() {
        let mut reserved = Vec::new();
        let record = ReservedRecord {
            buffer: BufferId(1),
            up_to: Position(64),
        };
        record.encode(&mut reserved);
        let mut replay = Replay::default();
        let mut note = |kind, payload: &[u8]| {
            let record = Record {
                sequence: Sequence(1),
                kind,
                payload,
            };
            replay.note(&record).unwrap();
            replay.stopped
        };
        assert!(!note(kind::RESERVED, &reserved));
        assert!(note(kind::STOPPED, b""));
        assert!(note(kind::RESERVED, &reserved));
        assert!(!note(kind::HOLE, b""));
    }
}
