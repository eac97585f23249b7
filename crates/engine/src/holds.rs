//! What holds up everything that comes in: a fault of the log, or no room; and sets that take nothing.
//!
//! While one of the first two is set, offers are put off and articles are given back in a way that makes peers keep them.
//! Articles of a set that takes nothing are given back in the same way, all others are taken.

use newsreel_service::Defer;
use newsreel_store::PlaceError;
use newsreel_wire::{SetId, UnixTime};

/// Why nothing is taken at present.
#[derive(Debug, Clone, Default)]
pub(crate) struct Holds {
    /// The log takes nothing.
    pub(crate) fault: Option<String>,
    /// There is no room for more.
    pub(crate) full: Option<String>,
    /// Sets that took nothing when they were asked last.
    pub(crate) sets: Vec<NoPlace>,
}

/// A set that takes nothing.
#[derive(Debug, Clone)]
pub(crate) struct NoPlace {
    pub(crate) set: SetId,
    pub(crate) why: &'static str,
    /// Articles that were put off, as often as they came.
    pub(crate) articles: u64,
    /// When the first of them came.
    pub(crate) since: UnixTime,
}

/// Why a set takes nothing whose buffers are as they should be.
pub(crate) const NO_ROOM: &str = "there is no room left in it";

/// What peers and administrators are told where an article got no place.
pub(crate) const fn no_place(error: PlaceError) -> (Defer, &'static str) {
    match error {
        PlaceError::NeedsReservation => (Defer::Full, NO_ROOM),
        PlaceError::Suspended => (
            Defer::Paused,
            "none of its buffers or file systems takes articles; `newsreel store list` and the log say why",
        ),
        _ => (Defer::Paused, "there is no such set"),
    }
}

impl Holds {
    /// What peers are told, if anything holds them up.
    pub(crate) fn defer(&self) -> Option<Defer> {
        match (&self.fault, &self.full) {
            (Some(_), _) => Some(Defer::Paused),
            (None, Some(_)) => Some(Defer::Full),
            (None, None) => None,
        }
    }

    /// One more article of a set was put off.
    pub(crate) fn put_off(&mut self, set: SetId, why: &'static str, now: UnixTime) {
        match self.sets.iter_mut().find(|held| held.set == set) {
            Some(held) => {
                held.why = why;
                held.articles += 1;
            }
            None => self.sets.push(NoPlace {
                set,
                why,
                articles: 1,
                since: now,
            }),
        }
    }

    /// What administrators are told.
    pub(crate) fn why(&self) -> Option<String> {
        self.fault.clone().or_else(|| self.full.clone())
    }
}
