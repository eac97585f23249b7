//! What was withdrawn of a segment, noted behind its end: so who has nothing but the file knows it, too.
//!
//! One list behind the other, each with a checksum that belongs to the file; a checkpoint adds one.  What is torn or damaged is told of, and
//! believed as far as it leads to articles; the next list says that again, behind the last sound one.  Invariant: nothing that is read says
//! more than that an article is not wanted.
//! The layout is drawn in `docs/formats/segment.md`.

use std::collections::BTreeSet;

use newsreel_host::File;
use newsreel_wire::POSITION_UNIT;

use super::format::{FileKey, Mark, RECORD_HEADER, RecordHeader};
use super::geometry::{PAGE, in_memory};

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
    /// Where the first of the lists begins that are torn or damaged.
    pub(crate) damaged_at: Option<u64>,
    /// Those of the offsets that only such a list has.
    salvaged: BTreeSet<u64>,
    /// Behind the last sound list.
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

/// The list that begins here, if it is sound, and where it ends.
fn list_at(
    file: &dyn File,
    at: u64,
    key: FileKey,
) -> newsreel_host::Result<Option<(Vec<u64>, u64)>> {
    let left = file.len()?.saturating_sub(at);
    if left < HEAD as u64 {
        return Ok(None);
    }
    let mut list = vec![0; HEAD];
    file.read_exact_at(&mut list, at)?;
    let count = u64::from(number(&list[MAGIC.len()..]));
    let octets = HEAD as u64 + count * ENTRY as u64;
    // No article has two, and none is shorter than a unit.
    let is_possible = count <= at / POSITION_UNIT && octets <= left;
    if !list.starts_with(MAGIC) || !is_possible {
        return Ok(None);
    }
    list.resize(in_memory(octets), 0);
    file.read_exact_at(&mut list, at)?;
    if number(&list[HEAD - ENTRY..]) != checksum(&list, key) {
        return Ok(None);
    }
    Ok(Some((offsets_in(&list[HEAD..]).collect(), at + octets)))
}

fn offsets_in(entries: &[u8]) -> impl Iterator<Item = u64> {
    let units = entries.chunks_exact(ENTRY).map(number);
    units.map(|unit| u64::from(unit) * POSITION_UNIT)
}

/// Where the next sound list begins that says anything.
fn next_list(file: &dyn File, from: u64, key: FileKey) -> newsreel_host::Result<Option<u64>> {
    let (mut at, until) = (from, from.saturating_add(LISTS_OCTETS_MAX));
    let mut window = vec![0; WINDOW];
    while at < until {
        let got = file.read_at(&mut window, at)?;
        let places = window[..got].windows(MAGIC.len()).enumerate();
        for (place, _) in places.filter(|(_, octets)| octets == MAGIC) {
            let begin = at + place as u64;
            let list = list_at(file, begin, key)?;
            if list.is_some_and(|(offsets, _)| !offsets.is_empty()) {
                return Ok(Some(begin));
            }
        }
        if got < WINDOW {
            break;
        }
        // One may lie across.
        at += (WINDOW - MAGIC.len()) as u64;
    }
    Ok(None)
}

/// Whether an article begins at this offset of a file.
fn is_article(file: &dyn File, offset: u64, key: FileKey) -> bool {
    let mut octets = [0; RECORD_HEADER];
    let read = file.read_exact_at(&mut octets, offset);
    let header = read
        .ok()
        .and_then(|()| RecordHeader::decode(&octets, key).ok());
    header.is_some_and(|it| it.position.offset() == offset && it.mark == Mark::Article)
}

impl Gone {
    /// Those behind a segment of so many octets.
    pub(crate) fn read(file: &dyn File, octets: u64, key: FileKey) -> newsreel_host::Result<Self> {
        let mut gone = Self {
            end: octets,
            ..Self::default()
        };
        let len = file.len()?;
        let mut at = octets;
        loop {
            if let Some((offsets, end)) = list_at(file, at, key)? {
                gone.offsets.extend(offsets);
                (at, gone.end) = (end, end);
                continue;
            }
            let next = match at < len {
                true => next_list(file, at + 1, key)?,
                false => None,
            };
            gone.salvage(file, (at, next.unwrap_or(len)), octets, key)?;
            match next {
                Some(next) => at = next,
                None => break,
            }
        }
        gone.salvaged.retain(|offset| gone.offsets.insert(*offset));
        Ok(gone)
    }

    /// The lists of a file that cannot be read.
    pub(crate) fn unread(octets: u64) -> Self {
        Self {
            damaged_at: Some(octets),
            ..Self::default()
        }
    }

    /// Takes what leads to articles out of a list that is damaged; nothing is in zeros.
    fn salvage(
        &mut self,
        file: &dyn File,
        (from, to): (u64, u64),
        octets: u64,
        key: FileKey,
    ) -> newsreel_host::Result<()> {
        let mut list = vec![0; in_memory(to.saturating_sub(from).min(LISTS_OCTETS_MAX))];
        file.read_exact_at(&mut list, from)?;
        if list.iter().all(|octet| *octet == 0) {
            return Ok(());
        }
        self.damaged_at.get_or_insert(from);
        let entries = list.get(HEAD..).unwrap_or_default();
        let led = offsets_in(entries).filter(|offset| *offset < octets);
        self.salvaged
            .extend(led.filter(|offset| is_article(file, *offset, key)));
        Ok(())
    }

    /// Where the lists of a segment begin whose header is lost, and with it how many octets it has; `None`: it has none.
    pub(crate) fn begin(file: &dyn File, key: FileKey) -> newsreel_host::Result<Option<u64>> {
        let len = file.len()?;
        let from = len - (len / 2).min(LISTS_OCTETS_MAX);
        let first = next_list(file, from, key)?;
        // A segment has whole pages: the lists before the first sound one are damaged.
        Ok(first.map(|first| first - first % PAGE))
    }

    /// Notes more of them, durably.
    pub(crate) fn add(
        &self,
        file: &dyn File,
        offsets: &[u64],
        key: FileKey,
    ) -> newsreel_host::Result<()> {
        let is_new = |offset: &&u64| !self.offsets.contains(offset);
        let mut new: BTreeSet<u64> = offsets.iter().filter(is_new).copied().collect();
        if new.is_empty() {
            return Ok(());
        }
        new.extend(&self.salvaged);
        let new: Vec<u64> = new.into_iter().collect();
        let list = encode(&new, key);
        file.write_at(&list, self.end)?;
        // What was torn may have been longer.
        let end = self.end + list.len() as u64;
        if file.len()? > end {
            file.set_len(end)?;
        }
        file.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use newsreel_host::{Disk, MemoryDisk, OpenMode};
    use newsreel_wire::{IdHash, Position, Sequence, UnixTime};

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

    /// Where articles begin that it has.
    fn write_articles(file: &dyn File, offsets: &[u64]) {
        for offset in offsets {
            let header = RecordHeader {
                mark: Mark::Article,
                is_packed: false,
                article_len: 100,
                head_len: 10,
                crc_head: 0,
                crc_body: 0,
                position: Position::new(1, *offset),
                sequence: Sequence(1),
                arrival: UnixTime(1),
                id_hash: IdHash([1; 16]),
            };
            file.write_at(&header.encode(key()), *offset).unwrap();
        }
    }

    #[test]
    fn what_only_a_damaged_list_says_is_said_again() {
        let file = file();
        write_articles(file.as_ref(), &[4096, 8192, 12_288]);
        add(file.as_ref(), &[4096, 8192]);
        add(file.as_ref(), &[12_288]);
        let gone = || Gone::read(file.as_ref(), OCTETS, key()).unwrap();
        assert_eq!(gone().damaged_at, None);
        // Its second entry leads nowhere.
        file.write_at(&[0xff], OCTETS + HEAD as u64 + 7).unwrap();
        assert_eq!(gone().damaged_at, Some(OCTETS));
        assert_eq!(gone().salvaged.iter().collect::<Vec<_>>(), [&4096]);
        assert_eq!(read(file.as_ref()), [4096, 12_288]);
        add(file.as_ref(), &[16_384]);
        assert!(gone().salvaged.is_empty());
        assert_eq!(read(file.as_ref()), [4096, 12_288, 16_384]);
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
