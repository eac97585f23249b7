//! What comes of a message about groups by the rules and by what was heeded: the one truth for what is done when it comes, and
//! for what administrators are told of it.
//!
//! No lock is held but for a question about one group, so that a list of any length keeps nobody waiting.

use newsreel_wire::{Sequence, UnixTime};

use super::groups::Message;
use super::heed::Heeding;
use super::heeded::{HEEDED_RECORD_OCTETS_MAX, List};
use super::keyring::Signer;
use super::meaning::{EachIn, GroupAsked, Meaning, Scope};
use super::rules::{Action, Chosen, Says, becomes};
use super::shares::Holder;
use super::touched::TOUCHED_MAX;
use super::undropped::Undropped;
use crate::local::more_until;
use crate::record::{HeededRecord, Said};
use crate::shared::{Policy, Shared};

/// One thing that a message asks for, the rule for that, and what becomes of it so.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) asked: GroupAsked,
    pub(super) rule: Action,
    pub(super) becomes: Action,
    /// It is done when its turn comes, unless that is too much then.
    may_be_done: bool,
}

/// What comes of a message.
#[derive(Debug)]
pub(super) struct Judged {
    /// What it asks for of the groups that are here.
    pub(super) asks: Vec<Ask>,
    /// It is heeded, at least in part, though nothing may be left to do: unless it would change too much when its turn comes.
    pub(super) is_heeded: bool,
    /// As it is remembered if so.
    pub(super) record: HeededRecord,
    /// Why something waits that a rule would have done, whatever is done before its turn.
    held_back: Option<&'static str>,
    /// The views of the groups had all that was committed up to here, at least.
    compared: Sequence,
    /// It is about one group, and a rule may want a mail if it asks for something when its turn comes.
    may_be_mailed: bool,
}

/// Of a message that waits so much of what it asks for is looked at, if `control.checkgroups_changes_max` is not more: thousands may wait
/// that ask for thousands of groups each.
pub const ASKS_COUNTED_MAX: usize = 100;

/// How far it is looked at what a message asks for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Look<'a> {
    /// All that it asks for.
    AtAll,
    /// Nothing of that.
    AtNothing,
    /// As far as it has to be known when it comes: of what waits in any case not all if it is much.
    AsItComes,
    /// What waits of it, and not all if it is much; it stands there in the log.
    AtWhatWaits(Sequence, &'a Undropped),
}

/// What a list asks for of which nothing is done: so much as it takes to know that it is much.
fn some_asks(
    shared: &Shared,
    message: &Message,
    becomes: impl Fn(&str) -> Action,
) -> Vec<GroupAsked> {
    let mut asks = Vec::new();
    let _ = message
        .meaning
        .each_ask(shared.views.groups(), &mut |asked| {
            if becomes(asked.name()) != Action::Drop {
                asks.push(asked);
            }
            more_until(asks.len() > ASKS_COUNTED_MAX)
        });
    asks
}

/// What a message that waits asks for, as far as no rule drops that and it is not settled, or a rule would do it: no more than it takes
/// to know that it is too much.
fn asks_that_wait(
    shared: &Shared,
    policy: &Policy,
    message: &Message,
    record: &HeededRecord,
    (rules, signer): (&Chosen<'_>, Option<&Signer>),
    undropped: &Undropped,
) -> Vec<GroupAsked> {
    let groups = shared.views.groups();
    let becomes = |name: &str| becomes(&rules.action(name), signer);
    let most = changes_max(policy, message).max(ASKS_COUNTED_MAX);
    let is_settled = |name: &str| shared.heeded.is_settled(record, name, true);
    if shared.heeded.is_settled_below(record) {
        let mut asks = message.meaning.asks_of_tops(groups);
        asks.retain(|it| becomes(it.name()) != Action::Drop && !is_settled(it.name()));
        return asks;
    }
    let mut asks = Vec::new();
    let (mut waiting, mut settled) = (0, 0);
    let each_in: EachIn<'_> = &|top, visit| undropped.each(groups, (rules, signer), top, visit);
    let meaning = &message.meaning;
    let _ = meaning.each_ask_among(groups, each_in, &mut |asked| {
        let name = asked.name();
        let is_looked_at = match becomes(name) {
            Action::Drop => false,
            _ if !is_settled(name) => {
                waiting += 1;
                true
            }
            // It counts for whether all of it is too much.
            Action::Doit => {
                settled += 1;
                settled <= most
            }
            _ => false,
        };
        if is_looked_at {
            asks.push(asked);
        }
        more_until(waiting > most)
    });
    asks
}

/// What a message asks for, as far as that is looked at.
fn asks_looked_at(
    shared: &Shared,
    policy: &Policy,
    message: &Message,
    record: &HeededRecord,
    by: (&Chosen<'_>, Option<&Signer>),
    look: Look<'_>,
) -> Vec<GroupAsked> {
    let (rules, signer) = by;
    match look {
        // A mail says how much it is.
        Look::AsItComes if !record.says_something() && !rules.mail() => {
            let of_rule = |name: &str| becomes(&rules.action(name), signer);
            some_asks(shared, message, of_rule)
        }
        Look::AtAll | Look::AsItComes => message.meaning.asks(shared.views.groups()),
        Look::AtNothing => Vec::new(),
        Look::AtWhatWaits(_, undropped) => {
            asks_that_wait(shared, policy, message, record, by, undropped)
        }
    }
}

/// Leaves what is older than what was heeded; how much of the rest a rule lets be done, and whether something is left.  What is too
/// much need not be held against all that was heeded.
fn leave_what_is_late(
    shared: &Shared,
    record: &HeededRecord,
    asks: &mut [Ask],
    most: usize,
) -> (usize, bool) {
    let (mut done, mut some_is_late) = (0, false);
    for ask in asks.iter_mut().filter(|it| it.may_be_done) {
        if done > most {
            break;
        }
        if shared.heeded.is_late(record, ask.asked.name()) {
            (ask.may_be_done, ask.becomes) = (false, Action::Log);
            some_is_late = true;
        } else {
            done += 1;
        }
    }
    (done, some_is_late)
}

/// Judges a message that came then, by the rules that hold now and by what was heeded.
pub(super) fn judge(
    shared: &Shared,
    policy: &Policy,
    message: &Message,
    signer: Option<&Signer>,
    came: UnixTime,
    look: Look<'_>,
) -> Judged {
    let rules = policy.rules.of(message.verb(), &message.sender);
    let mut record = remembered(message, signer, came, &rules);
    let compared = shared.committed();
    if let Look::AtWhatWaits(at, _) = look {
        record.at = at;
    }
    let asks = asks_looked_at(shared, policy, message, &record, (&rules, signer), look);
    let is_too_long = record.octets() > HEEDED_RECORD_OCTETS_MAX;
    let ask = |asked: GroupAsked| {
        let rule = rules.action(asked.name());
        let becomes = becomes(&rule, signer);
        let may_be_done = becomes == Action::Doit && !is_too_long;
        Ask {
            asked,
            rule,
            becomes,
            may_be_done,
        }
    };
    let mut asks: Vec<Ask> = asks.into_iter().map(ask).collect();
    let most = changes_max(policy, message);
    let (done, some_is_late) = leave_what_is_late(shared, &record, &mut asks, most);
    if is_too_long || done > most {
        for ask in asks.iter_mut().filter(|it| it.becomes == Action::Doit) {
            ask.becomes = Action::Log;
        }
    }
    // Others may have done some of it when its turn comes, but no more than are known then.
    let may_be_done = asks.iter().filter(|it| it.may_be_done).count();
    let held_back = match is_too_long {
        true => Some("it names too many hierarchies"),
        false if may_be_done > most.saturating_add(TOUCHED_MAX) => Some(TOO_MUCH),
        false => None,
    };
    let is_heeded = held_back.is_none()
        && match message.is_list() {
            // Of what it leaves out it says something, too, whatever is held back of the rest.
            true => record.says_something() && (done > 0 || !shared.heeded.is_superseded(&record)),
            false => message.meaning.named().any(|name| {
                becomes(&rules.action(name), signer) == Action::Doit
                    && !shared.heeded.is_late(&record, name)
            }),
        };
    Judged {
        asks,
        is_heeded,
        record,
        held_back: held_back.or(some_is_late.then_some(LATE)),
        compared,
        may_be_mailed: !message.is_list() && rules.mail(),
    }
}

/// Why a list waits that would do more than [`changes_max`].
pub(super) const TOO_MUCH: &str = "it changes more groups than control.checkgroups_changes_max";

/// Why something waits that is older than what was heeded.
pub(super) const LATE: &str = "a newer one was heeded";

/// How many groups a message may change without somebody who approves it, whatever the rules say.
pub(super) fn changes_max(policy: &Policy, message: &Message) -> usize {
    match message.is_list() {
        true => policy.control.checkgroups_changes_max as usize,
        false => usize::MAX,
    }
}

/// Octets in the log of a message itself, at most: one that is filed in a group of control messages, with what feeds want to know.
const MESSAGE_OCTETS: usize = 4096;

/// Names of a key that are remembered, and octets of one: real keys have some.
const NAMES_MAX: usize = 16;
const NAME_OCTETS_MAX: usize = 128;

/// A message as it is remembered when it was heeded.
fn remembered(
    message: &Message,
    signer: Option<&Signer>,
    came: UnixTime,
    rules: &Chosen<'_>,
) -> HeededRecord {
    let (said, rule) = match &message.meaning {
        Meaning::Checkgroups { scope, .. } => {
            let list = list(message, scope, signer, rules);
            let says = list.says.iter().flat_map(Says::patterns);
            let says: Vec<&str> = says.map(|(groups, _)| groups).collect();
            let rule = says.join(":");
            (Said::List(list), rule)
        }
        meaning => {
            let group = meaning.named().next().unwrap_or_default();
            let rule = rules.groups_of(group).to_owned();
            (Said::OfGroup(group.to_owned()), rule)
        }
    };
    HeededRecord {
        at: Sequence(0),
        // What is written ahead of time keeps nothing back that is written until then.
        date: message.date.map_or(came, |date| date.min(came)),
        holder: match signer {
            Some(signer) => Holder::of_key(signer.fingerprint()),
            None => Holder::of_rule(&rule),
        },
        said,
    }
}

fn list(message: &Message, scope: &Scope, signer: Option<&Signer>, rules: &Chosen<'_>) -> List {
    let short = |signer: &Signer| {
        let names = signer.names.iter().filter(|it| it.len() <= NAME_OCTETS_MAX);
        let names = names.take(NAMES_MAX).cloned().collect();
        Signer::new(names, signer.fingerprint().to_owned())
    };
    List {
        serial: message.serial,
        scope: scope.clone(),
        sender: message.sender.clone(),
        signer: signer.map(short),
        is_approved: false,
        says: Some(rules.says_of(signer, scope)),
    }
}

impl HeededRecord {
    /// Whether there is any group of which the rules let it be done, if it is a list.
    fn says_something(&self) -> bool {
        match &self.said {
            Said::OfGroup(_) => true,
            Said::List(list) => list.says.as_ref().is_none_or(|says| !says.is_empty()),
        }
    }

    /// The same, when somebody approved it.
    pub(super) fn approved(mut self) -> Self {
        self.holder = Holder::of_approval();
        if let Said::List(list) = &mut self.said {
            (list.is_approved, list.says) = (true, None);
        }
        self
    }
}

impl Judged {
    /// What the sequencer is to do.
    pub(super) fn decide(self, message: Message, signer: Option<Signer>) -> Heeding {
        let (mut done, mut waiting, mut is_mailed) = (Vec::new(), 0, self.may_be_mailed);
        let mut octets = MESSAGE_OCTETS + self.record.octets();
        for ask in self.asks {
            match ask.becomes {
                _ if ask.may_be_done && self.is_heeded => {
                    octets += ask.asked.octets_max() + message.sender.len();
                    done.push(ask.asked.name().to_owned());
                }
                Action::Doit | Action::Log => waiting += 1,
                Action::Mail => (waiting, is_mailed) = (waiting + 1, true),
                Action::Drop | Action::Verify(_) => {}
            }
        }
        Heeding {
            record: self.record,
            compared: self.compared,
            done,
            octets,
            is_heeded: self.is_heeded,
            waiting,
            is_mailed,
            held_back: self.held_back,
            is_approved: false,
            message,
            signer,
        }
    }

    /// What the sequencer is to do when somebody approves it, though no rule lets it.
    pub(super) fn approve(self, message: Message, came: Sequence) -> Heeding {
        let names = self.asks.iter().map(|it| it.asked.name().to_owned());
        let mut record = self.record.approved();
        record.at = came;
        Heeding {
            record,
            compared: self.compared,
            done: names.collect(),
            // Who approves it asks again until there is room.
            octets: 0,
            is_heeded: true,
            waiting: 0,
            is_mailed: false,
            held_back: None,
            is_approved: true,
            message,
            signer: None,
        }
    }
}
