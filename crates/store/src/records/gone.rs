//! What was withdrawn of a segment, noted behind its end: so who has nothing but the file knows it, too.
//!
//! One list behind the other, each with a checksum that belongs to the file; a checkpoint adds one. Invariant: what is torn or damaged ends
//! the lists, and the next one is written in its place; nothing that is read says more than that an article is not wanted.
//! The layout is drawn in `docs/formats/segment.md`.

use std::collections::BTreeSet;

use newsreel_host::File;
use newsreel_wire::POSITION_UNIT;

use super::format::FileKey;
use super::geometry::in_memory;

const MAGIC: &[u8; 8] = b"NRGONE01";
/// Octets in front of a list: the magic, how many follow, and the checksum of both and of these.
const HEAD: usize = 16;
const ENTRY: usize = 4;
/// Octets read at once, and so many at the end of a file in which its lists are looked for.
const WINDOW: usize = 1 << 20;
const LISTS_OCTETS_MAX: u64 = 256 << 20;

/// The lists of a file.
#[derive(Debug, Default)]
pub(crate) struct Gone {
    /// Where articles begin that were withdrawn.
    pub(crate) offsets: BTreeSet<u64>,
    /// Behind the last list.
    end: u64,
}

/// A list of these offsets; those that lie in no segment of any size are left out.
fn encode(offsets: &[u64], key: FileKey) -> Vec<u8> {
    let units = offsets
        .iter()
        .map(|offset| u32::try_from(offset / POSITION_UNIT));
    let units: Vec<u32> = units.filter_map(Result::ok).collect();
    let count = u32::try_from(units.len()).unwrap_or(u32::MAX);
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(&count.to_le_bytes());
    out.extend_from_slice(&[0; ENTRY]);
    for unit in units {
        out.extend_from_slice(&unit.to_le_bytes());
    }
    let crc = checksum(&out, key);
    out[HEAD - ENTRY..HEAD].copy_from_slice(&crc.to_le_bytes());
    out
}

/// Of a list without the octets of its checksum.
fn checksum(list: &[u8], key: FileKey) -> u32 {
    let (head, units) = list.split_at(HEAD);
    crc32c::crc32c_append(key.crc(&head[..HEAD - ENTRY]), units)
}

fn number(octets: &[u8]) -> u32 {
    octets
        .first_chunk()
        .map_or(0, |octets| u32::from_le_bytes(*octets))
}

impl Gone {
    /// Those behind a segment of so many octets.
    pub(crate) fn read(file: &dyn File, octets: u64, key: FileKey) -> newsreel_host::Result<Self> {
        let mut gone = Self {
            offsets: BTreeSet::new(),
            end: octets,
        };
        let len = file.len()?;
        // No article has two, and none is shorter than a unit.
        let count_max = octets / POSITION_UNIT;
        loop {
            let left = len.saturating_sub(gone.end);
            let mut list = vec![0; HEAD];
            if left < HEAD as u64 {
                return Ok(gone);
            }
            file.read_exact_at(&mut list, gone.end)?;
            let count = u64::from(number(&list[MAGIC.len()..]));
            let octets = HEAD as u64 + count * ENTRY as u64;
            if !list.starts_with(MAGIC) || count > count_max || octets > left {
                return Ok(gone);
            }
            list.resize(in_memory(octets), 0);
            file.read_exact_at(&mut list, gone.end)?;
            if number(&list[HEAD - ENTRY..]) != checksum(&list, key) {
                return Ok(gone);
            }
            let units = list[HEAD..].chunks_exact(ENTRY).map(number);
            let offsets = units.map(|unit| u64::from(unit) * POSITION_UNIT);
            gone.offsets.extend(offsets);
            gone.end += octets;
        }
    }

    /// Where the lists of a segment begin whose header is lost, and with it how many octets it has; `None`: it has none.
    pub(crate) fn begin(file: &dyn File, key: FileKey) -> newsreel_host::Result<Option<u64>> {
        let len = file.len()?;
        let mut at = len - (len / 2).min(LISTS_OCTETS_MAX);
        let mut window = vec![0; WINDOW];
        loop {
            let got = file.read_at(&mut window, at)?;
            let places = window[..got].windows(MAGIC.len()).enumerate();
            for (place, _) in places.filter(|(_, octets)| octets == MAGIC) {
                let begin = at + place as u64;
                if !Self::read(file, begin, key)?.offsets.is_empty() {
                    return Ok(Some(begin));
                }
            }
            if got < WINDOW {
                return Ok(None);
            }
            // One may lie across.
            at += (WINDOW - MAGIC.len()) as u64;
        }
    }

    /// Notes more of them, durably.
    pub(crate) fn add(
        &self,
        file: &dyn File,
        offsets: &[u64],
        key: FileKey,
    ) -> newsreel_host::Result<()> {
        let is_new = |offset: &&u64| !self.offsets.contains(offset);
        let new: BTreeSet<u64> = offsets.iter().filter(is_new).copied().collect();
        if new.is_empty() {
            return Ok(());
        }
        let new: Vec<u64> = new.into_iter().collect();
        file.write_at(&encode(&new, key), self.end)?;
        file.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use newsreel_host::{Disk, MemoryDisk, OpenMode};

    use super::*;

    const OCTETS: u64 = 1 << 20;

    fn file() -> Arc<dyn File> {
        let disk = MemoryDisk::new();
        let file = disk.open(Path::new("/00000001.seg"), OpenMode::CreateNew);
        let file = file.unwrap();
        file.set_len(OCTETS).unwrap();
        file
    }

    fn key() -> FileKey {
        FileKey::of(&[4; 16])
    }

    fn read(file: &dyn File) -> Vec<u64> {
        let gone = Gone::read(file, OCTETS, key()).unwrap();
        gone.offsets.into_iter().collect()
    }

    fn add(file: &dyn File, offsets: &[u64]) {
        let gone = Gone::read(file, OCTETS, key()).unwrap();
        gone.add(file, offsets, key()).unwrap();
    }

    #[test]
    fn lists_follow_each_other() {
        let file = file();
        assert_eq!(read(file.as_ref()), []);
        add(file.as_ref(), &[8192, 4096]);
        add(file.as_ref(), &[4096]);
        add(file.as_ref(), &[64_000, 4096]);
        assert_eq!(read(file.as_ref()), [4096, 8192, 64_000]);
        // None is noted twice.
        let lists = 2 * HEAD as u64 + 3 * ENTRY as u64;
        assert_eq!(file.len().unwrap(), OCTETS + lists);
        // Another file's are nobody's.
        let others = Gone::read(file.as_ref(), OCTETS, FileKey::of(&[5; 16]));
        assert!(others.unwrap().offsets.is_empty());
    }

    #[test]
    fn they_are_found_without_the_size() {
        let file = file();
        let begin = |key| Gone::begin(file.as_ref(), key).unwrap();
        assert_eq!(begin(key()), None);
        // An article that says so is none of them.
        file.write_at(MAGIC, OCTETS - 4096).unwrap();
        assert_eq!(begin(key()), None);
        add(file.as_ref(), &[4096]);
        add(file.as_ref(), &[8192]);
        assert_eq!(begin(key()), Some(OCTETS));
        assert_eq!(begin(FileKey::of(&[5; 16])), None);
    }

    #[test]
    fn the_octets_of_a_list() {
        let octets = encode(&[4096, 1 << 20], key());
        let crc = u32::from_le_bytes([octets[12], octets[13], octets[14], octets[15]]);
        let expected = b"NRGONE01\x02\0\0\0";
        assert_eq!(&octets[..12], expected);
        assert_eq!(&octets[16..], [64, 0, 0, 0, 0, 64, 0, 0]);
        let covered = [&octets[..12], &octets[16..]].concat();
        assert_eq!(crc, key().crc(&covered));
    }

    #[test]
    fn what_is_torn_ends_them_and_is_written_over() {
        let whole = file();
        add(whole.as_ref(), &[4096]);
        let begin = whole.len().unwrap();
        add(whole.as_ref(), &[8192, 12_288]);
        let mut octets = vec![0; in_memory(whole.len().unwrap())];
        whole.read_exact_at(&mut octets, 0).unwrap();
        for cut in begin..octets.len() as u64 {
            for is_damaged in [false, true] {
                let torn = file();
                torn.write_at(&octets, 0).unwrap();
                match is_damaged {
                    true => {
                        let octet = octets[in_memory(cut)] ^ 0x10;
                        torn.write_at(&[octet], cut).unwrap();
                    }
                    false => torn.set_len(cut).unwrap(),
                }
                assert_eq!(read(torn.as_ref()), [4096], "{cut}");
                add(torn.as_ref(), &[16_384]);
                assert_eq!(read(torn.as_ref()), [4096, 16_384], "{cut}");
            }
        }
    }
}
