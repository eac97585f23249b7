//! Whose records these are, in a file without a sound header: each record gives the key away under which its checksum is right.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use newsreel_host::File;

use super::format::{FileKey, Mark, RECORD_HEADER, RecordHeader};
use super::geometry::{BLOCK_MAX, BLOCK_MIN, Geometry, PAGE, in_memory};
use super::packing;
use crate::error::Result;

/// Octets read at once.
const WINDOW: u64 = 1 << 20;
/// At most so many octets of the data area are looked at.
const LOOK_OCTETS_MAX: u64 = 64 << 20;
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
    let mut keys: BTreeMap<FileKey, u32> = BTreeMap::new();
    let mut is_blank = true;
    let is_all_seen = each_block(file, geometry, &mut |offset, octets| {
        let block = in_memory(geometry.block);
        is_blank &= !octets.is_empty() && octets.iter().take(block).all(|octet| *octet == 0);
        let Some((key, _)) = record_at(octets, offset, geometry) else {
            return ControlFlow::Continue(());
        };
        let records = keys.entry(key).or_default();
        *records += 1;
        match *records < RECORDS_ENOUGH {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    })?;
    let all: u32 = keys.values().sum();
    let most = keys.into_iter().max_by_key(|(_, records)| *records);
    Ok(match most {
        Some((key, records)) if records > all / 2 => Signed::By(key, records),
        None if is_blank && is_all_seen => Signed::Blank,
        _ => Signed::Unknown,
    })
}

/// The size of the blocks at which the records of a file begin that are signed so, told by how one follows the other; the smallest where
/// nothing tells.  Every size is a multiple of the smaller ones: looked at in blocks of the smallest, no record is passed over.
pub(crate) fn block_told(file: &dyn File, geometry: &Geometry, key: FileKey) -> Result<u64> {
    let sizes = || (BLOCK_MIN.trailing_zeros()..=BLOCK_MAX.trailing_zeros()).map(|bits| 1 << bits);
    let mut agreeing = [0_u32; (BLOCK_MAX / BLOCK_MIN).trailing_zeros() as usize + 1];
    let (mut seen, mut behind) = (0, None);
    each_block(file, geometry, &mut |offset, octets| {
        let Some((_, len)) = record_at(octets, offset, geometry).filter(|(of, _)| *of == key)
        else {
            return ControlFlow::Continue(());
        };
        // On a page another batch may begin, in blocks of whatever size.
        let end = behind.replace(offset + len);
        let end = end.filter(|end| {
            !offset.is_multiple_of(PAGE) && (0..PAGE).contains(&offset.wrapping_sub(*end))
        });
        let Some(end) = end else {
            return ControlFlow::Continue(());
        };
        for (size, agreeing) in sizes().zip(&mut agreeing) {
            *agreeing += u32::from(end.next_multiple_of(size) == offset);
        }
        seen += 1;
        match seen < RECORDS_ENOUGH {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    })?;
    let most = agreeing.iter().max();
    let told = sizes().zip(&agreeing).find(|(_, of)| Some(*of) == most);
    Ok(told.map_or(BLOCK_MIN, |(size, _)| size))
}

/// Shows what begins at each block of the data area, as far as one is looked at, until that says that it is enough: up to a mebibyte of it,
/// nothing where the medium fails.  Whether all of the area was shown.
fn each_block(
    file: &dyn File,
    geometry: &Geometry,
    show: &mut dyn FnMut(u64, &[u8]) -> ControlFlow<()>,
) -> Result<bool> {
    let end = geometry.data_end.min(geometry.data_start + LOOK_OCTETS_MAX);
    let mut window = vec![0; in_memory(WINDOW)];
    let mut at = geometry.data_start;
    while at < end {
        let len = WINDOW.min(end - at);
        let got = match file.read_at(&mut window[..in_memory(len)], at) {
            Err(error) if error.is_medium() => {
                if show(at, &[]).is_break() {
                    return Ok(false);
                }
                at += PAGE;
                continue;
            }
            // Somebody may have cut it.
            got => got?,
        };
        let window = &window[..got];
        let offsets = (at..).step_by(in_memory(geometry.block));
        for (offset, octets) in offsets.zip((0..got).step_by(in_memory(geometry.block))) {
            if show(offset, &window[octets..]).is_break() {
                return Ok(false);
            }
        }
        if (got as u64) < len {
            break;
        }
        at += len;
    }
    Ok(end == geometry.data_end)
}

/// The key of the record that begins here and its octets, without what fills its last block, if one does that is sound: also the header block of
/// its article.
fn record_at(octets: &[u8], offset: u64, geometry: &Geometry) -> Option<(FileKey, u64)> {
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
    is_sound.then_some((key, RECORD_HEADER as u64 + u64::from(record.article_len)))
}
