//! What comes of newgroup, rmgroup and checkgroups: done by a rule, or told and done when somebody approves it.
//!
//! The rules are asked on the session's thread; where they want a signature it is verified on one that may wait.  What is to be
//! done goes into the log in one frame with the message, and so does that it waits for approval: what it asks for is read again in the
//! message when somebody wants to know.

use newsreel_store::{Blocking, ReadError, Stored, Want};
use newsreel_wire::article::{Headers, Known, RelayFacts};
use newsreel_wire::{IdHash, Sequence, Token, UnixTime};
use serde::Serialize;

use super::groups::{self, Changes, GroupAsked, Message, Verb};
use super::heeded::{HEEDED_RECORD_OCTETS_MAX, List};
use super::keyring::{Keyring, Signer};
use super::pending::Holder;
use super::rules::Action;
use super::{Asked, nocem, signed, told};
use crate::accept::CandidateBatch;
use crate::admin::GROUP_TEXT_OCTETS_MAX;
use crate::config::Mode;
use crate::engine::Engine;
use crate::error::Error;
use crate::local::{LocalService, blocking};
use crate::record::{HeededRecord, Said, WaitingRecord};
use crate::report::ArticleRef;
use crate::requests::Request;
use crate::sequencer::Sequencer;
use crate::shared::{Policy, Shared};

/// Of a message that waits so much of what it asks for is listed, the rest is counted: a checkgroups may ask for 100,000 things.
pub const ASKS_LISTED_MAX: usize = 3;

/// Octets of the content of Control, and of the address in From, that are listed.
const LISTED_TEXT_OCTETS_MAX: usize = 128;

/// One thing that a message asks for, and what the rules say to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AskedByRule {
    /// What.
    #[serde(flatten)]
    pub asked: GroupAsked,
    /// `doit`, `log`, `mail`, `drop` or `verify-` and a key.
    pub rule: String,
    /// What becomes of it so: `doit`, `log`, `mail` or `drop`.
    pub becomes: String,
}

/// A message about groups, as administrators see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ControlReport {
    /// Its message-id.
    pub message_id: String,
    /// When it came, seconds since 1970.
    pub arrival: u64,
    /// The content of Control.
    pub control: String,
    /// The address in From; nobody has proved that it is theirs.
    pub sender: String,
    /// Whose signature it has, or what is wrong with it; none: it has none.
    pub signature: Option<String>,
    /// What it would change here now.
    pub asks: Vec<AskedByRule>,
    /// How much more that is, where only the first are listed.
    pub more: usize,
    /// Why it asks for nothing, if something is wrong with it.
    pub problem: Option<&'static str>,
}

/// Who signed a message, or why it counts as not signed.
pub(super) type Signed = Result<Signer, String>;

/// What becomes of what a rule is for, now that it is known who signed.
pub(super) fn becomes(rule: &Action, signer: Option<&Signer>) -> Action {
    match rule {
        Action::Verify(key) => match signer {
            Some(signer) if signer.is(key) => Action::Doit,
            _ => Action::Drop,
        },
        rule => rule.clone(),
    }
}

/// What comes of a message: the one truth for what is done when it comes, and for what administrators are told of it.
#[derive(Debug)]
pub(super) struct Judged {
    /// What it asks for, the rule for that, and what becomes of it so.
    asks: Vec<(GroupAsked, Action, Action)>,
    /// It is heeded, at least in part, though nothing may be left to do.
    is_heeded: bool,
    /// As it is remembered if so.
    record: HeededRecord,
    /// Why something waits that a rule would have done.
    held_back: Option<&'static str>,
    /// Somebody signed it whose key is in the keyring.
    is_signed: bool,
}

/// Judges a message that came then, by the rules that hold now and by what was heeded.
fn judge(
    shared: &Shared,
    policy: &Policy,
    message: &Message,
    signer: Option<&Signer>,
    came: UnixTime,
) -> Judged {
    let record = remembered(message, signer, came);
    let rules = policy.rules.of(message.verb, &message.sender);
    let ruled = message.asked.iter().map(|asked| {
        let rule = rules.action(asked.name());
        let becomes = becomes(&rule, signer);
        (asked.clone(), rule, becomes)
    });
    let mut asks: Vec<_> = ruled.collect();
    let may_be_done = |name: &&String| becomes(&rules.action(name), signer) == Action::Doit;
    let heeded: Vec<&String> = message.about.iter().filter(may_be_done).collect();
    // The sequencer may wait for this: no rule is looked up meanwhile.
    let look = shared.heeded.look();
    let newer = look.by(policy);
    // What is too much is so whether or not some of it is late.
    let (mut is_late, mut done) = (false, 0);
    for (asked, _, becomes) in asks.iter_mut().filter(|it| it.2 == Action::Doit) {
        done += 1;
        if newer.is_late(&record, asked.name()) {
            (is_late, *becomes) = (true, Action::Log);
        }
    }
    let is_heeded = heeded.iter().any(|name| !newer.is_late(&record, name));
    let is_list = message.verb == Verb::Checkgroups;
    let held_back = if is_list && done > policy.control.checkgroups_changes_max as usize {
        Some("it changes more groups than control.checkgroups_changes_max")
    } else if record.octets() > HEEDED_RECORD_OCTETS_MAX {
        Some("it names too many hierarchies")
    } else {
        None
    };
    if held_back.is_some() {
        for (_, _, becomes) in asks.iter_mut().filter(|it| it.2 == Action::Doit) {
            *becomes = Action::Log;
        }
    }
    Judged {
        is_heeded: is_heeded && held_back.is_none(),
        held_back: held_back.or(is_late.then_some("a newer one was heeded")),
        is_signed: signer.is_some(),
        asks,
        record,
    }
}

/// Names of a key that are remembered, and octets of one: real keys have some.
const NAMES_MAX: usize = 16;
const NAME_OCTETS_MAX: usize = 128;

/// A message as it is remembered when it was heeded.
fn remembered(message: &Message, signer: Option<&Signer>, came: UnixTime) -> HeededRecord {
    let said = match (&message.scope, message.about.first()) {
        (None, Some(group)) => Said::OfGroup(group.clone()),
        (scope, _) => Said::List(List {
            serial: message.serial,
            scope: scope.clone().unwrap_or_default(),
            sender: message.sender.clone(),
            signer: signer.map(|signer| {
                let names = signer.names.iter().filter(|it| it.len() <= NAME_OCTETS_MAX);
                let names = names.take(NAMES_MAX).cloned().collect();
                Signer::new(names, signer.fingerprint().to_owned())
            }),
            is_approved: false,
        }),
    };
    HeededRecord {
        at: Sequence(0),
        // What is written ahead of time keeps nothing back that is written until then.
        date: message.date.map_or(came, |date| date.min(came)),
        said,
    }
}

/// What is done for a message, and what is remembered of it.
#[derive(Debug, Clone)]
pub(crate) struct Heeding {
    changes: Changes,
    record: HeededRecord,
    /// Nothing is done for it else.
    is_heeded: bool,
    /// Something of it waits for approval.
    waits: bool,
    /// Somebody signed it whose key is in the keyring.
    is_signed: bool,
}

/// Who signed a message, by the spool's keyring.
pub(super) fn signer(shared: &Shared, headers: &Headers<'_>) -> Result<Signed, Error> {
    let signed = match signed::read(headers) {
        Ok(signed) => signed,
        Err(why) => return Ok(Err(why)),
    };
    let keyring = Keyring::of_spool(shared.disk.clone(), &shared.config.spool);
    keyring.signer(&signed.signature, &signed.text)
}

/// A message of which the rules want to know who signed it, or that a mail is to tell of.
#[derive(Debug)]
pub(crate) struct Unproved {
    message: Message,
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
    let id = relay.message_id;
    let message = match groups::read(headers, shared.views.groups())? {
        Ok(message) => message,
        Err(why) => {
            if let Some(more) = shared.may_say(|lines| &lines.malformed) {
                tracing::info!(%id, why, more, "a control message is malformed and changes nothing");
            }
            return None;
        }
    };
    let rules = policy.rules.of(message.verb, &message.sender);
    // A long list is held against what was heeded where that keeps nobody waiting.
    let is_list = message.verb == Verb::Checkgroups;
    let is_signed = signed::is_signed(headers);
    let must_wait = |name: &String| match rules.action(name) {
        Action::Verify(_) | Action::Mail => true,
        Action::Doit => is_list,
        Action::Log => is_signed,
        Action::Drop => false,
    };
    if message.about.iter().any(must_wait) {
        return Some(Asked::Signed(Box::new(Unproved { message })));
    }
    let came = UnixTime(shared.clock.now().secs);
    let judged = judge(shared, policy, &message, None, came);
    let (heeding, _) = decide(shared, id.as_str(), &message, judged);
    heeding.map(Asked::Groups)
}

/// What is to be done, and what a mail is to tell of; the log is told of what is not done.
fn decide(
    shared: &Shared,
    id: &str,
    message: &Message,
    judged: Judged,
) -> (Option<Heeding>, Vec<GroupAsked>) {
    let (mut done, mut waiting, mut mailed) = (Vec::new(), 0, Vec::new());
    for (asked, _, becomes) in judged.asks {
        match becomes {
            Action::Doit => done.push(asked),
            Action::Log => waiting += 1,
            Action::Mail => mailed.push(asked),
            Action::Drop | Action::Verify(_) => {}
        }
    }
    waiting += mailed.len();
    let (verb, sender) = (message.verb.name(), &message.sender);
    if waiting > 0
        && let Some(more) = shared.may_say(|lines| &lines.waits)
    {
        tracing::info!(
            %id, verb, sender, waiting, held_back = judged.held_back, more,
            "a control message waits for approval: `newsreel control show` says what it asks for, `newsreel control \
             approve` does it"
        );
    }
    let changes = done.len();
    if judged.is_heeded
        && let Some(more) = shared.may_say(|lines| match changes {
            0 => &lines.heeded,
            _ => &lines.changes,
        })
    {
        tracing::info!(%id, verb, sender, changes, more, "a control message is heeded");
    }
    let (is_heeded, waits) = (judged.is_heeded, waiting > 0);
    let heeding = (is_heeded || waits).then(|| Heeding {
        changes: Changes::of(done, creator(message)),
        record: judged.record,
        is_heeded,
        waits,
        is_signed: judged.is_signed,
    });
    (heeding, mailed)
}

/// Who signed a message that came then, if somebody did whose word counts; the log is told where that is not as the rules
/// want it.
fn proved(shared: &Shared, wire: &[u8], unproved: Unproved) -> Option<Heeding> {
    let policy = shared.policy.load();
    let headers = Headers::scan_within(wire, policy.articles.header_limits()).ok()?;
    let id = headers.content(Known::MessageId).unwrap_or_default();
    let id = String::from_utf8_lossy(id);
    let Unproved { message } = unproved;
    let came = UnixTime(shared.clock.now().secs);
    let rules = policy.rules.of(message.verb, &message.sender);
    let signed = signer(shared, &headers).unwrap_or_else(|error| {
        if let Some(more) = shared.may_say(|lines| &lines.not_verified) {
            tracing::error!(%id, %error, more, "a control message cannot be verified");
        }
        Err("the keyring cannot be read".to_owned())
    });
    let signed = in_time(signed, &policy, &message, came);
    let wanted = message
        .about
        .iter()
        .find_map(|name| match rules.action(name) {
            Action::Verify(key) if !signed.as_ref().is_ok_and(|it| it.is(&key)) => {
                Some((name, key))
            }
            _ => None,
        });
    if let Some((group, key)) = wanted
        && let Some(more) = shared.may_say(|lines| &lines.not_signed)
    {
        let why = match &signed {
            Ok(signer) => format!("{} signed it", signer.names.join(", ")),
            Err(why) => why.clone(),
        };
        tracing::info!(
            %id, verb = message.verb.name(), group, key = &*key, why, more,
            "a control message is not signed as the rules want it, and changes nothing"
        );
    }
    let judged = judge(shared, &policy, &message, signed.as_ref().ok(), came);
    let (heeding, mailed) = decide(shared, &id, &message, judged);
    if !mailed.is_empty() {
        told::tell(shared, &id, &message, &mailed);
    }
    heeding
}

/// Nobody's signature counts of a message that was older than articles may be when it came.  Injection-Date is not signed: with
/// a new one anybody could send an old message again.
fn in_time(signed: Signed, policy: &Policy, message: &Message, came: UnixTime) -> Signed {
    let most = policy.articles.age_s_max;
    let date = message.date.unwrap_or(came);
    match signed {
        Ok(_) if most > 0 && came.0.saturating_sub(date.0) > most => {
            Err("it is too old".to_owned())
        }
        signed => signed,
    }
}

/// Reads an article, if it is a message about groups: of the many others only the header block.
///
/// # Errors
/// When it cannot be read.
pub(super) fn read_about_groups(
    shared: &Shared,
    token: &Token,
    memory: &mut Vec<u8>,
) -> Result<Option<Stored>, Error> {
    for want in [Want::Head, Want::Whole] {
        memory.clear();
        let stored = match shared.store.read(token, want, Blocking::Yes, memory) {
            Ok(stored) => stored,
            Err(ReadError::Gone) => return Ok(None),
            Err(error) => return Err(Error::Read(error)),
        };
        if want == Want::Whole {
            return Ok(Some(stored));
        }
        memory.truncate(stored.octets.end);
        memory.extend_from_slice(b"\r\n");
        let headers = Headers::scan_stored(&memory[stored.octets.start..]);
        if !headers.is_ok_and(|headers| groups::is_about_groups(&headers)) {
            return Ok(None);
        }
    }
    Ok(None)
}

impl LocalService {
    /// Decides what comes of the messages and notices among these candidates that somebody must have signed.
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
                    let work = move |shared: &Shared| nocem::heed(shared, &notice);
                    let _ = blocking(&self.shared, work).await;
                    None
                }
                other => other,
            };
            candidate.asked = asked.map(Box::new);
        }
    }
}

impl Sequencer {
    /// Puts the changes that a message asks for behind it, into the same frame, and that something of it waits.
    pub(crate) fn heed(&mut self, heeding: &Heeding, message: (Sequence, IdHash), holder: Holder) {
        let (at, id) = message;
        let (mut heeding, is_signed) = (heeding.clone(), heeding.is_signed);
        heeding.record.at = at;
        let mut waits = heeding.waits;
        if heeding.is_heeded {
            waits |= self.leave_what_is_late(&mut heeding);
            if let Err(error) = self.do_what_is_asked(&heeding) {
                // Somebody else changed them since it was read.
                if let Some(more) = self.shared.may_say(|lines| &lines.not_done) {
                    tracing::error!(%error, more, "what a control message asks for was not done, or not all of it");
                }
                waits = true;
            }
            if heeding.changes != Changes::default() {
                self.open.changes_groups = true;
                self.groups_changed();
            }
        }
        if waits {
            let since = UnixTime(self.shared.clock.now().secs);
            self.note_waiting(&WaitingRecord {
                id,
                since,
                holder,
                is_signed,
            });
        }
    }

    /// A newer message may have been heeded since this one was judged: what that settled is left; whether there is something.
    fn leave_what_is_late(&self, heeding: &mut Heeding) -> bool {
        let policy = self.shared.policy.load();
        let look = self.shared.heeded.look();
        let newer = look.by(&policy);
        let Heeding {
            changes, record, ..
        } = heeding;
        let mut left = false;
        changes.retain(|group| {
            let is_late = newer.is_late(record, group);
            left |= is_late;
            !is_late
        });
        left
    }

    /// Changes groups as a message asked, each kind of change all or none, and notes that it was heeded.
    ///
    /// # Errors
    /// What cannot be done; what was done before stays.
    pub(crate) fn do_what_is_asked(&mut self, heeding: &Heeding) -> Result<(), Error> {
        let Heeding {
            changes, record, ..
        } = heeding;
        if !self.fits(record.octets()) {
            return Err(Error::FrameFull);
        }
        self.set_groups(&changes.set)?;
        self.add_groups(&changes.make)?;
        for name in &changes.remove {
            self.remove_group(name)?;
        }
        self.note_heeded(record.clone());
        Ok(())
    }
}

impl Engine {
    /// The messages about groups that wait for approval, oldest first: what they ask for is not so here, no rule drops it,
    /// and no message that came behind them and was heeded says something of the same group.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn control_waiting(&self) -> Result<Vec<ControlReport>, Error> {
        let mut found = Vec::new();
        for waiting in self.shared.waiting.all() {
            let entry = self.shared.views.history().lookup(&waiting.id)?;
            let read = match entry.and_then(|entry| entry.token) {
                Some(token) => self.control_at(&token)?,
                None => None,
            };
            match read {
                Some(read) => found.extend(self.waits(read)),
                None if self.only_looks() => {}
                None => self.shared.waiting.forget(&waiting.id),
            }
        }
        found.sort_by_key(|(at, _)| *at);
        Ok(found.into_iter().map(|(_, report)| report).collect())
    }

    /// One message about groups; `None`: it is not here, or is none.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn control_message(&self, which: &ArticleRef) -> Result<Option<ControlReport>, Error> {
        Ok(self.control(which)?.map(|found| found.report))
    }

    /// Does what a message asks for, whatever the rules say; durable when it returns.
    ///
    /// # Errors
    /// When there is no such message, or what it asks for cannot be done.
    pub fn control_approve(&self, which: &ArticleRef) -> Result<ControlReport, Error> {
        let none = || Error::Request("there is no such control message about groups".to_owned());
        let Read {
            report, heeding, ..
        } = self.control(which)?.ok_or_else(none)?;
        if let Some(why) = report.problem {
            return Err(Error::Request(format!(
                "the message is malformed: {why}; nothing was changed"
            )));
        }
        if let Some(mut heeding) = heeding
            && !report.asks.is_empty()
        {
            if let Said::List(list) = &mut heeding.record.said {
                list.is_approved = true;
            }
            let heeding = Box::new(heeding);
            self.ask_until_it_fits(|| Request::ChangeGroups(heeding.clone()))?;
        }
        Ok(report)
    }

    fn control(&self, which: &ArticleRef) -> Result<Option<Read>, Error> {
        match self.find(which)? {
            Some(token) => self.control_at(&token),
            None => Ok(None),
        }
    }

    fn control_at(&self, token: &Token) -> Result<Option<Read>, Error> {
        let mut memory = Vec::new();
        let Some(stored) = read_about_groups(&self.shared, token, &mut memory)? else {
            return Ok(None);
        };
        let Ok(headers) = Headers::scan_stored(&memory[stored.octets.clone()]) else {
            return Ok(None);
        };
        self.found(&headers, stored.sequence, stored.arrival)
    }

    /// What would come of a message about groups if it came now, in wire form; `None`: it is none.
    ///
    /// # Errors
    /// When the keyring cannot be read.
    pub fn control_try(&self, wire: &[u8]) -> Result<Option<ControlReport>, Error> {
        let limits = self.shared.policy.load().articles.header_limits();
        let headers = Headers::scan_within(wire, limits);
        let headers = headers.map_err(|why| Error::Request(why.to_string()))?;
        let now = UnixTime(self.shared.clock.now().secs);
        let found = self.found(&headers, Sequence(0), now)?;
        Ok(found.map(|found| found.report))
    }

    fn found(
        &self,
        headers: &Headers<'_>,
        sequence: Sequence,
        arrival: UnixTime,
    ) -> Result<Option<Read>, Error> {
        let content = |known| {
            let content = headers.content(known).unwrap_or_default();
            String::from_utf8_lossy(content).into_owned()
        };
        let Some(read) = groups::read(headers, self.shared.views.groups()) else {
            return Ok(None);
        };
        let mut report = ControlReport {
            message_id: content(Known::MessageId),
            arrival: arrival.0,
            control: content(Known::Control),
            sender: content(Known::From),
            signature: None,
            asks: Vec::new(),
            more: 0,
            problem: None,
        };
        let message = match read {
            Ok(message) => message,
            Err(why) => {
                report.problem = Some(why);
                return Ok(Some(Read {
                    report,
                    heeding: None,
                }));
            }
        };
        let policy = self.shared.policy.load();
        let signed = match signed::is_signed(headers) {
            true => Some(signer(&self.shared, headers)?),
            false => None,
        };
        let signed = signed.map(|signed| in_time(signed, &policy, &message, arrival));
        report.signature = signed.as_ref().map(|signed| match signed {
            Ok(signer) => format!("good, by {}", signer.names.join(", ")),
            Err(why) => format!("bad: {why}"),
        });
        let signer = signed.as_ref().and_then(|signed| signed.as_ref().ok());
        let judged = judge(&self.shared, &policy, &message, signer, arrival);
        let asks = judged.asks.iter();
        let asks = asks.map(|(asked, rule, becomes)| AskedByRule {
            asked: asked.clone(),
            rule: rule.name(),
            becomes: becomes.name(),
        });
        report.asks = asks.collect();
        report.sender.clone_from(&message.sender);
        let mut record = judged.record;
        record.at = sequence;
        let changes = Changes::of(message.asked.clone(), creator(&message));
        Ok(Some(Read {
            report,
            heeding: Some(Heeding {
                changes,
                record,
                is_heeded: true,
                waits: false,
                is_signed: judged.is_signed,
            }),
        }))
    }

    /// What of a message waits for approval, if anything does, and where it stands in the log.
    fn waits(&self, read: Read) -> Option<(Sequence, ControlReport)> {
        let policy = self.shared.policy.load();
        let look = self.shared.heeded.look();
        let newer = look.by(&policy);
        let (mut report, at) = (read.report, read.heeding?.record.at);
        let waits = |it: &AskedByRule| {
            // What it was heeded for is not what was held back of it.
            let is_held_back = it.becomes == Action::Log.name() && it.rule != it.becomes;
            it.becomes != Action::Drop.name()
                && !newer.is_settled(at, it.asked.name(), is_held_back)
        };
        report.asks.retain(waits);
        report.more = report.asks.len().saturating_sub(ASKS_LISTED_MAX);
        report.asks.truncate(ASKS_LISTED_MAX);
        report.asks.shrink_to_fit();
        shorten(&mut report.control);
        shorten(&mut report.sender);
        (!report.asks.is_empty()).then_some((at, report))
    }
}

/// Leaves as much of a text as is listed.
fn shorten(text: &mut String) {
    if text.len() > LISTED_TEXT_OCTETS_MAX {
        let mut ends = (0..=LISTED_TEXT_OCTETS_MAX).rev();
        let end = ends.find(|at| text.is_char_boundary(*at));
        text.truncate(end.unwrap_or_default());
        text.push_str("...");
        text.shrink_to_fit();
    }
}

/// A message that was found.
#[derive(Debug)]
struct Read {
    report: ControlReport,
    /// What is done if somebody approves it; none: it is malformed.
    heeding: Option<Heeding>,
}
