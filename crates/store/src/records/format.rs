//! The octets of a cyclic buffer: file header and article record.  Decoding trusts nothing.
//!
//! The checksum of a record's header begins with the key of its file, which is random: neither the leftovers of an
//! earlier file on the same device nor an article that imitates a record are ever taken for one.
//! The layout is drawn in `docs/formats/cyclic-buffer.md`.

use std::cmp::Ordering;

use newsreel_wire::{IdHash, Position, Sequence, UnixTime};

use super::geometry::{Geometry, PAGE, PAGE_LEN};

/// Octets of a record's header.
pub const RECORD_HEADER: usize = 64;
/// Where its checksum lies.
pub(super) const RECORD_CRC: usize = RECORD_HEADER - 4;
/// Where its place lies.
const RECORD_POSITION: usize = 20;
/// Where its sequence lies.
const RECORD_SEQUENCE: usize = 28;
/// Where the second copy of the file header lies.
pub(crate) const SECOND_HEADER: u64 = PAGE;
/// The version of this format.
pub(crate) const VERSION: u8 = 1;
/// The version of a record whose article is packed.
const VERSION_PACKED: u8 = 2;
/// The version of the header of a file that was made larger: it says where articles begin.
const VERSION_LARGER: u32 = 2;
/// The same of one that was made smaller: the bitmap is larger than it should be.
const VERSION_SMALLER: u32 = 3;

const RECORD_MAGIC: [u8; 2] = *b"NA";
/// The record is no article: nothing follows up to the end of the data area.
const FLAG_CYCLE_END: u8 = 1;
/// The article was overwritten with zeros.
const FLAG_ERASED: u8 = 2;
const FILE_MAGIC: &[u8; 8] = b"NRCYCBUF";
/// Octets of a file header that hold something, but for where articles begin in one that was made larger; the rest of the page
/// is zero, its checksum at the end.
const FILE_HEADER: usize = 128;
/// Where the size lies that a file is to have, and behind it the last cycle with records beyond that.
const FILE_NARROWING: usize = FILE_HEADER + 8;
/// Where the checksum of a file header lies.
const FILE_CRC: usize = PAGE_LEN - 4;

/// What binds records to their file: made from its UUID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileKey(u32);

impl std::fmt::Display for FileKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

impl FileKey {
    /// The key of the file with this UUID.
    #[must_use]
    pub fn of(uuid: &[u8; 16]) -> Self {
        Self(crc32c::crc32c(uuid))
    }

    /// The key under which this record's checksum is right.
    pub(crate) fn that_signs(record: &[u8; RECORD_HEADER]) -> Option<Self> {
        let (covered, crc) = record.split_at(RECORD_CRC);
        solve(|key| crc32c::crc32c_append(key, covered), u32_at(crc, 0)).map(Self)
    }

    /// A UUID of this key.
    pub(crate) fn uuid(self, random: &[u8; 12]) -> Option<[u8; 16]> {
        let mut uuid = [0; 16];
        uuid[..12].copy_from_slice(random);
        let so_far = crc32c::crc32c(random);
        let last = solve(
            |last| crc32c::crc32c_append(so_far, &last.to_le_bytes()),
            self.0,
        )?;
        uuid[12..].copy_from_slice(&last.to_le_bytes());
        Some(uuid)
    }

    /// The checksum of a record's header in that file.
    pub(crate) fn crc(self, covered: &[u8]) -> u32 {
        crc32c::crc32c_append(self.0, covered)
    }
}

/// What begins at a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// An article.
    Article,
    /// Nothing more before the end of the data area: the cycle ends here.
    CycleEnd,
    /// An article that was withdrawn and overwritten with zeros; its lengths are still those of the article.
    Erased,
}

/// The header in front of each article.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordHeader {
    /// Whether an article follows.
    pub mark: Mark,
    /// What follows is the article packed, and not in wire form.
    pub is_packed: bool,
    /// Octets that follow.
    pub article_len: u32,
    /// Octets of the header block in wire form, empty line not included.
    pub head_len: u32,
    /// crc32c of the header block in wire form.
    pub crc_head: u32,
    /// crc32c of the rest of the article in wire form.
    pub crc_body: u32,
    /// Where this record was written: cycle and offset.
    pub position: Position,
    /// Its place in the log.
    pub sequence: Sequence,
    /// When it arrived.
    pub arrival: UnixTime,
    /// The hash of its message-id.
    pub id_hash: IdHash,
}

impl RecordHeader {
    /// The stored form.
    #[must_use]
    pub fn encode(&self, key: FileKey) -> [u8; RECORD_HEADER] {
        let mut out = [0; RECORD_HEADER];
        out[0..2].copy_from_slice(&RECORD_MAGIC);
        out[2] = match self.is_packed {
            true => VERSION_PACKED,
            false => VERSION,
        };
        out[3] = match self.mark {
            Mark::Article => 0,
            Mark::CycleEnd => FLAG_CYCLE_END,
            Mark::Erased => FLAG_ERASED,
        };
        out[4..8].copy_from_slice(&self.article_len.to_le_bytes());
        out[8..12].copy_from_slice(&self.head_len.to_le_bytes());
        out[12..16].copy_from_slice(&self.crc_head.to_le_bytes());
        out[16..20].copy_from_slice(&self.crc_body.to_le_bytes());
        out[20..28].copy_from_slice(&self.position.0.to_le_bytes());
        out[RECORD_SEQUENCE..36].copy_from_slice(&self.sequence.0.to_le_bytes());
        out[36..44].copy_from_slice(&self.arrival.0.to_le_bytes());
        out[44..60].copy_from_slice(&self.id_hash.0);
        let crc = key.crc(&out[..60]);
        out[60..64].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// Whether an article in wire form has its checksums.
    pub(crate) fn signs(&self, article: &[u8]) -> bool {
        article
            .split_at_checked(self.head_len as usize)
            .is_some_and(|(head, body)| {
                crc32c::crc32c(head) == self.crc_head && crc32c::crc32c(body) == self.crc_body
            })
    }

    /// Whether a record may begin with these octets, at a glance.
    pub(crate) fn may_begin(octets: &[u8]) -> bool {
        octets.starts_with(&RECORD_MAGIC)
    }

    /// Whether these octets are a record's header of that file as it was written, at this place, of whatever version.
    pub(crate) fn is_of(octets: &[u8], key: FileKey, position: Position) -> bool {
        let header = octets.first_chunk::<RECORD_HEADER>();
        header.is_some_and(|octets| {
            Self::may_begin(octets)
                && u32_at(octets, RECORD_CRC) == key.crc(&octets[..RECORD_CRC])
                && u64_at(octets, RECORD_POSITION) == position.0
        })
    }

    /// The sequence that a stored form says, damaged or not.
    pub(super) fn sequence_in(octets: &[u8; RECORD_HEADER]) -> Sequence {
        Sequence(u64_at(octets, RECORD_SEQUENCE))
    }

    /// Which sequences a stored form may have had that is damaged in nothing but its sequence, or in nothing but its checksum:
    /// the one that it says, and those that make the checksum right where either half of it is damaged.
    pub(super) fn sequences_in(octets: &[u8; RECORD_HEADER], key: FileKey) -> Vec<Sequence> {
        let halves = [RECORD_SEQUENCE, RECORD_SEQUENCE + 4];
        let solved = halves.into_iter().filter_map(|at| {
            let checksum = |half: u32| {
                let mut octets = *octets;
                octets[at..at + 4].copy_from_slice(&half.to_le_bytes());
                key.crc(&octets[..RECORD_CRC])
            };
            let half = solve(checksum, u32_at(octets, RECORD_CRC))?;
            let mut octets = *octets;
            octets[at..at + 4].copy_from_slice(&half.to_le_bytes());
            Some(Self::sequence_in(&octets))
        });
        std::iter::once(Self::sequence_in(octets))
            .chain(solved)
            .collect()
    }

    /// Whether two stored forms are the same but for sequence and checksum.
    pub(super) fn are_alike(one: &[u8; RECORD_HEADER], other: &[u8; RECORD_HEADER]) -> bool {
        let (behind, crc) = (RECORD_SEQUENCE + 8, RECORD_CRC);
        one[..RECORD_SEQUENCE] == other[..RECORD_SEQUENCE] && one[behind..crc] == other[behind..crc]
    }

    /// Whether of a stored form nothing is left that the other one has: neither lengths nor checksums of the article, nor its place, arrival and
    /// message-id.
    pub(super) fn is_nothing_left(one: &[u8; RECORD_HEADER], other: &[u8; RECORD_HEADER]) -> bool {
        let fields = [
            4,
            8,
            12,
            16,
            RECORD_POSITION,
            RECORD_SEQUENCE,
            36,
            44,
            RECORD_CRC,
        ];
        let mut fields = fields.windows(2).filter(|it| it[0] != RECORD_SEQUENCE);
        fields.all(|it| one[it[0]..it[1]] != other[it[0]..it[1]])
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// What does not agree.
    pub fn decode(octets: &[u8], key: FileKey) -> Result<Self, &'static str> {
        let Some(octets) = octets.first_chunk::<RECORD_HEADER>() else {
            return Err("record header is cut off");
        };
        if !Self::may_begin(octets) {
            return Err("no record begins here");
        }
        if u32_at(octets, RECORD_CRC) != key.crc(&octets[..RECORD_CRC]) {
            return Err("checksum of the record header");
        }
        let is_packed = match octets[2] {
            VERSION => false,
            VERSION_PACKED => true,
            _ => return Err("record of a version this newsreel does not know"),
        };
        let mark = match octets[3] {
            0 => Mark::Article,
            FLAG_CYCLE_END => Mark::CycleEnd,
            FLAG_ERASED => Mark::Erased,
            _ => return Err("record with flags this newsreel does not know"),
        };
        let header = Self {
            mark,
            is_packed,
            article_len: u32_at(octets, 4),
            head_len: u32_at(octets, 8),
            crc_head: u32_at(octets, 12),
            crc_body: u32_at(octets, 16),
            position: Position(u64_at(octets, RECORD_POSITION)),
            sequence: Self::sequence_in(octets),
            arrival: UnixTime(u64_at(octets, 36)),
            id_hash: IdHash(sixteen_at(octets, 44)),
        };
        if header.head_len > header.article_len && !is_packed {
            return Err("header block is longer than the article");
        }
        Ok(header)
    }
}

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

/// The `x` for which `checksum(x)` is `wanted`.  A checksum of octets of which four are free is linear in them, apart from a
/// constant: each bit of `x` inverts certain bits of the result, whatever the others are.
fn solve(checksum: impl Fn(u32) -> u32, wanted: u32) -> Option<u32> {
    let constant = checksum(0);
    // What each bit inverts, brought to a form in which every row has a highest bit of its own.
    let mut rows: [(u32, u32); 32] = [(0, 0); 32];
    for bit in 0..32 {
        let (mut x, mut inverts) = (1 << bit, checksum(1 << bit) ^ constant);
        while let Some(high) = inverts.checked_ilog2() {
            let row = &mut rows[high as usize];
            if row.1 == 0 {
                *row = (x, inverts);
                break;
            }
            x ^= row.0;
            inverts ^= row.1;
        }
    }
    let (mut x, mut left) = (0, wanted ^ constant);
    while let Some(high) = left.checked_ilog2() {
        let row = rows[high as usize];
        if row.1 == 0 {
            return None;
        }
        x ^= row.0;
        left ^= row.1;
    }
    Some(x)
}

fn u32_at(octets: &[u8], at: usize) -> u32 {
    let mut four = [0; 4];
    four.copy_from_slice(&octets[at..at + 4]);
    u32::from_le_bytes(four)
}

fn u64_at(octets: &[u8], at: usize) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&octets[at..at + 8]);
    u64::from_le_bytes(eight)
}

fn sixteen_at(octets: &[u8], at: usize) -> [u8; 16] {
    let mut out = [0; 16];
    out.copy_from_slice(&octets[at..at + 16]);
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEY: FileKey = FileKey(0x1234_5678);

    #[test]
    fn a_record_tells_its_key_and_a_uuid_is_made_for_it() {
        for key in [0, 1, 0x8000_0000, u32::MAX, 0x1234_5678].map(FileKey) {
            let record = RecordHeader {
                mark: Mark::Article,
                is_packed: false,
                article_len: 100,
                head_len: 50,
                crc_head: 3,
                crc_body: 4,
                position: Position::new(2, 64),
                sequence: Sequence(5),
                arrival: UnixTime(6),
                id_hash: IdHash([7; 16]),
            };
            assert_eq!(FileKey::that_signs(&record.encode(key)), Some(key));
            let uuid = key.uuid(&[9; 12]).unwrap();
            assert_eq!(FileKey::of(&uuid), key);
            assert!(uuid.starts_with(&[9; 12]));
        }
    }

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

    #[test]
    fn a_record_of_another_file_is_none_of_ours() {
        let header = RecordHeader {
            mark: Mark::CycleEnd,
            is_packed: false,
            article_len: 0,
            head_len: 0,
            crc_head: 0,
            crc_body: 0,
            position: Position::new(1, 12_288),
            sequence: Sequence(1),
            arrival: UnixTime(1),
            id_hash: IdHash::default(),
        };
        let octets = header.encode(KEY);
        assert_eq!(RecordHeader::decode(&octets, KEY), Ok(header));
        let other = FileKey::of(&[1; 16]);
        assert_eq!(
            RecordHeader::decode(&octets, other),
            Err("checksum of the record header")
        );
    }

    proptest! {
        #[test]
        fn prop_record_header_round_trip(
            lens: (u16, u16), crcs: (u32, u32), position: u64, sequence: u64, arrival: u64, id: [u8; 16], is_packed: bool,
            flip in 0usize..RECORD_HEADER,
        ) {
            let header = RecordHeader {
                mark: Mark::Article,
                is_packed,
                head_len: u32::from(lens.0),
                article_len: u32::from(lens.0) + u32::from(lens.1),
                crc_head: crcs.0,
                crc_body: crcs.1,
                position: Position(position),
                sequence: Sequence(sequence),
                arrival: UnixTime(arrival),
                id_hash: IdHash(id),
            };
            let mut octets = header.encode(KEY);
            prop_assert_eq!(RecordHeader::decode(&octets, KEY), Ok(header));
            octets[flip] ^= 0x20;
            prop_assert!(RecordHeader::decode(&octets, KEY).is_err());
        }

        #[test]
        fn prop_any_octets_decode_without_panic(octets in proptest::collection::vec(any::<u8>(), 0..300), key: u32) {
            let _ = RecordHeader::decode(&octets, FileKey(key));
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
