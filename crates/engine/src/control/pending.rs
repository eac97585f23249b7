//! Cancels that came before their targets: what is judged when a target comes.
//!
//! In memory, bounded, and forgotten when a target would be too old to be taken anyway.  What is in here is in the log: by
//! the cancel's own commit, and again beside the state of each checkpoint, so that the log before it may go.  A
//! target is never refused for being in here, only for what its own locks say.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};

use newsreel_host::Clock;
use newsreel_service::cancel_lock::{LockPrint, LockPrints, PRINT_OCTETS};
use newsreel_wire::{IdHash, UnixTime};
use parking_lot::Mutex;

use super::cancel::NOTICED;
use crate::record::PendingRecord;

/// All of them together in the log, octets: some 2,000 cancels with a key each.  The smallest frame of the log has room
/// for them, so that a checkpoint can always tell all.
pub const PENDING_OCTETS_MAX: usize = 128 * 1024;

/// Keys that are kept of all cancels of one target.
pub const PENDING_KEYS_MAX: usize = 32;

/// Where articles of any age are taken, a cancel waits so long for its target.
const AGE_S: u64 = 10 * 86_400;

/// Octets in the log apart from the keys, with the entry in the frame.
const ENTRY_OCTETS: usize = PendingRecord::OCTETS + 8;

/// What waits for targets.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    table: Mutex<Table>,
    /// How many there are, for who need not look then.
    count: AtomicUsize,
}

#[derive(Debug, Default)]
struct Table {
    entries: HashMap<IdHash, Entry>,
    /// Oldest first, by their numbers.
    order: BTreeMap<u64, IdHash>,
    /// The number of the next one.
    next: u64,
    octets: usize,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    since: UnixTime,
    keys: LockPrints,
}

const fn octets_of(keys: usize) -> usize {
    ENTRY_OCTETS + keys * PRINT_OCTETS
}

impl Table {
    fn add(&mut self, target: IdHash, keys: &[LockPrint], since: UnixTime) {
        let entry = self.entries.entry(target).or_insert_with(|| {
            let number = self.next;
            self.next += 1;
            self.order.insert(number, target);
            self.octets += octets_of(0);
            let keys = LockPrints::new();
            Entry {
                number,
                since,
                keys,
            }
        });
        for key in keys {
            if entry.keys.len() < PENDING_KEYS_MAX && !entry.keys.contains(key) {
                entry.keys.push(*key);
                self.octets += PRINT_OCTETS;
            } else if *key == NOTICED
                && let Some(last) = entry.keys.last_mut()
            {
                // Cancels of strangers keep no notice out.
                *last = *key;
            }
        }
    }

    fn remove(&mut self, target: &IdHash) {
        if let Some(entry) = self.entries.remove(target) {
            self.order.remove(&entry.number);
            self.octets -= octets_of(entry.keys.len());
        }
    }

    /// Forgets what is too old or too much.
    fn tidy(&mut self, now: UnixTime, age_s: u64) {
        let age_s = if age_s == 0 { AGE_S } else { age_s };
        while let Some(oldest) = self.order.first_entry() {
            let since = self.entries.get(oldest.get());
            let since = since.map_or(0, |entry| entry.since.0);
            let is_old = now.0 > since.saturating_add(age_s);
            if !is_old && self.octets <= PENDING_OCTETS_MAX {
                return;
            }
            let oldest = oldest.remove();
            self.remove(&oldest);
        }
    }
}

impl Pending {
    /// With what the log tells, as far as it is still of use.
    pub(crate) fn new(told: Vec<PendingRecord>, clock: &dyn Clock, age_s: u64) -> Self {
        let pending = Self::default();
        pending.change(|table| {
            for record in told {
                table.add(record.target, &record.keys, record.since);
            }
            table.tidy(UnixTime(clock.now().secs), age_s);
        });
        pending
    }

    fn change(&self, change: impl FnOnce(&mut Table)) {
        let mut table = self.table.lock();
        change(&mut table);
        self.count.store(table.entries.len(), Ordering::Release);
    }

    /// From now on a target is judged by these keys, too.  What is too old or too much by now is forgotten.
    pub(crate) fn expect(&self, target: IdHash, keys: &[LockPrint], now: UnixTime, age_s: u64) {
        self.change(|table| {
            table.add(target, keys, now);
            table.tidy(now, age_s);
        });
    }

    /// The target is here, or was: nothing has to wait for it.
    pub(crate) fn forget(&self, target: &IdHash) {
        if self.count.load(Ordering::Acquire) > 0 {
            self.change(|table| table.remove(target));
        }
    }

    /// The keys that came for this target; `None`: no cancel waits for it.
    pub(crate) fn keys(&self, target: &IdHash) -> Option<LockPrints> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let table = self.table.lock();
        table.entries.get(target).map(|entry| entry.keys.clone())
    }

    /// Octets that all of them take in the log.
    pub(crate) fn octets(&self) -> usize {
        self.table.lock().octets
    }

    /// All of them, oldest first.
    pub(crate) fn all(&self) -> Vec<PendingRecord> {
        let table = self.table.lock();
        let record = |target: &IdHash| {
            let entry = table.entries.get(target)?;
            Some(PendingRecord {
                target: *target,
                since: entry.since,
                keys: entry.keys.clone(),
            })
        };
        table.order.values().filter_map(record).collect()
    }
}

#[cfg(test)]
mod tests {
    use newsreel_host::FakeClock;

    use super::*;

    fn id(n: usize) -> IdHash {
        let mut hash = [0; 16];
        hash[..8].copy_from_slice(&n.to_le_bytes());
        IdHash(hash)
    }

    fn key(n: u8) -> LockPrint {
        LockPrint([n; PRINT_OCTETS])
    }

    /// The octets that are counted are those it has.
    fn check(pending: &Pending) {
        let all = pending.all();
        let octets: usize = all.iter().map(|it| octets_of(it.keys.len())).sum();
        assert_eq!(octets, pending.octets());
        assert_eq!(pending.count.load(Ordering::Acquire), all.len());
        let table = pending.table.lock();
        assert_eq!(
            (all.len(), all.len()),
            (table.entries.len(), table.order.len())
        );
    }

    /// For ever, as far as the age goes.
    const ANY: u64 = u64::MAX;

    #[test]
    fn keys_of_several_cancels_come_together() {
        let pending = Pending::default();
        assert_eq!(pending.keys(&id(1)), None);
        pending.expect(id(1), &[key(1)], UnixTime(100), ANY);
        pending.expect(id(1), &[key(2), key(1)], UnixTime(200), ANY);
        pending.expect(id(2), &[], UnixTime(200), ANY);
        assert_eq!(pending.keys(&id(1)).unwrap()[..], [key(1), key(2)]);
        assert_eq!(pending.keys(&id(2)).unwrap()[..], []);
        check(&pending);
        let again = Pending::new(pending.all(), &FakeClock::new(200), 1000);
        assert_eq!(again.all(), pending.all());
        for n in 0..100 {
            pending.expect(id(2), &[key(n)], UnixTime(200), ANY);
        }
        assert_eq!(pending.keys(&id(2)).unwrap().len(), PENDING_KEYS_MAX);
        check(&pending);
        pending.forget(&id(1));
        pending.forget(&id(3));
        assert_eq!(pending.keys(&id(1)), None);
        check(&pending);
    }

    #[test]
    fn it_is_bounded_by_age_and_octets() {
        let pending = Pending::default();
        let tidy = |now, age_s| pending.change(|table| table.tidy(UnixTime(now), age_s));
        pending.expect(id(1), &[key(1)], UnixTime(100), ANY);
        pending.expect(id(2), &[key(1)], UnixTime(200), ANY);
        tidy(1100, 1000);
        assert_eq!(pending.all().len(), 2);
        tidy(1101, 1000);
        assert_eq!(pending.all()[0].target, id(2));
        check(&pending);
        tidy(200 + AGE_S, 0);
        assert_eq!(pending.all().len(), 1, "any age, but not for ever");
        tidy(201 + AGE_S, 0);
        assert_eq!(pending.all(), []);
        for n in 0..10_000 {
            pending.expect(id(n), &[key(1)], UnixTime(n as u64), 1_000_000);
            assert!(pending.octets() <= PENDING_OCTETS_MAX);
        }
        check(&pending);
        let all = pending.all();
        assert!((1_900..2_200).contains(&all.len()), "{}", all.len());
        assert_eq!(all.last().unwrap().target, id(9_999), "the newest stay");
        let clock = FakeClock::new(9_999 + 500);
        assert_eq!(Pending::new(all, &clock, 1_000).all().len(), 500 + 1);
    }
}
