//! What comes of newgroup, rmgroup and checkgroups: done by a rule, or told and done when somebody approves it.
//!
//! The rules are asked on the session's thread; where they want a signature it is verified on one that may wait.  What is to be
//! done goes into the log in one frame with the message.  What waits for approval is kept nowhere: it is the messages in the
//! groups of control messages that still ask for something.

use std::collections::{HashMap, HashSet};

use newsreel_index::Wait;
use newsreel_store::{Blocking, ReadError, Stored, Want};
use newsreel_wire::article::{Headers, Known, RelayFacts};
use newsreel_wire::{ArticleNumber, GroupId, Sequence, Token, UnixTime};
use serde::Serialize;

use super::groups::{self, Changes, GroupAsked, Message, Scope, Verb};
use super::keyring::{Keyring, Signer};
use super::rules::Action;
use super::serial::{self, Serial};
use super::{Asked, nocem, signed, told};
use crate::accept::CandidateBatch;
use crate::admin::GROUP_TEXT_OCTETS_MAX;
use crate::config::Mode;
use crate::engine::Engine;
use crate::error::Error;
use crate::local::{LocalService, blocking};
use crate::report::ArticleRef;
use crate::requests::Request;
use crate::sequencer::Sequencer;
use crate::shared::{Policy, Shared};

/// Articles of a group that are looked at for control messages that wait or were heeded, the newest.
pub const CONTROL_LOOKED_AT_MAX: u64 = 100_000;

/// Numbers that are asked for at a time.
const WINDOW: u64 = 1000;

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
    /// Why it asks for nothing, if something is wrong with it.
    pub problem: Option<&'static str>,
}

fn ruled(policy: &Policy, message: &Message) -> Vec<(GroupAsked, Action)> {
    let rules = policy.rules.of(message.verb, &message.sender);
    let asked = message.asked.iter();
    asked
        .map(|asked| (asked.clone(), rules.action(asked.name())))
        .collect()
}

/// Who signed a message, or why it counts as not signed.
pub(super) type Signed = Result<Signer, String>;

/// What becomes of what a rule is for, now that it is known who signed.
pub(super) fn becomes(rule: &Action, signed: &Signed) -> Action {
    match rule {
        Action::Verify(key) => match signed {
            Ok(signer) if signer.is(key) => Action::Doit,
            _ => Action::Drop,
        },
        rule => rule.clone(),
    }
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

/// A message of which the rules want to know who signed it, that a mail is to tell of, or that may be older than one that was
/// heeded.
#[derive(Debug)]
pub(crate) struct Unproved {
    message: Message,
    ruled: Vec<(GroupAsked, Action)>,
    /// Its Date.
    date: UnixTime,
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
            tracing::info!(%id, why, "a control message is malformed and changes nothing");
            return None;
        }
    };
    let ruled = ruled(policy, &message);
    let must_wait = |rule: &Action| match rule {
        Action::Verify(_) | Action::Mail => true,
        Action::Doit => message.verb == Verb::Checkgroups,
        Action::Log | Action::Drop => false,
    };
    if ruled.iter().any(|(_, rule)| must_wait(rule)) {
        let date = relay.date;
        return Some(Asked::Signed(Box::new(Unproved {
            message,
            ruled,
            date,
        })));
    }
    let Decided { changes, .. } = decide(policy, id.as_str(), &message, ruled);
    changes.map(Asked::Groups)
}

/// What comes of a message.
#[derive(Debug, Default)]
struct Decided {
    /// What is done.
    changes: Option<Changes>,
    /// What waits, and a mail is to tell of.
    mailed: Vec<GroupAsked>,
}

/// What is to be done by rules that are for it; the log is told of what is not.
fn decide(
    policy: &Policy,
    id: &str,
    message: &Message,
    ruled: Vec<(GroupAsked, Action)>,
) -> Decided {
    let (mut done, mut waiting, mut mailed) = (Vec::new(), 0, Vec::new());
    for (asked, rule) in ruled {
        match rule {
            Action::Doit => done.push(asked),
            Action::Log => waiting += 1,
            Action::Mail => mailed.push(asked),
            Action::Drop | Action::Verify(_) => {}
        }
    }
    let most = policy.control.checkgroups_changes_max as usize;
    let is_too_much = message.verb == Verb::Checkgroups && done.len() > most;
    waiting += mailed.len() + if is_too_much { done.len() } else { 0 };
    if waiting > 0 {
        let (verb, sender) = (message.verb.name(), &message.sender);
        tracing::info!(
            %id, verb, sender, waiting,
            "a control message waits for approval: `newsreel control show` says what it asks for, `newsreel control \
             approve` does it"
        );
    }
    if done.is_empty() || is_too_much {
        return Decided {
            changes: None,
            mailed,
        };
    }
    tracing::info!(%id, verb = message.verb.name(), sender = message.sender, changes = done.len(), "a control message is heeded");
    Decided {
        changes: Some(Changes::of(done, creator(message))),
        mailed,
    }
}

/// What is to be done for a message that was signed, or was not.
fn proved(shared: &Shared, wire: &[u8], unproved: Unproved) -> Option<Changes> {
    let policy = shared.policy.load();
    let headers = Headers::scan_within(wire, policy.articles.header_limits()).ok()?;
    let id = headers.content(Known::MessageId).unwrap_or_default();
    let id = String::from_utf8_lossy(id);
    let Unproved {
        message,
        ruled,
        date,
    } = unproved;
    let must_be_signed = |(_, rule): &(GroupAsked, Action)| matches!(rule, Action::Verify(_));
    let signed = match ruled.iter().any(must_be_signed) {
        true => signer(shared, &headers).unwrap_or_else(|error| {
            tracing::error!(%id, %error, "a control message cannot be verified and changes nothing");
            Err("the keyring cannot be read".to_owned())
        }),
        false => Err("nobody wants to know".to_owned()),
    };
    // Injection-Date is not signed: with a new one anybody could send an old message again.
    let age_s = shared.clock.now().secs.saturating_sub(date.0);
    let most = policy.articles.age_s_max;
    let signed = match signed {
        Ok(_) if most > 0 && age_s > most => Err("it is too old".to_owned()),
        signed => signed,
    };
    let wants = |key: &str| signed.as_ref().is_ok_and(|signer| signer.is(key));
    for (asked, rule) in &ruled {
        if let Action::Verify(key) = rule
            && !wants(key)
        {
            let why = match &signed {
                Ok(signer) => format!("{} signed it", signer.names.join(", ")),
                Err(why) => why.clone(),
            };
            tracing::info!(
                %id, verb = message.verb.name(), group = asked.name(), key = &**key, why,
                "a control message is not signed as the rules want it, and changes nothing"
            );
            break;
        }
    }
    let ruled = ruled.into_iter();
    let ruled = ruled.map(|(asked, rule)| (asked, becomes(&rule, &signed)));
    let mut ruled: Vec<_> = ruled.collect();
    if is_late(shared, &policy, &id, &message, &ruled) {
        for (_, rule) in ruled.iter_mut().filter(|(_, rule)| *rule == Action::Doit) {
            *rule = Action::Log;
        }
    }
    let Decided { changes, mailed } = decide(&policy, &id, &message, ruled);
    if !mailed.is_empty() {
        told::tell(shared, &id, &message, &mailed);
    }
    changes
}

/// Whether a newer message about the same hierarchy was heeded before what is to be done now.
fn is_late(
    shared: &Shared,
    policy: &Policy,
    id: &str,
    message: &Message,
    ruled: &[(GroupAsked, Action)],
) -> bool {
    let Some(serial) = &message.serial else {
        return false;
    };
    if !ruled.iter().any(|(_, rule)| *rule == Action::Doit) {
        return false;
    }
    match serial::newer(shared, policy, serial) {
        Ok(None) => false,
        Ok(Some(newer)) => {
            tracing::info!(%id, newer, "a checkgroups is older than one that was heeded");
            true
        }
        Err(error) => {
            tracing::error!(%id, %error, "it cannot be told whether a checkgroups is the newest");
            true
        }
    }
}

/// Looks at a group's newest articles, newest first, until something is found; none: nothing was.
///
/// # Errors
/// When they cannot be read.
pub(super) fn find_newest<T>(
    shared: &Shared,
    group: GroupId,
    mut look: impl FnMut(ArticleNumber) -> Result<Option<T>, Error>,
) -> Result<Found<T>, Error> {
    let overview = shared.views.overview();
    let Some(low) = overview.live_facts(group, Wait::Yes)?.low else {
        return Ok(Found::Nothing);
    };
    let (mut left, mut numbers) = (CONTROL_LOOKED_AT_MAX, Vec::new());
    let mut high = shared.views.groups().high(group).0;
    while high >= low.0 {
        let from = high.saturating_sub(WINDOW - 1).max(low.0);
        let range = (ArticleNumber(from), ArticleNumber(high));
        numbers.clear();
        overview.numbers(group, range, WINDOW as usize, Wait::Yes, &mut numbers)?;
        for number in numbers.iter().rev() {
            if left == 0 {
                return Ok(Found::TooMany);
            }
            left -= 1;
            if let Some(found) = look(*number)? {
                return Ok(Found::This(found));
            }
        }
        if from <= 1 {
            break;
        }
        high = from - 1;
    }
    Ok(Found::Nothing)
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

/// What was found among a group's newest articles.
#[derive(Debug)]
pub(super) enum Found<T> {
    /// This.
    This(T),
    /// Nothing, and all were looked at.
    Nothing,
    /// Nothing among as many as are looked at; there are older ones.
    TooMany,
}

impl LocalService {
    /// Decides what comes of the messages and notices among these candidates that somebody must have signed.
    pub(crate) async fn settle_signed(&self, batch: &mut CandidateBatch) {
        for candidate in &mut batch.candidates {
            let asked = match candidate.asked.take().map(|asked| *asked) {
                Some(Asked::Signed(unproved)) => {
                    let wire = candidate.article.clone();
                    let work = move |shared: &Shared| proved(shared, &wire, *unproved);
                    let changes = blocking(&self.shared, work).await.ok().flatten();
                    changes.map(Asked::Groups)
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
    /// Puts the changes that a message asks for behind it, into the same frame.
    pub(crate) fn heed(&mut self, changes: &Changes) {
        if let Err(error) = self.change_groups(changes) {
            // Somebody else changed them since it was read.
            tracing::error!(%error, "what a control message asks for was not done, or not all of it");
        }
        self.open.changes_groups = true;
        self.groups_changed();
    }

    /// Changes groups as a message asked; each kind of change all or none.
    ///
    /// # Errors
    /// What cannot be done; what was done before stays.
    pub(crate) fn change_groups(&mut self, changes: &Changes) -> Result<(), Error> {
        self.set_groups(&changes.set)?;
        self.add_groups(&changes.make)?;
        for name in &changes.remove {
            self.remove_group(name)?;
        }
        Ok(())
    }
}

impl Engine {
    /// The messages about groups that wait for approval, oldest first: what they ask for is not so here, no rule drops it,
    /// and no newer message that was heeded says something of the same group.
    ///
    /// # Errors
    /// When one cannot be read.
    pub fn control_waiting(&self) -> Result<Vec<ControlReport>, Error> {
        let mut found = self.control_messages()?;
        found.sort_by_key(|found| found.sequence);
        demote(&mut found);
        let (mut heeded, mut lists) = (HashSet::new(), Vec::<List>::new());
        let (mut waiting, policy) = (Vec::new(), self.shared.policy.load());
        for Read {
            mut report,
            done,
            list,
            ..
        } in found.into_iter().rev()
        {
            let waits = |it: &AskedByRule| {
                let name = it.asked.name();
                let is_settled =
                    || heeded.contains(name) || lists.iter().any(|it| it.settles(name, &policy));
                it.becomes != Action::Drop.name() && !is_settled()
            };
            report.asks.retain(waits);
            heeded.extend(done);
            lists.extend(list);
            if !report.asks.is_empty() {
                waiting.push(report);
            }
        }
        waiting.reverse();
        Ok(waiting)
    }

    /// All messages about groups that something may wait of.
    fn control_messages(&self) -> Result<Vec<Read>, Error> {
        let mut found = Vec::new();
        let own = Verb::ALL.map(|verb| format!("control.{}", verb.name()));
        for name in own.iter().map(String::as_str).chain(["control"]) {
            let Some(group) = self.shared.views.groups().by_name(name) else {
                continue;
            };
            let looked = find_newest(&self.shared, group.id(), |number| {
                let which = ArticleRef::Number(name.to_owned(), number.0);
                let message = self.control(&which)?;
                found.extend(message.filter(Read::matters));
                Ok(None::<()>)
            })?;
            if matches!(looked, Found::TooMany) {
                tracing::warn!(
                    group = name,
                    looked_at = CONTROL_LOOKED_AT_MAX,
                    "a group of control messages has more than are looked at: older ones may wait too; expire it sooner, and \
                     give cancels a group of their own, control.cancel"
                );
            }
        }
        Ok(found)
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
            report, changes, ..
        } = self.control(which)?.ok_or_else(none)?;
        if let Some(why) = report.problem {
            return Err(Error::Request(format!(
                "the message is malformed: {why}; nothing was changed"
            )));
        }
        if !report.asks.is_empty() {
            self.ask_until_it_fits(|| Request::ChangeGroups(changes.clone()))?;
        }
        Ok(report)
    }

    fn control(&self, which: &ArticleRef) -> Result<Option<Read>, Error> {
        let Some(token) = self.find(which)? else {
            return Ok(None);
        };
        let mut memory = Vec::new();
        let Some(stored) = read_about_groups(&self.shared, &token, &mut memory)? else {
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
        let mut found = Read {
            sequence,
            report: ControlReport {
                message_id: content(Known::MessageId),
                arrival: arrival.0,
                control: content(Known::Control),
                sender: content(Known::From),
                signature: None,
                asks: Vec::new(),
                problem: None,
            },
            changes: Changes::default(),
            done: Vec::new(),
            list: None,
            serial: None,
        };
        match read {
            Ok(message) => {
                let signed = match signed::is_signed(headers) {
                    true => Some(signer(&self.shared, headers)?),
                    false => None,
                };
                found.read(message, &self.shared.policy.load(), signed);
            }
            Err(why) => found.report.problem = Some(why),
        }
        Ok(Some(found))
    }
}

/// A message that was found.
#[derive(Debug)]
struct Read {
    sequence: Sequence,
    report: ControlReport,
    /// What it asks for.
    changes: Changes,
    /// The groups of which the rules let it say something.
    done: Vec<String>,
    /// What else a checkgroups says something of.
    list: Option<List>,
    /// How old a checkgroups says that it is.
    serial: Option<Serial>,
}

/// Of lists that were not heeded, as a newer one had been before them, nothing counts as done; of what was approved since
/// there is nothing left to ask for.
fn demote(found: &mut [Read]) {
    let mut newest = HashMap::new();
    for read in found {
        let Some(serial) = read.serial.take() else {
            continue;
        };
        let is_late = serial.is_older_than_any(&newest);
        if !read.done.is_empty() {
            serial.note(&mut newest);
        }
        if is_late && !read.report.asks.is_empty() {
            let asks = read.report.asks.iter_mut();
            for asked in asks.filter(|it| it.becomes == Action::Doit.name()) {
                asked.becomes = Action::Log.name();
            }
            read.done.clear();
            read.list = None;
        }
    }
}

/// A checkgroups: of groups that it means and does not list it says that they are not to be here.
#[derive(Debug)]
struct List {
    scope: Scope,
    sender: String,
    signed: Signed,
}

impl List {
    /// Whether it was heeded about this group.
    fn settles(&self, name: &str, policy: &Policy) -> bool {
        let rule = || {
            policy
                .rules
                .of(Verb::Checkgroups, &self.sender)
                .action(name)
        };
        self.scope.means(name) && becomes(&rule(), &self.signed) == Action::Doit
    }
}

impl Read {
    /// Whether something of it may wait, or settles what waits.
    fn matters(&self) -> bool {
        let is_dropped = |it: &AskedByRule| it.becomes == Action::Drop.name();
        !self.report.asks.iter().all(is_dropped) || !self.done.is_empty() || self.list.is_some()
    }

    fn read(&mut self, message: Message, policy: &Policy, signed: Option<Signed>) {
        self.report.signature = signed.as_ref().map(|signed| match signed {
            Ok(signer) => format!("good, by {}", signer.names.join(", ")),
            Err(why) => format!("bad: {why}"),
        });
        let signed = signed.unwrap_or_else(|| Err(String::new()));
        let ruled = ruled(policy, &message).into_iter();
        let asks = ruled.map(|(asked, rule)| AskedByRule {
            asked,
            rule: rule.name(),
            becomes: becomes(&rule, &signed).name(),
        });
        self.report.asks = asks.collect();
        self.report.sender.clone_from(&message.sender);
        let rules = policy.rules.of(message.verb, &message.sender);
        let about = message.about.iter();
        let done = about.filter(|name| becomes(&rules.action(name), &signed) == Action::Doit);
        self.done = done.cloned().collect();
        let creator = creator(&message).to_owned();
        self.serial = message.serial;
        self.list = message.scope.map(|scope| List {
            scope,
            sender: message.sender,
            signed,
        });
        self.changes = Changes::of(message.asked, &creator);
    }
}
