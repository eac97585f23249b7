//! The dictionary in a file of records: two copies, each with its length and checksum.  Decoding trusts nothing.

use newsreel_host::File;
use zstd::zstd_safe::{DDict, get_dict_id_from_dict};

use crate::records::geometry::{BITMAP_START, Geometry, PAGE, PAGE_LEN, in_memory};

const COPY_MAGIC: &[u8; 8] = b"NRZSTDIC";
const VERSION: u32 = 1;
/// Octets in front of the dictionary.
const HEADER: usize = 24;
/// A larger dictionary makes articles hardly smaller, and costs memory for each file that is read.
const OCTETS_MAX: u64 = 64 << 10;
/// A smaller one is not worth its making.
const OCTETS_MIN: u64 = 4 << 10;

/// A dictionary, ready to unpack with.
pub(super) struct Dictionary {
    octets: Vec<u8>,
    decoder: DDict<'static>,
}

impl std::fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Dictionary({} octets)", self.octets.len())
    }
}

impl Dictionary {
    /// From its octets, if they are one.
    pub(super) fn of(octets: Vec<u8>) -> Option<Self> {
        get_dict_id_from_dict(&octets)?;
        let decoder = DDict::try_create(&octets)?;
        Some(Self { octets, decoder })
    }

    pub(super) fn octets(&self) -> &[u8] {
        &self.octets
    }

    pub(super) const fn decoder(&self) -> &DDict<'static> {
        &self.decoder
    }
}

/// Where the two copies may lie, and how long each may be, its header included; none where that is too little.
fn room(geometry: &Geometry) -> Option<([u64; 2], u64)> {
    let room = geometry.data_start.checked_sub(BITMAP_START)?;
    let each = room / 2 - room / 2 % PAGE;
    let is_enough = each >= OCTETS_MIN + HEADER as u64;
    is_enough.then_some(([BITMAP_START, BITMAP_START + each], each))
}

/// Octets of a dictionary in a file of this layout, at most; none where there is no room for one.
pub(super) fn octets_max(geometry: &Geometry) -> Option<usize> {
    let (_, each) = room(geometry)?;
    Some(in_memory((each - HEADER as u64).min(OCTETS_MAX)))
}

/// The stored form of one copy, in whole pages.
fn encode(dictionary: &[u8]) -> Vec<u8> {
    let len = u32::try_from(dictionary.len()).unwrap_or(u32::MAX);
    let mut out = Vec::with_capacity(HEADER + dictionary.len() + PAGE_LEN);
    out.extend_from_slice(COPY_MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(&crc32c::crc32c(dictionary).to_le_bytes());
    let crc = crc32c::crc32c(&out);
    out.extend_from_slice(&crc.to_le_bytes());
    out.extend_from_slice(dictionary);
    out.resize(out.len().next_multiple_of(PAGE_LEN), 0);
    out
}

/// The dictionary in a copy, if that is as it was written.
fn decode(copy: &[u8]) -> Option<&[u8]> {
    let (header, rest) = copy.split_first_chunk::<HEADER>()?;
    let octets = rest.get(..usize::try_from(number(header, 12)).ok()?)?;
    let is_whole = is_front(header) && crc32c::crc32c(octets) == number(header, 16);
    is_whole.then_some(octets)
}

/// Whether what lies in front of a dictionary is as it was written.
fn is_front(header: &[u8; HEADER]) -> bool {
    header.starts_with(COPY_MAGIC)
        && crc32c::crc32c(&header[..HEADER - 4]) == number(header, HEADER - 4)
        && number(header, 8) == VERSION
}

fn number(header: &[u8; HEADER], at: usize) -> u32 {
    let four = header.get(at..).and_then(|rest| rest.first_chunk::<4>());
    four.map_or(0, |four| u32::from_le_bytes(*four))
}

/// For fuzzing: whether any octets are a copy with a dictionary in it.
pub(crate) fn decode_any(octets: &[u8]) -> bool {
    decode(octets).is_some_and(|found| Dictionary::of(found.to_vec()).is_some())
}

/// Whether one copy is in a file, or was: its front is as it was written.  No bitmap looks like that.
pub(super) fn is_there(file: &dyn File, geometry: &Geometry) -> bool {
    let Some((at, _)) = room(geometry) else {
        return false;
    };
    at.iter().any(|at| {
        let mut front = [0; HEADER];
        file.read_exact_at(&mut front, *at).is_ok() && is_front(&front)
    })
}

/// One copy, as far as it is there.
fn read_copy(file: &dyn File, at: u64, each: u64) -> newsreel_host::Result<Vec<u8>> {
    let mut copy = vec![0; in_memory(each.min(OCTETS_MAX + PAGE))];
    let got = file.read_at(&mut copy, at)?;
    copy.truncate(got);
    Ok(copy)
}

/// The dictionary of a file, from the first copy of it that is sound.
pub(super) fn read(
    file: &dyn File,
    geometry: &Geometry,
) -> newsreel_host::Result<Option<Dictionary>> {
    let Some((at, each)) = room(geometry) else {
        return Ok(None);
    };
    let mut failed = None;
    for at in at {
        match read_copy(file, at, each) {
            Ok(copy) => {
                let found = decode(&copy).and_then(|octets| Dictionary::of(octets.to_vec()));
                if found.is_some() {
                    return Ok(found);
                }
            }
            Err(error) => failed = Some(error),
        }
    }
    failed.map_or(Ok(None), Err)
}

/// Whether nothing was ever written in its place.
pub(super) fn is_blank(file: &dyn File, geometry: &Geometry) -> newsreel_host::Result<bool> {
    let Some((at, each)) = room(geometry) else {
        return Ok(false);
    };
    for at in at {
        if read_copy(file, at, each)?.iter().any(|octet| *octet != 0) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Writes both copies, each durable before the next.
pub(super) fn write(
    file: &dyn File,
    geometry: &Geometry,
    dictionary: &Dictionary,
) -> newsreel_host::Result<()> {
    let copy = encode(dictionary.octets());
    let (at, _) = room(geometry).unwrap_or_default();
    for at in at {
        file.write_at(&copy, at)?;
        file.sync_data()?;
    }
    Ok(())
}

/// What a look at the copies in a file found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Copies {
    /// Both are sound, or there never were any.
    Sound,
    /// So many were not, and are written again if that may be.
    Mended(usize),
    /// Neither is, and nobody knows what they were.
    Lost,
}

/// Looks at both copies in a file, and writes again what is not sound, if it may: from the other, or from what is still `known`
/// in memory.
pub(super) fn mend(
    file: &dyn File,
    geometry: &Geometry,
    known: Option<&Dictionary>,
    may_write: bool,
) -> newsreel_host::Result<Copies> {
    let Some((at, each)) = room(geometry) else {
        return Ok(Copies::Sound);
    };
    let read = read(file, geometry)?;
    let Some(sound) = read.as_ref().or(known) else {
        return Ok(match is_blank(file, geometry)? {
            true => Copies::Sound,
            false => Copies::Lost,
        });
    };
    let mut bad = 0;
    for at in at {
        let copy = read_copy(file, at, each);
        if copy.is_ok_and(|copy| decode(&copy) == Some(sound.octets())) {
            continue;
        }
        bad += 1;
        if may_write {
            file.write_at(&encode(sound.octets()), at)?;
            file.sync_data()?;
        }
    }
    Ok(match bad {
        0 => Copies::Sound,
        bad => Copies::Mended(bad),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_what_was_written_or_nothing() {
        let octets = vec![7; 5000];
        let good = encode(&octets);
        assert!(good.len().is_multiple_of(PAGE_LEN));
        assert_eq!(decode(&good), Some(&octets[..]));
        for at in (0..HEADER).chain([HEADER, HEADER + 2500, HEADER + 4999]) {
            let mut bad = good.clone();
            bad[at] ^= 4;
            assert_eq!(decode(&bad), None, "octet {at}");
        }
        for len in [0, 8, HEADER, HEADER + 4999] {
            assert_eq!(decode(&good[..len]), None, "cut at {len}");
        }
    }

    #[test]
    fn small_segments_have_no_room_for_one() {
        let of = |octets| octets_max(&Geometry::of(octets, 64).unwrap());
        assert_eq!(of(1 << 20), None);
        assert_eq!(of(8 << 20), Some(8192 - HEADER));
        assert_eq!(of(64 << 20), Some(65_536 - HEADER));
        assert_eq!(of(1 << 30), Some(65_536));
    }
}
