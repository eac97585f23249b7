//! Whose records these are, in a file without a sound header: each record gives the key away under which its checksum is right.

use std::collections::BTreeMap;

use newsreel_host::File;

use super::format::{FileKey, Mark, RECORD_HEADER, RecordHeader};
use super::geometry::{BITMAP_START, BLOCK_MAX, BLOCK_MIN, Geometry, PAGE, in_memory};
use super::packing;
use crate::error::Result;

/// Octets read at once.
const WINDOW: u64 = 1 << 20;
/// At most so many octets of the data area are looked at.
const LOOK_OCTETS_MAX: u64 = 64 << 20;
/// Where the first octets tell nothing, the others are looked at in so many stretches.
const STRETCHES: u64 = 64;
/// Each of so many octets.
const STRETCH_OCTETS: u64 = 4 << 20;
/// So many records that agree are enough.
const RECORDS_ENOUGH: u32 = 64;

/// Whose the records of a file are.
#[derive(Debug)]
pub(crate) enum Signed {
    /// So many of the first ones agree on this key.
    By(FileKey, u32),
    /// Nothing was ever written behind the headers.
    Blank,
    /// No records agree on one.
    Unknown,
}

/// What the first records of a file agree on.
pub(crate) fn signed(file: &dyn File, geometry: &Geometry) -> Result<Signed> {
    signed_in(file, geometry, LOOK_OCTETS_MAX)
}

/// What most records of a file agree on of which nothing is known, not even where they begin: another buffer's may lie over a part of it.
pub(crate) fn signed_anywhere(file: &dyn File, octets: u64) -> Result<Option<(FileKey, u32)>> {
    let sizes = (BLOCK_MIN.trailing_zeros()..=BLOCK_MAX.trailing_zeros()).map(|bits| 1 << bits);
    let mut starts: Vec<u64> = sizes
        .filter_map(|block| Geometry::of(octets, block))
        .map(|geometry| geometry.data_start)
        .collect();
    let Some(geometry) = Geometry::of(octets, BLOCK_MIN) else {
        return Ok(None);
    };
    starts.push(BITMAP_START + PAGE);
    starts.sort_unstable();
    starts.dedup();
    let firsts = starts.into_iter().map(|start| (start, LOOK_OCTETS_MAX));
    let apart = (octets / STRETCHES).next_multiple_of(PAGE);
    let stretches = (1..STRETCHES).map(|at| (at * apart, STRETCH_OCTETS));
    // In how many places, and how many records there; the first ones are one place.
    let mut votes: BTreeMap<FileKey, (u32, u32)> = BTreeMap::new();
    for (start, look) in firsts.chain(stretches) {
        let Some(from_here) = geometry.with_start(start) else {
            continue;
        };
        if look == LOOK_OCTETS_MAX && !votes.is_empty() {
            continue;
        }
        if let Signed::By(key, records) = signed_in(file, &from_here, look)? {
            let (places, all) = votes.entry(key).or_default();
            (*places, *all) = (*places + 1, *all + records);
        }
    }
    let most = votes.into_iter().max_by_key(|(_, votes)| *votes);
    Ok(most.map(|(key, (_, records))| (key, records)))
}

/// What the first records agree on, of those in so many octets.
fn signed_in(file: &dyn File, geometry: &Geometry, look: u64) -> Result<Signed> {
    let mut keys: BTreeMap<FileKey, u32> = BTreeMap::new();
    let mut is_blank = true;
    let end = geometry.data_end.min(geometry.data_start + look);
    let mut window = vec![0; in_memory(WINDOW)];
    let mut at = geometry.data_start;
    while at < end && keys.values().all(|records| *records < RECORDS_ENOUGH) {
        let len = WINDOW.min(end - at);
        let got = match file.read_at(&mut window[..in_memory(len)], at) {
            Err(error) if error.is_medium() => {
                at += PAGE;
                is_blank = false;
                continue;
            }
            // Somebody may have cut it.
            got => got?,
        };
        let block = in_memory(geometry.block);
        let window = &window[..got];
        for offset in (0..window.len()).step_by(block) {
            let octets = &window[offset..];
            is_blank &= octets.iter().take(block).all(|octet| *octet == 0);
            if let Some(key) = key_of_record(octets, at + offset as u64, geometry) {
                *keys.entry(key).or_default() += 1;
            }
        }
        if (got as u64) < len {
            break;
        }
        at += len;
    }
    let all: u32 = keys.values().sum();
    let most = keys.into_iter().max_by_key(|(_, records)| *records);
    Ok(match most {
        Some((key, records)) if records > all / 2 => Signed::By(key, records),
        None if is_blank && end == geometry.data_end => Signed::Blank,
        _ => Signed::Unknown,
    })
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
