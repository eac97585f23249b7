//! cancel and Supersedes: an article that takes another one out (RFC 5537 sections 5.3 and 5.4).
//!
//! What comes of it is decided on a thread that may wait for the disk: the target is looked up, its locks are read from
//! its header block, and what the log will say is made ready.  It takes effect when the sequencer files its own message and not
//! before: who is refused takes nothing out.  A target that is not here is watched until then ([`Watched`](super::watched::Watched)):
//! that is said first and looked up then, and the sequencer marks an article as under way before it looks whether it is
//! watched, so that of two that pass each other one sees the other.  From its own turn on a cancel waits for a target that has
//! not come ([`Pending`](super::pending::Pending)); one that came in between it takes out when the commit of that has ended.

use std::sync::Arc;
use std::time::Duration;

use newsreel_service::cancel_lock::{LockPrint, LockPrints, PRINT_OCTETS, locks, opened};
use newsreel_service::{Completion, Connection, Outcome};
use newsreel_wire::article::{Control, Headers, Known, RelayFacts};
use newsreel_wire::{ArticleNumber, GroupId, IdHash, Token, UnixTime};

use super::Asked;
use super::pending::Limits;
use super::shares::Holder;
use super::watched::{Filed, Watch};
use crate::accept::{Candidate, CandidateBatch};
use crate::counters::Counters;
use crate::error::Error;
use crate::local::{LocalService, blocking};
use crate::places::Retired;
use crate::record::{PendingRecord, Reason, WithdrawnRecord, kind};
use crate::sequencer::Sequencer;
use crate::shared::{Policy, Shared};
use crate::withdraw::leaving;

/// How often a target is looked for whose commit is under way, and how long each time.
const TRIES: u32 = 1000;
const PAUSE: Duration = Duration::from_millis(10);

/// Stands among the keys of what a trusted notice lists: opens every lock, and no key of an article is this.
pub(super) const NOTICED: LockPrint = LockPrint([0; PRINT_OCTETS]);

/// What an article takes out.
#[derive(Debug)]
pub(crate) struct Cancel {
    target: IdHash,
    keys: LockPrints,
    effect: Effect,
    /// Of its target, if that is not here.
    watch: Option<Watch>,
    holder: Holder,
}

/// What comes of it.
#[derive(Debug)]
pub(super) enum Effect {
    /// Nothing: the target is gone already, or it is not allowed.
    None,
    /// This is withdrawn; as many moves were known when it was looked up.
    Withdraw(WithdrawnRecord, u64),
    /// The target is not here: it is judged when it comes.
    Wait,
}

/// What an article asks to have taken out, as far as anything could come of it.
pub(crate) fn asked(
    shared: &Shared,
    policy: &Policy,
    headers: &Headers<'_>,
    relay: &RelayFacts<'_>,
) -> Option<Cancel> {
    let target = match relay.control {
        Some(control) => Control::parse(control)?.cancelled(),
        None => relay.supersedes,
    };
    let target = target.filter(|target| *target != relay.message_id)?;
    let keys = headers.content(Known::CancelKey);
    let keys = keys.map(opened).unwrap_or_default();
    policy.control.cancels.may_allow(&keys).then(|| Cancel {
        target: shared.id_hash(target),
        keys,
        effect: Effect::None,
        watch: None,
        holder: Holder::default(),
    })
}

impl CandidateBatch {
    /// Whose share of what waits they take.
    pub(crate) fn holder(&self) -> Holder {
        match (self.is_posted, &self.neighbour) {
            (true, _) => Holder::of_poster(self.sink.address()),
            (false, Some(peer)) => Holder::of_peer(peer.name()),
            (false, None) => Holder::of_stranger(self.sink.address()),
        }
    }

    /// What those are called in the log.
    fn held_by(&self) -> String {
        match (self.is_posted, &self.neighbour) {
            (true, _) => "those who post here".to_owned(),
            (false, Some(peer)) => format!("the peer {}", peer.name()),
            (false, None) => "those who are no [[peer]]".to_owned(),
        }
    }
}

impl LocalService {
    /// Decides what comes of the cancels among these candidates; answers those for which it cannot be decided now.
    pub(crate) async fn settle_cancels(&self, batch: &mut CandidateBatch, from: &Arc<Connection>) {
        let shared = &self.shared;
        let holder = batch.holder();
        let since = UnixTime(shared.clock.now().secs);
        let asking = batch.candidates.iter_mut().enumerate();
        let open: Vec<(usize, PendingRecord)> = asking
            .filter_map(|(at, it)| match it.asked.as_deref_mut()? {
                Asked::Cancel(cancel) => {
                    cancel.holder = holder;
                    Some((at, cancel.waiting(since)))
                }
                Asked::Groups(_) | Asked::Signed(_) | Asked::Notice(_) => None,
            })
            .collect();
        if open.is_empty() {
            return;
        }
        shared.pending.call(holder, || batch.held_by());
        let decided = open.clone();
        let decided = blocking(shared, move |shared| decide(shared, &decided)).await;
        let mut decided = decided.unwrap_or_default().into_iter();
        shared.say_what_is_forgotten(since);
        let mut failed = Vec::new();
        for (at, ..) in &open {
            let asking = batch.candidates.get_mut(*at);
            let asked = asking.and_then(|it| it.asked.as_deref_mut());
            match (decided.next().flatten(), asked) {
                (Some((effect, watch)), Some(Asked::Cancel(cancel))) => {
                    (cancel.effect, cancel.watch) = (effect, watch);
                }
                _ => failed.push(*at),
            }
        }
        for at in failed.into_iter().rev() {
            let candidate = batch.candidates.remove(at);
            let outcome = Outcome::Failed;
            shared.accept.count(&shared.counters, &outcome);
            shared.offers.unclaim(&candidate.hash, from.id());
            let ticket = candidate.ticket;
            from.complete([Completion { ticket, outcome }]);
        }
    }
}

/// What comes of one, and the watch of a target that is not here.
type Decided = (Effect, Option<Watch>);

/// What comes of each; `None`: it cannot be told.
fn decide(shared: &Shared, open: &[(usize, PendingRecord)]) -> Vec<Option<Decided>> {
    let retired = shared.views.groups().retired();
    let mut memory = Vec::new();
    let mut effects = Vec::with_capacity(open.len());
    for (_, cancel) in open {
        let mut watch = None;
        let mut wait = || watch = Some(shared.watched.watch(cancel.target));
        let effect = effect(shared, cancel, &retired, &mut memory, &mut wait);
        effects.push(match effect {
            Ok(effect) => effect.map(|effect| (effect, watch)),
            Err(error) => {
                tracing::error!(%error, "what a cancel is about cannot be read; it is put off");
                None
            }
        });
    }
    effects
}

/// What comes of a cancel that would wait as this says; `wait` has what it does when its target is not here, before that is looked for
/// again.
pub(super) fn effect(
    shared: &Shared,
    cancel: &PendingRecord,
    retired: &Retired,
    memory: &mut Vec<u8>,
    wait: &mut dyn FnMut(),
) -> Result<Option<Effect>, Error> {
    let PendingRecord { target, keys, .. } = cancel;
    let (policy, moves) = (shared.policy.load(), shared.moves());
    let mut is_expected = false;
    for _ in 0..TRIES {
        // In this order: what is under way is in the history before it is no longer under way.
        let is_under_way = shared.offers.is_sequenced(target);
        match shared.views.history().lookup(target)? {
            // Most targets are here.  What is not is waited for before it is looked for again.
            None if !is_expected => {
                wait();
                is_expected = true;
            }
            None if is_under_way => std::thread::sleep(PAUSE),
            None => return Ok(Some(Effect::Wait)),
            Some(entry) => {
                shared.pending.forget(target);
                let Some(token) = entry.token else {
                    return Ok(Some(Effect::None));
                };
                let leaving = leaving(shared, &token, Reason::Cancelled, retired, memory)?;
                let allowed = leaving.filter(|it| allows(&policy, it.locks.as_deref(), keys));
                return Ok(Some(
                    allowed.map_or(Effect::None, |it| Effect::Withdraw(it.record, moves)),
                ));
            }
        }
    }
    tracing::error!(
        "what a cancel is about has been on its way for very long; the cancel is put off"
    );
    Ok(None)
}

impl Cancel {
    /// As it waits for its target.
    fn waiting(&self, since: UnixTime) -> PendingRecord {
        PendingRecord {
            target: self.target,
            since,
            keys: self.keys.clone(),
            holder: self.holder,
        }
    }
}

impl Shared {
    /// From now on a target is taken out when it comes, if this may do that.
    pub(super) fn await_target(&self, cancel: &PendingRecord) {
        let forgotten = self.pending.expect(cancel, &self.waiting_limits());
        Counters::add(&self.counters.forgotten, forgotten);
    }

    /// Tells the log now and then what was forgotten of what waits, and of whom.
    pub(super) fn say_what_is_forgotten(&self, now: UnixTime) {
        if let Some((forgotten, whose)) = self.pending.to_say(now) {
            tracing::warn!(
                forgotten,
                whose,
                "cancels that waited for their targets, or what notices list, were forgotten, the oldest of who has most: there \
                 is no more room, see `control.waiting_octets_max`"
            );
        }
    }

    /// How much waits for targets, and how long.
    pub(crate) fn waiting_limits(&self) -> Limits {
        let policy = self.policy.load();
        Limits::new(&policy.control, &self.config, policy.articles.age_s_max)
    }
}

/// Whether these keys take out an article with these locks.
fn allows(policy: &Policy, locks: Option<&[LockPrint]>, keys: &[LockPrint]) -> bool {
    keys.contains(&NOTICED) || policy.control.cancels.allows(locks, keys)
}

impl Sequencer {
    /// Whether a cancel that came before this article may take it out.
    pub(crate) fn is_cancelled(&self, candidate: &Candidate) -> bool {
        let Some(keys) = self.shared.pending.keys(&candidate.hash) else {
            return false;
        };
        let policy = self.shared.policy.load();
        let is_cancelled = allows(&policy, candidate.locks().map(locks).as_deref(), &keys);
        if is_cancelled {
            Counters::add(&self.shared.counters.cancelled, 1);
        }
        is_cancelled
    }

    /// Puts what comes of a cancel behind it, into the same frame.
    pub(crate) fn take_out(&mut self, cancel: &Cancel) {
        match &cancel.effect {
            Effect::None => {}
            Effect::Withdraw(record, moves) => {
                let Some(record) = self.where_it_lies(record, *moves) else {
                    return;
                };
                self.put_withdrawn(&record);
            }
            Effect::Wait => match self.came_meanwhile(cancel) {
                Some(came) => self.take_out_what_came(cancel, came),
                None => {
                    let since = UnixTime(self.shared.clock.now().secs);
                    let record = cancel.waiting(since);
                    record.encode(self.record(kind::CANCEL_PENDING));
                    let (target, holder) = (record.target, record.holder);
                    if !self.shared.pending.has(&target, holder) {
                        self.open.expected.push((target, holder));
                    }
                    self.shared.await_target(&record);
                    self.shared.say_what_is_forgotten(since);
                }
            },
        }
    }

    fn put_withdrawn(&mut self, record: &WithdrawnRecord) {
        record.encode(self.record(kind::WITHDRAWN));
        self.open.withdrawn.push(record.token);
        Counters::add(&self.shared.counters.cancelled, 1);
    }

    /// Notes what was filed just now for the cancels on their way that are about it.
    pub(crate) fn note_filed(
        &self,
        candidate: &Candidate,
        arrival: UnixTime,
        places: &[(GroupId, ArticleNumber)],
    ) {
        self.shared.watched.note(&candidate.hash, || Filed {
            arrival,
            places: places.iter().copied().collect(),
            locks: candidate.locks().map(locks),
        });
    }

    /// Whether what this takes out, if it is a cancel, came after it was looked for and is on its way to the disk: where it lies is
    /// certain when it is there.
    pub(crate) fn must_wait_for_target(&self, candidate: &Candidate) -> bool {
        let Some(Asked::Cancel(cancel)) = candidate.asked.as_deref() else {
            return false;
        };
        let watch = cancel.watch.as_ref();
        watch.is_some_and(|watch| watch.filed().is_some())
            && self.shared.offers.is_sequenced(&cancel.target)
    }

    /// The target of a cancel, and where it lies, if it came after it was looked for; none: it did not, or its commit failed.
    fn came_meanwhile(&self, cancel: &Cancel) -> Option<(Filed, Option<Token>)> {
        let filed = cancel.watch.as_ref()?.filed()?;
        match self.shared.views.history().lookup(&cancel.target) {
            Ok(entry) => Some((filed, entry?.token)),
            Err(error) => {
                tracing::error!(%error, "where a cancelled article lies cannot be looked up");
                None
            }
        }
    }

    /// The same as for one that was here, by its own locks.
    fn take_out_what_came(&mut self, cancel: &Cancel, came: (Filed, Option<Token>)) {
        let (filed, token) = came;
        let policy = self.shared.policy.load();
        // Another one may have taken it out.
        let Some(token) = token.filter(|_| allows(&policy, filed.locks.as_deref(), &cancel.keys))
        else {
            return;
        };
        self.put_withdrawn(&WithdrawnRecord {
            reason: Reason::Cancelled,
            token,
            id_hash: cancel.target,
            remembered_from: self.shared.goes_at(filed.arrival),
            groups: filed.places,
        });
    }

    /// What is to be withdrawn, where it lies by now; `None`: it is gone.  Only what was looked up before a move is looked up again.
    fn where_it_lies(&self, record: &WithdrawnRecord, moves: u64) -> Option<WithdrawnRecord> {
        let mut record = record.clone();
        if moves != self.moves {
            match self.shared.views.history().lookup(&record.id_hash) {
                Ok(entry) => record.token = entry?.token?,
                // It may not have moved.
                Err(error) => {
                    tracing::error!(%error, "where a cancelled article lies cannot be looked up");
                }
            }
        }
        Some(record)
    }

    /// Tells the log again what waits for targets, so that what it said before may go.
    pub(crate) fn write_pending(&mut self) {
        for record in self.shared.pending.all() {
            record.encode(self.record(kind::CANCEL_PENDING));
        }
    }
}
