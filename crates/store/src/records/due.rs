//! From when on the articles of a retired buffer may go: when none is left in the others of its set that was placed before them.
//!
//! That is told by sequences, which stand in each record: so it is the same behind a start, in a set that is filled in turn, and however
//! much room is free in any of them.

use std::sync::Arc;

use newsreel_wire::{Position, Sequence};

use super::buffer::Buffer;
use crate::method::{BufferReader as _, ScanRange, Scanned};

/// So far a record that is alive is looked for.
const STEPS_MAX: usize = 64;
/// So many steps go at once.
const AT_ONCE_MAX: u64 = 64;

/// What is known of a retired buffer, as long as nothing more of it or of the others has gone.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Due {
    /// The floors of all of them, when nothing was to go.
    asked: Option<u64>,
    /// When the newest in its first step was placed, and where that step begins.
    first: Option<(Position, Sequence)>,
}

impl Due {
    /// Of the oldest articles of a retired buffer so many steps that all of these are as old as what the others have come to.
    /// Reads from the disk only where something went since it was asked last, and no step twice.
    pub(crate) fn steps<'b>(
        &mut self,
        retired: &Arc<Buffer>,
        others: impl Iterator<Item = &'b Arc<Buffer>> + Clone,
        step: u64,
    ) -> u64 {
        let floors = others.clone().map(|other| other.floor().0);
        let all = floors.fold(retired.floor().0, u64::wrapping_add);
        if self.asked == Some(all) {
            return 0;
        }
        let steps = come_to(others).map_or(0, |oldest| self.steps_up_to(retired, oldest, step));
        self.asked = (steps == 0).then_some(all);
        steps
    }

    fn steps_up_to(&mut self, retired: &Arc<Buffer>, oldest: Sequence, step: u64) -> u64 {
        let (geometry, mut from, mut steps) = (retired.geometry(), retired.floor(), 0);
        while steps < AT_ONCE_MAX {
            let Some(behind) = geometry.advance(from, step) else {
                break;
            };
            let known = self.first.filter(|(at, _)| *at == from);
            let newest = known.map_or_else(
                || newest_in(retired, from, behind),
                |(_, newest)| Some(newest),
            );
            // What cannot be read is asked for again.
            let Some(newest) = newest else { break };
            self.first = Some((from, newest));
            if newest > oldest {
                break;
            }
            (from, steps) = (behind, steps + 1);
        }
        steps
    }
}

/// The oldest that buffers have; none: nothing in any of them has been overwritten yet.
fn come_to<'b>(buffers: impl Iterator<Item = &'b Arc<Buffer>> + Clone) -> Option<Sequence> {
    let has_come_around =
        |buffer: &Arc<Buffer>| Some(buffer.floor()) > buffer.geometry().start_of(1);
    if !buffers.clone().any(has_come_around) {
        return None;
    }
    // Of one of which no article can be read nothing has to be waited for.
    let oldest = buffers.filter_map(|buffer| placed_at(buffer, buffer.floor()));
    Some(oldest.min().unwrap_or(Sequence(u64::MAX)))
}

/// No article between two places was placed later: told by the first behind them, or, where none is near, by themselves.
fn newest_in(buffer: &Arc<Buffer>, from: Position, behind: Position) -> Option<Sequence> {
    if let Some(placed) = placed_at(buffer, behind) {
        return Some(placed);
    }
    let mut scan = Arc::clone(buffer).scan(ScanRange::LiveFrom(from));
    let mut newest = Sequence::ZERO;
    while let Some(met) = scan.step().ok()? {
        if let Scanned::Record { sequence, .. } = met {
            newest = newest.max(sequence);
        }
        if scan.at() >= behind {
            break;
        }
    }
    Some(newest)
}

/// When the first article was placed that is alive from there on; none: there is none nearby, or it cannot be read.
fn placed_at(buffer: &Arc<Buffer>, from: Position) -> Option<Sequence> {
    let mut scan = Arc::clone(buffer).scan(ScanRange::LiveFrom(from));
    for _ in 0..STEPS_MAX {
        if let Scanned::Record {
            sequence,
            sound: true,
            ..
        } = scan.step().ok()??
        {
            return Some(sequence);
        }
    }
    None
}
