//! Whether there is room where articles go: counted before any of them moves, and kept account of while they do.
//!
//! What moves never makes room for what moves behind it: a set that would overwrite or drop it takes no more.  That older articles
//! go is what such a set is for, and said.  No article is read here; who only wants
//! to be told has those counted apart whose files are not there.

use std::path::Path;
use std::sync::Arc;

use newsreel_host::said_octets;
use newsreel_index::CENSUS_ROWS_MAX;
use newsreel_store::{BufferFacts, BufferReader, RUN_OCTETS, SetConfig, SetOrder};
use newsreel_wire::{POSITION_UNIT, SetId, Token, UnixTime};
use serde::Serialize;

use super::copying::COPIED_AT_ONCE_OCTETS;
use super::mover::Mover;
use crate::engine::Engine;
use crate::error::Error;

/// The part of what articles take that their batches take beside them, which begin on pages, at most.
const BATCHES_PART: u64 = 64;
/// So many of the largest article a buffer may lose: behind the last that fits in front of its end, before the next batch of its
/// set goes to another one, and where more is reserved for one.
const LARGEST_TIMES: u64 = 3;

/// What a set has for articles that are to move there.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct TargetRoom {
    /// Octets that nothing lies in yet, in its buffers; otherwise those that are free where it lies.
    pub free_octets: Option<u64>,
    /// So many octets of what moves it keeps, at the least; none where nothing goes to make room.
    pub keeps_octets: Option<u64>,
    /// About so many octets of what it has now go to make room.
    pub overwritten_octets: u64,
    /// About so many octets of articles of all that it has now are alive; none where that is not known.
    pub alive_octets: Option<u64>,
    /// What arrived longer ago stays where it is, seconds; none where it keeps articles of any age.
    pub keep_s: Option<u64>,
}

/// What comes into a set before it goes around to the first of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Round {
    octets: u64,
    buffers: u64,
}

impl Round {
    /// Of buffers: what comes into each before the first of it is overwritten, and its longest turn.
    fn of_buffers(rounds: &[(u64, u64)], order: SetOrder) -> Self {
        let buffers = rounds.len() as u64;
        let each = rounds.iter().map(|(round, _)| *round);
        let octets = match order {
            SetOrder::Interleave if buffers > 1 => {
                // They get as much, one as the other, a turn apart.
                let longest = rounds.iter().map(|(_, turn)| *turn).max();
                let least = each.min().unwrap_or_default();
                let even = least.saturating_sub(longest.unwrap_or_default()) * buffers;
                // Whatever turns they have: one is around first, and each turn of the others was the shortest.
                let others = (buffers - 1) * RUN_OCTETS;
                let first = rounds
                    .iter()
                    .map(|(round, turn)| round + round / turn * others);
                even.max(first.min().unwrap_or_default())
            }
            _ => each.sum(),
        };
        Self { octets, buffers }
    }

    /// Octets of articles of which none is larger than this, at the least.
    const fn keeps(self, largest: u64) -> u64 {
        let lost = self.buffers.saturating_mul(LARGEST_TIMES * largest);
        let octets = self.octets.saturating_sub(lost);
        octets - octets / BATCHES_PART
    }
}

/// The set to which articles go, as it is before.
#[derive(Debug)]
pub(crate) struct Target {
    buffers: Vec<Arc<dyn BufferReader>>,
    name: String,
    /// Where it lies, as far as the first of its buffers tells.
    path: String,
    free_octets: Option<u64>,
    /// None where nothing goes to make room.
    round: Option<Round>,
    /// So many octets come before anything goes.
    spare_octets: u64,
    /// So many may go.
    octets: u64,
    /// About so many octets of articles that are in it are alive, if that is known.
    alive_octets: Option<u64>,
    /// It drops what arrived longer ago, seconds.
    keep_s: Option<u64>,
}

impl Target {
    pub(crate) fn of(engine: &Engine, set: SetId) -> Self {
        let shared = &engine.shared;
        let config = shared.config.store.sets.get(usize::from(set.0));
        let config = config.cloned().unwrap_or_default();
        let takes = |buffer: &&&Arc<dyn BufferReader>| {
            let facts = buffer.facts();
            let is_out = facts.is_retired || facts.suspended.is_some();
            buffer.set() == set && !is_out && !engine.is_never_written(&facts)
        };
        let buffers = shared.store.buffers();
        let buffers: Vec<_> = buffers.iter().filter(takes).copied().cloned().collect();
        let facts: Vec<BufferFacts> = buffers.iter().map(|it| it.facts()).collect();
        let path = facts.first().map(|it| it.path.clone()).unwrap_or_default();
        let rounds: Option<Vec<(u64, u64)>> = buffers.iter().map(round_and_turn).collect();
        let mut target = Self {
            buffers,
            name: config.name.clone(),
            // Before the first article there is no directory.
            free_octets: Path::new(&path)
                .ancestors()
                .find_map(|dir| shared.disk.free_bytes(dir).ok()),
            path,
            round: None,
            spare_octets: u64::MAX,
            octets: facts.iter().map(|it| it.live_octets).sum(),
            alive_octets: None,
            keep_s: config.keep_s,
        };
        match rounds.filter(|rounds| !rounds.is_empty()) {
            Some(rounds) => {
                let spare = facts.iter().map(never_written).sum();
                target.round = Some(Round::of_buffers(&rounds, config.order));
                target.spare_octets = spare;
                target.free_octets = Some(spare);
            }
            None if facts.iter().all(|it| it.capacity_octets.is_some()) => {
                target.octets = facts.iter().map(|it| it.octets).sum();
                target.dropping(&config);
            }
            None => {}
        }
        target.look_what_is_alive(engine);
        target
    }

    /// What was withdrawn lies there until it is overwritten; where nothing else does nothing goes.
    fn look_what_is_alive(&mut self, engine: &Engine) {
        let history = engine.shared.views.history();
        let Ok(census) = history.census(CENSUS_ROWS_MAX) else {
            return;
        };
        let found = self
            .buffers
            .iter()
            .filter_map(|it| census.buffers.get(&it.id()));
        let (articles, octets) = found.fold((0, 0), |(articles, octets), it| {
            (articles + it.articles, octets + it.octets)
        });
        if census.is_exact && articles == 0 {
            self.octets = 0;
        }
        self.alive_octets = Some(octets);
    }

    /// Segments, of which the oldest go where there are too many.
    fn dropping(&mut self, config: &SetConfig) {
        let free_min = config.free_octets_min.zip(self.free_octets);
        let by_free = free_min.map(|(min, free)| (self.octets + free).saturating_sub(min));
        let Some(keep) = config.keep_octets.into_iter().chain(by_free).min() else {
            return;
        };
        // The one that is written has articles of others.
        let segments = (keep / config.segment_octets.max(1)).saturating_sub(1);
        self.round = Some(Round {
            octets: segments * config.segment_octets,
            buffers: segments,
        });
        self.spare_octets = keep.saturating_sub(self.octets);
    }

    /// Why an article that arrived then would go at once, if it would.
    pub(crate) fn is_past(&self, arrival: UnixTime, now: Option<UnixTime>) -> Option<String> {
        let (keep_s, now) = (self.keep_s?, now?);
        let age_s = now.0.saturating_sub(arrival.0);
        (age_s > keep_s).then(|| {
            format!(
                "it arrived {age_s} s ago, and set {} drops what is older than {keep_s} s (`set.keep_s`)",
                self.name
            )
        })
    }

    /// What is lacking for articles that take so many octets, of which none takes more than the largest, if anything is.
    pub(crate) fn shortage(&self, taken: u64, largest: u64) -> Option<String> {
        let keeps = self.round?.keeps(largest);
        (taken > keeps).then(|| {
            format!(
                "set {} would overwrite what comes into it: {} come, and it keeps {} before it makes room for more by the oldest of \
                 them; give it more room, attach some of the files, or let the oldest go (`--oldest-may-go`)",
                self.name,
                said_octets(taken),
                said_octets(keeps)
            )
        })
    }

    /// What goes of articles that take so many octets, of which none takes more than the largest, if anything does.
    pub(crate) fn overwrites(&self, taken: u64, largest: u64) -> Option<String> {
        let goes = taken.saturating_sub(self.round?.keeps(largest));
        (goes > 0).then(|| {
            format!(
                "{} come into set {}, and up to {} of them, the oldest, go to make room for those behind them",
                said_octets(taken),
                self.name,
                said_octets(goes)
            )
        })
    }

    /// What of it goes for articles that take so many octets, if anything does.
    pub(crate) fn makes_room(&self, taken: u64) -> Option<String> {
        let goes = self.room(taken, 0).overwritten_octets;
        (self.round.is_some() && goes > 0).then(|| {
            format!(
                "about {} of what set {} has now, the oldest, goes to make room{}",
                said_octets(goes),
                self.name,
                self.alive_octets.map_or_else(String::new, |alive| format!(
                    "; {} of all that it has is alive",
                    said_octets(alive)
                ))
            )
        })
    }

    /// What an article of so many octets takes there, at most.
    pub(crate) fn octets_for(&self, len: u64) -> u64 {
        let octets = self.buffers.iter().map(|it| it.octets_for(len));
        octets.max().unwrap_or(len)
    }

    fn room(&self, taken: u64, largest: u64) -> TargetRoom {
        TargetRoom {
            free_octets: self.free_octets,
            keeps_octets: self.round.map(|round| round.keeps(largest)),
            overwritten_octets: taken.saturating_sub(self.spare_octets).min(self.octets),
            alive_octets: self.alive_octets,
            keep_s: self.keep_s,
        }
    }

    /// Why there is no place, as far as that is told by what is free.
    pub(super) fn lack(&self) -> String {
        let free = self.free_octets.map_or_else(String::new, |free| {
            format!(", where {} are free", said_octets(free))
        });
        format!(
            "there is no room in set {} ({}{free}): make some, or lower what the set keeps free (`set.free_octets_min`)",
            self.name, self.path
        )
    }
}

/// What comes into a buffer before the first of it is overwritten, and what comes into it in one turn at the most: a batch may begin when only an
/// octet is left of it, and ends where what is reserved does.
fn round_and_turn(buffer: &Arc<dyn BufferReader>) -> Option<(u64, u64)> {
    let (round, facts) = (buffer.round_octets()?, buffer.facts());
    let reserved = facts
        .capacity_octets
        .map_or(0, |it| it.saturating_sub(round));
    // An article is longer than the smallest block, so that each block that it takes holds a part of it.
    let blocks = 1 + facts.block_octets / POSITION_UNIT;
    let batch = (COPIED_AT_ONCE_OCTETS as u64).saturating_mul(blocks);
    Some((round, RUN_OCTETS + reserved.min(batch)))
}

/// Octets of a buffer in which nothing has lain yet.
fn never_written(facts: &BufferFacts) -> u64 {
    let behind = facts.free_offset.saturating_sub(facts.data_offset);
    let capacity = facts.capacity_octets.filter(|_| facts.cycle <= 1);
    capacity.map_or(0, |capacity| capacity.saturating_sub(behind))
}

impl Mover<'_> {
    /// Takes account of an article of so many octets in wire form; `false`: it has no room behind those before it.
    pub(super) fn takes(&mut self, len: u64) -> bool {
        let octets = self.target.octets_for(len);
        let largest = self.largest.max(octets);
        let taken = self.report.taken_octets + octets;
        if self
            .target
            .round
            .is_some_and(|it| taken > it.keeps(largest))
        {
            return false;
        }
        self.largest = largest;
        self.report.taken_octets = taken;
        true
    }

    /// Counts an article that would move, or has no file any more.
    pub(super) fn would_move(&mut self, token: &Token) {
        if !self.only_counts && self.shared.store.removed(token).is_some() {
            self.report.gone += 1;
            return;
        }
        let len = u64::from(token.len());
        let octets = self.target.octets_for(len);
        self.report.articles += 1;
        self.report.octets += len;
        self.report.taken_octets += octets;
        self.largest = self.largest.max(octets);
    }

    /// What the set has for those that were counted.
    pub(super) fn told_room(&self) -> TargetRoom {
        self.target.room(self.report.taken_octets, self.largest)
    }

    /// Refuses what would make room for itself, as far as the overview tells.
    pub(super) fn fits(&mut self) -> Result<(), Error> {
        if self.target.round.is_none() {
            return Ok(());
        }
        (self.dry_run, self.only_counts) = (true, true);
        let counted = self.packs();
        (self.dry_run, self.only_counts) = (false, false);
        let (count, largest) = (std::mem::take(&mut self.report), self.largest);
        if !counted? {
            return Err(Error::Stopping);
        }
        let room = self.target.room(count.taken_octets, largest);
        match room.keeps_octets {
            Some(keeps) if count.taken_octets > keeps => Err(Error::Request(format!(
                "set {} would overwrite what moves there: {} articles take {}, and it keeps {} before it makes room for more by the \
                 oldest; nothing was moved; move fewer (WILDMAT), or give it more room",
                self.target.name,
                count.articles,
                said_octets(count.taken_octets),
                said_octets(keeps),
            ))),
            _ => Ok(()),
        }
    }

    /// It ends here: the set would make room by what has moved.
    pub(super) fn is_around(&mut self) {
        let room = self.told_room();
        self.report.stopped = Some(format!(
            "set {} would overwrite what has moved there, and keeps {} of it; move fewer (WILDMAT), or give it more room",
            self.target.name,
            said_octets(room.keeps_octets.unwrap_or_default()),
        ));
    }
}
