//! Cancels that came before their targets: what is judged when a target comes.
//!
//! In memory, bounded, and forgotten when a target would be too old to be taken anyway.  What is in here is in the log: by
//! the cancel's own commit, and again beside the state of each checkpoint, so that the log before it may go.  A
//! target is never refused for being in here, only for what its own locks say.
//!
//! Cancels and what notices list have room of their own, and whoever sends them a share of it: where there is no room, the oldest
//! of who has most goes, so nobody's flood pushes out what came from others.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};

use newsreel_host::Clock;
use newsreel_service::cancel_lock::{LockPrint, LockPrints, PRINT_OCTETS};
use newsreel_wire::{IdHash, UnixTime};
use parking_lot::Mutex;
use smallvec::SmallVec;

use super::cancel::NOTICED;
use super::config::ControlConfig;
use super::shares::{Holder, Shares};
use crate::config::EngineConfig;
use crate::record::PendingRecord;

/// Keys that are kept of the cancels of one target that one peer sent.
pub const PENDING_KEYS_MAX: usize = 32;

/// Where articles of any age are taken, a cancel waits so long for its target.
const AGE_S: u64 = 10 * 86_400;

/// Octets in the log apart from the keys, with the entry in the frame.
const ENTRY_OCTETS: usize = PendingRecord::OCTETS + Holder::OCTETS + 8;

/// Articles of a notice that are looked at in any case: most are here, and need no room.
const NOTICED_MIN: usize = 2000;

/// The log is told of what is forgotten so often, seconds.
const SAID_S: u64 = 60;

/// How much waits, and how long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// All cancels together in the log, octets; and all that notices list.
    octets_max: usize,
    age_s: u64,
}

impl Limits {
    /// A checkpoint tells all that waits in one frame: it takes a quarter of the log's segment at most, whatever is configured.
    pub(crate) fn new(control: &ControlConfig, fixed: &EngineConfig, age_s_max: u64) -> Self {
        let octets_max = control
            .waiting_octets_max
            .min(fixed.journal.segment_octets / 8);
        Self {
            octets_max: usize::try_from(octets_max).unwrap_or(usize::MAX),
            age_s: match age_s_max {
                0 => AGE_S,
                age_s => age_s,
            },
        }
    }

    /// As the configuration says at a start.
    pub(crate) fn of(config: &EngineConfig) -> Self {
        Self::new(&config.control, config, config.articles.age_s_max)
    }

    /// How many messages about groups wait for approval: a quarter as much of each kind, and for as long as they are here.
    pub(crate) const fn of_messages(&self) -> Self {
        Self {
            octets_max: self.octets_max / 4,
            age_s: u64::MAX,
        }
    }

    /// Half as much.
    pub(super) const fn halved(&self) -> Self {
        Self {
            octets_max: self.octets_max / 2,
            age_s: self.age_s,
        }
    }

    /// So much, of any age.
    #[cfg(test)]
    pub(super) const fn of_octets(octets_max: usize) -> Self {
        Self {
            octets_max,
            age_s: u64::MAX,
        }
    }

    /// Articles of a notice that are looked at: as many as can wait if it is the only one.
    pub(crate) fn noticed_max(&self) -> usize {
        (self.octets_max / octets_of(1)).max(NOTICED_MIN)
    }

    /// Octets in the log of all that may wait.
    const fn octets_in_all(&self) -> u64 {
        2 * self.octets_max as u64
    }
}

/// What waits for targets.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    tables: Mutex<Tables>,
    /// How many there are, for who need not look then.
    count: AtomicUsize,
    unsaid: Mutex<Unsaid>,
}

/// What was forgotten for want of room that the log was not told of.
#[derive(Debug, Default)]
struct Unsaid {
    /// How many of each.
    forgotten: BTreeMap<u32, u64>,
    /// What those are called who sent some: as many as are configured.
    names: HashMap<u32, String>,
    /// When the log was told last.
    said: u64,
}

#[derive(Debug, Default)]
struct Tables {
    cancels: Table,
    /// What notices list.
    noticed: Table,
}

#[derive(Debug, Default)]
pub(super) struct Table {
    /// Mostly one peer has sent cancels of a target.
    entries: HashMap<IdHash, SmallVec<[Entry; 1]>>,
    /// Oldest first, by their numbers.
    order: BTreeMap<u64, (IdHash, Holder)>,
    shares: Shares,
    /// The number of the next one.
    next: u64,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    holder: Holder,
    since: UnixTime,
    keys: LockPrints,
}

const fn octets_of(keys: usize) -> usize {
    ENTRY_OCTETS + keys * PRINT_OCTETS
}

impl Table {
    pub(super) fn add(
        &mut self,
        target: IdHash,
        holder: Holder,
        keys: &[LockPrint],
        since: UnixTime,
    ) {
        let entries = self.entries.entry(target).or_default();
        let at = entries.iter().position(|entry| entry.holder == holder);
        let at = at.unwrap_or_else(|| {
            let number = self.next;
            self.next += 1;
            self.order.insert(number, (target, holder));
            self.shares.add(holder, number, octets_of(0));
            entries.push(Entry {
                number,
                holder,
                since,
                keys: LockPrints::new(),
            });
            entries.len() - 1
        });
        let Some(entry) = entries.get_mut(at) else {
            return;
        };
        for key in keys {
            if entry.keys.len() < PENDING_KEYS_MAX && !entry.keys.contains(key) {
                entry.keys.push(*key);
                self.shares.grow(holder, PRINT_OCTETS);
            }
        }
    }

    /// All that waits for this target.
    pub(super) fn remove(&mut self, target: &IdHash) {
        for entry in self.entries.remove(target).unwrap_or_default() {
            self.release(&entry);
        }
    }

    /// The one of this number.
    fn remove_one(&mut self, number: u64) {
        let Some((target, _)) = self.order.get(&number).copied() else {
            return;
        };
        let Some(entries) = self.entries.get_mut(&target) else {
            return;
        };
        let at = entries.iter().position(|entry| entry.number == number);
        let entry = at.map(|at| entries.remove(at));
        if entries.is_empty() {
            self.entries.remove(&target);
        }
        if let Some(entry) = entry {
            self.release(&entry);
        }
    }

    fn release(&mut self, entry: &Entry) {
        let octets = octets_of(entry.keys.len());
        self.order.remove(&entry.number);
        self.shares.remove(entry.holder, entry.number, octets);
    }

    /// Forgets what is too old or too much; of whom those were that were too much.
    pub(super) fn tidy(&mut self, now: UnixTime, limits: &Limits) -> Vec<Holder> {
        while let Some((&number, &(target, _))) = self.order.first_key_value() {
            let entries = self.entries.get(&target);
            let entry = entries.and_then(|all| all.iter().find(|it| it.number == number));
            let since = entry.map_or(0, |entry| entry.since.0);
            if now.0 <= since.saturating_add(limits.age_s) {
                break;
            }
            self.remove_one(number);
        }
        let mut forgotten = Vec::new();
        while self.octets() > limits.octets_max
            && let Some((number, holder)) = self.shares.first_to_go()
        {
            self.remove_one(number);
            forgotten.push(holder);
        }
        forgotten
    }

    /// The number of what this holder has of a target.
    fn number_of(&self, target: &IdHash, holder: Holder) -> Option<u64> {
        let mut entries = self.entries.get(target)?.iter();
        let entry = entries.find(|entry| entry.holder == holder)?;
        Some(entry.number)
    }

    fn keys(&self, target: &IdHash, keys: &mut LockPrints) -> bool {
        let entries = self.entries.get(target);
        for entry in entries.into_iter().flatten() {
            keys.extend_from_slice(&entry.keys);
        }
        entries.is_some()
    }

    pub(super) const fn octets(&self) -> usize {
        self.shares.octets()
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// All of them, oldest first.
    pub(super) fn all(&self) -> impl Iterator<Item = PendingRecord> {
        let record = |(number, (target, holder)): (&u64, &(IdHash, Holder))| {
            let mut entries = self.entries.get(target)?.iter();
            let entry = entries.find(|entry| entry.number == *number)?;
            Some(PendingRecord {
                target: *target,
                since: entry.since,
                keys: entry.keys.clone(),
                holder: *holder,
            })
        };
        self.order.iter().filter_map(record)
    }
}

impl Tables {
    /// What has the mark of notices among its keys is one's; logs of before had both in one.
    fn add(&mut self, record: &PendingRecord) {
        let (target, holder, since) = (record.target, record.holder, record.since);
        let is_noticed = record.keys.contains(&NOTICED);
        if is_noticed {
            self.noticed.add(target, holder, &[NOTICED], since);
        }
        let keys = record.keys.iter().filter(|key| **key != NOTICED).copied();
        let keys: LockPrints = keys.collect();
        if !is_noticed || !keys.is_empty() {
            self.cancels.add(target, holder, &keys, since);
        }
    }

    fn tidy(&mut self, now: UnixTime, limits: &Limits) -> Vec<Holder> {
        let mut forgotten = self.cancels.tidy(now, limits);
        forgotten.extend(self.noticed.tidy(now, limits));
        forgotten
    }

    fn len(&self) -> usize {
        self.cancels.len() + self.noticed.len()
    }
}

impl Pending {
    /// With what the log tells, as far as it is still of use.
    pub(crate) fn new(told: &[PendingRecord], clock: &dyn Clock, limits: &Limits) -> Self {
        let pending = Self::default();
        let now = UnixTime(clock.now().secs);
        pending.change(|tables| {
            for record in told {
                tables.add(record);
                tables.tidy(now, limits);
            }
        });
        pending
    }

    fn change<T>(&self, change: impl FnOnce(&mut Tables) -> T) -> T {
        let mut tables = self.tables.lock();
        let result = change(&mut tables);
        self.count.store(tables.len(), Ordering::Release);
        result
    }

    /// From now on a target is judged by these keys, too.  What is too old or too much by now is forgotten; how many were too
    /// much.
    pub(crate) fn expect(&self, record: &PendingRecord, limits: &Limits) -> u64 {
        let forgotten = self.change(|tables| {
            tables.add(record);
            tables.tidy(record.since, limits)
        });
        if !forgotten.is_empty() {
            let mut unsaid = self.unsaid.lock();
            for holder in &forgotten {
                *unsaid.forgotten.entry(holder.who()).or_default() += 1;
            }
        }
        forgotten.len() as u64
    }

    /// Whether a cancel of this holder waits for this target.
    pub(crate) fn has(&self, target: &IdHash, holder: Holder) -> bool {
        self.tables
            .lock()
            .cancels
            .number_of(target, holder)
            .is_some()
    }

    /// The cancel of this holder that was the only one for this target did not get into the log.
    pub(crate) fn take_back(&self, target: &IdHash, holder: Holder) {
        self.change(|tables| {
            if let Some(number) = tables.cancels.number_of(target, holder) {
                tables.cancels.remove_one(number);
            }
        });
    }

    /// What those are called in the log of whom something may be forgotten.
    pub(crate) fn call(&self, holder: Holder, name: impl FnOnce() -> String) {
        let mut unsaid = self.unsaid.lock();
        unsaid.names.entry(holder.who()).or_insert_with(name);
    }

    /// How many were forgotten for want of room, and whose, if it is time to tell the log.
    pub(crate) fn to_say(&self, now: UnixTime) -> Option<(u64, String)> {
        let mut unsaid = self.unsaid.lock();
        if unsaid.forgotten.is_empty() || unsaid.said != 0 && now.0.abs_diff(unsaid.said) < SAID_S {
            return None;
        }
        unsaid.said = now.0;
        let forgotten = std::mem::take(&mut unsaid.forgotten);
        let whose = forgotten.iter().map(|(who, count)| {
            let name = unsaid
                .names
                .get(who)
                .map_or("somebody before this start", String::as_str);
            format!("{count} of {name}")
        });
        let whose: Vec<String> = whose.collect();
        Some((forgotten.values().sum(), whose.join(", ")))
    }

    /// The target is here, or was: nothing has to wait for it.
    pub(crate) fn forget(&self, target: &IdHash) {
        if self.count.load(Ordering::Acquire) > 0 {
            self.change(|tables| {
                tables.cancels.remove(target);
                tables.noticed.remove(target);
            });
        }
    }

    /// The keys that came for this target; `None`: no cancel waits for it.
    pub(crate) fn keys(&self, target: &IdHash) -> Option<LockPrints> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let (tables, mut keys) = (self.tables.lock(), LockPrints::new());
        let is_cancelled = tables.cancels.keys(target, &mut keys);
        let is_noticed = tables.noticed.keys(target, &mut keys);
        (is_cancelled || is_noticed).then_some(keys)
    }

    /// Octets that all of them take in the log.
    pub(crate) fn octets(&self) -> usize {
        let tables = self.tables.lock();
        tables.cancels.octets() + tables.noticed.octets()
    }

    /// Octets that the log needs for all that waits, and may come to wait: where the limit was lowered, what came before is there
    /// until the next one comes.
    pub(crate) fn room(&self, limits: &Limits) -> u64 {
        limits.octets_in_all().max(self.octets() as u64)
    }

    /// All of them, cancels first, each kind oldest first.
    pub(crate) fn all(&self) -> Vec<PendingRecord> {
        let tables = self.tables.lock();
        tables.cancels.all().chain(tables.noticed.all()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use newsreel_host::FakeClock;

    use super::*;

    const OCTETS: usize = 128 * 1024;

    fn id(n: usize) -> IdHash {
        let mut hash = [0; 16];
        hash[..8].copy_from_slice(&n.to_le_bytes());
        IdHash(hash)
    }

    fn key(n: u8) -> LockPrint {
        LockPrint([n; PRINT_OCTETS])
    }

    fn record(target: usize, holder: u64, keys: &[LockPrint], since: u64) -> PendingRecord {
        PendingRecord {
            target: id(target),
            since: UnixTime(since),
            keys: keys.iter().copied().collect(),
            holder: Holder(holder),
        }
    }

    /// The octets that are counted are those it has.
    fn check(pending: &Pending) {
        let all = pending.all();
        let octets: usize = all.iter().map(|it| octets_of(it.keys.len())).sum();
        assert_eq!(octets, pending.octets());
        assert_eq!(pending.count.load(Ordering::Acquire), all.len());
        let tables = pending.tables.lock();
        for table in [&tables.cancels, &tables.noticed] {
            let entries: usize = table.entries.values().map(SmallVec::len).sum();
            assert_eq!(entries, table.order.len());
            assert_eq!(table.shares.counted(), (entries, table.octets()));
        }
    }

    const fn limits(age_s: u64) -> Limits {
        Limits {
            octets_max: OCTETS,
            age_s,
        }
    }

    /// For ever, as far as the age goes.
    const ANY: Limits = limits(u64::MAX);

    /// How many of these targets something waits for.
    fn waiting(pending: &Pending, targets: std::ops::Range<usize>) -> usize {
        targets.filter(|n| pending.keys(&id(*n)).is_some()).count()
    }

    #[test]
    fn keys_of_several_cancels_come_together() {
        let pending = Pending::default();
        assert_eq!(pending.keys(&id(1)), None);
        pending.expect(&record(1, 7, &[key(1)], 100), &ANY);
        pending.expect(&record(1, 7, &[key(2), key(1)], 200), &ANY);
        pending.expect(&record(2, 7, &[], 200), &ANY);
        assert_eq!(pending.keys(&id(1)).unwrap()[..], [key(1), key(2)]);
        assert_eq!(pending.keys(&id(2)).unwrap()[..], []);
        check(&pending);
        let again = Pending::new(&pending.all(), &FakeClock::new(200), &limits(1000));
        assert_eq!(again.all(), pending.all());
        for n in 1..100 {
            pending.expect(&record(2, 7, &[key(n)], 200), &ANY);
        }
        assert_eq!(pending.keys(&id(2)).unwrap().len(), PENDING_KEYS_MAX);
        // Another's key, and a notice, are not kept out by them.
        pending.expect(&record(2, 8, &[key(200)], 200), &ANY);
        pending.expect(&record(2, 9, &[NOTICED], 200), &ANY);
        let keys = pending.keys(&id(2)).unwrap();
        assert!(keys.contains(&key(200)) && keys.contains(&NOTICED));
        check(&pending);
        pending.forget(&id(2));
        pending.forget(&id(3));
        assert_eq!(pending.keys(&id(2)), None);
        assert_eq!(waiting(&pending, 0..10), 1);
        check(&pending);
        pending.expect(&record(3, 7, &[key(1)], 200), &ANY);
        pending.expect(&record(3, 8, &[key(2)], 200), &ANY);
        assert!(pending.has(&id(3), Holder(7)) && !pending.has(&id(3), Holder(9)));
        pending.take_back(&id(3), Holder(7));
        assert_eq!(pending.keys(&id(3)).unwrap()[..], [key(2)]);
        check(&pending);
    }

    #[test]
    fn it_is_bounded_by_age_and_octets() {
        let pending = Pending::default();
        let tidy = |now, age_s| pending.change(|it| it.tidy(UnixTime(now), &limits(age_s)));
        pending.expect(&record(1, 0, &[key(1)], 100), &ANY);
        pending.expect(&record(2, 0, &[key(1)], 200), &ANY);
        tidy(1100, 1000);
        assert_eq!(pending.all().len(), 2);
        assert_eq!(tidy(1101, 1000), [], "that one was not too much");
        assert_eq!(pending.all()[0].target, id(2));
        check(&pending);
        tidy(1201, 1000);
        assert_eq!(pending.all(), []);
        let mut forgotten = 0;
        for n in 0..10_000 {
            forgotten += pending.expect(&record(n, 0, &[key(1)], n as u64), &ANY);
            assert!(pending.octets() <= OCTETS);
        }
        check(&pending);
        let all = pending.all();
        assert!((1_700..2_200).contains(&all.len()), "{}", all.len());
        assert_eq!(forgotten, 10_000 - all.len() as u64);
        assert_eq!(all.last().unwrap().target, id(9_999), "the newest stay");
        let clock = FakeClock::new(9_999 + 500);
        let again = Pending::new(&all, &clock, &limits(1_000));
        assert_eq!(again.all().len(), 500 + 1);
    }

    /// The log kept as much free as may wait after `control.waiting_octets_max` was lowered, while more waited still: the next
    /// checkpoint, which tells of all that waits, might have had no room.
    #[test]
    fn the_log_has_room_for_what_came_before_the_limit_was_lowered() {
        let pending = Pending::default();
        for n in 0..1_500 {
            pending.expect(&record(n, 0, &[key(1)], 100), &ANY);
        }
        let lowered = Limits {
            octets_max: OCTETS / 10,
            ..ANY
        };
        let waits = pending.octets() as u64;
        assert!(waits > lowered.octets_in_all() && waits < ANY.octets_in_all());
        assert_eq!(pending.room(&ANY), ANY.octets_in_all());
        assert_eq!(pending.room(&lowered), waits);
        pending.expect(&record(2_000, 0, &[key(1)], 100), &lowered);
        assert_eq!(pending.room(&lowered), lowered.octets_in_all());
    }

    #[test]
    fn any_age_is_not_for_ever() {
        let config = EngineConfig::new("/spool".into());
        let limits = Limits::new(&ControlConfig::default(), &config, 0);
        let pending = Pending::default();
        pending.expect(&record(1, 0, &[key(1)], 200), &limits);
        let tidy = |now| pending.change(|it| it.tidy(UnixTime(now), &limits));
        tidy(200 + AGE_S);
        assert_eq!(pending.all().len(), 1);
        tidy(201 + AGE_S);
        assert_eq!(pending.all(), []);
    }

    /// One table held all, and forgot the oldest whoever had sent it: 2,000 cancels with made-up keys, or one notice of 2,000
    /// articles that were not here, pushed out every cancel that waited.
    #[test]
    fn nobodys_flood_pushes_out_what_came_from_others() {
        let pending = Pending::default();
        for n in 0..300 {
            pending.expect(&record(n, 1, &[key(1)], 100), &ANY);
            pending.expect(&record(1000 + n, 2, &[NOTICED], 100), &ANY);
        }
        for n in 0..20_000 {
            pending.expect(&record(100_000 + n, 3, &[key(9)], 200), &ANY);
            pending.expect(&record(200_000 + n, 4, &[NOTICED], 200), &ANY);
        }
        check(&pending);
        assert_eq!(waiting(&pending, 0..300), 300, "another peer's cancels");
        assert_eq!(waiting(&pending, 1000..1300), 300, "another's notices");
        assert!(waiting(&pending, 100_000..120_000) > 1_000);
        // Not by keys for targets of others, either.
        for n in 0..300 {
            for some in 0..PENDING_KEYS_MAX as u8 {
                pending.expect(&record(n, 3, &[key(some + 50)], 300), &ANY);
            }
        }
        let mine = |n: &usize| pending.keys(&id(*n)).unwrap().contains(&key(1));
        assert_eq!((0..300).filter(mine).count(), 300);
        check(&pending);
        // Whose they are is known after the next start, too.
        let again = Pending::new(&pending.all(), &FakeClock::new(400), &ANY);
        assert_eq!(again.all(), pending.all());
        again.expect(&record(300_000, 3, &[key(1), key(2)], 400), &ANY);
        assert_eq!(waiting(&again, 0..300), 300);
        check(&again);
    }

    /// Records of before say nothing of who sent them, and had what notices list and cancels in one.
    #[test]
    fn records_of_before_are_read() {
        let both = record(1, 0, &[key(1), NOTICED], 100);
        let pending = Pending::new(&[both], &FakeClock::new(100), &ANY);
        assert_eq!(pending.keys(&id(1)).unwrap()[..], [key(1), NOTICED]);
        let tables = pending.tables.lock();
        let counts = (tables.cancels.order.len(), tables.noticed.order.len());
        assert_eq!(counts, (1, 1));
    }

    /// All who post here had one share, and so had all who feed and are no peer: one of them pushed out what came from the others.
    #[test]
    fn nor_what_came_from_others_who_are_one_to_the_server() {
        let from = |n: u32| Some(IpAddr::from(Ipv4Addr::from_bits(n)));
        let holders: [fn(Option<IpAddr>) -> Holder; 2] = [Holder::of_stranger, Holder::of_poster];
        for of in holders {
            let (pending, friend) = (Pending::default(), Holder::of_peer("friend"));
            let of = |n: u32| of(from(n)).0;
            assert!((2..200).any(|n| of(n) != of(1)));
            assert_eq!(Holder(of(1)).who(), Holder(of(2)).who());
            for n in 0..100 {
                pending.expect(&record(n, of(1), &[key(1)], 100), &ANY);
                pending.expect(&record(1000 + n, friend.0, &[key(1)], 100), &ANY);
            }
            let other = (2..).find(|n| of(*n) != of(1)).unwrap();
            for n in 0..20_000 {
                pending.expect(&record(10_000 + n, of(other), &[key(1)], 100), &ANY);
            }
            assert_eq!(waiting(&pending, 0..100), 100);
            // Nor do many together push out what came from a peer who has less than they, though more than each of them.
            for n in 0..20_000 {
                pending.expect(&record(50_000 + n, of(n as u32), &[key(1)], 100), &ANY);
            }
            assert_eq!(waiting(&pending, 1000..1100), 100);
            check(&pending);
            let again = Pending::new(&pending.all(), &FakeClock::new(400), &ANY);
            assert_eq!(again.all(), pending.all());
        }
    }

    /// The log blamed the peer who sent something while others' were forgotten.
    #[test]
    fn the_log_is_told_now_and_then_and_whose_they_were() {
        let pending = Pending::default();
        assert_eq!(pending.to_say(UnixTime(1000)), None);
        let (noisy, quiet) = (Holder::of_peer("noisy"), Holder::of_peer("quiet"));
        pending.call(noisy, || "the peer noisy".to_owned());
        pending.call(quiet, || "the peer quiet".to_owned());
        let mut from = 0;
        let mut flood = |count: u64| {
            let mut left = count;
            while left > 0 {
                left -= pending.expect(&record(from, noisy.0, &[key(1)], 100), &ANY);
                from += 1;
            }
            pending.expect(&record(1 << 20, quiet.0, &[], 100), &ANY);
        };
        flood(3);
        let said = |count: u64| Some((count, format!("{count} of the peer noisy")));
        assert_eq!(pending.to_say(UnixTime(1000)), said(4));
        flood(4);
        assert_eq!(pending.to_say(UnixTime(1000 + SAID_S - 1)), None);
        assert_eq!(pending.to_say(UnixTime(1000 + SAID_S)), said(4));
        assert_eq!(pending.to_say(UnixTime(2000)), None);
    }
}
