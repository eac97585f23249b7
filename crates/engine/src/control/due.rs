//! What is done behind a control message when that is on disk, and takes longer than its turn may: a mail tells of it, or the articles
//! that it lists go.
//!
//! That it is due stands in the log in one frame with the message, so what comes of one that is refused is nothing, and each has its
//! effect with the groups and articles as those before it left them.  Whoever brought it does it when the commit has ended; what a
//! crash left is done at the next start, and a mail that was not kept, as there was no room, a minute later.  Then the log says that
//! it is over.  A crash between the two has it done twice, never not: a second mail is a lesser evil, and what a notice lists is gone
//! already.

use std::sync::mpsc::sync_channel;

use newsreel_store::{Blocking, ReadError, Stored, Want};
use newsreel_wire::IdHash;
use newsreel_wire::article::{Headers, Known};
use parking_lot::Mutex;

use super::heed::{in_time, signer};
use super::judged::{Look, judge};
use super::rules::Action;
use super::{groups, nocem, signed, told};
use crate::accept::CandidateBatch;
use crate::admin::RECORD_OCTETS;
use crate::engine::Engine;
use crate::error::Error;
use crate::record::{DueKind, DueRecord, kind};
use crate::requests::Request;
use crate::sequencer::{Event, Sequencer};
use crate::shared::Shared;

/// All that is due, in order: as much as is under way, and what a crash left.
#[derive(Debug, Default)]
pub(crate) struct Due(Mutex<Vec<One>>);

#[derive(Debug)]
struct One {
    id: IdHash,
    kind: DueKind,
    /// Somebody does it.
    is_begun: bool,
    /// It did not work, and is tried again then.
    again_ms: Option<u64>,
}

/// How long is waited before a mail that was not kept is made again.
const AGAIN_MS: u64 = 60_000;

impl Due {
    /// With what the log tells.
    pub(crate) fn new(log: &[DueRecord]) -> Self {
        let due = Self::default();
        for record in log {
            due.note(record);
        }
        due
    }

    fn note(&self, record: &DueRecord) {
        let mut all = self.0.lock();
        all.retain(|one| one.id != record.id);
        if let Some(kind) = record.kind {
            all.push(One {
                id: record.id,
                kind,
                is_begun: false,
                again_ms: None,
            });
        }
    }

    /// It is tried again then.
    fn put_off(&self, id: &IdHash, again_ms: u64) {
        let mut all = self.0.lock();
        if let Some(one) = all.iter_mut().find(|one| one.id == *id) {
            one.again_ms = Some(again_ms);
        }
    }

    /// One whose time has come; who asks does it.
    fn take_again(&self, now_ms: u64) -> Option<(IdHash, DueKind)> {
        let mut all = self.0.lock();
        let is_due = |one: &&mut One| one.again_ms.is_some_and(|at| at <= now_ms);
        let one = all.iter_mut().find(is_due)?;
        one.again_ms = None;
        Some((one.id, one.kind))
    }

    /// What is due behind this and nobody does; from now on somebody does it.
    fn begin(&self, id: &IdHash) -> Option<DueKind> {
        let mut all = self.0.lock();
        let one = all.iter_mut().find(|one| one.id == *id && !one.is_begun)?;
        one.is_begun = true;
        Some(one.kind)
    }

    fn all(&self) -> Vec<DueRecord> {
        let all = self.0.lock();
        let record = |one: &One| DueRecord {
            id: one.id,
            kind: Some(one.kind),
        };
        all.iter().map(record).collect()
    }

    /// Octets that all of it takes in the log.
    pub(crate) fn octets(&self) -> usize {
        self.0.lock().len() * (DueRecord::OCTETS + 8)
    }
}

impl CandidateBatch {
    /// Those behind which something may be due when they are filed.
    pub(crate) fn due(&self) -> Vec<IdHash> {
        let due = self.candidates.iter().filter(|it| it.is_something_due());
        due.map(|it| it.hash).collect()
    }
}

impl Shared {
    /// Does what is due behind these, whose commits have ended; waits for the disk.
    pub(crate) fn do_what_is_due(&self, ids: &[IdHash]) {
        for id in ids {
            let Some(kind) = self.due.begin(id) else {
                continue;
            };
            self.do_begun(id, kind);
        }
    }

    /// Makes a mail again that was not kept; whether there was one to make.
    pub(crate) fn mail_again(&self) -> bool {
        let again = self.due.take_again(self.now_ms());
        again.is_some_and(|(id, kind)| {
            self.do_begun(&id, kind);
            true
        })
    }

    fn do_begun(&self, id: &IdHash, kind: DueKind) {
        match (self.do_one(id, kind), kind) {
            (Ok(()), _) => self.is_over(id),
            // It is damaged: that is the same at the next start.
            (Err(error @ Error::Read(_)), _) => {
                tracing::error!(%error, "a control message cannot be read; what is due behind it is left");
                self.is_over(id);
            }
            (Err(error), DueKind::Mail) => {
                if let Some(more) = self.may_say(|lines| &lines.not_mailed) {
                    tracing::warn!(%error, more, "it is tried again");
                }
                self.due.put_off(id, self.now_ms().saturating_add(AGAIN_MS));
            }
            (Err(error), DueKind::Notice) => {
                tracing::error!(%error, "what is due behind a control message was not done; the next start does it");
            }
        }
    }

    fn do_one(&self, id: &IdHash, kind: DueKind) -> Result<(), Error> {
        let mut memory = Vec::new();
        let Some(stored) = self.read_by_hash(id, &mut memory)? else {
            // It is gone, or its commit failed.
            return Ok(());
        };
        let octets = memory.get(stored.octets.clone()).unwrap_or_default();
        let Ok(headers) = Headers::scan_stored(octets) else {
            return Ok(());
        };
        match kind {
            DueKind::Mail => self.mail(&headers, &stored),
            DueKind::Notice => {
                let policy = self.policy.load();
                nocem::of_stored(self, &policy, &headers)
                    .map_or(Ok(()), |notice| nocem::heed(self, &notice))
            }
        }
    }

    /// An article that is here, wherever it is moved meanwhile.
    fn read_by_hash(&self, id: &IdHash, memory: &mut Vec<u8>) -> Result<Option<Stored>, Error> {
        loop {
            let moves = self.moves();
            let entry = self.views.history().lookup(id)?;
            let Some(token) = entry.and_then(|entry| entry.token) else {
                return Ok(None);
            };
            memory.clear();
            match self.store.read(&token, Want::Whole, Blocking::Yes, memory) {
                Ok(stored) => return Ok(Some(stored)),
                Err(ReadError::Gone) if self.moves() != moves => {}
                Err(ReadError::Gone) => return Ok(None),
                Err(error) => return Err(Error::Read(error)),
            }
        }
    }

    /// Tells of what a message asks for now, as far as a rule wants a mail.
    fn mail(&self, headers: &Headers<'_>, stored: &Stored) -> Result<(), Error> {
        let Some(Ok(message)) = groups::read(headers) else {
            return Ok(());
        };
        let policy = self.policy.load();
        let signer = match signed::is_signed(headers) {
            true => {
                let signed = signer(&self.keyring(), headers)?;
                in_time(signed, &policy, &message, stored.arrival).ok()
            }
            false => None,
        };
        let by = signer.as_ref();
        let mut judged = judge(self, &policy, &message, by, stored.arrival, Look::AtAll);
        judged.record.at = stored.sequence;
        let (asks, record) = (judged.asks, judged.record);
        let asks = asks.into_iter().filter(|it| {
            let name = it.asked.name();
            it.becomes == Action::Mail && !self.heeded.is_settled(&record, name, false)
        });
        let asks: Vec<_> = asks.map(|it| it.asked).collect();
        let id = headers.content(Known::MessageId).unwrap_or_default();
        if asks.is_empty() {
            return Ok(());
        }
        let id = String::from_utf8_lossy(id);
        told::tell(self, &id, &message, &asks).map_err(|why| {
            Error::Request(format!(
                "the mail that tells of {id} was not kept ({why:?})"
            ))
        })
    }

    /// Has the log told that nothing is due behind this any more; nobody waits for that.
    fn is_over(&self, id: &IdHash) {
        let (answer, _) = sync_channel(1);
        let request = Request::DueIsOver(*id);
        self.inbox.push_event(Event::Request(request, answer));
    }
}

impl Engine {
    /// Does what a crash left to be done behind control messages, once it is said where mails go; waits for the disk.
    pub fn do_what_is_due(&self) {
        let all: Vec<IdHash> = self.shared.due.all().iter().map(|one| one.id).collect();
        self.shared.do_what_is_due(&all);
    }
}

impl Sequencer {
    /// Puts into the log what is due behind the message of this id, or that nothing is.
    pub(crate) fn note_due(&mut self, id: IdHash, due: Option<DueKind>) {
        let record = DueRecord { id, kind: due };
        record.encode(self.record(kind::DUE));
        self.shared.due.note(&record);
    }

    /// Puts into the log that nothing is due behind that message any more.
    ///
    /// # Errors
    /// When it has no room in this frame: who does it again does no harm.
    pub(crate) fn due_is_over(&mut self, id: IdHash) -> Result<(), Error> {
        if !self.fits(DueRecord::OCTETS + RECORD_OCTETS) {
            return Err(Error::FrameFull);
        }
        self.note_due(id, None);
        Ok(())
    }

    /// Tells the log again what is due, so that what it said before may go.
    pub(crate) fn write_due(&mut self) {
        for record in self.shared.due.all() {
            record.encode(self.record(kind::DUE));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_done_by_one() {
        let record = |n: u8, kind| DueRecord {
            id: IdHash([n; 16]),
            kind,
        };
        let (mail, notice) = (Some(DueKind::Mail), Some(DueKind::Notice));
        let due = Due::new(&[
            record(1, mail),
            record(2, notice),
            record(1, None),
            record(3, mail),
        ]);
        assert_eq!(due.all(), [record(2, notice), record(3, mail)]);
        assert_eq!(due.octets(), 50);
        assert_eq!(due.begin(&IdHash([1; 16])), None);
        assert_eq!(due.begin(&IdHash([2; 16])), notice);
        assert_eq!(due.begin(&IdHash([2; 16])), None, "somebody does it");
        assert_eq!(due.all().len(), 2, "until it is over the log has to know");
        due.note(&record(2, None));
        assert_eq!(due.all(), [record(3, mail)]);
        // What did not work is done by one, too, when its time has come.
        let three = IdHash([3; 16]);
        assert_eq!(due.begin(&three), mail);
        due.put_off(&three, 100);
        assert_eq!((due.begin(&three), due.take_again(99)), (None, None));
        assert_eq!(due.take_again(100), Some((three, DueKind::Mail)));
        assert_eq!(due.take_again(100), None);
    }
}
