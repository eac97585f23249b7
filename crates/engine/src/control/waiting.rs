//! Messages about groups that wait for approval: which they are, so that nobody has to look for them among all others.
//!
//! In memory, bounded, and in the log: with the commit of the message itself, and again beside the state of each checkpoint.  What
//! one asks for is in the message, and is read there.  What nothing comes of, as a rule drops it, is not in here, however much
//! comes.  Those that somebody signed whose key is in the keyring have room of their own, and whoever sends the others a share of
//! theirs: where there is no room, the oldest of who has most goes.
//!
//! Those that asked for nothing when they came, as all was as they want it, are in here too, with room of their own: when an older
//! one is approved, they ask for something.

use newsreel_wire::IdHash;
use parking_lot::Mutex;

use super::pending::{Limits, Table};
use crate::record::{WaitingRecord, kind};
use crate::sequencer::Sequencer;

/// All that wait.
#[derive(Debug, Default)]
pub(crate) struct Waiting(Mutex<Tables>);

/// What all that are in one table have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kind {
    is_signed: bool,
    is_idle: bool,
}

impl Kind {
    const ALL: [Self; 4] = [
        Self::new(true, false),
        Self::new(false, false),
        Self::new(true, true),
        Self::new(false, true),
    ];

    const fn new(is_signed: bool, is_idle: bool) -> Self {
        Self { is_signed, is_idle }
    }

    /// Those that ask for nothing have half as much room.
    const fn limits(self, limits: &Limits) -> Limits {
        match self.is_idle {
            true => limits.halved(),
            false => *limits,
        }
    }
}

#[derive(Debug, Default)]
struct Tables([Table; Kind::ALL.len()]);

impl Tables {
    fn each(&self) -> impl Iterator<Item = (Kind, &Table)> {
        Kind::ALL.into_iter().zip(&self.0)
    }

    fn note(&mut self, record: &WaitingRecord, limits: &Limits) -> u64 {
        self.forget(&record.id);
        if record.is_over {
            return 0;
        }
        let added = self.add(record);
        added.map_or(0, |(kind, table)| {
            table.tidy(record.since, &kind.limits(limits)).len() as u64
        })
    }

    fn add(&mut self, record: &WaitingRecord) -> Option<(Kind, &mut Table)> {
        let is_of = Kind::new(record.is_signed, record.is_idle);
        let mut tables = Kind::ALL.into_iter().zip(&mut self.0);
        let (kind, table) = tables.find(|(kind, _)| *kind == is_of)?;
        table.add(record.id, record.holder, &[], record.since);
        Some((kind, table))
    }

    fn forget(&mut self, id: &IdHash) {
        for table in &mut self.0 {
            table.remove(id);
        }
    }
}

impl Waiting {
    /// With what the log tells.
    pub(crate) fn new(told: &[WaitingRecord], limits: &Limits) -> Self {
        let mut tables = Tables::default();
        for record in told {
            tables.note(record, limits);
        }
        Self(Mutex::new(tables))
    }

    /// One more waits; how many were forgotten for it.
    fn note(&self, record: &WaitingRecord, limits: &Limits) -> u64 {
        self.0.lock().note(record, limits)
    }

    /// It is not here any more, if that is so while none is noted: what is under way to the views is noted before it is there.
    pub(crate) fn forget_if(&self, id: &IdHash, is_gone: impl FnOnce() -> bool) {
        let mut tables = self.0.lock();
        if is_gone() {
            tables.forget(id);
        }
    }

    /// One of them.
    pub(crate) fn record_of(&self, id: &IdHash) -> Option<WaitingRecord> {
        let mut all = self.all().into_iter();
        all.find(|record| record.id == *id)
    }

    /// This waits again: that it does not was not put into the log.
    pub(crate) fn take_back(&self, record: &WaitingRecord) {
        self.0.lock().add(record);
    }

    /// All of them, those that are signed first, each kind oldest first.
    pub(crate) fn all(&self) -> Vec<WaitingRecord> {
        let tables = self.0.lock();
        let of = |(kind, table): (Kind, &Table)| -> Vec<WaitingRecord> {
            let all = table.all();
            all.map(|entry| WaitingRecord {
                id: entry.target,
                since: entry.since,
                holder: entry.holder,
                is_signed: kind.is_signed,
                is_over: false,
                is_idle: kind.is_idle,
            })
            .collect()
        };
        tables.each().flat_map(of).collect()
    }

    /// How many there are in all, and how many of them asked for something when they came.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let tables = self.0.lock();
        let all = tables.each().map(|(_, table)| table.len()).sum();
        let asked = tables.each().filter(|(kind, _)| !kind.is_idle);
        (all, asked.map(|(_, table)| table.len()).sum())
    }

    /// Octets that all of them take in the log.
    pub(crate) fn octets(&self) -> usize {
        let tables = self.0.lock();
        tables.each().map(|(_, table)| table.octets()).sum()
    }
}

impl Sequencer {
    /// Puts into the log that this waits.
    pub(crate) fn note_waiting(&mut self, record: &WaitingRecord) {
        record.encode(self.record(kind::WAITING));
        let limits = self.shared.waiting_limits().of_messages();
        let forgotten = self.shared.waiting.note(record, &limits);
        if forgotten > 0
            && !record.is_idle
            && let Some(more) = self.shared.may_say(|lines| &lines.not_listed)
        {
            tracing::warn!(
                forgotten,
                more,
                "control messages that waited for approval are no longer listed: there is no more room, see \
                 `control.waiting_octets_max`"
            );
        }
    }

    /// Tells the log again what waits, so that what it said before may go.
    pub(crate) fn write_waiting(&mut self) {
        for record in self.shared.waiting.all() {
            record.encode(self.record(kind::WAITING));
        }
    }
}

#[cfg(test)]
mod tests {
    use newsreel_wire::UnixTime;

    use super::*;
    use crate::control::shares::Holder;

    /// A flood of messages that nobody signed, of one peer, hid what waited of others and what somebody had signed.
    #[test]
    fn a_flood_hides_neither_what_is_signed_nor_what_others_sent() {
        let limits = Limits::of_octets(100_000);
        let waiting = Waiting::default();
        let record = |n: u64, holder: u64, is_signed| {
            let mut id = [0; 16];
            id[..8].copy_from_slice(&n.to_le_bytes());
            WaitingRecord {
                id: IdHash(id),
                since: UnixTime(n),
                holder: Holder(holder << 32),
                is_signed,
                is_over: false,
                is_idle: false,
            }
        };
        waiting.note(&record(1, 1, true), &limits);
        waiting.note(&record(2, 2, false), &limits);
        let forgotten: u64 = (10..200_000)
            .map(|n| waiting.note(&record(n, 1, false), &limits))
            .sum();
        let all = waiting.all();
        assert_eq!(all.len() as u64 + forgotten, 199_992);
        assert!(all.len() > 1000 && waiting.octets() < 200_000);
        assert_eq!(all[..2], [record(1, 1, true), record(2, 2, false)]);
        assert_eq!(*all.last().unwrap(), record(199_999, 1, false));
        let again = Waiting::new(&all, &limits);
        assert_eq!(again.all(), all);
        again.forget_if(&record(1, 1, true).id, || false);
        assert_eq!(again.all(), all);
        again.forget_if(&record(1, 1, true).id, || true);
        assert_eq!(again.all(), all[1..]);
        let over = WaitingRecord {
            is_over: true,
            ..all[1]
        };
        again.note(&over, &limits);
        assert_eq!(again.all(), all[2..]);
        // Nor does a flood of what asks for nothing hide what asks for something, and the other way round.
        let idle = |n: u64| WaitingRecord {
            is_idle: true,
            ..record(n, 1, false)
        };
        let first = WaitingRecord {
            is_idle: true,
            ..record(3, 3, true)
        };
        again.note(&first, &limits);
        for n in 300_000..310_000 {
            again.note(&idle(n), &limits);
        }
        let (count, asked) = again.counts();
        assert_eq!(asked, all.len() - 2);
        assert!(count > asked + 500 && again.octets() < 200_000);
        assert_eq!(again.all()[..asked], all[2..]);
        assert_eq!(again.all()[asked], first);
        // What asks for something when it is told of again is in one place.
        let last = idle(309_999);
        assert_eq!(again.all().last(), Some(&last));
        again.note(&record(309_999, 1, false), &limits);
        let listed = again.all();
        let of_last = listed.iter().filter(|it| it.id == last.id);
        assert!(of_last.eq([&record(309_999, 1, false)]));
    }
}
