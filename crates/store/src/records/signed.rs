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
    // In how many places, and how many records there; the first ones are one place.
    let mut votes: BTreeMap<FileKey, (u32, u32)> = BTreeMap::new();
    for geometry in starts(octets) {
        if votes.is_empty()
            && let Signed::By(key, records) = signed_in(file, &geometry, LOOK_OCTETS_MAX)?
        {
            votes.insert(key, (1, records));
        }
    }
    for geometry in stretches(octets) {
        if let Signed::By(key, records) = signed_in(file, &geometry, STRETCH_OCTETS)? {
            let (places, all) = votes.entry(key).or_default();
            (*places, *all) = (*places + 1, *all + records);
        }
    }
    let most = votes.into_iter().max_by_key(|(_, votes)| *votes);
    Ok(most.map(|(key, (_, records))| (key, records)))
}

/// How many records of this key a file with articles from there on has, of those that are looked at until there are enough.
pub(crate) fn signed_by(
    file: &dyn File,
    (octets, geometry): (u64, &Geometry),
    key: FileKey,
) -> Result<u32> {
    let are_enough = |keys: &BTreeMap<FileKey, u32>| {
        keys.get(&key)
            .is_some_and(|records| *records >= RECORDS_ENOUGH)
    };
    let first = (*geometry, LOOK_OCTETS_MAX);
    let others = stretches(octets).map(|geometry| (geometry, STRETCH_OCTETS));
    // Where they begin in a buffer that was made larger or smaller.
    let starts = starts(octets).map(|geometry| (geometry, STRETCH_OCTETS));
    let mut records = 0;
    for (geometry, look) in [first].into_iter().chain(others).chain(starts) {
        let keys = keys_in(file, &geometry, look, are_enough)?;
        records = keys.of.get(&key).copied().unwrap_or(0).max(records);
        if records >= RECORDS_ENOUGH {
            break;
        }
    }
    Ok(records)
}

/// Where articles may begin in a file of this size.
fn starts(octets: u64) -> impl Iterator<Item = Geometry> {
    let sizes = (BLOCK_MIN.trailing_zeros()..=BLOCK_MAX.trailing_zeros()).map(|bits| 1 << bits);
    let mut starts: Vec<u64> = sizes
        .filter_map(|block| Geometry::of(octets, block))
        .map(|geometry| geometry.data_start)
        .collect();
    starts.push(BITMAP_START + PAGE);
    starts.sort_unstable();
    starts.dedup();
    from_each(octets, starts)
}

/// Places all over a file of this size.
fn stretches(octets: u64) -> impl Iterator<Item = Geometry> {
    let apart = (octets / STRETCHES).next_multiple_of(PAGE);
    from_each(octets, (1..STRETCHES).map(move |at| at * apart))
}

/// A file of this size in which articles begin at each of these.
fn from_each(octets: u64, starts: impl IntoIterator<Item = u64>) -> impl Iterator<Item = Geometry> {
    // Where articles begin is not known, so any block may be the first of one.
    let geometry = Geometry::of(octets, BLOCK_MIN);
    let starts = starts.into_iter();
    starts.filter_map(move |start| geometry?.with_start(start))
}

/// What the first records agree on, of those in so many octets.
fn signed_in(file: &dyn File, geometry: &Geometry, look: u64) -> Result<Signed> {
    let keys = keys_in(file, geometry, look, |keys| {
        keys.values().any(|records| *records >= RECORDS_ENOUGH)
    })?;
    let all: u32 = keys.of.values().sum();
    let most = keys.of.into_iter().max_by_key(|(_, records)| *records);
    Ok(match most {
        Some((key, records)) if records > all / 2 => Signed::By(key, records),
        None if keys.are_blank => Signed::Blank,
        _ => Signed::Unknown,
    })
}

/// What was found of keys.
struct Keys {
    /// How many records have each.
    of: BTreeMap<FileKey, u32>,
    /// All of the data area was looked at, and nothing is in it.
    are_blank: bool,
}

/// The keys of the records in so many octets, until there are enough.
fn keys_in(
    file: &dyn File,
    geometry: &Geometry,
    look: u64,
    are_enough: impl Fn(&BTreeMap<FileKey, u32>) -> bool,
) -> Result<Keys> {
    let mut keys: BTreeMap<FileKey, u32> = BTreeMap::new();
    let mut is_blank = true;
    let end = geometry.data_end.min(geometry.data_start + look);
    let mut window = vec![0; in_memory(WINDOW)];
    let mut at = geometry.data_start;
    while at < end && !are_enough(&keys) {
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
    Ok(Keys {
        of: keys,
        are_blank: is_blank && end == geometry.data_end,
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
