//! The header of a buffer made again when both copies of it are damaged.
//!
//! Name and sizes are in the configuration, the id in the register, and where the buffer stands is in the log; where articles
//! begin in one that was made larger or smaller its first record tells.  A file that is longer than the configuration says was about to
//! become smaller, and so was a device with records behind that: it goes on with that from where it stands.  The key of its records is in the
//! header and in the register; where that does not know it yet each
//! record gives it away: it is what makes its checksum right, and what most places of the file agree on is it, as another buffer's may lie over a
//! part.  A file in which no sound records are of that key is not touched.

use newsreel_host::{File, random_bytes};
use newsreel_wire::BufferId;

use super::bitmap::read_starts;
use super::create::new_header;
use super::file::Owner;
use crate::error::Result;
use crate::records::format::{FileHeader, FileKey, Narrowing, RecordHeader};
use crate::records::geometry::{BITMAP_START, Geometry, PAGE, in_memory};
use crate::records::placing::ARTICLE_OCTETS_MAX;
use crate::records::signed::{signed_anywhere, signed_by};

/// Octets read at once.
const WINDOW: u64 = 1 << 20;
/// So far behind where the size says articles may begin in a buffer that was made smaller: as far as the records of one are looked for.
const LATER_OCTETS_MAX: u64 = 64 << 20;
/// In so much of what was written a record begins.
const STRETCH: u64 = ARTICLE_OCTETS_MAX + (16 << 20);

/// A header for this file, of which the register has this id and perhaps the UUID, and how many of its records bear it out; `None` when none
/// does.
pub(super) fn header(
    file: &dyn File,
    owner: &Owner<'_>,
    (id, known): (BufferId, Option<[u8; 16]>),
) -> Result<Option<(FileHeader, u32)>> {
    let header = new_header(owner, id)?;
    let (len, octets) = (file.len()?, owner.config.octets);
    if len < octets {
        return Err(owner.wrong(format!(
            "it has {len} octets, the configuration says {octets}, and neither copy of its header can be used; it was \
             cut, or is no buffer: restore it, or take it out of the configuration"
        )));
    }
    let Some(geometry) = Geometry::of(header.octets, header.block) else {
        return Ok(None);
    };
    let signed = match known {
        Some(uuid) => {
            let key = FileKey::of(&uuid);
            let records = signed_by(file, (header.octets, &geometry), key)?;
            (records > 0).then_some((key, records))
        }
        None => signed_anywhere(file, header.octets)?,
    };
    let Some(signed) = signed else {
        return Ok(None);
    };
    let mut made = of_records(file, owner, header, signed)?;
    if let (Some((header, _)), Some(uuid)) = (&mut made, known) {
        header.uuid = uuid;
    }
    Ok(made)
}

/// A header for a file of which only its length is known.  The size of its blocks is taken for the smallest, at a multiple of which
/// articles begin in blocks of any size.
pub(super) fn header_alone(file: &dyn File, owner: &Owner<'_>) -> Result<Option<FileHeader>> {
    let header = new_header(owner, BufferId(0))?;
    let Some(signed) = signed_anywhere(file, header.octets)? else {
        return Ok(None);
    };
    let header = of_records(file, owner, header, signed)?;
    Ok(header.map(|(header, _)| header))
}

/// The header that records of this key tell.
fn of_records(
    file: &dyn File,
    owner: &Owner<'_>,
    mut header: FileHeader,
    (key, records): (FileKey, u32),
) -> Result<Option<(FileHeader, u32)>> {
    let (len, octets) = (file.len()?, owner.config.octets);
    let is_device = file.is_device()?;
    if len > octets && !is_device {
        header.octets = len;
    }
    let Some(mut geometry) = Geometry::of(header.octets, header.block) else {
        return Ok(None);
    };
    if is_device
        && let Some(end) = end_behind(file, (geometry.data_end, len), key, &geometry)?
        && let Some(larger) = Geometry::of(end, header.block)
    {
        (header.octets, geometry) = (end, larger);
    }
    if header.octets > octets {
        header.narrowing = Some(Narrowing {
            octets,
            // That is known when the log has told where it stands.
            last_cycle: u32::MAX,
        });
    }
    header.data_start = data_start(file, &geometry, key)?;
    if header.data_start > geometry.data_start {
        header.narrowing.get_or_insert(Narrowing {
            octets,
            last_cycle: 0,
        });
    }
    let Some(start) = header.geometry().and_then(|geometry| geometry.start_of(1)) else {
        return Ok(None);
    };
    header.hints = header.hints.at(start);
    let random: [u8; 12] = random_bytes()?;
    Ok(key.uuid(&random).map(|uuid| {
        header.uuid = uuid;
        (header, records)
    }))
}

/// Where articles begin: in a buffer that was made larger before where its size says, in one that was made smaller behind that.  The first
/// record of each cycle lies there.
fn data_start(file: &dyn File, geometry: &Geometry, key: FileKey) -> Result<u64> {
    let usual = geometry.data_start;
    if is_usual(file, geometry, key)? {
        return Ok(usual);
    }
    // In a bitmap are none; the first of them begins on a page.
    let front = (BITMAP_START + PAGE, usual);
    if let Some(record) = first_record(file, front, key, geometry.block)? {
        let found = record.position.offset();
        return Ok(found - found % PAGE);
    }
    let until = geometry.data_end.min(usual + LATER_OCTETS_MAX);
    let found = first_record(file, (usual, until), key, PAGE)?;
    let found = found.map_or(usual, |record| record.position.offset());
    // The first record may be damaged: then others lie in front of what begins on a page, or it has a bit all the same; in a bitmap that
    // reaches further are no records, and no bits of itself.
    let is_behind = found > usual
        && first_record(file, (usual, found), key, geometry.block)?.is_none()
        && read_starts(file, geometry, usual, found)?.is_empty()
        && has_bits(file, geometry, found)?;
    Ok(if is_behind { found } else { usual })
}

/// Whether the bitmap says of anything from there on that it begins there: it may have been overwritten with zeros, as what lay in front.
fn has_bits(file: &dyn File, geometry: &Geometry, from: u64) -> Result<bool> {
    let until = geometry.data_end.min(from + LATER_OCTETS_MAX);
    Ok(!read_starts(file, geometry, from, until)?.is_empty())
}

/// Whether a record lies where the size says that the first one does, and no other in front of it: then the bitmap, which is large where the
/// buffer is, need not be looked through.
fn is_usual(file: &dyn File, geometry: &Geometry, key: FileKey) -> Result<bool> {
    let usual = geometry.data_start;
    let in_front = (BITMAP_START + PAGE).max(usual.saturating_sub(LATER_OCTETS_MAX));
    Ok(
        first_record(file, (usual, usual + PAGE), key, PAGE)?.is_some()
            && first_record(file, (in_front, usual), key, geometry.block)?.is_none(),
    )
}

/// The first sound record of a stretch, of those that begin a multiple of `step` behind its begin.
fn first_record(
    file: &dyn File,
    (from, until): (u64, u64),
    key: FileKey,
    step: u64,
) -> Result<Option<RecordHeader>> {
    let at_once = WINDOW - WINDOW % step;
    let step = in_memory(step);
    let mut window = vec![0; in_memory(at_once)];
    let mut at = from;
    while at < until {
        let octets = &mut window[..in_memory(at_once.min(until - at))];
        match file.read_exact_at(octets, at) {
            Err(error) if error.is_medium() => octets.fill(0),
            read => read?,
        }
        for (octets, at) in octets.chunks(step).zip((at..).step_by(step)) {
            let record = RecordHeader::decode(octets, key).ok();
            let record = record.filter(|record| record.position.offset() == at);
            if record.is_some() {
                return Ok(record);
            }
        }
        at += octets.len() as u64;
    }
    Ok(None)
}

/// Where the records end that lie behind the end of a buffer on a device, about the size that it had; `None`: there are none, and what is longer
/// is nobody's.  They lie one behind the other, so it is bisected.
fn end_behind(
    file: &dyn File,
    (from, len): (u64, u64),
    key: FileKey,
    geometry: &Geometry,
) -> Result<Option<u64>> {
    let end = len - len % PAGE;
    let end_of_first = |at: u64| {
        let until = end.min(at.saturating_add(STRETCH));
        let found = first_record(file, (at, until), key, geometry.block)?;
        let end_of = |record: RecordHeader| {
            let octets = geometry.record_octets(u64::from(record.article_len));
            (record.position.offset() + octets).next_multiple_of(PAGE)
        };
        Ok::<_, crate::error::Error>(found.map(end_of).filter(|behind| *behind <= end))
    };
    let Some(mut low) = end_of_first(from)? else {
        return Ok(None);
    };
    let mut high = end;
    while low < high {
        let middle = low + (high - low) / 2;
        let middle = middle - middle % PAGE;
        match end_of_first(middle)? {
            Some(behind) => low = behind,
            None => high = middle,
        }
    }
    Ok(Some(low))
}
