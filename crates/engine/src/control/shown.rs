//! What administrators see of messages about groups, and what they approve.
//!
//! What a message asks for is read again in the message when somebody wants to know, and judged as when it came.

use std::sync::Arc;

use newsreel_store::{Blocking, ReadError, Stored, Want};
use newsreel_wire::article::{Headers, Known};
use newsreel_wire::{IdHash, MessageId, Sequence, Token, UnixTime};
use serde::Serialize;

use super::groups::{self, Message};
use super::heed::{in_time, signer};
use super::heeded::approved_octets_max;
use super::judged::{Ask, Judged, Look, judge};
use super::keyring::{OpenedKeyring, Signer};
use super::meaning::GroupAsked;
use super::rules::Action;
use super::signed;
use super::undropped::Undropped;
use crate::engine::Engine;
use crate::error::Error;
use crate::report::ArticleRef;
use crate::requests::Request;
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
    /// A newer message about the group was heeded.
    pub late: bool,
}

/// A message about groups, as administrators see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ControlReport {
    /// Its message-id; of one that cannot be read, where it lies.
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
    /// How much more that is, where only the first are listed; from [`ASKS_COUNTED_MAX`](crate::ASKS_COUNTED_MAX) in all on it may be more.
    pub more: usize,
    /// Of one that is shown or approved: messages that are newer and want it otherwise, were not heeded and wait, at the latest when this
    /// one is done: the first [`NEWER_TOLD_MAX`](crate::NEWER_TOLD_MAX).
    pub newer: Vec<String>,
    /// Why it asks for nothing, if something is wrong with it.
    pub problem: Option<&'static str>,
}

/// What of a message is looked at.
#[derive(Debug, Clone, Copy)]
pub(super) enum Looked<'a> {
    /// All that it asks for.
    AtAll,
    /// What it says, whatever that asks for.
    Alone,
    /// What waits of it, and not all if it is much.
    AtWhatWaits(&'a Undropped),
}

/// Who looks at messages: by which rules and keys, all of them by the same.
#[derive(Debug)]
pub(super) struct Looker {
    pub(super) policy: Arc<Policy>,
    keyring: OpenedKeyring,
}

/// A message that was found.
#[derive(Debug)]
pub(super) struct Found {
    /// Without what it asks for.
    pub(super) report: ControlReport,
    /// Where it stands in the log.
    pub(super) at: Sequence,
    /// None: it is malformed, or cannot be read.
    pub(super) read: Option<(Message, Judged)>,
    /// Whose signature it has.
    pub(super) signer: Option<Signer>,
}

/// What is wrong with one that waits and is damaged.
const UNREADABLE: &str = "it cannot be read; `newsreel store scrub` says what is damaged";

/// Reads an article, if it is a message about groups: of the many others only the header block.
///
/// # Errors
/// When it cannot be read.
fn read_about_groups(
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
        if !headers.is_ok_and(|headers| groups::verb_of(&headers).is_some()) {
            return Ok(None);
        }
    }
    Ok(None)
}

impl Judged {
    fn by_rule(&self, shared: &Shared, ask: &Ask) -> AskedByRule {
        AskedByRule {
            asked: ask.asked.clone(),
            rule: ask.rule.name(),
            becomes: ask.becomes.name(),
            late: shared.heeded.is_late(&self.record, ask.asked.name()),
        }
    }
}

impl Found {
    /// All that it asks for.
    fn asks(&self, shared: &Shared) -> Vec<AskedByRule> {
        let read = self.read.iter();
        let all = read.flat_map(|(_, judged)| judged.asks.iter().map(move |ask| (judged, ask)));
        all.map(|(judged, ask)| judged.by_rule(shared, ask))
            .collect()
    }

    /// All that there is to be said of it alone.
    fn whole(self, shared: &Shared) -> ControlReport {
        ControlReport {
            asks: self.asks(shared),
            ..self.report
        }
    }

    /// One that waits and cannot be read: nobody knows what it says.
    fn unreadable(shared: &Shared, token: &Token) -> Self {
        let report = ControlReport {
            message_id: shared.store.token_text(token).unwrap_or_default(),
            arrival: 0,
            control: String::new(),
            sender: String::new(),
            signature: None,
            asks: Vec::new(),
            more: 0,
            newer: Vec::new(),
            problem: Some(UNREADABLE),
        };
        // Behind all others.
        let at = Sequence(u64::MAX);
        Self {
            report,
            at,
            read: None,
            signer: None,
        }
    }

    /// What of it waits for approval, if anything does.
    fn waiting(self, shared: &Shared) -> Option<ControlReport> {
        let is_unreadable = self.report.problem == Some(UNREADABLE);
        let Some((_, judged)) = self.read else {
            return is_unreadable.then_some(self.report);
        };
        let record = &judged.record;
        let waits = |it: &Ask| {
            // What it was heeded for is not what was held back of it.
            let is_held_back = it.becomes == Action::Log && it.rule != it.becomes;
            it.becomes != Action::Drop
                && !shared
                    .heeded
                    .is_settled(record, it.asked.name(), is_held_back)
        };
        let mut asks = judged.asks.iter().filter(|it| waits(it));
        let mut report = self.report;
        report.asks = asks
            .by_ref()
            .take(ASKS_LISTED_MAX)
            .map(|ask| judged.by_rule(shared, ask))
            .collect();
        report.more = asks.count();
        shorten(&mut report.control);
        shorten(&mut report.sender);
        (!report.asks.is_empty()).then_some(report)
    }
}

impl Engine {
    fn looker(&self) -> Looker {
        Looker {
            policy: self.shared.policy.load_full(),
            keyring: self.shared.keyring(),
        }
    }

    /// The messages about groups that wait for approval, oldest first: what they ask for is not so here, no rule drops it,
    /// and no message that came behind them, was heeded and is no older says something of the same group.
    ///
    /// # Errors
    /// When it cannot be told where one lies.
    pub fn control_waiting(&self) -> Result<Vec<ControlReport>, Error> {
        let (looker, undropped) = (self.looker(), Undropped::default());
        let mut waiting = Vec::new();
        for one in self.shared.waiting.all() {
            let looked = Looked::AtWhatWaits(&undropped);
            if let Some(found) = self.control_that_waits(&one.id, &looker, looked)? {
                let at = found.at;
                let report = found.waiting(&self.shared);
                waiting.extend(report.map(|report| (at, report)));
            }
        }
        waiting.sort_by_key(|(at, _)| *at);
        Ok(waiting.into_iter().map(|(_, report)| report).collect())
    }

    /// One that waits, if it is here.  Only what is known to be gone waits no longer: one whose commit is under way is here soon, and one
    /// that is moved lies elsewhere.
    pub(super) fn control_that_waits(
        &self,
        id: &IdHash,
        looker: &Looker,
        looked: Looked<'_>,
    ) -> Result<Option<Found>, Error> {
        let shared = &self.shared;
        let history = shared.views.history();
        loop {
            let (generation, moves) = (history.generation(), shared.moves());
            let entry = history.lookup(id)?;
            let found = match entry.and_then(|entry| entry.token) {
                Some(token) => match self.control_at(&token, looker, looked) {
                    Err(Error::Read(_)) => Some(Found::unreadable(shared, &token)),
                    found => found?,
                },
                None => None,
            };
            if found.is_some() {
                return Ok(found);
            }
            if shared.moves() != moves {
                continue;
            }
            // In this order: what is under way is in the history before it is no longer under way, and what leaves the newest part
            // of the history changes the generation.
            let is_gone = || {
                entry.is_some()
                    || !shared.offers.is_sequenced(id)
                        && history.lookup_recent(id).is_none()
                        && history.generation() == generation
            };
            if !self.only_looks() {
                shared.waiting.forget_if(id, is_gone);
            }
            return Ok(None);
        }
    }

    /// One message about groups; `None`: it is not here, or is none.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn control_message(&self, which: &ArticleRef) -> Result<Option<ControlReport>, Error> {
        let looker = self.looker();
        let Some(found) = self.control(which, &looker)? else {
            return Ok(None);
        };
        let newer = self.newer(&found, &looker)?;
        let report = found.whole(&self.shared);
        Ok(Some(ControlReport { newer, ..report }))
    }

    /// How many messages about groups are remembered, whether they ask for something or not.
    pub fn control_remembered(&self) -> usize {
        self.shared.waiting.counts().0
    }

    /// Does what a message asks for, whatever the rules say; durable when it returns.  It counts as heeded, though nothing may be left to
    /// do.
    ///
    /// # Errors
    /// When there is no such message, or what it asks for cannot be done.
    pub fn control_approve(&self, which: &ArticleRef) -> Result<ControlReport, Error> {
        let none = || Error::Request("there is no such control message about groups".to_owned());
        let looker = self.looker();
        let found = self.control(which, &looker)?.ok_or_else(none)?;
        let newer = self.newer(&found, &looker)?;
        let asks = found.asks(&self.shared);
        if let Some(why) = found.report.problem {
            return Err(Error::Request(format!(
                "the message is malformed: {why}; nothing was changed"
            )));
        }
        let Found {
            mut report,
            at,
            read: Some((message, judged)),
            ..
        } = found
        else {
            return Err(none());
        };
        (report.asks, report.newer) = (asks, newer);
        let heeding = judged.approve(message, at);
        let (octets, octets_max) = (
            heeding.record.octets(),
            approved_octets_max(&self.shared.config),
        );
        if octets > octets_max {
            return Err(Error::Request(format!(
                "the message names more hierarchies than can be remembered of one ({octets} octets, and there is room for \
                 {octets_max}), so an older one would undo it; nothing was changed. Ask its sender for a list of fewer \
                 hierarchies, or make its groups with `newsreel group add`"
            )));
        }
        let heeding = Arc::new(heeding);
        let id = MessageId::parse(report.message_id.as_bytes()).map_err(|_| none())?;
        let id = self.shared.id_hash(id);
        self.ask_until_it_fits(|| Request::ChangeGroups(Arc::clone(&heeding), id))?;
        Ok(report)
    }

    fn control(&self, which: &ArticleRef, looker: &Looker) -> Result<Option<Found>, Error> {
        match self.find(which)? {
            Some(token) => self.control_at(&token, looker, Looked::AtAll),
            None => Ok(None),
        }
    }

    fn control_at(
        &self,
        token: &Token,
        looker: &Looker,
        looked: Looked<'_>,
    ) -> Result<Option<Found>, Error> {
        let mut memory = Vec::new();
        let Some(stored) = read_about_groups(&self.shared, token, &mut memory)? else {
            return Ok(None);
        };
        let Ok(headers) = Headers::scan_stored(&memory[stored.octets.clone()]) else {
            return Ok(None);
        };
        self.control_in(&headers, looker, (stored.sequence, stored.arrival), looked)
    }

    /// What would come of a message about groups if it came now, in wire form; `None`: it is none.
    ///
    /// # Errors
    /// When the keyring cannot be read.
    pub fn control_try(&self, wire: &[u8]) -> Result<Option<ControlReport>, Error> {
        let looker = self.looker();
        let limits = looker.policy.articles.header_limits();
        let headers = Headers::scan_within(wire, limits);
        let headers = headers.map_err(|why| Error::Request(why.to_string()))?;
        let now = UnixTime(self.shared.clock.now().secs);
        let came = (Sequence(0), now);
        let found = self.control_in(&headers, &looker, came, Looked::AtAll)?;
        Ok(found.map(|found| found.whole(&self.shared)))
    }

    fn control_in(
        &self,
        headers: &Headers<'_>,
        looker: &Looker,
        came: (Sequence, UnixTime),
        looked: Looked<'_>,
    ) -> Result<Option<Found>, Error> {
        let (at, arrival) = came;
        let content = |known| {
            let content = headers.content(known).unwrap_or_default();
            String::from_utf8_lossy(content).into_owned()
        };
        let Some(read) = groups::read(headers) else {
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
            newer: Vec::new(),
            problem: None,
        };
        let message = match read {
            Ok(message) => message,
            Err(why) => {
                report.problem = Some(why);
                return Ok(Some(Found {
                    report,
                    at,
                    read: None,
                    signer: None,
                }));
            }
        };
        let signed = match signed::is_signed(headers) {
            true => Some(signer(&looker.keyring, headers)?),
            false => None,
        };
        let policy = &looker.policy;
        let signed = signed.map(|signed| in_time(signed, policy, &message, arrival));
        report.signature = signed.as_ref().map(|signed| match signed {
            Ok(signer) => format!("good, by {}", signer.names.join(", ")),
            Err(why) => format!("bad: {why}"),
        });
        report.sender.clone_from(&message.sender);
        let signer: Option<Signer> = signed.and_then(Result::ok);
        let look = match looked {
            Looked::AtAll => Look::AtAll,
            Looked::Alone => Look::AtNothing,
            Looked::AtWhatWaits(undropped) => Look::AtWhatWaits(at, undropped),
        };
        let by = signer.as_ref();
        let mut judged = judge(&self.shared, policy, &message, by, arrival, look);
        judged.record.at = at;
        let read = Some((message, judged));
        Ok(Some(Found {
            report,
            at,
            read,
            signer,
        }))
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
