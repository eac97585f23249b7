//! The sequencer: one thread that decides the order of everything.
//!
//! It takes articles that were checked already, looks for duplicates, gives numbers, place and
//! sequence, and collects them into the open commit.  While one commit is on its way to the disk
//! the next one is collected; the next starts when the previous one ends, there is no timer.
//! A commit that comes back is applied to the views, made visible, and only then answered.
//!
//! It parses nothing, reads no socket and no disk.  Numbers and placements of an open commit are
//! seen by nobody else.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{SendError, SyncSender};
use std::time::Duration;

use newsreel_service::{Connection, ConnectionId, Defer, Outcome, Reject};
use newsreel_store::{Place, PlaceError, Store};
use newsreel_wire::{ArticleNumber, GroupId, Sequence, SetId, Token, UnixTime};
use parking_lot::Mutex;

use crate::accept::{Candidate, CandidateBatch};
use crate::admin::Unsettled;
use crate::applier::Applier;
use crate::checkpoint::{self, Checkpoints};
use crate::commit::{Commit, Committer, Delivery, Done, Entry, Job, Offered};
use crate::config::{Durability, Mode};
use crate::control::Asked;
use crate::control::touched::Touched;
use crate::counters::Counters;
use crate::error::Error;
use crate::filing::{self, GroupTable};
use crate::holds::no_place;
use crate::moving::sequencing::MoveWaiting;
use crate::places::Places;
use crate::record::{self, DueKind, FeedRecord, ReservedRecord, kind};
use crate::requests::{Request, Waiting};
use crate::room::Room;
use crate::shared::Shared;
use crate::start::Prologue;
use crate::timing::Timing;

/// What wakes the sequencer besides articles.
#[derive(Debug)]
pub(crate) enum Event {
    /// The commit thread has something to say.
    Done(Done),
    /// A checkpoint is on disk, or failed.
    Checkpoint(checkpoint::Written),
    /// An administrator asks.
    Request(Request, SyncSender<Result<(), Error>>),
}

/// After so many articles the sequencer looks whether a commit has ended.
const LOOK_EVERY: u32 = 32;

/// How long it sleeps at most: the grain of checkpoints by time.
const NAP: Duration = Duration::from_secs(1);

/// So many commits for one connection, and it is taken for the only one.
const LONE_COMMITS: u32 = 8;
/// One with so many articles under way sends more while they are written: then the next commit does grow.
const LONE_ARTICLES_MAX: u64 = 128;

/// That there is no place for articles is said no more often.
const TELL_EVERY_MS: u64 = 1000;

/// How an article came out.
enum Step {
    /// It has this place in the log.
    Filed(Sequence),
    /// It is answered with this.
    Answer(Outcome),
    /// Another copy of it is on its way to the disk.
    Copy,
    /// There is no room before the open commit has gone.
    Blocked,
    /// What it takes out is on its way to the disk.
    Held,
}

/// The state of the sequencer's thread.
#[derive(Debug)]
pub(crate) struct Sequencer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) store: Store,
    pub(crate) groups: GroupTable,
    pub(crate) epoch: u64,
    /// The sequence the next record gets.
    pub(crate) next: Sequence,
    pub(crate) jobs: SyncSender<Job>,
    pub(crate) committer: Arc<Mutex<Committer>>,
    pub(crate) lone: Lone,
    /// What became of a commit that was made durable on this thread.
    pub(crate) ended_here: Option<Done>,
    pub(crate) checkpoints: Checkpoints,
    pub(crate) applier: Applier,
    pub(crate) open: Box<Commit>,
    pub(crate) spare: Option<Box<Commit>>,
    pub(crate) committing: bool,
    /// Why the log takes nothing any more, if so.
    pub(crate) broken: Option<String>,
    /// What is to be aborted once more, and when.
    pub(crate) abort_again: Option<(Sequence, Sequence, u64)>,
    /// Stored for commits that the log did not take: cleared away when it says that they do not count.
    pub(crate) in_vain: Vec<Token>,
    pub(crate) sync: SyncState,
    pub(crate) room: Room,
    pub(crate) timing: Timing,
    /// What the first commit of this run must say, until one has said it.
    pub(crate) prologue: Option<Prologue>,
    /// A frame of so many octets takes no more articles.
    pub(crate) frame_octets_full: usize,
    /// No frame is larger.
    pub(crate) frame_octets_max: usize,
    pub(crate) scratch: Scratch,
    pub(crate) stopping: Vec<Waiting>,
    /// Changes of groups that the views do not have yet.
    pub(crate) unsettled: HashMap<GroupId, Unsettled>,
    /// The groups that were changed last.
    pub(crate) touched: Touched,
    /// A move that waits until nothing is under way.
    pub(crate) moving: Option<MoveWaiting>,
    /// How many moves the log was told of.
    pub(crate) moves: u64,
}

/// Whether one connection alone has been feeding.  It waits for its answers before it sends more, so nothing would grow while
/// another thread writes: the sequencer writes itself, and two threads less are woken for each commit.
#[derive(Debug, Default)]
pub(crate) struct Lone {
    connection: Option<ConnectionId>,
    /// Commits in a row with answers for it alone.
    commits: u32,
}

impl Lone {
    /// Notes whom a commit has answers for; whether it has been one alone for some time.
    fn note(&mut self, deliveries: &[Delivery]) -> bool {
        let connection = match deliveries {
            [only] => Some(only.sink.id()),
            _ => None,
        };
        if self.connection != connection {
            *self = Self {
                connection,
                commits: 0,
            };
        }
        self.commits = self.commits.saturating_add(1);
        self.connection.is_some() && self.commits > LONE_COMMITS
    }
}

/// When a commit without durability is synced all the same.
#[derive(Debug)]
pub(crate) struct SyncState {
    /// Everything before is on disk.
    pub(crate) durable_before: Sequence,
    /// Milliseconds, monotone.
    pub(crate) last_ms: u64,
    /// The next commit is synced whatever it holds.
    pub(crate) is_due: bool,
    /// The last commit did nothing but vouch for those before it.
    pub(crate) is_at_rest: bool,
}

/// Buffers used again for every article.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    xref: Vec<u8>,
    pub(crate) batches: VecDeque<CandidateBatch>,
    /// Those whose next candidate waits for a commit, and what came behind them from the same connections.
    held: Vec<CandidateBatch>,
    events: VecDeque<Event>,
    /// The first candidate of the first batch was begun and had no room.
    pub(crate) resumed: bool,
    /// Nothing fits before the open commit has gone.
    pub(crate) blocked: bool,
    /// ... and that commit could reserve nothing either.
    hopeless: bool,
    /// Articles without a place since that was said last, and when that was.
    put_off: u64,
    put_off_told_ms: Option<u64>,
    /// There are sets that took nothing when they were asked last.
    holds_sets: bool,
}

impl Sequencer {
    /// Runs until it is told to stop.
    pub(crate) fn run(mut self) -> Store {
        let mut events = std::mem::take(&mut self.scratch.events);
        loop {
            let hungry = self.scratch.batches.is_empty() && !self.is_full();
            let idle = hungry || self.is_full();
            if idle {
                let batches = hungry.then_some(&mut self.scratch.batches);
                self.shared.inbox.take(batches, &mut events, NAP);
            } else {
                self.shared.inbox.take_events(&mut events);
            }
            while let Some(event) = events.pop_front() {
                self.handle(event);
            }
            self.keep_time();
            self.look_for_room();
            self.sequence_some();
            self.retry_abort();
            self.sync_if_due();
            self.vouch_if_idle();
            self.checkpoint_if_due();
            self.launch();
            self.launch_move();
            while let Some(done) = self.ended_here.take() {
                self.handle(Event::Done(done));
                // What came of it has nobody else to wait for.
                self.launch();
            }
            if self.has_stopped() {
                break;
            }
        }
        let left = self.shared.inbox.close();
        let held = self.scratch.held.drain(..);
        for batch in held.chain(self.scratch.batches.drain(..)).chain(left) {
            self.shared.give_back(batch);
        }
        for waiting in self.stopping.drain(..) {
            waiting.tell();
        }
        self.store
    }

    /// True when the open commit takes no more articles.
    fn is_full(&self) -> bool {
        let config = &self.shared.config.sequencer;
        self.scratch.blocked
            || self.is_moving()
            || self.open.octets >= config.commit_octets_max as usize
            || self.open.articles >= u64::from(config.commit_articles_max)
            || self.open.frame.bytes().len() >= self.frame_octets_full
            || (config.durability == Durability::Each && self.open.articles >= 1)
    }

    /// While a move waits or is on its way, what an article cancels may lie in two places.
    fn is_moving(&self) -> bool {
        self.moving.is_some() || self.moves != self.shared.moves()
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Done(Done::Commit {
                commit,
                synced,
                failure,
                took_us,
            }) => {
                self.committing = false;
                Counters::add(&self.shared.counters.commit_us, took_us);
                match failure {
                    None => {
                        self.ended(&commit, synced);
                        self.launch_early();
                        self.committed(commit);
                    }
                    Some(failure) => self.failed(commit, failure),
                }
            }
            Event::Done(Done::Abort { aborted, result }) => self.aborted(aborted, result),
            Event::Checkpoint(written) => self.checkpoint_written(written),
            Event::Request(request, answer) => self.request(request, answer),
        }
    }

    /// Takes articles until none waits or the commit is full; looks up now and then.
    fn sequence_some(&mut self) {
        let mut count = 0;
        while !self.is_full() {
            let Some(mut batch) = self.scratch.batches.pop_front() else {
                return;
            };
            let of_same = |held: &CandidateBatch| Arc::ptr_eq(&held.sink, &batch.sink);
            let mut is_held = self.scratch.held.iter().any(of_same);
            let arrival = UnixTime(self.shared.clock.now().secs);
            while !is_held && let Some(candidate) = batch.candidates.get(batch.next) {
                let (outcome, sequence, offer) = match self.sequence_one(&batch, candidate, arrival)
                {
                    Step::Filed(sequence) => {
                        (Outcome::Accepted, Some(sequence), Offered::Sequenced)
                    }
                    Step::Answer(outcome) => {
                        self.shared.offers.finish(&candidate.hash, true);
                        (outcome, None, Offered::Finished)
                    }
                    Step::Copy => (Outcome::Duplicate, None, Offered::Copy),
                    Step::Blocked => break,
                    Step::Held => {
                        is_held = true;
                        break;
                    }
                };
                let entry = Entry {
                    ticket: candidate.ticket,
                    outcome,
                    sequence,
                    id: candidate.hash,
                    offer,
                };
                batch.next += 1;
                self.deliver_with_open(&batch.sink, entry);
                count += 1;
                if self.is_full() || (count % LOOK_EVERY == 0 && self.shared.inbox.has_events()) {
                    break;
                }
            }
            if is_held {
                self.scratch.held.push(batch);
                continue;
            }
            if batch.next < batch.candidates.len() {
                self.scratch.batches.push_front(batch);
                return;
            }
            self.open.ended.extend(batch.ended.take());
            self.shared.accept.recycle(batch);
        }
    }

    /// A commit has ended: puts those that were held in front of what came later, behind one that was begun.
    pub(crate) fn take_up_held(&mut self) {
        let Scratch {
            batches,
            held,
            resumed,
            ..
        } = &mut self.scratch;
        let at = usize::from(*resumed).min(batches.len());
        for batch in held.drain(..).rev() {
            batches.insert(at, batch);
        }
    }

    /// Puts an answer behind those of the open commit.
    fn deliver_with_open(&mut self, sink: &Arc<Connection>, entry: Entry) {
        match self.open.deliveries.last_mut() {
            Some(delivery) if Arc::ptr_eq(&delivery.sink, sink) => delivery.entries.push(entry),
            _ => self.open.deliveries.push(Delivery {
                sink: Arc::clone(sink),
                entries: vec![entry],
            }),
        }
    }

    /// Duplicate check, numbers, place, record.
    fn sequence_one(
        &mut self,
        batch: &CandidateBatch,
        candidate: &Candidate,
        arrival: UnixTime,
    ) -> Step {
        if !self.scratch.resumed {
            if self.must_wait_for_target(candidate) {
                return Step::Held;
            }
            if self.lacks_room(candidate) {
                self.scratch.blocked = true;
                return Step::Blocked;
            }
        }
        let resumed = std::mem::take(&mut self.scratch.resumed);
        // A copy of one whose commit is under way is answered behind it, see `settle`.
        if !resumed && !self.shared.offers.sequence(&candidate.hash) {
            return Step::Copy;
        }
        if self.broken.is_some() {
            return Step::Answer(Outcome::Failed);
        }
        if self.room.is_full {
            return Step::Answer(Outcome::Deferred(Defer::Full));
        }
        if !resumed {
            match self
                .shared
                .is_known(&candidate.hash, Some(candidate.generation))
            {
                Ok(false) => {}
                Ok(true) => return Step::Answer(Outcome::Duplicate),
                Err(error) => {
                    tracing::error!(%error, "history lookup failed; the article is put off");
                    return Step::Answer(Outcome::Failed);
                }
            }
            if self.is_cancelled(candidate) {
                return Step::Answer(Outcome::Rejected(Reject::Cancelled));
            }
        }
        self.file(batch, candidate, arrival)
    }

    /// The numbers of an article in its groups; none of transit, and of control messages without a group of theirs.
    fn numbers(&self, candidate: &Candidate) -> Result<Places, Reject> {
        if self.shared.config.sequencer.mode == Mode::Transit {
            return Ok(Places::default());
        }
        let numbers = match &candidate.kept {
            None => self.groups.numbers(&candidate.groups),
            Some(kept) => self.groups.numbers_from(kept.places.iter().copied()),
        };
        if numbers.is_empty() && !candidate.is_control {
            return Err(match self.groups.is_any_full(&candidate.groups) {
                true => Reject::GroupFull,
                false => Reject::UnknownGroups,
            });
        }
        Ok(numbers)
    }

    /// Gives an article that is not here yet its numbers, its place and its record.
    fn file(&mut self, batch: &CandidateBatch, candidate: &Candidate, arrival: UnixTime) -> Step {
        let arrival = candidate.kept.as_ref().map_or(arrival, |kept| kept.arrival);
        let numbers = match self.numbers(candidate) {
            Ok(numbers) => numbers,
            Err(why) => return Step::Answer(Outcome::Rejected(why)),
        };
        let xref = &mut self.scratch.xref;
        xref.clear();
        if !numbers.is_empty() {
            filing::write_xref_line(xref, &self.shared.path_identity, &numbers, &self.groups);
        }
        // Only the overview keeps it.
        let expires = candidate.expires.filter(|_| !numbers.is_empty());
        let is_fed = candidate.kept.is_none() && self.shared.feeds.are_there();
        let sequence = Sequence(self.next.0 + u64::from(expires.is_some()) + u64::from(is_fed));
        let placed = {
            let entry = batch.path_entry.of(candidate.is_mismatched);
            let (parts, head_len) = filing::parts(candidate, entry, &self.scratch.xref);
            let place = Place {
                sequence,
                arrival,
                id_hash: candidate.hash,
                id: candidate.id(),
                set: candidate.set,
                format: candidate.format,
                xref: filing::xref_content(&self.scratch.xref),
                article: &parts,
                head_len: u32::try_from(head_len).unwrap_or(u32::MAX),
            };
            self.store.place_or_refer(&place, candidate.lies_at())
        };
        let token = match placed {
            Ok(token) => token,
            Err(PlaceError::NeedsReservation) if !std::mem::take(&mut self.scratch.hopeless) => {
                self.scratch.resumed = true;
                self.scratch.blocked = true;
                return Step::Blocked;
            }
            Err(PlaceError::TooLarge { .. }) => {
                return Step::Answer(Outcome::Rejected(Reject::TooLarge));
            }
            Err(error) => return Step::Answer(self.put_off(candidate.set, error)),
        };
        self.scratch.hopeless = false;
        self.takes_again(candidate.set);
        self.groups.take(&numbers);
        if is_fed {
            let facts = FeedRecord {
                is_posted: batch.is_posted,
                is_control: candidate.is_control,
                content: candidate.fed.content,
                newsgroups: candidate.part(&candidate.fed.newsgroups),
                distribution: candidate.part(&candidate.fed.distribution),
            };
            facts.encode(self.open.frame.record(kind::FEED));
        }
        if let Some(expires) = expires {
            let record = self.open.frame.record(kind::EXPIRES);
            record.extend_from_slice(&expires.0.to_le_bytes());
        }
        self.write_record(batch, candidate, arrival, &token, &numbers);
        self.open.octets += token.len() as usize;
        self.open.articles += 1;
        self.next = sequence.next();
        self.note_filed(candidate, arrival, &numbers);
        self.do_what_it_asks(batch, candidate, sequence);
        Step::Filed(sequence)
    }

    /// Puts what comes of it, if it asks for something, behind it.
    fn do_what_it_asks(&mut self, batch: &CandidateBatch, candidate: &Candidate, at: Sequence) {
        match candidate.asked.as_deref() {
            Some(Asked::Cancel(cancel)) => self.take_out(cancel),
            Some(Asked::Groups(it)) => self.heed(it, candidate, at, batch.holder()),
            Some(Asked::Notice(_)) => self.note_due(candidate.hash, Some(DueKind::Notice)),
            asked => debug_assert!(asked.is_none(), "a signature was not looked at"),
        }
    }

    /// An article got no place: says why, and how many since that was said last, for peers offer them as fast as they can.
    pub(crate) fn put_off(&mut self, set: SetId, error: PlaceError) -> Outcome {
        let (defer, why) = no_place(error);
        let now = self.shared.time.calendar();
        self.shared.holds.lock().put_off(set, why, now);
        self.scratch.holds_sets = true;
        let now_ms = self.shared.now_ms();
        self.scratch.put_off += 1;
        let told_ms = self.scratch.put_off_told_ms;
        if told_ms.is_none_or(|told_ms| now_ms.saturating_sub(told_ms) >= TELL_EVERY_MS) {
            let articles = std::mem::take(&mut self.scratch.put_off);
            let sets = &self.shared.config.store.sets;
            let set = sets.get(usize::from(set.0)).map(|set| &set.name);
            tracing::error!(
                set,
                why,
                articles,
                "no place for articles; they are put off"
            );
            self.scratch.put_off_told_ms = Some(now_ms);
        }
        Outcome::Deferred(defer)
    }

    /// A set took an article.
    fn takes_again(&mut self, set: SetId) {
        if self.scratch.holds_sets {
            let mut holds = self.shared.holds.lock();
            holds.sets.retain(|held| held.set != set);
            self.scratch.holds_sets = !holds.sets.is_empty();
        }
    }

    /// Puts the article's record into the open frame; Xref is in the scratch buffer.
    fn write_record(
        &mut self,
        batch: &CandidateBatch,
        candidate: &Candidate,
        arrival: UnixTime,
        token: &Token,
        numbers: &[(GroupId, ArticleNumber)],
    ) {
        let path_entry = batch.path_entry.of(candidate.is_mismatched);
        let octets = candidate.octets
            + u32::try_from(path_entry.len() + self.scratch.xref.len()).unwrap_or(0);
        let article = &candidate.article[..];
        let id = candidate.id();
        let path = &article[candidate.path.start as usize..candidate.path.end as usize];
        let path_len = path_entry.len() + path.len();
        let out = self.open.frame.record(kind::ARTICLE);
        record::encode_article_head(
            out,
            token,
            &candidate.hash,
            arrival,
            octets,
            numbers,
            (id.len(), path_len),
        );
        out.extend_from_slice(id);
        out.extend_from_slice(path_entry);
        out.extend_from_slice(path);
        if !numbers.is_empty() {
            out.extend_from_slice(&batch.text[candidate.line.clone()]);
            let mut digits = itoa::Buffer::new();
            for number in [octets, candidate.lines] {
                out.push(b'\t');
                out.extend_from_slice(digits.format(number).as_bytes());
            }
            out.push(b'\t');
            out.extend_from_slice(&self.scratch.xref[..self.scratch.xref.len() - 2]);
        }
    }

    /// Sends the open commit on its way if none is under way and there is something in it, or the stores may let something go.
    fn launch(&mut self) {
        if self.committing || self.open.is_idle() && !self.scratch.blocked && !self.must_ask() {
            return;
        }
        if let Some(why) = self.broken.clone() {
            self.refuse_open(&why);
            return;
        }
        let from = self.open.reservations.len();
        let now = self.shared.time.judging();
        self.store.reservations(now, &mut self.open.reservations);
        let is_for_room = self.scratch.blocked && self.scratch.resumed;
        let has_some = self.open.reservations.len() > from;
        self.scratch.hopeless = is_for_room && !has_some;
        self.room.asked(self.shared.now_ms(), has_some);
        for reservation in &self.open.reservations[from..] {
            let out = self.open.frame.record(kind::RESERVED);
            ReservedRecord {
                buffer: reservation.buffer,
                up_to: reservation.up_to,
            }
            .encode(out);
            self.next = Sequence(self.next.0 + 1);
        }
        self.store.seal(&mut self.open.writes);
        if self.open.frame.is_empty() && !self.open.writes.is_empty() {
            // Withdrawn articles are overwritten, or their files removed; what a commit writes has a place in the log.
            let _ = self.record(kind::HOLE);
        }
        let fresh = self.spare.take().unwrap_or_default();
        let commit = std::mem::replace(&mut self.open, fresh);
        self.open.frame.start(self.next, self.epoch);
        if commit.frame.is_empty() {
            // Only answers that had to wait for the commit before, or nothing may go: nothing to write.
            self.committed(commit);
            return;
        }
        self.send(commit);
    }

    /// A commit has ended well: the next goes to the disk while the views are brought up to this one and its peers are
    /// answered, where it would not grow meanwhile.
    fn launch_early(&mut self) {
        let is_whole = !self.scratch.blocked && self.scratch.batches.is_empty();
        // Answers alone wait for the views.
        if is_whole && self.broken.is_none() && !self.open.frame.is_empty() {
            self.launch();
        }
    }

    /// Hands a commit to its thread.
    pub(crate) fn send(&mut self, mut commit: Box<Commit>) {
        commit.frame.vouch(self.sync.durable_before);
        self.room.note(commit.frame.bytes().len());
        let sync = self.sync_now(&commit);
        self.committing = true;
        let is_lone = self.lone.note(&commit.deliveries);
        let is_small = commit.articles <= LONE_ARTICLES_MAX;
        let job = Job::Commit { commit, sync };
        if is_lone && is_small {
            let clock = self.shared.clock.as_ref();
            self.ended_here = Some(self.committer.lock().carry_out(job, clock));
            return;
        }
        if let Err(SendError(job)) = self.jobs.send(job) {
            self.committing = false;
            let why = "the commit thread has ended".to_owned();
            self.break_down(why.clone());
            if let Job::Commit { commit, .. } = job {
                self.refuse(commit, &why);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deliveries to these connections.
    fn to(ids: &[u64]) -> Vec<Delivery> {
        let delivery = |id: &u64| Delivery {
            sink: Arc::new(Connection::new(ConnectionId(*id), None, None)),
            entries: Vec::new(),
        };
        ids.iter().map(delivery).collect()
    }

    /// Its commits are made here from the ninth on; whoever comes beside it has them made elsewhere again at once.
    #[test]
    fn who_feeds_alone_is_known_after_some_commits_and_forgotten_at_once() {
        let mut lone = Lone::default();
        for others in [to(&[2]), to(&[1, 2]), Vec::new()] {
            for _ in 0..LONE_COMMITS {
                assert!(!lone.note(&to(&[1])));
            }
            assert!(lone.note(&to(&[1])) && lone.note(&to(&[1])));
            assert!(!lone.note(&others), "{others:?}");
        }
        // Answers for nobody are nobody alone.
        assert!((0..=LONE_COMMITS).all(|_| !lone.note(&[])));
    }
}
