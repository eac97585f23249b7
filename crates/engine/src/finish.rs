//! What becomes of a commit that came back: applied, repaired, or given up.
//!
//! Success: the views are brought up to it, the committed mark is published, then everyone is
//! answered.  A buffer that failed: its articles are placed elsewhere from memory and the same
//! sequences are committed again.  The log failed: nobody is told that anything was taken, and
//! the sequences stay holes.

use std::collections::HashSet;
use std::sync::atomic::Ordering;

use newsreel_journal::{FrameBuilder, Record};
use newsreel_service::{Completion, Outcome};
use newsreel_store::{BatchWrite, Place, PlaceError};
use newsreel_wire::{BufferId, Sequence, Token};
use smallvec::SmallVec;

use crate::checkpoint::Stage;
use crate::commit::{Commit, Entry, Failure, Job, Offered};
use crate::config::Durability;
use crate::counters::Counters;
use crate::error::Error;
use crate::filing;
use crate::record::{ArticleRecord, CopyRecord, kind};
use crate::sequencer::{Sequencer, SyncState};
use crate::start::group_table;

/// When the log has no place to go on, it is tried again after this.
const ABORT_AGAIN_MS: u64 = 5000;

/// Without durability the log is forced to the disk at least this often.
const SYNC_EVERY_MS: u64 = 1000;

/// ... and at least once in so many records: the reserve by which everything jumps after an
/// unclean stop (see `recover`).  Half of it is what may be unsynced, half what is under way.
pub(crate) const SYNC_EVERY_RECORDS: u64 = 65_536;

/// Whether nothing of this commit is missed when its frame is lost.
fn is_hole_alone(commit: &Commit) -> bool {
    let mut records = commit.frame.records();
    let first = records.next();
    first.is_some_and(|record| record.kind == kind::HOLE) && records.next().is_none()
}

/// With durability a last commit is vouched for when nothing came behind it for so long.
const VOUCH_AFTER_MS: u64 = 1000;

impl Sequencer {
    /// Whether this commit is forced to the disk.
    ///
    /// Also without durability: what a checkpoint will say, what lets a buffer be overwritten, what somebody waits
    /// for, and the first commit of a run.
    pub(crate) fn sync_now(&self, commit: &Commit) -> bool {
        match self.shared.config.sequencer.durability {
            Durability::GroupCommit | Durability::Each => true,
            Durability::None => {
                let now_ms = self.shared.now_ms();
                let is_state = match self.checkpoints.stage {
                    Stage::Frozen { state, .. } => state <= commit.frame.last(),
                    _ => false,
                };
                is_state
                    || self.sync.is_due
                    || !commit.waiting.is_empty()
                    || !commit.reservations.is_empty()
                    || now_ms.saturating_sub(self.sync.last_ms) >= SYNC_EVERY_MS
                    || self.next.0.saturating_sub(self.sync.durable_before.0)
                        >= SYNC_EVERY_RECORDS / 2
            }
        }
    }

    /// Without durability nothing stays unsynced because nothing comes behind it.
    pub(crate) fn sync_if_due(&mut self) {
        let is_unsynced = self.sync.durable_before <= self.shared.committed();
        if self.shared.config.sequencer.durability == Durability::None
            && is_unsynced
            && !self.sync.is_due
            && self.broken.is_none()
            && self.shared.now_ms().saturating_sub(self.sync.last_ms) >= SYNC_EVERY_MS
        {
            self.sync.is_due = true;
            if self.open.frame.is_empty() {
                let _ = self.record(kind::HOLE);
            }
        }
    }

    /// When nothing comes behind a commit, a frame that says nothing vouches for it: a last frame that is lost looks like one that was
    /// never written, and what is in it and nowhere else, a cancel, would be undone without a word.  Nobody waits for that.
    pub(crate) fn vouch_if_idle(&mut self) {
        let is_durable = self.shared.config.sequencer.durability != Durability::None;
        let is_idle = !self.committing && self.open.is_idle() && self.scratch.batches.is_empty();
        if is_durable
            && is_idle
            && !self.sync.is_at_rest
            && !self.room.is_full
            && self.broken.is_none()
            && self.shared.now_ms().saturating_sub(self.sync.last_ms) >= VOUCH_AFTER_MS
        {
            let _ = self.record(kind::HOLE);
        }
    }

    /// A commit is where it should be: what the next one builds on.
    pub(crate) fn ended(&mut self, commit: &Commit, synced: bool) {
        self.prologue = None;
        if synced {
            self.sync = SyncState {
                durable_before: Sequence(commit.frame.last().0 + 1),
                last_ms: self.shared.now_ms(),
                is_due: false,
                is_at_rest: is_hole_alone(commit),
            };
        }
        // The floors rise before anything is written into the region, and before readers see
        // what this commit brings.
        for reservation in &commit.reservations {
            self.store.reserved(*reservation);
        }
    }

    /// A commit has ended: make it visible, then answer.
    pub(crate) fn committed(&mut self, mut commit: Box<Commit>) {
        self.scratch.blocked = false;
        if !commit.frame.is_empty() {
            let last = commit.frame.last();
            self.store.recycle(&mut commit.writes);
            if let Err(error) = self.applier.records(commit.frame.records()) {
                // We wrote these records ourselves: this is a defect, not bad luck.  Nothing is
                // lost, the log has it; stop taking more.
                tracing::error!(%error, "a committed record cannot be applied");
                self.break_down(error.to_string());
            }
            // The history knows it before the bit of one goes, which a scrub looks at (see `scrub_bits`).
            let (withdrawn, writes) = (&commit.withdrawn, &mut self.open.writes);
            self.store.withdrawn(withdrawn, writes);
            self.unsettled.retain(|_, change| change.sequence > last);
            if commit.moves {
                self.shared
                    .moving
                    .known
                    .store(self.moves, Ordering::Release);
            }
            self.shared.committed.store(last.0, Ordering::Release);
            self.shared.journal.publish_before(Sequence(last.0 + 1));
            if commit.articles > 0 || !commit.waiting.is_empty() {
                self.checkpoints.log_octets += commit.frame.bytes().len() as u64;
            }
            self.shared.feeds.tell(last);
            self.checkpoint_after(last);
            let counters = &self.shared.counters;
            Counters::add(&counters.commits, 1);
            Counters::add(&counters.accepted, commit.articles);
            Counters::add(&counters.accepted_octets, commit.octets as u64);
            Counters::add(&counters.log_octets, commit.frame.bytes().len() as u64);
        }
        self.answer(&mut commit);
        self.spare = Some(commit);
        self.take_up_held();
    }

    /// Tells everyone who waits for this commit.
    fn answer(&self, commit: &mut Commit) {
        for delivery in commit.deliveries.drain(..) {
            let settled: SmallVec<[Completion; 64]> = delivery
                .entries
                .iter()
                .map(|entry| self.settle(entry))
                .collect();
            delivery.sink.complete(settled);
        }
        for waiting in commit.waiting.drain(..) {
            waiting.tell();
        }
        commit.clear();
    }

    /// The last word on one article.
    fn settle(&self, entry: &Entry) -> Completion {
        let counters = &self.shared.counters;
        let mut outcome = entry.outcome;
        // A copy is a duplicate only if the first one is really here now: its commit may have
        // failed since.
        let is_copy = entry.offer == Offered::Copy;
        if is_copy && !matches!(self.shared.is_known(&entry.id, None), Ok(true)) {
            outcome = Outcome::Failed;
        }
        if entry.offer != Offered::Finished {
            self.shared.offers.finish(&entry.id, !is_copy);
        }
        match &outcome {
            Outcome::Accepted => {}
            Outcome::Duplicate => Counters::add(&counters.duplicates, 1),
            Outcome::Rejected(_) | Outcome::RejectedField(..) | Outcome::RejectedWith(..) => {
                Counters::add(&counters.rejected, 1)
            }
            Outcome::Deferred(_) => Counters::add(&counters.deferred, 1),
            Outcome::Failed => Counters::add(&counters.failed, 1),
        }
        Completion {
            ticket: entry.ticket,
            outcome,
        }
    }

    /// A commit came back undone.
    pub(crate) fn failed(&mut self, commit: Box<Commit>, failure: Failure) {
        Counters::add(&self.shared.counters.disk_errors, 1);
        match failure {
            Failure::Buffers(buffers) => {
                // What was placed meanwhile belongs to the next commit: its batches are closed now,
                // so that what is placed again gets batches of its own.
                self.store.seal(&mut self.open.writes);
                for (buffer, why) in &buffers {
                    let reader = self.shared.store.buffer(*buffer);
                    let buffer_name = reader.map_or("?", |buffer| buffer.name());
                    tracing::error!(
                        buffer = buffer_name,
                        why,
                        "writing failed: what it was to take goes elsewhere, or is tried again later"
                    );
                    self.store.suspend(*buffer);
                }
                let failed: HashSet<BufferId> = buffers.into_iter().map(|(id, _)| id).collect();
                self.repair(commit, &failed);
            }
            Failure::Log(why) => {
                tracing::error!(
                    why,
                    "the log failed; nothing more is taken until it is mended"
                );
                self.unsettled.clear();
                self.give_up(commit, why);
            }
        }
    }

    /// Places the articles of failed buffers elsewhere and commits the same sequences again.
    fn repair(&mut self, mut commit: Box<Commit>, failed: &HashSet<BufferId>) {
        Counters::add(&self.shared.counters.repaired, 1);
        let mut frame = FrameBuilder::default();
        frame.start(commit.frame.first(), self.epoch);
        let (mut lost, mut copies_lost) = (Vec::new(), false);
        for Record {
            sequence,
            kind,
            payload,
        } in commit.frame.records()
        {
            let record = match kind {
                kind::ARTICLE => ArticleRecord::decode(sequence, payload).ok(),
                kind::COPY => {
                    let copy = CopyRecord::decode(sequence, payload).ok();
                    if copy.is_none_or(|copy| failed.contains(&copy.token.buffer())) {
                        // Who wants it has the original.
                        let _ = frame.record(kind::HOLE);
                        copies_lost = true;
                        continue;
                    }
                    None
                }
                _ => None,
            };
            let Some(mut record) = record.filter(|r| failed.contains(&r.token.buffer())) else {
                frame.record(kind).extend_from_slice(payload);
                continue;
            };
            match self.place_again(&commit.writes, sequence, &record) {
                Ok(token) => {
                    record.token = token;
                    record.encode(frame.record(kind::ARTICLE));
                }
                Err(error) => {
                    let _ = frame.record(kind::HOLE);
                    lost.push((sequence, self.put_off(record.token.set(), error)));
                }
            }
        }
        commit
            .writes
            .retain(|batch| !failed.contains(&batch.buffer()));
        self.store.seal(&mut commit.writes);
        commit.frame = frame;
        for waiting in commit
            .waiting
            .iter_mut()
            .filter(|it| it.is_copy && copies_lost)
        {
            waiting.result = Err(Error::Place(PlaceError::Suspended));
        }
        for entry in commit
            .deliveries
            .iter_mut()
            .flat_map(|delivery| &mut delivery.entries)
        {
            let lost = lost.iter().find(|(lost, _)| Some(*lost) == entry.sequence);
            if let Some((_, put_off)) = lost {
                entry.outcome = *put_off;
            }
        }
        self.send(commit);
    }

    /// Stores an article of a failed batch again, from the batch's memory.
    fn place_again(
        &mut self,
        writes: &[Box<dyn BatchWrite>],
        sequence: Sequence,
        record: &ArticleRecord<'_>,
    ) -> Result<Token, PlaceError> {
        let kept = writes.iter().find_map(|batch| batch.article(&record.token));
        let Some(kept) = kept else {
            return Err(PlaceError::Suspended);
        };
        let mut xref = Vec::new();
        if !record.groups.is_empty() {
            let server = &self.shared.path_identity;
            filing::write_xref(&mut xref, server, &record.groups, &self.groups);
        }
        self.store.place(&Place {
            sequence,
            arrival: record.arrival,
            id_hash: record.id_hash,
            id: record.id,
            set: record.token.set(),
            format: kept.format,
            xref: &xref,
            article: &[&kept.text],
            head_len: kept.head_len,
        })
    }

    /// The log did not take this commit: nobody is told it was taken, nor what was collected
    /// since, and the log goes on in another segment if it can.
    fn give_up(&mut self, commit: Box<Commit>, why: String) {
        let first = commit.frame.first();
        let records = commit.frame.records();
        let stored = records.filter_map(|record| match record.kind {
            kind::ARTICLE => {
                let article = ArticleRecord::decode(record.sequence, record.payload);
                article.ok().map(|article| article.token)
            }
            kind::COPY => {
                let copy = CopyRecord::decode(record.sequence, record.payload);
                copy.ok().map(|copy| copy.token)
            }
            _ => None,
        });
        self.in_vain.extend(stored);
        if commit.heeded_before.is_some() {
            // What is before both commits.
            self.open.heeded_before = None;
        }
        self.break_down(why.clone());
        self.refuse(commit, &why);
        self.refuse_open(&why);
        self.abort(first, Sequence(self.next.0.saturating_sub(1)));
    }

    /// While the log takes nothing, nothing collected can become true.
    pub(crate) fn refuse_open(&mut self, why: &str) {
        let fresh = self.spare.take().unwrap_or_default();
        let commit = std::mem::replace(&mut self.open, fresh);
        self.open.frame.start(self.next, self.epoch);
        self.refuse(commit, why);
    }

    /// Answers everyone of a commit that failed.
    pub(crate) fn refuse(&mut self, mut commit: Box<Commit>, why: &str) {
        for (target, holder) in &commit.expected {
            // Their senders send those cancels again.
            self.shared.pending.take_back(target, *holder);
        }
        if let Some(before) = commit.heeded_before.take() {
            self.shared.heeded.take_back(*before);
        }
        for waits in commit.approved.drain(..) {
            self.shared.waiting.take_back(&waits);
        }
        if commit.moves {
            // Nothing has moved.
            self.moves = self.shared.moves();
        }
        if !commit.waiting.is_empty() || commit.changes_groups {
            // What administrators asked for has not happened.
            let groups = group_table(&self.shared, 0);
            self.groups = groups.above(&self.groups);
        }
        for entry in commit
            .deliveries
            .iter_mut()
            .flat_map(|delivery| &mut delivery.entries)
        {
            if entry.sequence.is_some() {
                entry.outcome = Outcome::Failed;
            }
        }
        for waiting in &mut commit.waiting {
            waiting.result = Err(Error::LogFailed {
                why: why.to_owned(),
            });
        }
        self.scratch.blocked = false;
        self.answer(&mut commit);
        self.spare = Some(commit);
        self.take_up_held();
    }

    fn abort(&mut self, first: Sequence, last: Sequence) {
        if self.jobs.send(Job::Abort { first, last }).is_ok() {
            self.committing = true;
        }
    }

    /// Tries again to go on, now and then.
    pub(crate) fn retry_abort(&mut self) {
        if let Some((first, last, retry_ms)) = self.abort_again
            && !self.committing
            && retry_ms <= self.shared.now_ms()
        {
            self.abort_again = None;
            self.abort(first, last);
        }
    }

    /// The log goes on in a new segment, or not.
    pub(crate) fn aborted(
        &mut self,
        (first, last): (Sequence, Sequence),
        result: Result<(), String>,
    ) {
        self.committing = false;
        match result {
            Ok(()) => {
                tracing::warn!("the log goes on in a new segment; articles are taken again");
                self.broken = None;
                self.shared.holds.lock().fault = None;
                self.write_prologue();
                self.open.withdrawn.append(&mut self.in_vain);
                // A checkpoint that waited for its state record waits for another one.
                if let Stage::Frozen { state, .. } = &mut self.checkpoints.stage {
                    *state = self.next;
                    self.write_state();
                }
            }
            Err(why) => {
                tracing::error!(why, "the log has no place to go on; nothing is taken");
                self.abort_again = Some((first, last, self.shared.now_ms() + ABORT_AGAIN_MS));
            }
        }
    }

    /// Nothing more is taken, and everyone who asks is told to come back later.
    pub(crate) fn break_down(&mut self, why: String) {
        self.shared.holds.lock().fault = Some(why.clone());
        self.broken = Some(why);
    }
}
