//! Which files of a catalogue have lost so many cards that their room is worth giving back, where others stay in them.
//!
//! Cards are overwritten on the thread of commits, files looked at on that of checkpoints; both hold the lock for it, or one
//! would write pages back as they were before the other.  A file to which cards are still added is left alone, and so is
//! one that the header of the newest does not tell of yet.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};

use newsreel_wire::Token;
use parking_lot::Mutex;

use crate::error::Result;
use crate::records::buffer::Buffer;
use crate::records::hollow;

/// A file is looked at when so much of it was overwritten: so a look costs what it may bring.
const DUE_OCTETS: u64 = 64 << 10;
/// So many files are looked at by one checkpoint, which is to end soon.
const LOOKS_MAX: usize = 32;

/// What was overwritten since a file was looked at.
#[derive(Debug, Default)]
pub(crate) struct Hollows {
    /// By cycle, octets.  What an earlier run overwrote is not known: a file counts as due when it is first heard of.
    erased: Mutex<BTreeMap<u32, u64>>,
    /// The next checkpoint has something to do, whatever else comes.
    waits: AtomicBool,
}

impl Hollows {
    /// Overwrites cards, these.
    pub(super) fn erase(&self, cards: &[Token], erase: impl FnOnce() -> Result<()>) -> Result<()> {
        let mut erased = self.erased.lock();
        for card in cards {
            let of_file = erased.entry(card.position().cycle()).or_insert(DUE_OCTETS);
            *of_file = of_file.saturating_add(u64::from(card.len()));
        }
        erase()
    }

    /// Does something while no other thread writes to the files.
    pub(super) fn alone<T>(&self, write: impl FnOnce() -> T) -> T {
        let _nobody_looks = self.erased.lock();
        write()
    }

    /// Something was written in these files: the next checkpoint looks whether they have cards.
    pub(super) fn changed(&self, cycles: &BTreeSet<u32>) {
        let mut erased = self.erased.lock();
        erased.extend(cycles.iter().map(|cycle| (*cycle, DUE_OCTETS)));
        self.waits.store(true, Ordering::Relaxed);
    }

    /// Whether a checkpoint should look, though nothing was overwritten since the last one.
    pub(super) fn waits(&self) -> bool {
        self.waits.load(Ordering::Relaxed)
    }

    /// Looks at some of the files that are due.
    pub(super) fn look(&self, cards: &Buffer) {
        let files = cards.floor().cycle()..cards.home.written().end.cycle();
        if files.is_empty() {
            return;
        }
        let mut due: Vec<u32> = {
            let mut erased = self.erased.lock();
            erased.retain(|cycle, _| *cycle >= files.start);
            let due = erased
                .range(files)
                .filter(|(_, octets)| **octets >= DUE_OCTETS);
            due.map(|(cycle, _)| *cycle).take(LOOKS_MAX + 1).collect()
        };
        let mut waits = due.len() > LOOKS_MAX;
        due.truncate(LOOKS_MAX);
        for cycle in due {
            // Held for one file: commits wait for no more.
            let mut erased = self.erased.lock();
            let again = hollow::look(cards, cycle).unwrap_or_else(|error| {
                // Somebody removed it, or its medium fails: no reason to do without the rest of a checkpoint.
                tracing::error!(%error, cycle, "room in a catalogue cannot be given back");
                false
            });
            waits |= again;
            erased.insert(cycle, if again { DUE_OCTETS } else { 0 });
        }
        self.waits.store(waits, Ordering::Relaxed);
    }
}
