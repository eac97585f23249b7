//! The header of a buffer made again when both copies of it are damaged.
//!
//! Name and sizes are in the configuration, the id in the register, and where the buffer stands is in the log; where articles
//! begin in one that was made larger its first record tells.  Only the key of its records is in the header alone, and each
//! record gives it away: it is what makes its checksum right.  A file in which no sound records agree on one is not touched.

use std::collections::BTreeMap;

use newsreel_host::{File, random_bytes};
use newsreel_wire::BufferId;

use super::create::new_header;
use super::file::Owner;
use crate::error::Result;
use crate::records::format::{FileHeader, FileKey, Mark, RECORD_HEADER, RecordHeader};
use crate::records::geometry::{BITMAP_START, Geometry, PAGE, PAGE_LEN, in_memory};
use crate::records::packing;

/// Octets read at once.
const WINDOW: u64 = 1 << 20;
/// At most so many octets of the data area are looked at.
const LOOK_OCTETS_MAX: u64 = 64 << 20;
/// So many records that agree are enough.
const RECORDS_ENOUGH: u32 = 64;

/// A header for this file, and how many of its records bear it out; `None` when none does.
pub(super) fn header(
    file: &dyn File,
    owner: &Owner<'_>,
    id: BufferId,
) -> Result<Option<(FileHeader, u32)>> {
    let mut header = new_header(owner, id)?;
    let (len, octets) = (file.len()?, owner.config.octets);
    if len < octets {
        return Err(owner.wrong(format!(
            "it has {len} octets, the configuration says {octets}, and neither copy of its header can be used; it was \
             cut, or is no buffer: restore it, or take it out of the configuration"
        )));
    }
    let Some(geometry) = header.geometry() else {
        return Ok(None);
    };
    let Some((key, records)) = key_of(file, &geometry)? else {
        return Ok(None);
    };
    header.data_start = data_start(file, &geometry, key)?;
    let random: [u8; 12] = random_bytes()?;
    Ok(key.uuid(&random).map(|uuid| {
        header.uuid = uuid;
        (header, records)
    }))
}

/// Where articles begin: in a buffer that was made larger before where its size says.  The first record of each cycle lies there.
fn data_start(file: &dyn File, geometry: &Geometry, key: FileKey) -> Result<u64> {
    let mut window = vec![0; in_memory(WINDOW)];
    let mut at = BITMAP_START + PAGE;
    while at < geometry.data_start {
        let octets = &mut window[..in_memory(WINDOW.min(geometry.data_start - at))];
        match file.read_exact_at(octets, at) {
            Err(error) if error.is_medium() => octets.fill(0),
            read => read?,
        }
        for (page, at) in octets.chunks(PAGE_LEN).zip((at..).step_by(PAGE_LEN)) {
            let record = RecordHeader::decode(page, key);
            if record.is_ok_and(|record| record.position.offset() == at) {
                return Ok(at);
            }
        }
        at += octets.len() as u64;
    }
    Ok(geometry.data_start)
}

/// The key that most of the first records agree on.
fn key_of(file: &dyn File, geometry: &Geometry) -> Result<Option<(FileKey, u32)>> {
    let mut keys: BTreeMap<FileKey, u32> = BTreeMap::new();
    let end = geometry.data_end.min(geometry.data_start + LOOK_OCTETS_MAX);
    let mut window = vec![0; in_memory(WINDOW)];
    let mut at = geometry.data_start;
    while at < end && keys.values().all(|records| *records < RECORDS_ENOUGH) {
        let len = WINDOW.min(end - at);
        let read = file.read_exact_at(&mut window[..in_memory(len)], at);
        let len = match read {
            Err(error) if error.is_medium() => {
                at += PAGE;
                continue;
            }
            read => read.map(|()| len)?,
        };
        let block = in_memory(geometry.block);
        let window = &window[..in_memory(len)];
        for offset in (0..window.len()).step_by(block) {
            let octets = &window[offset..];
            if let Some(key) = key_of_record(octets, at + offset as u64, geometry) {
                *keys.entry(key).or_default() += 1;
            }
        }
        at += len;
    }
    let all: u32 = keys.values().sum();
    let most = keys.into_iter().max_by_key(|(_, records)| *records);
    Ok(most.filter(|(_, records)| *records > all / 2))
}

/// The key of the record that begins here, if one does that is sound: also the header block of its article.
fn key_of_record(octets: &[u8], offset: u64, geometry: &Geometry) -> Option<FileKey> {
    let header = octets.first_chunk::<RECORD_HEADER>()?;
    if !RecordHeader::may_begin(header) {
        return None;
    }
    let key = FileKey::that_signs(header)?;
    let record = RecordHeader::decode(header, key).ok()?;
    let len = geometry.record_octets(u64::from(record.article_len));
    let is_placed = record.position.offset() == offset && geometry.holds(record.position, len);
    if record.mark != Mark::Article || !is_placed {
        return None;
    }
    let text = octets.get(RECORD_HEADER..)?;
    let is_sound = match record.is_packed {
        // Its dictionary cannot be asked: where articles lie is not known yet.
        true => packing::is_packed(text),
        false => crc32c::crc32c(text.get(..record.head_len as usize)?) == record.crc_head,
    };
    is_sound.then_some(key)
}
