//! The octets of an article record, and of the header of its file (`file_header`).  Decoding trusts nothing.
//!
//! The checksum of a record's header begins with the key of its file, which is random: neither the leftovers of an
//! earlier file on the same device nor an article that imitates a record are ever taken for one.
//! The layout is drawn in `docs/formats/cyclic-buffer.md`.

mod file_header;

use newsreel_wire::{IdHash, Position, Sequence, UnixTime};

pub use file_header::{FileHeader, Hints};
pub(crate) use file_header::{Narrowing, SECOND_HEADER};

/// Octets of a record's header.
pub const RECORD_HEADER: usize = 64;
/// Where its checksum lies.
pub(super) const RECORD_CRC: usize = RECORD_HEADER - 4;
/// Where its place lies.
const RECORD_POSITION: usize = 20;
/// Where its sequence lies.
const RECORD_SEQUENCE: usize = 28;
/// The version of this format.
pub(crate) const VERSION: u8 = 1;
/// The version of a record whose article is packed.
const VERSION_PACKED: u8 = 2;

const RECORD_MAGIC: [u8; 2] = *b"NA";
/// The record is no article: nothing follows up to the end of the data area.
const FLAG_CYCLE_END: u8 = 1;
/// The article was overwritten with zeros.
const FLAG_ERASED: u8 = 2;

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
        }
    }
}
