//! From when on the articles of a retired buffer may go: when none is left in the others of its set that was placed before them.
//!
//! That is told by sequences, which stand in each record: so it is the same behind a start, in a set that is filled in turn, and however
//! much room is free in any of them.

use std::sync::Arc;

use newsreel_wire::{BufferId, Position, Sequence};

use super::buffer::Buffer;
use crate::method::{BufferReader as _, ScanRange, Scanned};

/// So many pieces in which there is no record are passed over at once.
const PIECES_MAX: usize = 16;
/// So many steps go at once.
const AT_ONCE_MAX: u64 = 64;

/// What is known of a retired buffer and of the others of its set.
#[derive(Debug, Default)]
pub(crate) struct Due {
    /// The floors of all of them, when nothing was to go.
    asked: Option<u64>,
    /// When the newest in its first step was placed, and where that step begins.
    first: Option<(Position, Sequence)>,
    /// How far each of the others has been looked through.
    others: Vec<Front>,
}

/// Where the oldest record of a buffer lies, as far as it was looked for.
#[derive(Debug)]
struct Front {
    buffer: BufferId,
    /// None lies in front of this.
    from: Position,
    /// The one there, when it was met.
    placed: Option<Sequence>,
}

/// The oldest record of a buffer.
enum Oldest {
    Placed(Sequence),
    Nothing,
    /// It has to be looked for further.
    Unknown,
}

impl Due {
    /// Of the oldest articles of a retired buffer so many steps that all of these are as old as what the others have come to.
    /// Reads from the disk only where something went since it was asked last, and nothing twice.
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
        self.asked = None;
        let oldest = match self.come_to(others) {
            Oldest::Placed(oldest) => oldest,
            Oldest::Nothing => Sequence(u64::MAX),
            Oldest::Unknown => return 0,
        };
        let steps = self.steps_up_to(retired, oldest, step);
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

    /// The oldest that the others have; unknown as well where nothing in any of them has been overwritten yet.
    fn come_to<'b>(
        &mut self,
        mut buffers: impl Iterator<Item = &'b Arc<Buffer>> + Clone,
    ) -> Oldest {
        let has_come_around =
            |buffer: &Arc<Buffer>| Some(buffer.floor()) > buffer.geometry().start_of(1);
        if !buffers.clone().any(has_come_around) {
            return Oldest::Unknown;
        }
        buffers
            .try_fold(Oldest::Nothing, |oldest, buffer| {
                match (oldest, self.oldest_of(buffer)) {
                    (_, Oldest::Unknown) => Err(Oldest::Unknown),
                    (Oldest::Placed(one), Oldest::Placed(other)) => {
                        Ok(Oldest::Placed(one.min(other)))
                    }
                    (oldest, Oldest::Nothing) | (_, oldest) => Ok(oldest),
                }
            })
            .unwrap_or_else(|unknown| unknown)
    }

    /// Looks for it from where it was left.
    fn oldest_of(&mut self, buffer: &Arc<Buffer>) -> Oldest {
        let known = self.others.iter().position(|one| one.buffer == buffer.id);
        let at = known.unwrap_or_else(|| {
            self.others.push(Front {
                buffer: buffer.id,
                from: Position::ZERO,
                placed: None,
            });
            self.others.len() - 1
        });
        let front = &mut self.others[at];
        let floor = buffer.floor();
        if front.from < floor {
            (front.from, front.placed) = (floor, None);
        }
        if let Some(placed) = front.placed {
            return Oldest::Placed(placed);
        }
        let mut scan = Arc::clone(buffer).scan(ScanRange::LiveFrom(front.from));
        for _ in 0..PIECES_MAX {
            match scan.step() {
                Ok(Some(Scanned::Record {
                    sequence, token, ..
                })) => {
                    (front.from, front.placed) = (token.position(), Some(sequence));
                    return Oldest::Placed(sequence);
                }
                Ok(Some(_)) => front.from = front.from.max(scan.at()),
                // Of one of which nothing can be read nothing has to be waited for.
                Ok(None) | Err(_) => return Oldest::Nothing,
            }
        }
        Oldest::Unknown
    }
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

/// When the first article from there on was placed; none: there is none nearby, or it cannot be read.
fn placed_at(buffer: &Arc<Buffer>, from: Position) -> Option<Sequence> {
    let mut scan = Arc::clone(buffer).scan(ScanRange::LiveFrom(from));
    for _ in 0..PIECES_MAX {
        // Whatever its text is: its front is sound.
        if let Scanned::Record { sequence, .. } = scan.step().ok()?? {
            return Some(sequence);
        }
    }
    None
}
