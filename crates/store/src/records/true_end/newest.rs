//! The newest record of a buffer, found by halving: what lies in front of it is not read.
//!
//! From where articles begin to where the buffer stands its records lie one behind the other, with sequences that grow; what
//! lies behind that is older, or was never written.  A look reads up to the first sound record.  One that meets none, in the
//! text of a large article or in damage, tells nothing: the walk that begins at what is found comes to what was missed.

use std::ops::Range;

use super::{Record, is_nothing};
use crate::error::Result;
use crate::records::buffer::Buffer;
use crate::records::geometry::{PAGE, in_memory};

/// Into so many parts a stretch is cut.
const PARTS: u64 = 4;
/// Into so many, at most, where looks that were to be thorough met nothing behind the newest.
const PARTS_THOROUGH: u64 = 4096;
/// Octets read at once.  Where all of them are zeros nothing was written.
const WINDOW: u64 = 64 << 10;
/// A look reads so much of the stretch at most that is left in the end.
const LOOK_PART: u64 = 8;

/// What was seen of a stretch.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The record of the highest sequence.
    pub(super) newest: Option<Record>,
    /// The one that lies furthest on in time: what an unfinished commit left may lie behind the newest.
    pub(super) furthest: Option<Record>,
}

impl Seen {
    /// Whether a record is newer than those before.
    fn is_newer(&mut self, record: Record) -> bool {
        if self.furthest.is_none_or(|seen| record.at > seen.at) {
            self.furthest = Some(record);
        }
        let is_newer = self
            .newest
            .is_none_or(|seen| record.sequence > seen.sequence);
        if is_newer {
            self.newest = Some(record);
        }
        is_newer
    }
}

/// Looks into a stretch that begins on a page, until it is about known in which `step` octets the newest record lies.  Behind the newest that
/// a few looks meet there may be damage, or nothing: where they `are_thorough` it is looked there for more, a window at a time.
pub(super) fn look(
    buffer: &Buffer,
    offsets: Range<u64>,
    (step, are_thorough): (u64, bool),
) -> Result<Seen> {
    let (mut seen, mut octets_max) = (Seen::default(), (step / LOOK_PART).max(WINDOW));
    let Range {
        start: mut from,
        end: mut to,
    } = offsets;
    // What the first part begins with was seen in the round before.
    let (mut is_seen, mut is_first, mut part) = (false, true, part_of(from..to, PARTS));
    while from < to {
        let (mut best, mut has_missed) = (from, false);
        let places = (from..to).step_by(in_memory(part));
        for at in places.skip(usize::from(is_seen)) {
            let record = first(buffer, 0, at..to.min(at + octets_max))?;
            has_missed |= record.is_none();
            if record.is_some_and(|record| seen.is_newer(record)) {
                (best, has_missed) = (at, false);
            }
        }
        (from, is_seen) = (best, true);
        if is_first && are_thorough && has_missed {
            (octets_max, part) = (WINDOW, part_of(from..to, PARTS_THOROUGH).max(WINDOW));
        } else if part <= step.max(PAGE) {
            break;
        } else {
            to = to.min(best + part);
            part = part_of(from..to, PARTS);
        }
        is_first = false;
    }
    Ok(seen)
}

fn part_of(stretch: Range<u64>, parts: u64) -> u64 {
    let octets = stretch.end.saturating_sub(stretch.start);
    (octets / parts).next_multiple_of(PAGE).max(PAGE)
}

/// The first sound record that begins at these offsets of a cycle's file.
pub(super) fn first(buffer: &Buffer, cycle: u32, offsets: Range<u64>) -> Result<Option<Record>> {
    let block = in_memory(buffer.geometry().block);
    let file = buffer.home.file(cycle)?;
    let mut window = vec![0; in_memory(WINDOW.min(offsets.end.saturating_sub(offsets.start)))];
    let mut at = offsets.start;
    while at < offsets.end {
        let window = &mut window[..in_memory(WINDOW.min(offsets.end - at))];
        match file.read_exact_at(window, at) {
            Err(error) if is_nothing(&error) => window.fill(1),
            read => read?,
        }
        if window.iter().all(|octet| *octet == 0) {
            return Ok(None);
        }
        for (octets, at) in window.chunks(block).zip((at..).step_by(block)) {
            let record = Record::read(buffer, at, octets);
            if record.is_some() {
                return Ok(record);
            }
        }
        at += window.len() as u64;
    }
    Ok(None)
}
