//! What comes of newgroup, rmgroup and checkgroups when they come: done by a rule, or left for approval.
//!
//! The rules are asked on the session's thread, or, of a list and where a signature is wanted, on one that may wait.  What a message
//! asks for is worked out once more by the sequencer, in order, for the groups as they are when its turn comes: of two about one group that
//! are read in the same moment the second is done behind the first.  What is done goes into the log in one frame with the message,
//! and so does that it waits for approval.

use newsreel_host::LineLimit;
use newsreel_wire::article::{Headers, Known, RelayFacts};
use newsreel_wire::{IdHash, Sequence, UnixTime};

use super::groups::{self, Changes, Message, Verb};
use super::judged::{LATE, Look, TOO_MUCH, changes_max, judge};
use super::keyring::{Keyring, OpenedKeyring, Signer};
use super::lines::Lines;
use super::meaning::Meaning;
use super::rules::{Action, becomes};
use super::shares::Holder;
use super::{Asked, nocem, signed};
use crate::accept::{Candidate, CandidateBatch};
use crate::admin::{
    GROUP_OCTETS, GROUP_TEXT_OCTETS_MAX, RECORD_OCTETS, octets_to_make, octets_to_set,
};
use crate::config::Mode;
use crate::error::Error;
use crate::local::{LocalService, blocking};
use crate::record::{DueKind, HeededRecord, WaitingRecord};
use crate::sequencer::Sequencer;
use crate::shared::{Policy, Shared};

/// Who signed a message, or why it counts as not signed.
pub(super) type Signed = Result<Signer, String>;

/// A message that the sequencer is to heed, and what was found out of it before its turn.
#[derive(Debug)]
pub(crate) struct Heeding {
    pub(super) message: Message,
    /// Who signed it whose key is in the keyring.
    pub(super) signer: Option<Signer>,
    /// What is remembered of it.
    pub(super) record: HeededRecord,
    /// The groups were compared with it when the views had all up to here, at least.
    pub(super) compared: Sequence,
    /// Of which of them something is to be done.
    pub(super) done: Vec<String>,
    /// Octets that this takes in the log, at most.
    pub(super) octets: usize,
    /// It counts as heeded, whatever is left to do.
    pub(crate) is_heeded: bool,
    /// So much else of it waits for approval.
    pub(super) waiting: usize,
    /// A mail tells of some of that, or of what it asks for when its turn comes.
    pub(crate) is_mailed: bool,
    /// Why, where a rule would have done it.
    pub(super) held_back: Option<&'static str>,
    /// Somebody approved it: what it asks for is done, whatever the rules say.
    pub(super) is_approved: bool,
}

/// Octets in the log, apart from the changes and the record itself, of that a message was heeded and waits no longer.
const NOTED_OCTETS: usize = WaitingRecord::OCTETS + 2 * RECORD_OCTETS;

/// What comes of it when its turn comes.
#[derive(Debug, Default)]
struct Turn {
    changes: Changes,
    is_heeded: bool,
    /// So much of it waits for approval.
    waiting: usize,
    /// Of something else all is as it wants it, and no rule would do it or drop it: it may ask for it when others change that.
    is_left: bool,
    /// A mail tells of some of what waits.
    is_mailed: bool,
    /// Why, where a rule would have done it.
    held_back: Option<&'static str>,
}

/// Who signed a message, by these keys.
pub(super) fn signer(keyring: &OpenedKeyring, headers: &Headers<'_>) -> Result<Signed, Error> {
    let signed = match signed::read(headers) {
        Ok(signed) => signed,
        Err(why) => return Ok(Err(why)),
    };
    keyring.signer(&signed.signature, &signed.text)
}

impl Shared {
    /// The keys of the spool.
    pub(super) fn keyring(&self) -> OpenedKeyring {
        Keyring::of_spool(self.disk.clone(), &self.config.spool).opened()
    }
}

/// A message of which the rules want to know who signed it, that a mail is to tell of, or that may be long.
#[derive(Debug)]
pub(crate) struct Unproved {
    /// As far as it was read.
    message: Option<Message>,
}

/// Who LIST ACTIVE.TIMES names for what this message makes.
fn creator(message: &Message) -> &str {
    let is_plain = |text: &str| !text.contains(|c: char| c.is_control() || c == ' ');
    match &message.sender {
        sender if sender.len() <= GROUP_TEXT_OCTETS_MAX && is_plain(sender) => sender,
        _ => "control",
    }
}

/// What is to be done at once for this article, as far as it can be told here.
pub(crate) fn at_once(
    shared: &Shared,
    policy: &Policy,
    headers: &Headers<'_>,
    relay: &RelayFacts<'_>,
) -> Option<Asked> {
    if shared.config.sequencer.mode == Mode::Transit {
        return None;
    }
    let unproved = |message| Some(Asked::Signed(Box::new(Unproved { message })));
    let verb = groups::verb_of(headers)?;
    if verb == Verb::Checkgroups {
        // It may have any number of lines.
        let sender = groups::sender(headers).unwrap_or_default();
        let is_dropped = policy.rules.of(verb, &sender).drop_all();
        return if is_dropped { None } else { unproved(None) };
    }
    let id = relay.message_id;
    let message = read(shared, headers, id.as_str())?;
    let rules = policy.rules.of(message.verb(), &message.sender);
    let is_signed = signed::is_signed(headers);
    let must_wait = |name: &str| match rules.action(name) {
        Action::Verify(_) | Action::Mail => true,
        Action::Log => is_signed,
        Action::Doit | Action::Drop => false,
    };
    if message.meaning.named().any(must_wait) {
        return unproved(Some(message));
    }
    let came = UnixTime(shared.clock.now().secs);
    let judged = judge(shared, policy, &message, None, came, Look::AsItComes);
    let heeding = judged.decide(message, None);
    heeding
        .may_do_something(policy)
        .then(|| Asked::Groups(heeding))
}

/// A message about groups that is none, or malformed, does nothing; the log is told of the latter.
fn read(shared: &Shared, headers: &Headers<'_>, id: &str) -> Option<Message> {
    let read = groups::read(headers)?;
    read.inspect_err(|why| {
        if let Some(more) = shared.may_say(|lines| &lines.malformed) {
            tracing::info!(%id, why, more, "a control message is malformed and changes nothing");
        }
    })
    .ok()
}

/// What is to be done for a message that came then, if somebody signed it whose word counts; the log is told where that is not as the
/// rules want it.
fn proved(shared: &Shared, wire: &[u8], unproved: Unproved) -> Option<Heeding> {
    let policy = shared.policy.load();
    let headers = Headers::scan_within(wire, policy.articles.header_limits()).ok()?;
    let id = headers.content(Known::MessageId).unwrap_or_default();
    let id = String::from_utf8_lossy(id);
    let message = match unproved.message {
        Some(message) => message,
        None => read(shared, &headers, &id)?,
    };
    let came = UnixTime(shared.clock.now().secs);
    let signed = signer(&shared.keyring(), &headers).unwrap_or_else(|error| {
        if let Some(more) = shared.may_say(|lines| &lines.not_verified) {
            tracing::error!(%id, %error, more, "a control message cannot be verified");
        }
        Err("the keyring cannot be read".to_owned())
    });
    let signed = in_time(signed, &policy, &message, came);
    say_whose_signature_is_missing(shared, &policy, &id, &message, &signed);
    let signer = signed.ok();
    let judged = judge(
        shared,
        &policy,
        &message,
        signer.as_ref(),
        came,
        Look::AsItComes,
    );
    let heeding = judged.decide(message, signer);
    heeding.may_do_something(&policy).then_some(heeding)
}

fn say_whose_signature_is_missing(
    shared: &Shared,
    policy: &Policy,
    id: &str,
    message: &Message,
    signed: &Signed,
) {
    let rules = policy.rules.of(message.verb(), &message.sender);
    let mut named = message.meaning.named();
    let wanted = named.find_map(|name| match rules.action(name) {
        Action::Verify(key) if !signed.as_ref().is_ok_and(|it| it.is(&key)) => Some((name, key)),
        _ => None,
    });
    if let Some((group, key)) = wanted
        && let Some(more) = shared.may_say(|lines| &lines.not_signed)
    {
        let why = match signed {
            Ok(signer) => format!("{} signed it", signer.names.join(", ")),
            Err(why) => why.clone(),
        };
        tracing::info!(
            %id, verb = message.verb().name(), group, key = &*key, why, more,
            "a control message is not signed as the rules want it, and changes nothing"
        );
    }
}

/// Nobody's signature counts of a message that was older than articles may be when it came.  Injection-Date is not signed: with
/// a new one anybody could send an old message again.
pub(super) fn in_time(
    signed: Signed,
    policy: &Policy,
    message: &Message,
    came: UnixTime,
) -> Signed {
    let most = policy.articles.age_s_max;
    let date = message.date.unwrap_or(came);
    match signed {
        Ok(_) if most > 0 && came.0.saturating_sub(date.0) > most => {
            Err("it is too old".to_owned())
        }
        signed => signed,
    }
}

impl LocalService {
    /// Decides what comes of the messages and notices among these candidates that somebody must have signed, or that are long.
    pub(crate) async fn settle_signed(&self, batch: &mut CandidateBatch) {
        for candidate in &mut batch.candidates {
            let asked = match candidate.asked.take().map(|asked| *asked) {
                Some(Asked::Signed(unproved)) => {
                    let wire = candidate.article.clone();
                    let work = move |shared: &Shared| proved(shared, &wire, *unproved);
                    let heeding = blocking(&self.shared, work).await.ok().flatten();
                    heeding.map(Asked::Groups)
                }
                Some(Asked::Notice(notice)) => {
                    let work = move |shared: &Shared| {
                        let signer = nocem::trusted(shared, &notice).ok().flatten();
                        signer.map(|_| notice)
                    };
                    let notice = blocking(&self.shared, work).await.ok().flatten();
                    notice.map(Asked::Notice)
                }
                other => other,
            };
            candidate.asked = asked.map(Box::new);
        }
    }
}

impl Heeding {
    /// Whether anything may come of it when its turn comes, whatever is done before.
    fn may_do_something(&self, policy: &Policy) -> bool {
        let rules = policy.rules.of(self.message.verb(), &self.message.sender);
        let is_dropped = |name| becomes(&rules.action(name), self.signer.as_ref()) == Action::Drop;
        self.is_heeded || self.waiting > 0 || !self.message.meaning.named().all(is_dropped)
    }
}

impl Sequencer {
    /// Whether what a message changes may have no room in this frame, and more in the next one.
    pub(crate) fn lacks_room(&self, candidate: &Candidate) -> bool {
        let Some(Asked::Groups(heeding)) = candidate.asked.as_deref() else {
            return false;
        };
        !self.open.frame.is_empty() && !self.fits(heeding.octets)
    }

    /// Puts the changes that a message asks for behind it, into the same frame, and that something of it waits.
    pub(crate) fn heed(
        &mut self,
        heeding: &Heeding,
        candidate: &Candidate,
        at: Sequence,
        holder: Holder,
    ) {
        let mut turn = self.turn_of(heeding);
        if turn.is_heeded {
            let changes_groups = turn.changes.count() > 0;
            let mut record = heeding.record.clone();
            record.at = at;
            if let Err(error) = self.do_what_is_asked(&turn.changes, record) {
                if let Some(more) = self.shared.may_say(|lines| &lines.not_done) {
                    tracing::error!(%error, more, "what a control message asks for was not done");
                }
                turn.is_heeded = false;
                turn.waiting += turn.changes.count().max(1);
            }
            if changes_groups {
                self.open.changes_groups = true;
                self.groups_changed();
            }
        }
        self.say_what_came_of_it(candidate.id(), heeding, &turn);
        if turn.waiting > 0 || turn.is_left {
            let signer = heeding.signer.as_ref();
            self.note_waiting(&WaitingRecord {
                id: candidate.hash,
                since: UnixTime(self.shared.clock.now().secs),
                holder: signer.map_or(holder, |signer| Holder::of_key(signer.fingerprint())),
                is_signed: signer.is_some(),
                is_over: false,
                is_idle: turn.waiting == 0,
            });
        }
        if turn.is_mailed {
            self.note_due(candidate.hash, Some(DueKind::Mail));
        }
    }

    /// Tells the log what came of a message when its turn came.
    fn say_what_came_of_it(&self, id: &[u8], heeding: &Heeding, turn: &Turn) {
        let id = String::from_utf8_lossy(id);
        let message = &heeding.message;
        let (verb, sender) = (message.verb().name(), &message.sender);
        if turn.waiting > 0
            && let Some(more) = self.shared.may_say(|lines| &lines.waits)
        {
            tracing::info!(
                %id, verb, sender, waiting = turn.waiting, held_back = turn.held_back, more,
                "a control message waits for approval: `newsreel control show` says what it asks for, `newsreel control \
                 approve` does it"
            );
        }
        let changes = turn.changes.count();
        let kind: fn(&Lines) -> &LineLimit = match changes {
            0 => |lines| &lines.heeded,
            _ => |lines| &lines.changes,
        };
        if turn.is_heeded
            && let Some(more) = self.shared.may_say(kind)
        {
            tracing::info!(%id, verb, sender, changes, more, "a control message is heeded");
        }
    }

    /// Does what somebody approved.
    ///
    /// # Errors
    /// What cannot be done; then nothing was.
    pub(crate) fn approve(&mut self, heeding: &Heeding, id: IdHash) -> Result<(), Error> {
        let turn = self.turn_of(heeding);
        self.do_what_is_asked(&turn.changes, heeding.record.clone())?;
        self.open
            .approved
            .extend(self.shared.waiting.record_of(&id));
        // Whatever others that are approved behind it do, this one waits no longer.
        self.note_waiting(&WaitingRecord {
            id,
            since: UnixTime(self.shared.clock.now().secs),
            holder: Holder::of_approval(),
            is_signed: false,
            is_over: true,
            is_idle: false,
        });
        Ok(())
    }

    /// What comes of a message now: what it asks for of the groups as they are, in this commit and the one before, too.
    fn turn_of(&self, heeding: &Heeding) -> Turn {
        let policy = self.shared.policy.load();
        let message = &heeding.message;
        let rules = policy.rules.of(message.verb(), &message.sender);
        let most = match heeding.is_approved {
            true => usize::MAX,
            false => changes_max(&policy, message),
        };
        let is_one = !message.is_list();
        // Of a list all the rest was looked at before.
        let (mut waiting, mut held_back) = match is_one {
            true => (0, None),
            false => (heeding.waiting, heeding.held_back),
        };
        let (mut asks, mut some_is_done, mut is_left) = (Vec::new(), false, false);
        let mut is_mailed = !is_one && heeding.is_mailed;
        for name in self.groups_to_look_at(heeding) {
            let becomes = becomes(&rules.action(name), heeding.signer.as_ref());
            let may_be_done = becomes == Action::Doit && (is_one || heeding.is_heeded);
            let is_late = may_be_done && self.shared.heeded.is_late(&heeding.record, name);
            let is_done = heeding.is_approved || may_be_done && !is_late;
            some_is_done |= is_done;
            let there = self.fields_of(name);
            let there = there.as_ref().map(|(status, text)| (&**status, &**text));
            let asked = message.meaning.asks_of(name, there);
            match becomes {
                _ if is_done => asks.extend(asked),
                Action::Doit | Action::Log | Action::Mail => {
                    is_left |= asked.is_none();
                    is_mailed |= asked.is_some() && becomes == Action::Mail;
                    if asked.is_some() {
                        waiting += 1;
                        held_back = held_back.or(is_late.then_some(LATE));
                    }
                }
                Action::Drop | Action::Verify(_) => {}
            }
            if asks.len() > most {
                return Turn {
                    waiting: waiting + heeding.done.len().max(asks.len()),
                    is_mailed,
                    held_back: Some(TOO_MUCH),
                    ..Turn::default()
                };
            }
        }
        let is_heeded = match is_one {
            _ if heeding.is_approved => true,
            true => some_is_done,
            false => {
                let is_superseded = || self.shared.heeded.is_superseded(&heeding.record);
                heeding.is_heeded && (some_is_done || !is_superseded())
            }
        };
        Turn {
            changes: Changes::of(asks, creator(message)),
            is_heeded,
            waiting,
            is_left: match is_one {
                true => is_left,
                // Of a list not all was looked at.
                false => !is_heeded || !heeding.record.is_done_of_all(),
            },
            is_mailed,
            held_back,
        }
    }

    /// The groups of which something may have to be done: those that were found before, and what was changed since.
    fn groups_to_look_at<'a>(&'a self, heeding: &'a Heeding) -> Vec<&'a str> {
        let Meaning::Checkgroups { .. } = &heeding.message.meaning else {
            return heeding.message.meaning.named().collect();
        };
        let found = heeding.done.iter().map(String::as_str);
        let mut names: Vec<&str> = match self.touched.since(heeding.compared) {
            Some(touched) => found.chain(touched).collect(),
            None => self
                .groups
                .names()
                .chain(heeding.message.meaning.named())
                .collect(),
        };
        names.retain(|name| heeding.message.meaning.is_about(name));
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Changes groups as a message asked, all or nothing, and notes that it was heeded.
    fn do_what_is_asked(&mut self, changes: &Changes, record: HeededRecord) -> Result<(), Error> {
        let set = self.check_set(&changes.set)?;
        self.check_made(&changes.make)?;
        let existing = |name: &String| Ok((self.existing(name)?, name.clone()));
        let removed: Result<Vec<_>, Error> = changes.remove.iter().map(existing).collect();
        let removed = removed?;
        let of_groups = octets_to_set(&set) + octets_to_make(&changes.make);
        let octets = of_groups + removed.len() * GROUP_OCTETS + record.octets() + NOTED_OCTETS;
        if octets > self.frame_octets_max {
            return Err(Error::Group(
                "these are more changes than one log frame holds; enlarge log.segment_octets"
                    .to_owned(),
            ));
        }
        if !self.fits(octets) {
            return Err(Error::FrameFull);
        }
        self.set_checked(&set);
        self.make_checked(&changes.make);
        for (id, name) in &removed {
            self.remove_existing(*id, name);
        }
        self.note_heeded(record);
        Ok(())
    }
}
