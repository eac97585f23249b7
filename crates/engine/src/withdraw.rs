//! Taking articles out before their time: looked up here, put into the log by the sequencer, gone when that is durable.
//!
//! What a withdrawn article leaves is its message-id, which stays known, and the octets in its buffer, which nobody is
//! shown.  Its places are those its own Xref names and the overview confirms.

use std::sync::mpsc::sync_channel;
use std::time::Duration;

use newsreel_index::Wait;
use newsreel_service::cancel_lock::{LockPrints, locks};
use newsreel_store::{Blocking, PlaceError, ReadError, Removed, Want};
use newsreel_wire::article::{Headers, Known};
use newsreel_wire::{IdHash, MessageId, Position, Token, UnixTime};

use crate::engine::Engine;
use crate::error::Error;
use crate::places::{Places, Retired, places};
use crate::record::{PendingRecord, Reason, WithdrawnRecord};
use crate::report::ArticleRef;
use crate::requests::Request;
use crate::sequencer::Event;
use crate::shared::Shared;

/// Articles withdrawn in one step of the log.
pub(crate) const AT_ONCE: usize = 1000;

/// How often a full commit is waited for, and how long each time.
pub(crate) const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(20);

/// How long a commit is waited for that withdraws an article whose file was removed.
const REMOVAL_PATIENCE: Duration = Duration::from_secs(10);

/// What became of an article that was to be withdrawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Withdrawal {
    /// It is gone now.
    Done,
    /// It is not here: never was, was overwritten, or is withdrawn already.
    NotHere,
    /// It cannot be told where it is filed, so it was left.
    Failed(String),
}

impl Engine {
    /// Withdraws these articles; durable when it returns, with what became of each.
    ///
    /// # Errors
    /// When the log takes nothing; some of the articles may be gone then.
    pub fn withdraw(
        &self,
        articles: &[ArticleRef],
        reason: Reason,
    ) -> Result<Vec<Withdrawal>, Error> {
        let mut outcomes = Vec::with_capacity(articles.len());
        let mut memory = Vec::new();
        let mut rest = articles;
        let mut tries = TRIES;
        while !rest.is_empty() {
            let (some, behind) = rest.split_at(rest.len().min(AT_ONCE));
            let from = outcomes.len();
            let moves = self.shared.moves();
            let retired = self.shared.views.groups().retired();
            let mut records = Vec::with_capacity(some.len());
            for article in some {
                outcomes.push(
                    match self.record_of(article, reason, &retired, &mut memory) {
                        Ok(Some(record)) => {
                            records.push(record);
                            Withdrawal::Done
                        }
                        Ok(None) => Withdrawal::NotHere,
                        Err(error) => Withdrawal::Failed(error.to_string()),
                    },
                );
            }
            match self.put_down(records, moves) {
                Err(Error::Moved) if tries > 0 => {
                    tries -= 1;
                    outcomes.truncate(from);
                }
                result => {
                    result?;
                    rest = behind;
                }
            }
        }
        Ok(outcomes)
    }

    /// What would become of an article, which is left as it is.
    pub fn try_withdraw(&self, article: &ArticleRef) -> Withdrawal {
        let retired = self.shared.views.groups().retired();
        match self.record_of(article, Reason::Cancelled, &retired, &mut Vec::new()) {
            Ok(Some(_)) => Withdrawal::Done,
            Ok(None) => Withdrawal::NotHere,
            Err(error) => Withdrawal::Failed(error.to_string()),
        }
    }

    fn put_down(&self, articles: Vec<WithdrawnRecord>, moves: u64) -> Result<(), Error> {
        if articles.is_empty() {
            return Ok(());
        }
        self.ask_until_it_fits(|| Request::Withdraw {
            articles: articles.clone(),
            awaited: Vec::new(),
            moves,
        })
    }

    /// Asks again while the open commit has no room.
    pub(crate) fn ask_until_it_fits(&self, request: impl Fn() -> Request) -> Result<(), Error> {
        let mut tries = TRIES;
        loop {
            tries -= 1;
            match self.ask(request()) {
                Err(Error::FrameFull | Error::Place(PlaceError::NeedsReservation)) if tries > 0 => {
                    std::thread::sleep(PAUSE);
                }
                result => return result,
            }
        }
    }

    /// What the log will say; `None` when the article is not here.
    fn record_of(
        &self,
        article: &ArticleRef,
        reason: Reason,
        retired: &Retired,
        memory: &mut Vec<u8>,
    ) -> Result<Option<WithdrawnRecord>, Error> {
        let Some(token) = self.find(article)? else {
            return Ok(None);
        };
        let leaving = leaving(&self.shared, &token, reason, retired, memory)?;
        Ok(leaving.map(|leaving| leaving.record))
    }
}

impl Shared {
    /// Withdraws these, and has others waited for; durable when it returns.  Waits for the sequencer.
    ///
    /// # Errors
    /// When the log takes nothing, or something was moved since `moves`.
    pub(crate) fn put_down(
        &self,
        articles: &[WithdrawnRecord],
        awaited: &[PendingRecord],
        moves: u64,
    ) -> Result<(), Error> {
        let mut tries = TRIES;
        loop {
            tries -= 1;
            let (answer, answered) = sync_channel(1);
            let request = Request::Withdraw {
                articles: articles.to_vec(),
                awaited: awaited.to_vec(),
                moves,
            };
            self.inbox.push_event(Event::Request(request, answer));
            match answered.recv_timeout(REMOVAL_PATIENCE) {
                Ok(Err(Error::FrameFull)) if tries > 0 => std::thread::sleep(PAUSE),
                Ok(done) => return done,
                Err(_) => return Err(Error::Stopping),
            }
        }
    }

    /// Withdraws an article whose file somebody removed, or that its buffer lacks, if that is certain; whether it is gone now, by whomever.  One at a
    /// time: who comes meanwhile leaves it to the next who looks.
    pub(crate) fn withdraw_removed(&self, token: &Token) -> bool {
        let one = self.removing.try_lock();
        one.is_some_and(|_one| self.withdraw_one_removed(token))
    }

    /// The same by a scrub, which waits: it would call damage what a reader is just withdrawing.
    pub(crate) fn withdraw_removed_in_turn(&self, token: &Token, id_hash: &IdHash) -> bool {
        let one = self.removing.try_lock_for(REMOVAL_PATIENCE);
        one.is_some_and(|_one| self.withdraw_one_removed(token)) || !self.is_wanted(token, id_hash)
    }

    fn withdraw_one_removed(&self, token: &Token) -> bool {
        let moves = self.moves();
        let (what, record) = match self.store.removed(token).filter(|it| it.is_certain) {
            Some(removed) => {
                let retired = self.views.groups().retired();
                let record = self.record_of_removed(*token, &removed, &retired);
                ("its file was removed", record)
            }
            None if self.store.lacks(token) => {
                let record = self.record_of_damaged(*token, Reason::Cancelled);
                ("its buffer was put back as it had been before", record)
            }
            None => return false,
        };
        let record = match record {
            Ok(Some(record)) => record,
            Ok(None) => return true,
            Err(error) => {
                tracing::error!(%error, what, "an article that is not there cannot be withdrawn");
                return false;
            }
        };
        let (answer, answered) = sync_channel(1);
        let request = Request::Withdraw {
            articles: vec![record],
            awaited: Vec::new(),
            moves,
        };
        self.inbox.push_event(Event::Request(request, answer));
        // A sequencer that stops, or whose commit is full, leaves it to the next who looks.
        let is_withdrawn = matches!(answered.recv_timeout(REMOVAL_PATIENCE), Ok(Ok(())));
        if is_withdrawn {
            let article = self.store.token_text(token).unwrap_or_default();
            tracing::warn!(article, "{what}: it is withdrawn");
        }
        is_withdrawn
    }

    /// What the log will say of an article whose file is not there; `None` when it is withdrawn already.
    fn record_of_removed(
        &self,
        token: Token,
        removed: &Removed,
        retired: &Retired,
    ) -> Result<Option<WithdrawnRecord>, Error> {
        let id_hash = removed.id_hash;
        if !self.leads_to(&id_hash, &token)? {
            return Ok(None);
        }
        Ok(Some(WithdrawnRecord {
            // Who may remove the file may have it withdrawn.
            reason: Reason::Cancelled,
            token,
            id_hash,
            remembered_from: self.goes_at(removed.arrival),
            groups: self.places_of(&token, &removed.xref, retired),
        }))
    }

    /// What the log will say of an article that cannot be read, by the overview; `None` where that has no line of it.
    fn record_of_damaged(
        &self,
        token: Token,
        reason: Reason,
    ) -> Result<Option<WithdrawnRecord>, Error> {
        let at = token.position();
        let stretch = at..Position(at.0.saturating_add(1));
        let (mut groups, mut known) = (Places::default(), None);
        let overview = self.views.overview();
        overview.rows_within(token.buffer(), &stretch, |group, column, id| {
            if !column.token.same_place(&token) {
                return;
            }
            if let Ok(id) = MessageId::parse(id) {
                known = Some((self.id_hash(id), column.arrival));
                groups.push((group, column.number));
            }
        })?;
        let Some((id_hash, arrival)) = known else {
            return Ok(None);
        };
        groups.sort_unstable();
        groups.dedup();
        Ok(self.leads_to(&id_hash, &token)?.then(|| WithdrawnRecord {
            reason,
            token,
            id_hash,
            remembered_from: self.goes_at(arrival),
            groups,
        }))
    }

    /// From when on the id of an article is remembered that goes now: where nobody knows what the time is, from its arrival.
    pub(crate) fn goes_at(&self, arrival: UnixTime) -> UnixTime {
        self.time.judging().map_or(arrival, |now| now.max(arrival))
    }

    /// Whether the history leads to this copy: a withdrawn one it does not.
    pub(crate) fn leads_to(&self, id_hash: &IdHash, token: &Token) -> Result<bool, Error> {
        let entry = self.views.history().lookup(id_hash)?;
        Ok(entry.is_some_and(|entry| entry.leads_to(token)))
    }

    /// Where an article is filed, as far as the overview does not say otherwise.
    fn places_of(&self, token: &Token, xref: &[u8], retired: &Retired) -> Places {
        let (overview, mut id) = (self.views.overview(), Vec::new());
        let mut places = places(self.views.groups(), retired, xref);
        places.retain(|(group, number)| {
            match overview.column(*group, *number, Wait::Yes, &mut id) {
                Ok(column) => column.is_some_and(|column| column.token.same_place(token)),
                // A lost file of the overview may have it.
                Err(_) => true,
            }
        });
        places
    }
}

/// An article that is here, as it would be withdrawn.
#[derive(Debug)]
pub(crate) struct Leaving {
    /// What the log will say.
    pub(crate) record: WithdrawnRecord,
    /// Its locks; `None`: it has no Cancel-Lock.
    pub(crate) locks: Option<LockPrints>,
}

/// What withdrawing the article at this token would take; `None` when it is not here any more.  Waits for the disk.
pub(crate) fn leaving(
    shared: &Shared,
    token: &Token,
    reason: Reason,
    retired: &Retired,
    memory: &mut Vec<u8>,
) -> Result<Option<Leaving>, Error> {
    let read = shared.store.read(token, Want::Head, Blocking::Yes, memory);
    let stored = match read {
        Ok(stored) => stored,
        Err(ReadError::Gone) if !shared.store.is_live(token) => return Ok(None),
        Err(ReadError::Removed) => {
            let removed = shared.store.removed(token).ok_or(ReadError::Removed)?;
            let record = shared.record_of_removed(*token, &removed, retired)?;
            return Ok(record.map(|record| Leaving {
                record,
                locks: None,
            }));
        }
        // Nothing of it need be read where the views have all that is to be said.
        Err(error) => {
            let record = shared.record_of_damaged(*token, reason)?;
            // What is withdrawn already is gone, too.
            if record.is_none() && !matches!(error, ReadError::Gone) {
                return Err(Error::Read(error));
            }
            return Ok(record.map(|record| Leaving {
                record,
                locks: None,
            }));
        }
    };
    memory.truncate(stored.octets.end);
    memory.extend_from_slice(b"\r\n");
    let headers = Headers::scan_stored(&memory[stored.octets.start..]).ok();
    let content = |known| headers.as_ref().and_then(|headers| headers.content(known));
    let id_hash = stored.id_hash;
    if !shared.leads_to(&id_hash, token)? {
        return Ok(None);
    }
    let xref = content(Known::Xref).unwrap_or_default();
    Ok(Some(Leaving {
        record: WithdrawnRecord {
            reason,
            token: *token,
            id_hash,
            remembered_from: shared.goes_at(stored.arrival),
            groups: shared.places_of(token, xref, retired),
        },
        locks: content(Known::CancelLock).map(locks),
    }))
}
