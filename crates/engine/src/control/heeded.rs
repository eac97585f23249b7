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
mod tests {
    use super::*;
    use crate::control::groups;

    /// A list with these arguments, of that hour, in which there are groups of de and fr.
    fn list(arguments: &str, at: u64, date: u64) -> HeededRecord {
        let words: Vec<&str> = arguments.split_whitespace().collect();
        let named = groups::named(&words).unwrap();
        let scope = Scope::new(named, ["de.x", "fr.x"].into_iter());
        HeededRecord {
            at: Sequence(at),
            date: UnixTime(date),
            holder: Holder::of_approval(),
            said: Said::List(List {
                serial: groups::serial_number(&words).unwrap(),
                scope,
                sender: "a@b.example".to_owned(),
                signer: None,
                is_approved: true,
                says: None,
            }),
        }
    }

    /// One group, of that hour.
    fn group(name: String, at: u64, date: u64, holder: Holder) -> HeededRecord {
        HeededRecord {
            at: Sequence(at),
            date: UnixTime(date),
            holder,
            said: Said::OfGroup(name),
        }
    }

    /// That list by who may speak of these groups only.
    fn of(mut record: HeededRecord, groups: &str) -> HeededRecord {
        if let Said::List(list) = &mut record.said {
            list.is_approved = false;
            list.says = Says::parse(&[(groups.to_owned(), true)]);
            list.sender = groups.to_owned();
        }
        record.holder = Holder::of_rule(groups);
        record
    }

    #[test]
    fn which_list_is_older() {
        // What is asked of a group by a list of hour 5, behind one that was heeded and is of hour 4, 5, and 6.
        for (own, group, other, is_late) in [
            ("de #1", "de.x", "de #2", [true; 3]),
            ("de #2", "de.x", "de #2", [false; 3]),
            ("de #10", "de.x", "de #9", [false; 3]),
            ("de", "de.x", "de #2", [true; 3]),
            // Where there is no number to go by the Date decides.
            ("de #2", "de.x", "de", [false, false, true]),
            ("de", "de.x", "de", [false, false, true]),
            ("de #1", "de.sub.x", "de.sub #2", [false, false, true]),
            ("de #1", "de.x", "de.sub #2", [false; 3]),
            ("de #1", "de.x", "fr #2", [false; 3]),
            ("de fr #1", "fr.x", "fr #2", [true; 3]),
            ("de fr #1", "de.x", "fr #2", [false; 3]),
            ("#1", "fr.x", "fr #2", [true; 3]),
            // What the other one leaves out it says nothing of.
            ("de #1", "de.sub.x", "de !de.sub #2", [false; 3]),
            (
                "de #1",
                "de.sub.x",
                "de !de.sub de.sub.x #2",
                [false, false, true],
            ),
            (
                "de !de.sub #1",
                "de.sub.x",
                "de.sub #2",
                [false, false, true],
            ),
        ] {
            let date_of = |date| {
                let mut table = Table::default();
                table.note(list(other, 1, date));
                table.is_late(&list(own, 2, 5), group)
            };
            assert_eq!([4, 5, 6].map(date_of), is_late, "{own}, {group}, {other}");
        }
    }

    /// The largest number, the latest Date and the last arrival were remembered, each of another message: one that was approved though it is
    /// older hid a newer one that waits, and came in between.
    #[test]
    fn an_older_one_that_was_approved_hides_no_newer_one() {
        let holder = Holder(0);
        let of_group = |at, date| group("de.x".to_owned(), at, date, holder);
        let of_list = |at: u64, date, serial: u64| list(&format!("de #{serial}"), at, date);
        for [newest, older, waits] in [
            [of_group(1, 9), of_group(3, 3), of_group(2, 5)],
            [of_list(1, 9, 9), of_list(3, 3, 3), of_list(2, 5, 5)],
            [of_list(1, 3, 9), of_list(3, 9, 3), of_list(2, 5, 5)],
        ] {
            let mut table = Table::default();
            table.note(newest.clone());
            table.note(older.clone());
            assert!(!table.is_settled(&waits, "de.x", false), "{waits:?}");
            assert_eq!(table.all(), std::slice::from_ref(&newest));
            assert!(table.is_late(&waits, "de.x"));
            // In whichever order they were approved.
            let mut table = Table::default();
            table.note(older);
            table.note(newest.clone());
            assert_eq!(table.all(), [newest]);
        }
    }

    #[test]
    fn which_list_is_settled_as_a_whole() {
        let waits = list("de #6", 5, 5);
        for (heeded, is_settled) in [
            (list("de #7", 9, 4), true),
            (list("de #5", 9, 9), false),
            (list("de #7", 4, 9), false),
            (list("#7", 9, 5), true),
            (list("de !de.sub #7", 9, 5), false),
            (list("de de.sub #7", 9, 5), false),
            (list("fr #7", 9, 5), false),
            (of(list("de #7", 9, 5), "de.*"), true),
            (of(list("de #7", 9, 5), "de.sub.*"), false),
        ] {
            let mut table = Table::default();
            table.note(heeded.clone());
            assert_eq!(table.is_settled_below(&waits), is_settled, "{heeded:?}");
            if is_settled {
                assert!(table.is_settled(&waits, "de.some.x", true), "{heeded:?}");
            }
        }
    }

    #[test]
    fn which_list_says_nothing_new() {
        for (own, heeded, is_superseded) in [
            ("de #1", "de #2", true),
            ("de #2", "de #2", false),
            ("de", "de #2", true),
            ("de #1", "#2", true),
            ("#1", "de #2", false),
            ("de fr #1", "de #2", false),
            ("de #1", "de !de.sub #2", false),
            ("de !de.sub #1", "de !de.sub #2", true),
            ("de !de.sub #1", "de #2", true),
            ("de.sub #1", "de #2", false),
        ] {
            let mut table = Table::default();
            table.note(list(heeded, 1, 5));
            let is_it = table.is_superseded(&list(own, 2, 5));
            assert_eq!(is_it, is_superseded, "{own}, {heeded}");
        }
        // Who may speak of a part only supersedes nobody who may speak of more.
        let mut table = Table::default();
        table.note(of(list("de #2", 1, 5), "de.sub.*"));
        assert!(!table.is_superseded(&of(list("de #1", 2, 5), "de.*")));
        assert!(table.is_superseded(&of(list("de #1", 2, 5), "de.sub.*")));
    }

    /// A list that came behind a newer one that waits, and was done though it is older, hid that from who should approve it.
    #[test]
    fn what_is_older_settles_nothing() {
        let waits = list("de #6", 5, 5);
        for (heeded, is_settled) in [
            (list("de #5", 6, 9), false),
            (list("de", 7, 9), false),
            (list("de.sub #9", 8, 4), false),
            (list("de #7", 4, 9), false),
            (list("de #7", 9, 4), true),
        ] {
            let mut table = Table::default();
            table.note(heeded.clone());
            assert_eq!(
                table.is_settled(&waits, "de.sub.x", true),
                is_settled,
                "{heeded:?}"
            );
        }
        // Of a group by its own messages, too.
        let waits = group("de.x".to_owned(), 5, 5, Holder(0));
        for (at, date, is_settled) in [(6, 4, false), (4, 9, false), (7, 5, true)] {
            let mut table = Table::default();
            table.note(group("de.x".to_owned(), at, date, Holder(0)));
            assert_eq!(
                table.is_settled(&waits, "de.x", true),
                is_settled,
                "{at} {date}"
            );
        }
        // Itself, unless it was held back there.
        let mut table = Table::default();
        let own = of(list("de #6", 5, 5), "de.*");
        table.note(own.clone());
        assert!(table.is_settled(&own, "de.x", false) && !table.is_settled(&own, "de.x", true));
    }

    /// What a list keeps back was asked of the rules in force: after other rules it kept back nothing, or more.
    #[test]
    fn a_list_speaks_of_what_it_was_done_of() {
        let mut table = Table::default();
        table.note(of(list("de #9", 1, 9), "de.sub.*"));
        assert!(table.is_late(&list("de #8", 2, 9), "de.sub.x"));
        assert!(!table.is_late(&list("de #8", 2, 9), "de.x"));
        // A log of before does not say: then the rules at the start do.
        let mut record = of(list("fr #9", 1, 9), "fr.*");
        if let Said::List(list) = &mut record.said {
            list.says = None;
        }
        table.note(record);
        assert!(!table.is_late(&list("fr #8", 2, 9), "fr.x"));
        table.complete(&Rules::parse(&["all:*:fr.*:doit".to_owned()]).unwrap());
        assert!(table.is_late(&list("fr #8", 2, 9), "fr.x"));
        assert!(
            !table.is_late(&list("de #8", 2, 9), "de.x"),
            "that one says"
        );
    }

    #[test]
    fn a_hierarchy_is_forgotten_with_what_is_in_it() {
        let mut table = Table::default();
        for name in ["de", "de.x", "de.x.y", "dex", "de.y"] {
            table.note(group(name.to_owned(), 1, 9, Holder(0)));
        }
        for arguments in ["de #9", "de.x #9", "de.x.y fr #9", "fr #9"] {
            table.note(list(arguments, 1, 9));
        }
        table.forget("de.x");
        let names: Vec<&String> = table.order.values().collect();
        assert_eq!(names, ["de", "dex", "de.y"]);
        // What a list says of another hierarchy stays, where it stood.
        let left: Vec<_> = table.lists.values().collect();
        let of_fr = list("!de.x.y fr #9", 1, 9);
        assert_eq!(left, [&list("de #9", 1, 9), &of_fr, &list("fr #9", 1, 9)]);
        assert!(table.is_late(&list("fr #8", 2, 9), "fr.x"));
        let octets: usize = table.all().iter().map(HeededRecord::octets).sum();
        assert_eq!(octets, table.octets());
        assert_eq!(table.meant.len(), 2);
        table.forget("de");
        table.forget("fr");
        assert_eq!(table.all(), [group("dex".to_owned(), 1, 9, Holder(0))]);
    }

    #[test]
    fn it_is_bounded_and_what_was_heeded_first_goes() {
        let mut table = Table::default();
        for n in 0..5000 {
            table.note(group(format!("alt.n{n}"), n, n, Holder(0)));
            table.note(list(&format!("de.n{n} #1"), n, n));
            table.note(list(&format!("de.m{} #{n}", n % 3), n, n));
            table.tidy(20_000);
        }
        assert!(table.octets() < 40_000 && table.of_groups.octets() > 19_000);
        let octets = |all: &[HeededRecord]| all.iter().map(HeededRecord::octets).sum::<usize>();
        let all = table.all();
        assert_eq!(octets(&all), table.octets());
        // Of one sender no more than so many, and of one list the newest.
        assert_eq!(table.lists.len(), HEEDED_LISTS_OF_ONE_MAX);
        let meant: usize = table.meant.values().map(SmallVec::len).sum();
        assert_eq!(
            meant, HEEDED_LISTS_OF_ONE_MAX,
            "what is forgotten is looked for nowhere"
        );
        let settled = |came: u64, name: &str| {
            let waits = group(name.to_owned(), came, 0, Holder(0));
            table.is_settled(&waits, name, false)
        };
        assert!(settled(4999, "alt.n4999") && !settled(5000, "alt.n4999"));
        assert!(!settled(0, "alt.n0"));
        assert!(table.is_late(&list("de.m1 #4998", 1, 9999), "de.m1.x"));
        let mut again = Table::default();
        all.into_iter().for_each(|record| again.note(record));
        assert_eq!(again.all(), table.all());
    }

    /// 900 rmgroups by who holds one hierarchy had the order of all others forgotten, where the segments of the log are small.
    #[test]
    fn nobodys_flood_has_what_others_said_forgotten() {
        let mut table = Table::default();
        let (mine, mole) = (Holder::of_rule("de.*"), Holder::of_key("AB12"));
        for n in 0..50 {
            table.note(group(format!("de.n{n}"), n, 9, mine));
        }
        table.note(of(list("de #7", 50, 50), "de.*"));
        for n in 100..20_000 {
            table.note(group(format!("alt.n{n}"), n, 9, mole));
            // Nor by long lists of many senders whom one rule believes.
            let scope: Vec<String> = (0..20).map(|at| format!("alt.m{n}x{at}")).collect();
            let mut long = of(list(&scope.join(" "), n, 9), "alt.*");
            if let Said::List(list) = &mut long.said {
                list.sender = format!("{n}@a.example");
            }
            table.note(long);
            table.tidy(16_000);
        }
        let late = |name: &str| table.is_late(&group(name.to_owned(), 1, 8, mine), name);
        assert!((0..50).all(|n| late(&format!("de.n{n}"))));
        assert!(late("alt.n19999") && !late("alt.n100"));
        assert!(table.is_late(&list("de #6", 1, 99), "de.x"));
        // Who takes a group over takes its room over.
        for n in 0..50 {
            table.note(group(format!("de.n{n}"), 30_000, 9, mole));
        }
        let octets: usize = table.all().iter().map(HeededRecord::octets).sum();
        assert_eq!(octets, table.octets());
    }
}
