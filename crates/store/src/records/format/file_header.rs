//! The octets of a file's header: whose it is, its sizes, and where it stood.  Two copies of it lie in front.
//!
//! The layout is drawn in `docs/formats/cyclic-buffer.md`.

use std::cmp::Ordering;

use newsreel_wire::{Position, Sequence, UnixTime};

use super::{VERSION, sixteen_at, u32_at, u64_at};
use crate::records::geometry::{Geometry, PAGE, PAGE_LEN};

/// Where the second copy of the file header lies.
pub(crate) const SECOND_HEADER: u64 = PAGE;
/// The version of the header of a file that was made larger: it says where articles begin.
const VERSION_LARGER: u32 = 2;
/// The same of one that was made smaller: the bitmap is larger than it should be.
const VERSION_SMALLER: u32 = 3;
const FILE_MAGIC: &[u8; 8] = b"NRCYCBUF";
/// Octets of a file header that hold something, but for where articles begin in one that was made larger; the rest of the page
/// is zero, its checksum at the end.
const FILE_HEADER: usize = 128;
/// Where the size lies that a file is to have, and behind it the last cycle with records beyond that.
const FILE_NARROWING: usize = FILE_HEADER + 8;
/// Where the checksum of a file header lies.
const FILE_CRC: usize = PAGE_LEN - 4;

/// Where a buffer stood when its header was written: hints for tools, and a check against a log that is too old.
/// All of it is durable in the log before it is written here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hints {
    /// End of the last committed article.
    pub end: Position,
    /// Up to here it may be written.
    pub reserved: Position,
    /// Up to here the bitmap is right.
    pub bitmap_end: Position,
    /// The last sequence in it.
    pub sequence: Sequence,
    /// When the newest article of its last cycle arrived.
    pub arrival: UnixTime,
}

impl Hints {
    /// Those of a file in which nothing is known to lie behind `start`.
    pub(crate) const fn at(self, start: Position) -> Self {
        Self {
            end: start,
            reserved: start,
            bitmap_end: start,
            ..self
        }
    }

    /// The same in a file that has become smaller.
    pub(crate) fn normal(self, geometry: &Geometry) -> Self {
        Self {
            end: geometry.normal(self.end),
            reserved: geometry.normal(self.reserved),
            bitmap_end: geometry.normal(self.bitmap_end),
            ..self
        }
    }

    /// Of each the later one.
    pub(crate) fn merge(self, other: Self) -> Self {
        Self {
            end: self.end.max(other.end),
            reserved: self.reserved.max(other.reserved),
            bitmap_end: self.bitmap_end.max(other.bitmap_end),
            sequence: self.sequence.max(other.sequence),
            arrival: self.arrival.max(other.arrival),
        }
    }
}

/// A file becomes smaller, or became it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Narrowing {
    /// The size it is to have, octets; that of the file: it has it.
    pub octets: u64,
    /// The last cycle with records beyond that.
    pub last_cycle: u32,
}

/// The header at the front of a buffer, twice: what the buffer is, and hints where it stood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileHeader {
    /// The spool it belongs to.
    pub spool: [u8; 16],
    /// Its own identity, random, never given again.
    pub uuid: [u8; 16],
    /// Its id in that spool.
    pub buffer: u16,
    /// Its name.
    pub name: String,
    /// Size of the file, octets.
    pub octets: u64,
    /// Articles begin at multiples of this.
    pub block: u64,
    /// The first of them here: where the bitmap of the size that the file was made with ends.
    pub data_start: u64,
    /// Counts the writings of the header: of two sound copies the higher one is newer.
    pub generation: u64,
    /// Where it stood.
    pub hints: Hints,
    /// Whether it becomes smaller.
    pub narrowing: Option<Narrowing>,
}

impl FileHeader {
    /// Where things lie in this buffer; decoding has checked that it makes sense.
    #[must_use]
    pub fn geometry(&self) -> Option<Geometry> {
        self.geometry_at(self.octets)
    }

    /// Where they would lie in one of another size, with the bitmap of this one.
    pub(crate) fn geometry_at(&self, octets: u64) -> Option<Geometry> {
        Geometry::of(octets, self.block)?.with_start(self.data_start)
    }

    /// The version that says all of it.
    fn version(&self) -> u32 {
        let usual = Geometry::of(self.octets, self.block);
        let usual = usual.map_or(self.data_start, |usual| usual.data_start);
        match self.data_start.cmp(&usual) {
            Ordering::Equal => u32::from(VERSION),
            Ordering::Less => VERSION_LARGER,
            Ordering::Greater => VERSION_SMALLER,
        }
    }

    /// The size that it is to have, if that is less than it has.
    pub(crate) fn becomes(&self) -> Option<u64> {
        let narrowing = self.narrowing?;
        (narrowing.octets < self.octets).then_some(narrowing.octets)
    }

    /// It was made smaller, so that the log may tell of places behind its end.
    pub(crate) fn was_larger(&self) -> bool {
        let octets = self.narrowing.map(|narrowing| narrowing.octets);
        octets == Some(self.octets)
    }

    /// The stored form: one page.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(PAGE_LEN);
        out.extend_from_slice(FILE_MAGIC);
        out.extend_from_slice(&self.version().to_le_bytes());
        out.extend_from_slice(&self.buffer.to_le_bytes());
        out.extend_from_slice(&[0; 2]);
        out.extend_from_slice(&self.spool);
        out.extend_from_slice(&self.uuid);
        let mut name = [0; 16];
        for (to, from) in name.iter_mut().zip(self.name.bytes().take(15)) {
            *to = from;
        }
        out.extend_from_slice(&name);
        for number in [
            self.octets,
            self.block,
            self.generation,
            self.hints.end.0,
            self.hints.reserved.0,
            self.hints.bitmap_end.0,
            self.hints.sequence.0,
            self.hints.arrival.0,
        ] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        assert_eq!(out.len(), FILE_HEADER, "the header's layout is fixed");
        if self.version() != u32::from(VERSION) {
            out.extend_from_slice(&self.data_start.to_le_bytes());
        }
        if let Some(narrowing) = self.narrowing {
            out.resize(FILE_NARROWING, 0);
            out.extend_from_slice(&narrowing.octets.to_le_bytes());
            out.extend_from_slice(&narrowing.last_cycle.to_le_bytes());
        }
        out.resize(FILE_CRC, 0);
        let crc = crc32c::crc32c(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        out
    }

    /// Whether this is a header whose octets are as they were written, of whatever version.
    pub(crate) fn is_whole(octets: &[u8]) -> bool {
        octets.first_chunk::<PAGE_LEN>().is_some_and(|page| {
            page.starts_with(FILE_MAGIC)
                && u32_at(page, FILE_CRC) == crc32c::crc32c(&page[..FILE_CRC])
        })
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// What does not agree.
    pub fn decode(octets: &[u8]) -> Result<Self, &'static str> {
        let Some(page) = octets.first_chunk::<PAGE_LEN>() else {
            return Err("file header is cut off");
        };
        if !page.starts_with(FILE_MAGIC) {
            return Err("no newsreel buffer");
        }
        if u32_at(page, FILE_CRC) != crc32c::crc32c(&page[..FILE_CRC]) {
            return Err("checksum of the file header");
        }
        let (octets, block) = (u64_at(page, 64), u64_at(page, 72));
        let data_start = match u32_at(page, 8) {
            VERSION_LARGER | VERSION_SMALLER => u64_at(page, FILE_HEADER),
            version if version == u32::from(VERSION) => {
                Geometry::of(octets, block).map_or(0, |geometry| geometry.data_start)
            }
            _ => return Err("a buffer of a version this newsreel does not know; use a newer one"),
        };
        let name = page[48..64].split(|octet| *octet == 0).next();
        let name = std::str::from_utf8(name.unwrap_or_default());
        let header = Self {
            spool: sixteen_at(page, 16),
            uuid: sixteen_at(page, 32),
            buffer: u16::from_le_bytes([page[12], page[13]]),
            name: name.map_err(|_| "name in the file header")?.to_owned(),
            octets,
            block,
            data_start,
            generation: u64_at(page, 80),
            hints: Hints {
                end: Position(u64_at(page, 88)),
                reserved: Position(u64_at(page, 96)),
                bitmap_end: Position(u64_at(page, 104)),
                sequence: Sequence(u64_at(page, 112)),
                arrival: UnixTime(u64_at(page, 120)),
            },
            narrowing: match u64_at(page, FILE_NARROWING) {
                0 => None,
                octets => Some(Narrowing {
                    octets,
                    last_cycle: u32_at(page, FILE_NARROWING + 8),
                }),
            },
        };
        let becomes = header.becomes().map(|octets| header.geometry_at(octets));
        if becomes.is_some_and(|there| there.is_none()) {
            return Err("sizes in the file header");
        }
        let Some(geometry) = header.geometry() else {
            return Err("sizes in the file header");
        };
        let hints = [
            header.hints.end,
            header.hints.reserved,
            header.hints.bitmap_end,
        ];
        if hints.iter().any(|hint| !geometry.holds(*hint, 0)) {
            return Err("positions in the file header");
        }
        Ok(header)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn file_header() -> FileHeader {
        let start = Geometry::of(1 << 20, 64).unwrap().data_start;
        FileHeader {
            spool: [3; 16],
            uuid: [4; 16],
            buffer: 7,
            name: "SD1".to_owned(),
            octets: 1 << 20,
            block: 64,
            data_start: start,
            generation: 5,
            hints: Hints {
                end: Position::new(2, start + 64),
                reserved: Position::new(2, start + 128),
                bitmap_end: Position::new(1, start),
                sequence: Sequence(12),
                arrival: UnixTime(13),
            },
            narrowing: None,
        }
    }

    #[test]
    fn a_damaged_file_header_is_noticed() {
        let good = file_header().encode();
        assert_eq!(good.len(), PAGE_LEN);
        assert_eq!(FileHeader::decode(&good), Ok(file_header()));
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 4;
            assert!(FileHeader::decode(&bad).is_err(), "octet {at}");
            assert!(FileHeader::decode(&good[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn a_header_that_contradicts_itself_is_refused() {
        type Damage = fn(&mut FileHeader);
        let damages: [(Damage, &str); 4] = [
            (|header| header.block = 100, "sizes"),
            (|header| header.octets = 4096, "sizes"),
            (
                |header| header.hints.end = Position::new(1, 64),
                "positions",
            ),
            (
                |header| header.hints.reserved = Position::new(1, 1 << 20),
                "positions",
            ),
        ];
        for (damage, what) in damages {
            let mut header = file_header();
            damage(&mut header);
            let error = FileHeader::decode(&header.encode()).unwrap_err();
            assert!(error.contains(what), "{error}");
        }
    }

    #[test]
    fn a_header_says_where_articles_begin_where_the_size_does_not() {
        let larger = FileHeader {
            octets: 4 << 20,
            ..file_header()
        };
        let page = larger.encode();
        assert_eq!((file_header().encode()[8], page[8]), (1, 2));
        assert_eq!(FileHeader::decode(&page), Ok(larger.clone()));
        for data_start in [0, 8192, 12_289, 4 << 20, u64::MAX] {
            let header = FileHeader {
                data_start,
                ..larger.clone()
            };
            let error = FileHeader::decode(&header.encode()).unwrap_err();
            assert!(error.contains("sizes"), "{error}");
        }
    }

    #[test]
    fn a_header_says_that_its_file_becomes_smaller() {
        let narrowing = Narrowing {
            octets: 512 << 10,
            last_cycle: 2,
        };
        // Large enough that the bitmap of the smaller one has fewer pages.
        let start = Geometry::of(8 << 20, 64).unwrap().data_start;
        let large = FileHeader {
            octets: 8 << 20,
            data_start: start,
            hints: Hints {
                end: Position::new(2, start + 64),
                reserved: Position::new(2, start + 128),
                bitmap_end: Position::new(1, start),
                ..file_header().hints
            },
            ..file_header()
        };
        let becoming = FileHeader {
            narrowing: Some(narrowing),
            ..large.clone()
        };
        let page = becoming.encode();
        // An older program goes on with the size that it has.
        assert_eq!(page[8], 1);
        assert_eq!(page[128..136], [0; 8]);
        assert_eq!(page[136..148], [0, 0, 8, 0, 0, 0, 0, 0, 2, 0, 0, 0]);
        assert!(page[148..FILE_CRC].iter().all(|octet| *octet == 0));
        assert_eq!(FileHeader::decode(&page), Ok(becoming.clone()));
        assert_eq!(becoming.becomes(), Some(512 << 10));
        assert!(!becoming.was_larger());

        // Once it is that the bitmap is larger than it should be, which no older program knows.
        let smaller = FileHeader {
            octets: 512 << 10,
            ..becoming
        };
        let page = smaller.encode();
        assert_eq!(
            (page[8], &page[128..136]),
            (3, &[0, 96, 0, 0, 0, 0, 0, 0][..])
        );
        assert_eq!(FileHeader::decode(&page), Ok(smaller.clone()));
        assert_eq!(smaller.becomes(), None);
        assert!(smaller.was_larger());
        let geometry = smaller.geometry().unwrap();
        assert_eq!(
            (geometry.data_start, geometry.data_end),
            (24_576, 512 << 10)
        );

        let none = FileHeader {
            narrowing: Some(Narrowing {
                octets: 12_288,
                ..narrowing
            }),
            ..large
        };
        let error = FileHeader::decode(&none.encode()).unwrap_err();
        assert!(error.contains("sizes"), "{error}");
    }

    #[test]
    fn a_newer_version_is_told_apart_from_damage() {
        let mut page = file_header().encode();
        page[8] = 4;
        let crc = crc32c::crc32c(&page[..FILE_CRC]);
        page[FILE_CRC..].copy_from_slice(&crc.to_le_bytes());
        let error = FileHeader::decode(&page).unwrap_err();
        assert!(error.contains("use a newer one"), "{error}");
    }

    proptest! {
        #[test]
        fn prop_any_octets_decode_without_panic(octets in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut page = octets.clone();
            page.resize(PAGE_LEN, 0);
            page[..8].copy_from_slice(FILE_MAGIC);
            let crc = crc32c::crc32c(&page[..FILE_CRC]);
            page[FILE_CRC..].copy_from_slice(&crc.to_le_bytes());
            let _ = FileHeader::decode(&page);
            let _ = FileHeader::decode(&octets);
        }
    }
}
