//! What of a catalogue is lost, as a start sees it: files that are not there or were cut, and the fronts of the newest.
//!
//! Nothing is read whole: what rots in the middle of a file is met by who reads there, and by the scrub.

use newsreel_wire::Position;

use super::holes;
use crate::error::Result;
use crate::records::buffer::Buffer;
use crate::records::format::{RECORD_HEADER, RecordHeader};
use crate::records::geometry::{PAGE, PAGE_LEN};

/// Of so many files, the newest, a start looks at the first card.
pub const FRONTS_MAX: u32 = 64;

/// What administrators are told begins with this.
pub(super) const TOLD: &str = "its catalogue is damaged";

/// What is wrong with a catalogue, if that can be seen at once.
pub(super) fn damage(cards: &Buffer) -> Result<Option<String>> {
    let geometry = &cards.geometry();
    let end = Position(cards.end.load(std::sync::atomic::Ordering::Relaxed));
    let floor = cards.floor();
    let is_at_start = geometry.start_of(end.cycle()) == Some(end);
    let last = end.cycle().saturating_sub(u32::from(is_at_start));
    let first = floor.cycle().max(1);
    if end <= floor || last < first {
        return Ok(None);
    }
    let (missing, cut) = cards.home.lost(first..=last)?;
    let mut blank = 0_u64;
    for cycle in first.max(last.saturating_sub(FRONTS_MAX - 1))..=last {
        let start = geometry.start_of(cycle).unwrap_or_default();
        let mut octets = [0; RECORD_HEADER];
        let read = cards.home.file(cycle).and_then(|file| {
            file.read_exact_at(&mut octets, start.offset())?;
            Ok(())
        });
        let is_lost = read.is_ok() && RecordHeader::decode(&octets, cards.key).is_err();
        let is_cut_off = cycle == end.cycle()
            && !is_at_start
            && ends_in_zeros(cards, end)
            && has_hole(cards, end)?;
        blank += u64::from(is_lost || is_cut_off);
    }
    let (count, mut found) = (u64::from(last - first) + 1, Vec::new());
    for (files, what) in [
        (missing, "are not there"),
        (cut, "are shorter than they were"),
        (blank, "do not begin or end with a card"),
    ] {
        if files > 0 {
            found.push(format!("{files} {what}"));
        }
    }
    Ok((!found.is_empty()).then(|| format!("of {count} files {}", found.join(", "))))
}

/// Whether a card was there that cannot be read: where none can be, an erased one may stand for many.
fn has_hole(cards: &Buffer, end: Position) -> Result<bool> {
    let mut holes = Vec::new();
    holes::in_file(cards, end.cycle(), end, &mut holes)?;
    Ok(!holes.is_empty())
}

/// Whether the page in front of the end, in which a card was, is blank.
fn ends_in_zeros(cards: &Buffer, end: Position) -> bool {
    let mut page = [0; PAGE_LEN];
    let last = end.offset().next_multiple_of(PAGE) - PAGE;
    let read = cards.home.file(end.cycle()).and_then(|file| {
        file.read_exact_at(&mut page, last)?;
        Ok(())
    });
    read.is_ok() && page.iter().all(|octet| *octet == 0)
}
