//! Pins: groups whose articles and overview stay whatever the policy wants, as far as there is room for pins.
//!
//! What a segment that goes has of pinned groups is placed again, whatever the policy wants, as long as no more octets stay for pins
//! than the settings say; what there is more goes as the policy says.  The layout is in `docs/formats/cache.md`.

use std::collections::BTreeMap;

use newsreel_wire::article::{Headers, Known};
use newsreel_wire::wildmat::Wildmat;
use newsreel_wire::{Position, SetId, Token, newsgroups};
use parking_lot::Mutex;

use super::Keep;
use super::error::{KeepError, Result};
use super::table::{Change, Fault, Table};

/// So many wildmats may be pinned at the same time.
pub const PINS_MAX: usize = 100;

/// The fact that has the wildmats, each in a line.
const PINS: &str = "pins";

/// The fact that says how many octets stay for pins in which cycle of which set.
const STAYED: &str = "stayed for pins";

#[derive(Debug, Default)]
struct State {
    wildmats: Vec<Wildmat>,
    /// Octets that were placed again for pins, by the set and the cycle in which they lie.
    stayed: BTreeMap<(u8, u32), u64>,
    /// That is not noted yet.
    is_changed: bool,
}

/// The pins of a cache.
#[derive(Debug)]
pub(super) struct Pins {
    octets_max: u64,
    state: Mutex<State>,
}

fn wildmats_of(octets: &[u8]) -> Option<Vec<Wildmat>> {
    let lines = std::str::from_utf8(octets).ok()?.lines();
    lines.map(|line| Wildmat::parse(line).ok()).collect()
}

fn encoded(wildmats: &[Wildmat]) -> Vec<u8> {
    let line = |wildmat: &Wildmat| format!("{}\n", wildmat.as_str());
    wildmats.iter().map(line).collect::<String>().into_bytes()
}

fn stayed_of(octets: &[u8]) -> BTreeMap<(u8, u32), u64> {
    let (pairs, _) = octets.as_chunks::<16>();
    let pair = |pair: &[u8; 16]| {
        let (place, octets) = pair.split_first_chunk()?;
        let place = u64::from_le_bytes(*place);
        let set = u8::try_from(place >> 32).ok()?;
        let cycle = u32::try_from(place & u64::from(u32::MAX)).ok()?;
        Some(((set, cycle), u64::from_le_bytes(octets.try_into().ok()?)))
    };
    pairs.iter().filter_map(pair).collect()
}

impl Pins {
    /// None; so many octets may stay for what comes.
    pub(super) fn new(octets_max: u64) -> Self {
        Self {
            octets_max,
            state: Mutex::default(),
        }
    }

    /// Those that are noted.
    pub(super) fn read(&self, table: &Table) -> Result<()> {
        let wildmats = table.fact(PINS)?;
        let stayed = table.fact(STAYED)?;
        *self.state.lock() = State {
            wildmats: wildmats
                .as_deref()
                .and_then(wildmats_of)
                .unwrap_or_default(),
            stayed: stayed.as_deref().map(stayed_of).unwrap_or_default(),
            is_changed: false,
        };
        Ok(())
    }

    pub(super) fn are_none(&self) -> bool {
        self.state.lock().wildmats.is_empty()
    }

    /// Whether a group is pinned.
    pub(super) fn has(&self, group: &str) -> bool {
        let state = self.state.lock();
        state.wildmats.iter().any(|wildmat| wildmat.matches(group))
    }

    /// Whether an article is pinned, with any of its groups.
    pub(super) fn has_article(&self, wire: &[u8]) -> bool {
        let Ok(headers) = Headers::scan_stored(wire) else {
            return false;
        };
        let groups = headers.content(Known::Newsgroups).unwrap_or_default();
        let mut groups = newsgroups::split(groups).flatten();
        groups.any(|group| self.has(group.as_str()))
    }

    /// How many octets more may stay, when what lies below a position of a set goes, and the disk has room for so many in all.
    pub(super) fn room(&self, (set, floor): (SetId, Position), on_disk: u64) -> u64 {
        let all: u64 = self.state.lock().stayed.values().sum();
        let others = all - self.stayed_below(set, floor);
        self.octets_max.min(on_disk).saturating_sub(others)
    }

    /// How many octets stay below a position of a set.
    pub(super) fn stayed_below(&self, set: SetId, floor: Position) -> u64 {
        let state = self.state.lock();
        let below = state.stayed.range((set.0, 0)..(set.0, floor.cycle()));
        below.map(|(_, it)| it).sum()
    }

    /// An article was placed again, as it is pinned.
    pub(super) fn stays(&self, token: &Token) {
        let mut state = self.state.lock();
        let place = (token.set().0, token.position().cycle());
        *state.stayed.entry(place).or_default() += u64::from(token.len());
        state.is_changed = true;
    }

    /// What lies below a position of a set is gone.
    pub(super) fn went(&self, set: SetId, floor: Position) {
        let mut state = self.state.lock();
        let had = state.stayed.len();
        let stays = |place: &(u8, u32)| place.0 != set.0 || place.1 >= floor.cycle();
        state.stayed.retain(|place, _| stays(place));
        state.is_changed |= state.stayed.len() < had;
    }

    /// Notes the wildmats and what stays: of what was noted last nobody knows whether it is there.
    pub(super) fn note_all(&self, change: &Change<'_>) -> std::result::Result<(), Fault> {
        let octets = {
            let mut state = self.state.lock();
            state.is_changed = true;
            encoded(&state.wildmats)
        };
        change.put_fact(PINS, &octets)?;
        self.note(change)
    }

    /// Notes what stays, where that has changed.
    pub(super) fn note(&self, change: &Change<'_>) -> std::result::Result<(), Fault> {
        let pairs: Vec<u8> = {
            let mut state = self.state.lock();
            if !std::mem::take(&mut state.is_changed) {
                return Ok(());
            }
            let pairs = state.stayed.iter();
            let octets = |((set, cycle), octets): (&(u8, u32), &u64)| {
                [u64::from(*set) << 32 | u64::from(*cycle), *octets]
            };
            pairs.flat_map(octets).flat_map(u64::to_le_bytes).collect()
        };
        change.put_fact(STAYED, &pairs)
    }

    /// The wildmats; octets that stay for them, and how many may.
    pub(super) fn figures(&self) -> (Vec<String>, u64, u64) {
        let state = self.state.lock();
        let wildmats = state.wildmats.iter().map(|it| it.as_str().to_owned());
        (
            wildmats.collect(),
            state.stayed.values().sum(),
            self.octets_max,
        )
    }
}

impl Keep {
    /// Changes the pins, all at once: these come, and those go; how many did.  They are on disk when this returns.
    ///
    /// # Errors
    /// When there would be too many, or they cannot be noted.
    pub fn pin(
        &self,
        add: &[Wildmat],
        remove: &[Wildmat],
    ) -> std::result::Result<usize, KeepError> {
        let _changing = self.changing.lock();
        let before = self.pins.state.lock().wildmats.clone();
        let is_in =
            |all: &[Wildmat], one: &Wildmat| all.iter().any(|it| it.as_str() == one.as_str());
        let mut after = before.clone();
        after.retain(|it| !is_in(remove, it));
        let gone = before.len() - after.len();
        for one in add {
            if !is_in(&after, one) {
                after.push(one.clone());
            }
        }
        if after.len() > PINS_MAX && after.len() > before.len() {
            let why = format!("no more than {PINS_MAX} wildmats may be pinned: take one out first");
            return Err(KeepError::Settings(why));
        }
        let octets = encoded(&after);
        self.table
            .change(true, |change| change.put_fact(PINS, &octets))?;
        let changed = gone + (after.len() + gone - before.len());
        self.pins.state.lock().wildmats = after;
        Ok(changed)
    }
}
