//! Giving back the room of erased records, in files in which others stay: those keep their places, so nothing that leads to
//! them changes.
//!
//! Erased records that follow each other become one, under the header of the first: who walks steps over all of them.  At a
//! later look, when that is durable and nobody is on his way between them any more, the pages behind that header go back to
//! the file system.  Killed anywhere, the next look goes on.  No other thread may write to the file meanwhile.

use newsreel_host::AlignedBuf;
use newsreel_wire::{IdHash, Position, Sequence};

use super::buffer::Buffer;
use super::format::{Mark, RECORD_HEADER, RecordHeader};
use super::geometry::{PAGE, in_memory};
use super::true_end::is_nothing;
use crate::error::Result;

/// A disk writes so much wholly or not at all: a header that lies in one is never torn.
const SECTOR: u64 = 512;

/// Erased records with nothing but unused room between them.
#[derive(Debug)]
struct Run {
    first: RecordHeader,
    /// Of the last of them.
    sequence: Sequence,
    count: u32,
    /// Octets of the file.
    from: u64,
    to: u64,
}

impl Run {
    /// Whether others may come under its header.
    const fn may_grow(&self) -> bool {
        self.from % SECTOR + RECORD_HEADER as u64 <= SECTOR
    }

    /// The record that stands for all of them.
    fn merged(&self) -> RecordHeader {
        let octets = self.to - self.from - RECORD_HEADER as u64;
        RecordHeader {
            article_len: u32::try_from(octets).unwrap_or(u32::MAX),
            head_len: 0,
            crc_head: 0,
            crc_body: 0,
            sequence: self.sequence,
            id_hash: IdHash([0; 16]),
            ..self.first
        }
    }

    /// The pages wholly behind its header.
    fn room(&self) -> Option<(u64, u64)> {
        let from = (self.from + RECORD_HEADER as u64).next_multiple_of(PAGE);
        let to = self.to - self.to % PAGE;
        (self.count == 1 && from < to).then(|| (from, to - from))
    }
}

/// The runs of a file that has one cycle, as far as its records can be followed.  `octets` is its data area.
fn runs(buffer: &Buffer, cycle: u32, octets: &[u8]) -> Vec<Run> {
    let geometry = &buffer.geometry();
    let (mut runs, mut open): (Vec<Run>, Option<Run>) = (Vec::new(), None);
    let mut offset = geometry.data_start;
    while let Some(rest) = octets.get(in_memory(offset - geometry.data_start)..) {
        let page_end = (offset + 1).next_multiple_of(PAGE);
        let padding = rest.get(..in_memory(page_end - offset));
        if padding.is_some_and(|padding| padding.iter().all(|octet| *octet == 0)) {
            offset = page_end;
            continue;
        }
        let header = rest.get(..RECORD_HEADER);
        let header = header.and_then(|header| RecordHeader::decode(header, buffer.key).ok());
        let here = Position::checked(cycle, offset);
        let Some(header) = header.filter(|header| Some(header.position) == here) else {
            break;
        };
        let end = offset + geometry.record_octets(u64::from(header.article_len));
        if end > geometry.data_end {
            break;
        }
        match (header.mark, &mut open) {
            (Mark::Erased, Some(run)) if run.may_grow() => {
                (run.sequence, run.to) = (header.sequence, end);
                run.count += 1;
            }
            (Mark::Erased, open) => {
                runs.extend(open.take());
                *open = Some(Run {
                    sequence: header.sequence,
                    count: 1,
                    from: offset,
                    to: end,
                    first: header,
                });
            }
            (Mark::Article, open) => runs.extend(open.take()),
            (Mark::CycleEnd, _) => break,
        }
        offset = end;
    }
    runs.extend(open);
    runs
}

/// Whether every record of a cycle that has a file of its own is erased, from the first to the end of the cycle: what cannot be followed
/// to there may have been an article, and so may be what is not there at all.
pub(crate) fn is_empty(buffer: &Buffer, cycle: u32) -> Result<bool> {
    let geometry = &buffer.geometry();
    let read = buffer.home.file(cycle).and_then(|file| {
        let mut octets = vec![0; in_memory(geometry.data_end - geometry.data_start)];
        file.read_exact_at(&mut octets, geometry.data_start)?;
        Ok(octets)
    });
    let octets = match read {
        Err(error) if is_nothing(&error) => return Ok(false),
        read => read?,
    };
    let mut offset = geometry.data_start;
    while offset < geometry.data_end {
        let rest = octets.get(in_memory(offset - geometry.data_start)..);
        let rest = rest.unwrap_or_default();
        let page_end = offset.next_multiple_of(PAGE);
        let padding = rest.get(..in_memory(page_end - offset));
        // A batch begins on a page; a page of zeros was a record once, or nobody knows.
        if offset < page_end && padding.is_some_and(|rest| rest.iter().all(|octet| *octet == 0)) {
            offset = page_end;
            continue;
        }
        let header = RecordHeader::decode(rest, buffer.key).ok();
        let here = Position::checked(cycle, offset);
        match header.filter(|header| Some(header.position) == here) {
            Some(header) if header.mark == Mark::Erased => {
                offset += geometry.record_octets(u64::from(header.article_len));
            }
            Some(header) => return Ok(header.mark == Mark::CycleEnd),
            None => return Ok(false),
        }
    }
    Ok(true)
}

/// Writes a record's header into its pages; the neighbours' octets in them are written back as they are.
fn put(buffer: &Buffer, header: &RecordHeader, octets: &[u8]) -> newsreel_host::Result<()> {
    let (start, offset) = (buffer.geometry().data_start, header.position.offset());
    let from = offset - offset % PAGE;
    let to = (offset + RECORD_HEADER as u64).next_multiple_of(PAGE);
    let Some(there) = octets.get(in_memory(from - start)..in_memory(to - start)) else {
        return Ok(());
    };
    let mut pages = AlignedBuf::new();
    let copy = pages.append(there.len());
    copy.copy_from_slice(there);
    let at = in_memory(offset - from);
    copy[at..at + RECORD_HEADER].copy_from_slice(&header.encode(buffer.key));
    let file = buffer.home.file(header.position.cycle())?;
    if buffer.is_cached {
        file.write_at(&pages, from)
    } else {
        file.write_direct_at(&pages, from)
    }
}

/// Looks at the file of one cycle, to which nothing is written any more: merges what is erased, and gives back the room of
/// what was merged before.  Whether a later look has something to give back.
pub(crate) fn look(buffer: &Buffer, cycle: u32) -> Result<bool> {
    let geometry = &buffer.geometry();
    let file = buffer.home.file(cycle)?;
    let mut octets = vec![0; in_memory(geometry.data_end - geometry.data_start)];
    file.read_exact_at(&mut octets, geometry.data_start)?;
    let runs = runs(buffer, cycle, &octets);
    let (mut is_merged, mut merged) = (false, octets);
    for run in &runs {
        if let Some((from, len)) = run.room() {
            file.give_back(from, len)?;
        }
        if run.count > 1 {
            let header = run.merged();
            buffer.unless_failed(put(buffer, &header, &merged))?;
            // Another may begin in the same page.
            let at = in_memory(run.from - geometry.data_start);
            if let Some(there) = merged.get_mut(at..at + RECORD_HEADER) {
                there.copy_from_slice(&header.encode(buffer.key));
            }
            is_merged = true;
        }
    }
    if is_merged {
        buffer.sync(cycle..=cycle, buffer.given_up())?;
    }
    Ok(is_merged)
}
