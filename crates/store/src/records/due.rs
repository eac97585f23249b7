//! When the articles of a retired buffer go that has room in front of it in which nothing is alive, as one that was retired before and taken
//! back: not before the others of its set have come to what was placed when they were.
//!
//! Where it was full when it was retired, how much the others overwrite says that by itself.  Where it was not, its articles would
//! go as soon as the others had overwritten as much as these are.

use std::sync::Arc;

use newsreel_wire::{Position, Sequence};

use super::buffer::Buffer;
use crate::method::{BufferReader as _, ScanRange, Scanned};

/// So far a record that is alive is looked for.
const STEPS_MAX: usize = 64;
/// So many steps go at once.
const AT_ONCE_MAX: u64 = 64;

/// How much of a buffer goes, as long as nothing more of it or of the others has gone.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Due {
    /// The floors of all of them, when nothing was to go.
    asked: Option<u64>,
}

impl Due {
    /// Of the oldest articles of a retired buffer, the newest of which is given, so many steps that all of these are as old as what the others
    /// have come to.  Reads from the disk only where something went since it was asked last.
    pub(crate) fn steps<'b>(
        &mut self,
        (retired, newest): (&Arc<Buffer>, Sequence),
        others: impl Iterator<Item = &'b Arc<Buffer>> + Clone,
        step: u64,
    ) -> u64 {
        let floors = others.clone().map(|other| other.floor().0);
        let all = floors.fold(retired.floor().0, u64::wrapping_add);
        if self.asked == Some(all) {
            return 0;
        }
        let steps = match come_to(others) {
            Some(oldest) => steps_up_to((retired, newest), oldest, step),
            None => 0,
        };
        self.asked = (steps == 0).then_some(all);
        steps
    }
}

/// The oldest that buffers have, of which the next is overwritten; none: of one nothing has been overwritten yet.
fn come_to<'b>(mut buffers: impl Iterator<Item = &'b Arc<Buffer>>) -> Option<Sequence> {
    buffers.try_fold(Sequence(u64::MAX), |oldest, buffer| {
        let start = buffer.geometry().start_of(1).unwrap_or_default();
        let floor = buffer.floor();
        // Of one of which no article can be read nothing has to be waited for.
        (floor > start).then(|| oldest.min(placed_at(buffer, floor).unwrap_or(oldest)))
    })
}

/// A step goes where the first article behind it was placed before that, or the newest where none is behind it.
fn steps_up_to((retired, newest): (&Arc<Buffer>, Sequence), oldest: Sequence, step: u64) -> u64 {
    let (geometry, floor) = (retired.geometry(), retired.floor());
    let goes = |steps: &u64| {
        let behind = geometry.advance(floor, steps * step);
        let placed = behind.and_then(|from| placed_at(retired, from));
        placed.unwrap_or(newest) <= oldest
    };
    (1..=AT_ONCE_MAX).take_while(goes).count() as u64
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
