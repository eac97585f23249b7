//! What was heeded, and how old it says that it is: an older message does not undo a newer one, whichever of them comes first
//! (RFC 5537 section 5.2.3).
//!
//! In memory, bounded, and in the log: with the commit of the message itself, and again beside the state of each checkpoint, so
//! that neither the log before it nor the article has to stay.  Of each group it is known when the newest newgroup or rmgroup was
//! written that was heeded; of each list of groups (checkgroups) its serial number, its Date, and of which groups it was
//! done.  A list keeps others back only where the rules let its sender speak when it came, so nobody who holds a part of a
//! hierarchy does so for the rest, and other rules change nothing of that.
//!
//! Who is believed has a share of the room ([`Shares`]): a key, or all whom one rule believes without a signature.
//! A question about a group looks at the lists that mean it only, whatever else they name.

use std::collections::{BTreeMap, HashMap};

use newsreel_wire::{Sequence, UnixTime};
use parking_lot::RwLock;
use smallvec::SmallVec;

use super::forgotten::Forgotten;
use super::groups::Verb;
use super::keyring::Signer;
use super::meaning::{Scope, hierarchies_of};
use super::rules::{Rules, Says};
use super::shares::{Holder, Shares};
use crate::config::EngineConfig;
use crate::record::{HeededRecord, Said};
use crate::sequencer::Sequencer;

/// What is remembered of all messages that were heeded, octets of the log: some ten thousand groups, and as much for lists.  It is
/// told again at each checkpoint; beyond it what was heeded first of who has most is forgotten.
pub const HEEDED_OCTETS_MAX: u64 = 1 << 20;

/// Octets of one: a list that names more hierarchies than have room here waits for approval.
pub const HEEDED_RECORD_OCTETS_MAX: usize = 4096;

/// Lists of different hierarchies that are remembered of one sender, so that nobody has those of others forgotten.
pub const HEEDED_LISTS_OF_ONE_MAX: usize = 16;

/// Lists that are remembered in all: each message is held against them.
pub const HEEDED_LISTS_MAX: usize = 512;

/// What a checkgroups says, as far as others are held against it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct List {
    /// None: it has none.
    pub(crate) serial: Option<u64>,
    pub(crate) scope: Scope,
    /// The address in From.
    pub(crate) sender: String,
    pub(crate) signer: Option<Signer>,
    /// Somebody approved it: it was done whatever the rules say.
    pub(crate) is_approved: bool,
    /// Of which groups the rules let it be done; none: of all, if it was approved, and else a log of before does not say.
    pub(crate) says: Option<Says>,
}

impl List {
    /// Whether they say it of the same, with the same right: the newer one is all that counts then.
    fn is_like(&self, other: &Self) -> bool {
        let is_of_the_same = self.scope == other.scope && self.says == other.says;
        is_of_the_same && self.sender == other.sender && self.is_by_the_same(other)
    }

    fn is_by_the_same(&self, other: &Self) -> bool {
        let key = |list: &Self| match &list.signer {
            Some(signer) => signer.fingerprint().to_owned(),
            None => list.sender.clone(),
        };
        self.is_approved == other.is_approved && key(self) == key(other)
    }

    /// Whether it says something of all that another one says something of, as far as they mean the same hierarchy.
    fn says_all_of(&self, other: &Self) -> bool {
        let mut left_out = self.scope.named().iter().filter(|(_, is_in)| !is_in);
        left_out.all(|(name, _)| !other.scope.means(name))
            && (self.is_approved || self.says == other.says)
    }

    /// Whether it was done of this group, as far as its scope means it.
    fn is_done_of(&self, group: &str) -> bool {
        self.is_approved || self.says.as_ref().is_some_and(|says| says.is_of(group))
    }
}

/// All that is remembered.
#[derive(Debug, Default)]
pub(crate) struct Heeded(RwLock<Table>);

/// The same, while a log is read.
#[derive(Debug, Default, Clone)]
pub(crate) struct Table {
    groups: HashMap<String, OfGroup>,
    /// The groups, in the order in which something was heeded of them, by their numbers.
    order: BTreeMap<u64, String>,
    of_groups: Shares,
    /// In the order in which they were heeded, by their numbers.
    lists: BTreeMap<u64, HeededRecord>,
    of_lists: Shares,
    /// Which of them name a hierarchy as one that they mean.
    meant: HashMap<String, SmallVec<[u64; 2]>>,
    /// The number of the next one.
    next: u64,
}

/// What was heeded of one group.
#[derive(Debug, Clone, Copy)]
struct OfGroup {
    number: u64,
    at: Sequence,
    date: UnixTime,
    holder: Holder,
}

/// Octets that each kind may take.
fn room(config: &EngineConfig) -> usize {
    let octets = HEEDED_OCTETS_MAX.min(config.journal.segment_octets / 16);
    usize::try_from(octets / 2).unwrap_or(usize::MAX)
}

/// Octets of what is remembered of a message that somebody approves: what has no room would be forgotten at once, and lengths
/// in the log have sixteen bits.
pub(super) fn approved_octets_max(config: &EngineConfig) -> usize {
    room(config).min(usize::from(u16::MAX))
}

impl Table {
    /// Takes in what was heeded.
    pub(crate) fn note(&mut self, record: HeededRecord) {
        match &record.said {
            Said::OfGroup(name) => self.note_group(name.clone(), &record),
            Said::List(_) => self.note_list(record),
        }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn note_group(&mut self, name: String, new: &HeededRecord) {
        let mut of = OfGroup {
            number: self.number(),
            at: new.at,
            date: new.date,
            holder: new.holder,
        };
        if let Some(before) = self.forget_group(&name)
            && (before.date, before.at) > (of.date, of.at)
        {
            // One that is older was approved: that one stays the newest, with all that is known of it.
            of = OfGroup {
                number: of.number,
                ..before
            };
        }
        let octets = HeededRecord::octets_of_group(&name);
        self.of_groups.add(of.holder, of.number, octets);
        self.order.insert(of.number, name.clone());
        self.groups.insert(name, of);
    }

    fn forget_group(&mut self, name: &str) -> Option<OfGroup> {
        let of = self.groups.remove(name)?;
        self.order.remove(&of.number);
        let octets = HeededRecord::octets_of_group(name);
        self.of_groups.remove(of.holder, of.number, octets);
        Some(of)
    }

    fn note_list(&mut self, mut record: HeededRecord) {
        let Said::List(new) = &record.said else {
            return;
        };
        let find = |lists: &BTreeMap<u64, HeededRecord>, is_it: &dyn Fn(&List) -> bool| {
            let is_it = |it: &HeededRecord| matches!(&it.said, Said::List(list) if is_it(list));
            let mut all = lists.iter().filter(|(_, it)| is_it(it));
            let first = all.next().map(|(number, _)| *number);
            (first, usize::from(first.is_some()) + all.count())
        };
        let (like, _) = find(&self.lists, &|old| old.is_like(new));
        let (oldest, count) = find(&self.lists, &|old| old.is_by_the_same(new));
        if let Some(before) = like.and_then(|number| self.forget_list(number)) {
            // As of a group.
            if before.newness() > record.newness() {
                record = before;
            }
        } else if count >= HEEDED_LISTS_OF_ONE_MAX
            && let Some(oldest) = oldest
        {
            self.forget_list(oldest);
        }
        let number = self.number();
        self.put_list(number, record);
    }

    fn put_list(&mut self, number: u64, record: HeededRecord) {
        if let Said::List(list) = &record.said {
            for name in list.scope.meant() {
                self.meant.entry(name.to_owned()).or_default().push(number);
            }
        }
        self.of_lists.add(record.holder, number, record.octets());
        self.lists.insert(number, record);
    }

    fn forget_list(&mut self, number: u64) -> Option<HeededRecord> {
        let record = self.lists.remove(&number)?;
        self.of_lists.remove(record.holder, number, record.octets());
        if let Said::List(list) = &record.said {
            for name in list.scope.meant() {
                if let Some(numbers) = self.meant.get_mut(name) {
                    numbers.retain(|it| *it != number);
                    if numbers.is_empty() {
                        self.meant.remove(name);
                    }
                }
            }
        }
        Some(record)
    }

    /// Forgets what was heeded first of who has most, where there is more than may be.
    fn tidy(&mut self, room: usize) {
        while self.of_groups.octets() > room {
            let first = self.of_groups.first_to_go();
            let name = first.and_then(|(number, _)| self.order.get(&number).cloned());
            let Some(name) = name else {
                break;
            };
            self.forget_group(&name);
        }
        while self.of_lists.octets() > room || self.lists.len() > HEEDED_LISTS_MAX {
            let Some((number, _)) = self.of_lists.first_to_go() else {
                break;
            };
            self.forget_list(number);
        }
    }

    /// The numbers of the groups, and of the lists, that are about a hierarchy or what is in it.
    fn numbers_of(&self, hierarchy: &str) -> (Vec<u64>, Vec<u64>) {
        let is_in = |name: &str| hierarchies_of(name).any(|above| above == hierarchy);
        let groups = self.order.iter().filter(|(_, name)| is_in(name));
        let lists = self.lists.iter().filter(|(_, record)| match &record.said {
            Said::List(list) => list.scope.meant().any(is_in),
            Said::OfGroup(_) => false,
        });
        (
            groups.map(|(number, _)| *number).collect(),
            lists.map(|(number, _)| *number).collect(),
        )
    }

    /// Forgets what was heeded of a hierarchy and what is in it; what lists say of other hierarchies stays.
    pub(crate) fn forget(&mut self, hierarchy: &str) {
        let (groups, lists) = self.numbers_of(hierarchy);
        for number in groups {
            if let Some(name) = self.order.get(&number).cloned() {
                self.forget_group(&name);
            }
        }
        for number in lists {
            if let Some(mut record) = self.forget_list(number)
                && let Said::List(list) = &mut record.said
                && let Some(rest) = list.scope.without(hierarchy)
            {
                list.scope = rest;
                self.put_list(number, record);
            }
        }
    }

    fn octets(&self) -> usize {
        self.of_groups.octets() + self.of_lists.octets()
    }

    fn of_group(&self, name: &String) -> Option<HeededRecord> {
        let of = self.groups.get(name)?;
        Some(HeededRecord {
            at: of.at,
            date: of.date,
            holder: of.holder,
            said: Said::OfGroup(name.clone()),
        })
    }

    fn all(&self) -> Vec<HeededRecord> {
        let groups = self.order.values().filter_map(|name| self.of_group(name));
        groups.chain(self.lists.values().cloned()).collect()
    }

    /// Of what a log of before tells, of which groups it was done: those that the rules say now.
    fn complete(&mut self, rules: &Rules) {
        let numbers: Vec<u64> = self.lists.keys().copied().collect();
        for number in numbers {
            let Some(Said::List(list)) = self.lists.get(&number).map(|it| &it.said) else {
                continue;
            };
            if list.says.is_none()
                && !list.is_approved
                && let Some(mut record) = self.forget_list(number)
                && let Said::List(list) = &mut record.said
            {
                let chosen = rules.of(Verb::Checkgroups, &list.sender);
                list.says = Some(chosen.says_of(list.signer.as_ref(), &list.scope));
                self.note_list(record);
            }
        }
    }

    /// The lists that were done of this group.
    fn lists_of(&self, group: &str) -> impl Iterator<Item = (&HeededRecord, &List)> {
        let numbers = hierarchies_of(group).filter_map(|name| Some((name, self.meant.get(name)?)));
        let numbers = numbers.flat_map(|(name, numbers)| numbers.iter().map(move |it| (name, it)));
        numbers.filter_map(move |(name, number)| {
            let record = self.lists.get(number)?;
            let Said::List(list) = &record.said else {
                return None;
            };
            // One that names several of its hierarchies is looked at once.
            (list.scope.top_of(group) == Some(name)).then_some((record, list))
        })
    }

    /// Whether what this message says of a group is older than what was heeded.
    pub(super) fn is_late(&self, message: &HeededRecord, group: &str) -> bool {
        let of_group = self.groups.get(group);
        of_group.is_some_and(|newest| message.date < newest.date)
            || self
                .lists_of(group)
                .any(|(heeded, list)| is_older(message, heeded, group) && list.is_done_of(group))
    }

    /// Whether a list is older than others that were heeded in all its hierarchies: of what it leaves out it says nothing then that is
    /// new.
    fn is_superseded(&self, message: &HeededRecord) -> bool {
        let Said::List(own) = &message.said else {
            return false;
        };
        own.scope.meant().all(|top| {
            self.lists_of(top)
                .any(|(heeded, list)| is_older(message, heeded, top) && list.says_all_of(own))
        })
    }

    /// Whether lists came behind a list that waits, are no older, and were done of all that is below its hierarchies: then that is
    /// settled, of whatever groups.
    fn is_settled_below(&self, waits: &HeededRecord) -> bool {
        let Said::List(own) = &waits.said else {
            return false;
        };
        own.scope.meant().all(|top| {
            self.lists_of(top).any(|(heeded, list)| {
                let says = list.says.as_ref();
                heeded.at > waits.at
                    && !is_older(heeded, waits, top)
                    && list.scope.is_plain_below(top)
                    && (list.is_approved || says.is_some_and(|says| says.is_of_all_below(top)))
            })
        })
    }

    /// Whether something was heeded about a group that came behind a message and is no older, or this message itself, which waits: one of
    /// which this was held back was not, unless somebody approved it.
    pub(super) fn is_settled(&self, waits: &HeededRecord, group: &str, is_held_back: bool) -> bool {
        let came = waits.at;
        let of_group = self.groups.get(group);
        of_group.is_some_and(|it| it.at == came || it.at > came && it.date >= waits.date)
            || self.lists_of(group).any(|(heeded, list)| {
                let counts = match heeded.at == came {
                    true => list.is_approved || !is_held_back,
                    false => heeded.at > came && !is_older(heeded, waits, group),
                };
                counts && list.is_done_of(group)
            })
    }
}

impl HeededRecord {
    /// Whether it is a list that is done of all that is below its hierarchies, as far as its rules say so plainly.
    pub(super) fn is_done_of_all(&self) -> bool {
        let Said::List(list) = &self.said else {
            return false;
        };
        let is_of_all = |top| list.says.as_ref().is_some_and(|it| it.is_of_all_below(top));
        list.is_approved || list.scope.meant().all(is_of_all)
    }

    /// Whether what another one says of a group is newer: of two that are as old it is the one that came behind.
    pub(super) fn is_older_than(&self, other: &Self, group: &str) -> bool {
        is_older(self, other, group) || !is_older(other, self, group) && other.at > self.at
    }

    /// Of two about the same group, or lists of the same, the one for which this is more is the newer one.
    const fn newness(&self) -> (Option<u64>, UnixTime, Sequence) {
        let serial = match &self.said {
            Said::OfGroup(_) => None,
            Said::List(list) => list.serial,
        };
        (serial, self.date, self.at)
    }
}

/// Whether what one message says of a group is older than what another one says.  Two lists of one hierarchy are told apart by
/// their serial numbers; everything else by Date.
fn is_older(one: &HeededRecord, other: &HeededRecord, group: &str) -> bool {
    if let (Said::List(list), Said::List(newer)) = (&one.said, &other.said)
        && list.scope.top_of(group) == newer.scope.top_of(group)
    {
        match (list.serial, newer.serial) {
            (Some(own), Some(other)) => return own < other,
            (None, Some(_)) => return true,
            (_, None) => {}
        }
    }
    one.date < other.date
}

impl Heeded {
    /// With what the log tells.
    pub(crate) fn new(mut told: Table, config: &EngineConfig) -> Self {
        told.complete(&Rules::parse(&config.control.rules).unwrap_or_default());
        told.tidy(room(config));
        Self(RwLock::new(told))
    }

    /// Whether what this message says of a group is older than what was heeded.
    pub(crate) fn is_late(&self, message: &HeededRecord, group: &str) -> bool {
        self.0.read().is_late(message, group)
    }

    /// Whether a list is older than others that were heeded in all its hierarchies.
    pub(crate) fn is_superseded(&self, message: &HeededRecord) -> bool {
        self.0.read().is_superseded(message)
    }

    /// Whether what this message, which waits, says of a group has been settled since.
    pub(crate) fn is_settled(&self, waits: &HeededRecord, group: &str, is_held_back: bool) -> bool {
        self.0.read().is_settled(waits, group, is_held_back)
    }

    /// Whether all that this list, which waits, says of what is below its hierarchies has been settled since.
    pub(crate) fn is_settled_below(&self, waits: &HeededRecord) -> bool {
        self.0.read().is_settled_below(waits)
    }

    /// What is remembered of a hierarchy and what is in it.
    pub(super) fn of_hierarchy(&self, hierarchy: &str) -> Forgotten {
        let table = self.0.read();
        let (groups, lists) = table.numbers_of(hierarchy);
        let mut found = Forgotten::default();
        let groups = groups.iter().filter_map(|number| table.order.get(number));
        for record in groups.filter_map(|name| table.of_group(name)) {
            found.add(&record, hierarchy);
        }
        for record in lists.iter().filter_map(|number| table.lists.get(number)) {
            found.add(record, hierarchy);
        }
        found.groups.sort_unstable();
        found
    }

    /// Forgets what was heeded of a hierarchy and what is in it.
    pub(crate) fn forget(&self, hierarchy: &str) {
        self.0.write().forget(hierarchy);
    }

    /// Octets that all of it takes in the log.
    pub(crate) fn octets(&self) -> usize {
        self.0.read().octets()
    }

    /// What came since then has not happened.
    pub(crate) fn take_back(&self, before: Table) {
        *self.0.write() = before;
    }
}

impl Sequencer {
    /// Puts into the log that this was heeded.
    pub(crate) fn note_heeded(&mut self, record: HeededRecord) {
        self.keep_heeded();
        record.encode(self.record(crate::record::kind::HEEDED));
        let mut table = self.shared.heeded.0.write();
        table.note(record);
        table.tidy(room(&self.shared.config));
    }

    /// Keeps what was heeded before the open commit changes it.
    pub(crate) fn keep_heeded(&mut self) {
        let before = &mut self.open.heeded_before;
        before.get_or_insert_with(|| Box::new(self.shared.heeded.0.read().clone()));
    }

    /// Tells the log again what was heeded, so that what it said before may go.
    pub(crate) fn write_heeded(&mut self) {
        let all = self.shared.heeded.0.read().all();
        for record in all {
            record.encode(self.record(crate::record::kind::HEEDED));
        }
    }
}

#[cfg(test)]
mod tests;
