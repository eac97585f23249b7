//! What was heeded, and how old it says that it is: an older message does not undo a newer one, whichever of them comes first
//! (RFC 5537 section 5.2.3).
//!
//! In memory, bounded, and in the log: with the commit of the message itself, and again beside the state of each checkpoint, so
//! that neither the log before it nor the article has to stay.  Of each group it is known when the newest newgroup or rmgroup was
//! written that was heeded; of each list of groups (checkgroups) its serial number, its Date, and for whose groups it was
//! heeded.  A list keeps others back only where the rules let its sender speak, so nobody who holds a part of a hierarchy
//! does so for the rest.

use std::collections::{BTreeSet, HashMap};

use newsreel_wire::{Sequence, UnixTime};
use parking_lot::{RwLock, RwLockReadGuard};

use super::groups::{Scope, Verb};
use super::heed::becomes;
use super::keyring::Signer;
use super::rules::{Action, Chosen};
use crate::config::EngineConfig;
use crate::record::{HeededRecord, Said};
use crate::sequencer::Sequencer;
use crate::shared::Policy;

/// What is remembered of all messages that were heeded, octets of the log: some ten thousand groups, and as much for lists.  It is
/// told again at each checkpoint; beyond it what was heeded first is forgotten.
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
}

impl List {
    /// Whether they say it of the same, with the same right: the newer one is all that counts then.
    fn is_like(&self, other: &Self) -> bool {
        self.scope == other.scope && self.sender == other.sender && self.is_by_the_same(other)
    }

    fn is_by_the_same(&self, other: &Self) -> bool {
        let key = |list: &Self| match &list.signer {
            Some(signer) => signer.fingerprint().to_owned(),
            None => list.sender.clone(),
        };
        self.is_approved == other.is_approved && key(self) == key(other)
    }
}

/// All that is remembered.
#[derive(Debug, Default)]
pub(crate) struct Heeded(RwLock<Table>);

/// The same, while a log is read.
#[derive(Debug, Default)]
pub(crate) struct Table {
    groups: HashMap<String, (Sequence, UnixTime)>,
    /// The groups, in the order in which something was heeded of them.
    order: BTreeSet<(Sequence, String)>,
    group_octets: usize,
    /// In the order in which they were heeded.
    lists: Vec<HeededRecord>,
}

/// Octets that each kind may take.
fn room(config: &EngineConfig) -> usize {
    let octets = HEEDED_OCTETS_MAX.min(config.journal.segment_octets / 16);
    usize::try_from(octets / 2).unwrap_or(usize::MAX)
}

impl Table {
    /// Takes in what was heeded.
    pub(crate) fn note(&mut self, record: HeededRecord) {
        match &record.said {
            Said::OfGroup(name) => self.note_group(name.clone(), record.at, record.date),
            Said::List(_) => self.note_list(record),
        }
    }

    fn note_group(&mut self, name: String, at: Sequence, date: UnixTime) {
        let (mut newest_at, mut newest) = (at, date);
        if let Some((at, date)) = self.groups.remove(&name) {
            self.order.remove(&(at, name.clone()));
            self.group_octets -= HeededRecord::octets_of_group(&name);
            (newest_at, newest) = (newest_at.max(at), newest.max(date));
        }
        self.group_octets += HeededRecord::octets_of_group(&name);
        self.order.insert((newest_at, name.clone()));
        self.groups.insert(name, (newest_at, newest));
    }

    fn note_list(&mut self, mut record: HeededRecord) {
        let Said::List(new) = &mut record.said else {
            return;
        };
        let is_like = |it: &HeededRecord| matches!(&it.said, Said::List(old) if old.is_like(new));
        if let Some(at) = self.lists.iter().position(is_like) {
            let before = self.lists.remove(at);
            record.at = record.at.max(before.at);
            record.date = record.date.max(before.date);
            if let Said::List(before) = before.said {
                new.serial = new.serial.max(before.serial);
            }
        }
        let by_the_same =
            |it: &&HeededRecord| matches!(&it.said, Said::List(old) if old.is_by_the_same(new));
        if self.lists.iter().filter(by_the_same).count() >= HEEDED_LISTS_OF_ONE_MAX {
            let oldest = self.lists.iter().position(|it| by_the_same(&it));
            oldest.map(|at| self.lists.remove(at));
        }
        self.lists.push(record);
        self.lists.sort_by_key(|it| it.at);
    }

    fn list_octets(&self) -> usize {
        self.lists.iter().map(HeededRecord::octets).sum()
    }

    /// Forgets what was heeded first where there is more than may be.
    fn tidy(&mut self, room: usize) {
        while self.group_octets > room {
            let Some((_, name)) = self.order.pop_first() else {
                break;
            };
            self.group_octets -= HeededRecord::octets_of_group(&name);
            self.groups.remove(&name);
        }
        let mut octets = self.list_octets();
        let mut too_many = self.lists.len().saturating_sub(HEEDED_LISTS_MAX);
        self.lists.retain(|list| {
            let goes = too_many > 0 || octets > room;
            if goes {
                too_many = too_many.saturating_sub(1);
                octets -= list.octets();
            }
            !goes
        });
    }

    fn octets(&self) -> usize {
        self.group_octets + self.list_octets()
    }

    fn all(&self) -> Vec<HeededRecord> {
        let group = |(at, name): &(Sequence, String)| {
            let (_, date) = self.groups.get(name)?;
            Some(HeededRecord {
                at: *at,
                date: *date,
                said: Said::OfGroup(name.clone()),
            })
        };
        let groups = self.order.iter().filter_map(group);
        groups.chain(self.lists.iter().cloned()).collect()
    }

    /// Made ready for the questions about one message.
    fn by<'a>(&'a self, policy: &'a Policy) -> Newer<'a> {
        let list = |record: &'a HeededRecord| match &record.said {
            Said::List(list) => {
                let rules = policy.rules.of(Verb::Checkgroups, &list.sender);
                Some((record, list, rules))
            }
            Said::OfGroup(_) => None,
        };
        Newer {
            groups: &self.groups,
            lists: self.lists.iter().filter_map(list).collect(),
        }
    }
}

impl Heeded {
    /// With what the log tells.
    pub(crate) fn new(mut told: Table, config: &EngineConfig) -> Self {
        told.tidy(room(config));
        Self(RwLock::new(told))
    }

    /// For questions about messages.
    pub(crate) fn look(&self) -> Look<'_> {
        Look(self.0.read())
    }

    /// Octets that all of it takes in the log.
    pub(crate) fn octets(&self) -> usize {
        self.0.read().octets()
    }
}

/// What was heeded up to now; nothing more is until it is dropped.
#[derive(Debug)]
pub(crate) struct Look<'a>(RwLockReadGuard<'a, Table>);

impl Look<'_> {
    /// By the rules that hold now.
    pub(crate) fn by<'a>(&'a self, policy: &'a Policy) -> Newer<'a> {
        self.0.by(policy)
    }
}

/// Answers what is newer than a message.
#[derive(Debug)]
pub(crate) struct Newer<'a> {
    groups: &'a HashMap<String, (Sequence, UnixTime)>,
    lists: Vec<(&'a HeededRecord, &'a List, Chosen<'a>)>,
}

impl<'a> Newer<'a> {
    /// The lists that were heeded about this group.
    fn lists_of(&self, group: &str) -> impl Iterator<Item = (&'a HeededRecord, &'a List)> {
        let is_of = move |(_, list, rules): &&(&HeededRecord, &List, Chosen<'_>)| {
            let is_done = || becomes(&rules.action(group), list.signer.as_ref()) == Action::Doit;
            list.scope.means(group) && (list.is_approved || is_done())
        };
        let lists = self.lists.iter().filter(is_of);
        lists.map(|(record, list, _)| (*record, *list))
    }

    /// Whether what this message says of a group is older than what was heeded.  Two lists of one hierarchy are told apart by
    /// their serial numbers; everything else by Date.
    pub(crate) fn is_late(&self, message: &HeededRecord, group: &str) -> bool {
        let is_older = |date: UnixTime| message.date < date;
        if self
            .groups
            .get(group)
            .is_some_and(|(_, date)| is_older(*date))
        {
            return true;
        }
        self.lists_of(group).any(|(heeded, newer)| {
            let Said::List(list) = &message.said else {
                return is_older(heeded.date);
            };
            let is_of_one = list.scope.top_of(group) == newer.scope.top_of(group);
            match (list.serial, newer.serial) {
                (Some(own), Some(other)) if is_of_one => own < other,
                (None, Some(_)) if is_of_one => true,
                _ => is_older(heeded.date),
            }
        })
    }

    /// Whether something was heeded about a group that came behind a message, or this message itself, which came then: one of
    /// which this was held back was not, unless somebody approved it.
    pub(crate) fn is_settled(&self, came: Sequence, group: &str, is_held_back: bool) -> bool {
        self.groups.get(group).is_some_and(|(at, _)| *at >= came)
            || self.lists_of(group).any(|(heeded, list)| {
                let counts_itself = list.is_approved || !is_held_back;
                heeded.at > came || heeded.at == came && counts_itself
            })
    }
}

impl Sequencer {
    /// Puts into the log that this was heeded.
    pub(crate) fn note_heeded(&mut self, record: HeededRecord) {
        record.encode(self.record(crate::record::kind::HEEDED));
        let mut table = self.shared.heeded.0.write();
        table.note(record);
        table.tidy(room(&self.shared.config));
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
        let tops: &[&str] = if named.is_empty() { &["de", "fr"] } else { &[] };
        let scope = Scope {
            named,
            tops: tops.iter().map(|top| (*top).to_owned()).collect(),
        };
        HeededRecord {
            at: Sequence(at),
            date: UnixTime(date),
            said: Said::List(List {
                serial: groups::serial_number(&words).unwrap(),
                scope,
                sender: "a@b.example".to_owned(),
                signer: None,
                is_approved: true,
            }),
        }
    }

    fn policy() -> Policy {
        Policy::new(&EngineConfig::new("/spool".into())).unwrap()
    }

    #[test]
    fn which_list_is_older() {
        let policy = policy();
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
                table.by(&policy).is_late(&list(own, 2, 5), group)
            };
            assert_eq!([4, 5, 6].map(date_of), is_late, "{own}, {group}, {other}");
        }
    }

    #[test]
    fn it_is_bounded_and_what_was_heeded_first_goes() {
        let group = |name: String, at: u64| HeededRecord {
            at: Sequence(at),
            date: UnixTime(at),
            said: Said::OfGroup(name),
        };
        let mut table = Table::default();
        for n in 0..5000 {
            table.note(group(format!("alt.n{n}"), n));
            table.note(list(&format!("de.n{n} #1"), n, n));
            table.note(list(&format!("de.m{} #{n}", n % 3), n, n));
            table.tidy(20_000);
        }
        assert!(table.octets() < 40_000 && table.group_octets > 19_000);
        let octets = |all: &[HeededRecord]| all.iter().map(HeededRecord::octets).sum::<usize>();
        let all = table.all();
        assert_eq!(octets(&all), table.octets());
        // Of one sender no more than so many, and of one list the newest.
        assert_eq!(table.lists.len(), HEEDED_LISTS_OF_ONE_MAX);
        let policy = policy();
        let newer = table.by(&policy);
        assert!(newer.is_settled(Sequence(4999), "alt.n4999", false));
        assert!(!newer.is_settled(Sequence(5000), "alt.n4999", false));
        assert!(!newer.is_settled(Sequence(0), "alt.n0", false));
        assert!(newer.is_late(&list("de.m1 #4998", 1, 9999), "de.m1.x"));
        let mut again = Table::default();
        all.into_iter().for_each(|record| again.note(record));
        assert_eq!(again.all(), table.all());
    }
}
