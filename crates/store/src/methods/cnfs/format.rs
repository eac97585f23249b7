//! The octets of a cyclic buffer: file header, article record.  Decoding trusts nothing.

use newsreel_wire::{IdHash, Position, Sequence, Token, UnixTime};

/// Octets of a record's header.
pub(super) const RECORD_HEADER: usize = 64;
/// Articles begin at multiples of this inside a buffer.
pub(super) const BLOCK: u64 = 64;
/// Batches begin at multiples of this and are written in multiples of it.
pub(super) const PAGE: u64 = 4096;
/// Where the second copy of the file header lies.
pub(super) const SECOND_HEADER: u64 = PAGE;
/// Where the bitmap lies.
pub(super) const BITMAP: u64 = 2 * PAGE;

const RECORD_MAGIC: &[u8; 4] = b"NRA1";
const FILE_MAGIC: &[u8; 8] = b"NRCYCL1\0";
/// Octets of a file header in front of its checksum.
const FILE_HEADER: usize = 104;

/// The header in front of each article.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordHeader {
    /// Octets of the header block, empty line not included.
    pub head_len: u32,
    /// Octets of the article in wire form.
    pub article_len: u32,
    /// crc32c of the header block.
    pub crc_head: u32,
    /// crc32c of the rest of the article.
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
    pub fn encode(&self) -> [u8; RECORD_HEADER] {
        let mut out = [0; RECORD_HEADER];
        out[0..4].copy_from_slice(RECORD_MAGIC);
        out[4..8].copy_from_slice(&self.head_len.to_le_bytes());
        out[8..12].copy_from_slice(&self.article_len.to_le_bytes());
        out[12..16].copy_from_slice(&self.crc_head.to_le_bytes());
        out[16..20].copy_from_slice(&self.crc_body.to_le_bytes());
        out[20..28].copy_from_slice(&self.position.0.to_le_bytes());
        out[28..36].copy_from_slice(&self.sequence.0.to_le_bytes());
        out[36..44].copy_from_slice(&self.arrival.0.to_le_bytes());
        out[44..60].copy_from_slice(&self.id_hash.0);
        let crc = crc32c::crc32c(&out[..60]);
        out[60..64].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// Reads the stored form; the error says what does not agree.
    pub fn decode(octets: &[u8]) -> Result<Self, &'static str> {
        let Some(octets) = octets.first_chunk::<RECORD_HEADER>() else {
            return Err("record header is cut off");
        };
        if &octets[0..4] != RECORD_MAGIC {
            return Err("no record begins here");
        }
        if u32_at(octets, 60) != crc32c::crc32c(&octets[..60]) {
            return Err("record header checksum");
        }
        let header = Self {
            head_len: u32_at(octets, 4),
            article_len: u32_at(octets, 8),
            crc_head: u32_at(octets, 12),
            crc_body: u32_at(octets, 16),
            position: Position(u64_at(octets, 20)),
            sequence: Sequence(u64_at(octets, 28)),
            arrival: UnixTime(u64_at(octets, 36)),
            id_hash: IdHash(sixteen_at(octets, 44)),
        };
        if header.head_len > header.article_len {
            return Err("header block is longer than the article");
        }
        Ok(header)
    }

    /// Octets of the record on disk: header, article, padding to the next block.
    #[must_use]
    pub const fn record_len(&self) -> u64 {
        record_len(self.article_len as u64)
    }
}

/// Octets on disk of the record of an article of this length.
#[must_use]
pub(super) const fn record_len(article_len: u64) -> u64 {
    (RECORD_HEADER as u64 + article_len).next_multiple_of(BLOCK)
}

/// Where the record of a token ends.
#[must_use]
pub fn end_of(token: &Token) -> Position {
    let start = token.position();
    let end = start
        .offset()
        .saturating_add(record_len(u64::from(token.len())));
    Position::checked(start.cycle(), end).unwrap_or(start)
}

/// The header at the front of a buffer, twice: what the buffer is, and hints where it stood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileHeader {
    /// The spool it belongs to.
    pub spool: [u8; 16],
    /// Its id in that spool.
    pub buffer: u16,
    /// Its name.
    pub name: String,
    /// Size of the file, octets.
    pub octets: u64,
    /// Where articles begin.
    pub data_start: u64,
    /// Hint: end of the last placed article.
    pub end: Position,
    /// Hint: up to here it may be written.
    pub reserved: Position,
    /// Hint: the last sequence in it.
    pub sequence: Sequence,
}

impl FileHeader {
    /// The stored form: one page.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(PAGE as usize);
        out.extend_from_slice(FILE_MAGIC);
        out.extend_from_slice(&self.spool);
        out.extend_from_slice(&self.buffer.to_le_bytes());
        out.extend_from_slice(&[0; 6]);
        out.extend_from_slice(&self.octets.to_le_bytes());
        out.extend_from_slice(&self.data_start.to_le_bytes());
        out.extend_from_slice(&BLOCK.to_le_bytes());
        out.extend_from_slice(&self.end.0.to_le_bytes());
        out.extend_from_slice(&self.reserved.0.to_le_bytes());
        out.extend_from_slice(&self.sequence.0.to_le_bytes());
        let mut name = [0; 16];
        for (to, from) in name.iter_mut().zip(self.name.bytes().take(15)) {
            *to = from;
        }
        out.extend_from_slice(&name);
        out.extend_from_slice(&[0; 8]);
        debug_assert_eq!(out.len(), FILE_HEADER);
        let crc = crc32c::crc32c(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        out.resize(PAGE as usize, 0);
        out
    }

    /// Reads the stored form; the error says what does not agree.
    pub fn decode(octets: &[u8]) -> Result<Self, &'static str> {
        let Some((body, rest)) = octets.split_at_checked(FILE_HEADER) else {
            return Err("file header is cut off");
        };
        if !body.starts_with(FILE_MAGIC) {
            return Err("no newsreel buffer of version 1");
        }
        if rest.len() < 4 || u32_at(rest, 0) != crc32c::crc32c(body) {
            return Err("file header checksum");
        }
        if u64_at(body, 48) != BLOCK {
            return Err("unknown block size");
        }
        let name = &body[80..96];
        let name = name.split(|octet| *octet == 0).next().unwrap_or_default();
        let header = Self {
            spool: sixteen_at(body, 8),
            buffer: u16::from_le_bytes([body[24], body[25]]),
            name: String::from_utf8_lossy(name).into_owned(),
            octets: u64_at(body, 32),
            data_start: u64_at(body, 40),
            end: Position(u64_at(body, 56)),
            reserved: Position(u64_at(body, 64)),
            sequence: Sequence(u64_at(body, 72)),
        };
        if header.data_start != data_start(header.octets) || header.data_start >= header.octets {
            return Err("sizes in the file header contradict each other");
        }
        Ok(header)
    }
}

/// Where articles begin in a file of this size: behind the headers and the bitmap.
#[must_use]
pub(super) const fn data_start(octets: u64) -> u64 {
    // One bit a block, for the whole file: a little more than needed, and simple.
    let bitmap = octets.div_ceil(BLOCK).div_ceil(8);
    (BITMAP + bitmap).next_multiple_of(PAGE)
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

    fn file_header() -> FileHeader {
        FileHeader {
            spool: [3; 16],
            buffer: 7,
            name: "SD1".to_owned(),
            octets: 1 << 20,
            data_start: data_start(1 << 20),
            end: Position(99),
            reserved: Position(199),
            sequence: Sequence(12),
        }
    }

    #[test]
    fn a_damaged_file_header_is_noticed() {
        let good = file_header().encode();
        assert_eq!(FileHeader::decode(&good), Ok(file_header()));
        for at in 0..FILE_HEADER + 4 {
            let mut bad = good.clone();
            bad[at] ^= 4;
            assert!(FileHeader::decode(&bad).is_err(), "octet {at}");
        }
    }

    proptest! {
        #[test]
        fn prop_record_header_round_trip(
            lens: (u16, u16), crcs: (u32, u32), position: u64, sequence: u64, arrival: u64, id: [u8; 16],
            flip in 0usize..RECORD_HEADER,
        ) {
            let header = RecordHeader {
                head_len: u32::from(lens.0),
                article_len: u32::from(lens.0) + u32::from(lens.1),
                crc_head: crcs.0,
                crc_body: crcs.1,
                position: Position(position),
                sequence: Sequence(sequence),
                arrival: UnixTime(arrival),
                id_hash: IdHash(id),
            };
            let mut octets = header.encode();
            prop_assert_eq!(RecordHeader::decode(&octets), Ok(header));
            octets[flip] ^= 0x20;
            prop_assert!(RecordHeader::decode(&octets).is_err());
        }

        #[test]
        fn prop_any_octets_decode_without_panic(octets in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = RecordHeader::decode(&octets);
            let _ = FileHeader::decode(&octets);
        }
    }
}
