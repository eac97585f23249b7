//! Stretches of a catalogue in which no card can be read: what is left when the cards that were lost are made again, and nobody's.
//!
//! A stretch to which nothing leads any more had the cards of withdrawn articles.  As long as nothing is written there it looks as if
//! something were lost, and no file goes in which there is one, nor any behind it.  So it becomes an erased record, as those cards
//! would be.  The cards to which the history leads are left out, whether anything of them can be read or not.

use std::ops::Range;
use std::sync::atomic::Ordering;

use newsreel_wire::{IdHash, Position, Sequence, Token, UnixTime};

use super::card_token;
use super::restore::Cards;
use crate::error::Result;
use crate::records::buffer::Buffer;
use crate::records::format::{Mark, RECORD_HEADER, RecordHeader};
use crate::records::geometry::{PAGE, in_memory};
use crate::records::true_end::is_nothing;

/// So many are closed by one scrub; the next one goes on.
pub const HOLES_MAX: usize = 1 << 16;

/// Where no card can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hole {
    /// Within one file.
    pub stretch: Range<Position>,
    /// The sequence of the last card in front of it in its file.
    pub after: Sequence,
}

/// Those of all files, in their order, as far as something was written.
pub(super) fn holes(cards: &Buffer) -> Result<Vec<Hole>> {
    let end = Position(cards.written.load(Ordering::Acquire));
    let mut holes = Vec::new();
    for cycle in cards.floor().cycle().max(1)..=end.cycle() {
        in_file(cards, cycle, end, &mut holes)?;
        if holes.len() > HOLES_MAX {
            holes.truncate(HOLES_MAX);
            break;
        }
    }
    Ok(holes)
}

/// Those of one file.
pub(super) fn in_file(
    cards: &Buffer,
    cycle: u32,
    end: Position,
    holes: &mut Vec<Hole>,
) -> Result<()> {
    let geometry = &cards.geometry();
    let is_last = cycle == end.cycle();
    let until = if is_last {
        end.offset()
    } else {
        geometry.data_end
    };
    let mut octets = vec![0; in_memory(until.saturating_sub(geometry.data_start))];
    let read = cards
        .home
        .file(cycle)
        .and_then(|file| file.read_at(&mut octets, geometry.data_start));
    match read {
        // Its medium may tell it some other time.
        Err(error) if error.is_medium() => return Ok(()),
        Err(error) if is_nothing(&error) => octets.fill(0),
        // Where it was cut there is nothing.
        read => octets.get_mut(read?..).unwrap_or_default().fill(0),
    }
    let at = |offset: u64| Position::checked(cycle, offset).unwrap_or_default();
    let (mut offset, mut after) = (geometry.data_start, Sequence::ZERO);
    // Where one begins that is open, and whether it is no more than what is left free behind a batch.
    let mut open: Option<(u64, bool)> = None;
    while offset < until {
        let rest = octets.get(in_memory(offset - geometry.data_start)..);
        let rest = rest.unwrap_or_default();
        let page_end = offset.next_multiple_of(PAGE);
        let padding = rest.get(..in_memory(page_end - offset));
        let is_padding = padding.is_some_and(|rest| rest.iter().all(|octet| *octet == 0));
        if open.is_none() && offset < page_end && is_padding {
            open = Some((offset, true));
            offset = page_end;
            continue;
        }
        if !RecordHeader::is_of(rest, cards.key, at(offset)) {
            open = Some((open.map_or(offset, |(from, _)| from), false));
            offset += geometry.block;
            continue;
        }
        let header = RecordHeader::decode(rest, cards.key);
        let header = header.ok().filter(|it| it.mark != Mark::CycleEnd);
        let octets = header.map(|it| geometry.record_octets(u64::from(it.article_len)));
        if header.is_some_and(|it| it.mark == Mark::Article && !is_sound(&it, rest)) {
            open = Some((open.map_or(offset, |(from, _)| from), false));
        } else {
            holes.extend(closed_at(open.take(), at(offset), after));
            after = header.map_or(after, |it| it.sequence);
        }
        match octets {
            Some(octets) => offset += octets,
            // Nothing more is here, or a later newsreel knows how long it is.
            None => return Ok(()),
        }
    }
    holes.extend(closed_at(open, at(until), after));
    Ok(())
}

/// Whether the card behind this header is as it was written.
fn is_sound(header: &RecordHeader, record: &[u8]) -> bool {
    let len = header.article_len as usize;
    let card = record.get(RECORD_HEADER..RECORD_HEADER.saturating_add(len));
    card.is_some_and(|card| header.signs(card))
}

/// The hole that was open, if it is one.
fn closed_at(open: Option<(u64, bool)>, to: Position, after: Sequence) -> Option<Hole> {
    let (from, _) = open.filter(|(_, is_padding)| !is_padding)?;
    let stretch = Position::checked(to.cycle(), from)?..to;
    Some(Hole { stretch, after })
}

/// The erased records that close these, but for the cards to which something leads, in order of their places.
pub(super) fn closed(cards: &Buffer, holes: &[Hole], wanted: &[Token]) -> Cards {
    let geometry = &cards.geometry();
    let mut records = Cards::new();
    for hole in holes {
        let (mut from, to) = (hole.stretch.start.offset(), hole.stretch.end.offset());
        let first = wanted.partition_point(|token| token.position() < hole.stretch.start);
        let inside = wanted.iter().skip(first);
        let inside = inside.take_while(|token| token.position() < hole.stretch.end);
        let ends = inside.map(|token| {
            let octets = geometry.record_octets(u64::from(card_token(token).len()));
            let start = token.position().offset();
            (start, start.saturating_add(octets))
        });
        for (start, next) in ends.chain([(to, to)]) {
            let octets = start.saturating_sub(from);
            let at = Position::checked(hole.stretch.start.cycle(), from);
            if let Some(at) = at.filter(|_| octets >= RECORD_HEADER as u64) {
                records.insert(
                    at,
                    erased(at, octets, hole.after).encode(cards.key).to_vec(),
                );
            }
            from = from.max(next);
        }
    }
    records
}

/// A record of so many octets of which nothing is left.
fn erased(position: Position, octets: u64, sequence: Sequence) -> RecordHeader {
    RecordHeader {
        mark: Mark::Erased,
        is_packed: false,
        article_len: u32::try_from(octets - RECORD_HEADER as u64).unwrap_or(u32::MAX),
        head_len: 0,
        crc_head: 0,
        crc_body: 0,
        position,
        sequence,
        arrival: UnixTime(0),
        id_hash: IdHash([0; 16]),
    }
}
