//! A frame: one commit's records, whole or not there.
//!
//! ```text
//!  0 magic      4 | octets      4 | records     4 | payload crc 4
//! 16 segment    8 | epoch       8 | first       8 | follows     8
//! 48 vouched    8 | zero        4 | header crc  4
//! 64 bodies (kind 1, payload) of all records | where each begins, 4 each | zeros to the page's end
//! ```
//!
//! The header has its own crc, which covers the payload's: a frame whose payload is damaged still says how long it
//! is, which sequences it held and what it vouches for.

use newsreel_wire::Sequence;

use super::{Fields, PAGE_OCTETS};

const MAGIC: [u8; 4] = *b"NRFR";
/// Octets before the first body.
pub(crate) const FRAME_HEADER_OCTETS: usize = 64;
/// Octets of the header that its crc covers.
const COVERED: usize = FRAME_HEADER_OCTETS - 4;

/// A frame's first 64 octets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    /// Octets of bodies and table.
    pub(crate) octets: u32,
    pub(crate) records: u32,
    pub(crate) payload_crc: u32,
    pub(crate) segment: u64,
    pub(crate) epoch: u64,
    pub(crate) first: Sequence,
    /// The sequence behind the frame before this one; what is between it and `first` is a hole.
    pub(crate) follows: Sequence,
    pub(crate) vouched_before: Sequence,
}

impl FrameHeader {
    /// The sequence behind the frame.
    pub(crate) const fn end(&self) -> Sequence {
        Sequence(self.first.0.saturating_add(self.records as u64))
    }

    /// Octets on disk, in whole pages.
    pub(crate) const fn disk_octets(&self) -> u64 {
        (FRAME_HEADER_OCTETS as u64 + self.octets as u64).next_multiple_of(PAGE_OCTETS)
    }

    pub(crate) fn encode(&self, seed: u32) -> [u8; FRAME_HEADER_OCTETS] {
        let mut out = [0; FRAME_HEADER_OCTETS];
        let words = [
            u32::from_le_bytes(MAGIC),
            self.octets,
            self.records,
            self.payload_crc,
        ];
        let numbers = [
            self.segment,
            self.epoch,
            self.first.0,
            self.follows.0,
            self.vouched_before.0,
        ];
        let (front, back) = out.split_at_mut(16);
        for (place, word) in front.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        for (place, number) in back.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        let (covered, crc) = out.split_at_mut(COVERED);
        crc.copy_from_slice(&crc32c::crc32c_append(seed, covered).to_le_bytes());
        out
    }

    /// Whether a frame may begin with these octets, at a glance.
    pub(crate) fn may_begin(bytes: &[u8]) -> bool {
        bytes.starts_with(&MAGIC)
    }

    /// The header at the front of `bytes`, if it is one of this spool and segment.
    pub(crate) fn decode(bytes: &[u8], seed: u32, segment: u64) -> Option<Self> {
        let mut fields = Fields(bytes);
        if fields.array()? != MAGIC {
            return None;
        }
        let header = Self {
            octets: fields.u32()?,
            records: fields.u32()?,
            payload_crc: fields.u32()?,
            segment: fields.u64()?,
            epoch: fields.u64()?,
            first: fields.sequence()?,
            follows: fields.sequence()?,
            vouched_before: fields.sequence()?,
        };
        fields.u32()?;
        let whole = fields.u32()? == crc32c::crc32c_append(seed, bytes.get(..COVERED)?);
        // At least a kind and a table entry for each record.
        let roomy = u64::from(header.records) * 5 <= u64::from(header.octets);
        let ordered = header.first.0 > 0
            && header.follows <= header.first
            && header.vouched_before <= header.first
            && header
                .first
                .0
                .checked_add(u64::from(header.records))
                .is_some();
        let own = header.segment == segment && header.records > 0;
        (whole && roomy && ordered && own).then_some(header)
    }

    /// The crc of a payload given as bodies and table.
    pub(crate) fn payload_crc(seed: u32, bodies: &[u8], table: &[u8]) -> u32 {
        crc32c::crc32c_append(crc32c::crc32c_append(seed, bodies), table)
    }

    /// What is wrong with the payload, if anything.
    pub(crate) fn check(&self, payload: &[u8], seed: u32) -> Result<(), &'static str> {
        if payload.len() != self.octets as usize {
            return Err("the segment ends inside a frame");
        }
        if crc32c::crc32c_append(seed, payload) != self.payload_crc {
            return Err("a frame's payload does not match its crc");
        }
        if self
            .records_of(payload)
            .is_some_and(|records| records.is_sound())
        {
            return Ok(());
        }
        Err("a frame's record table is not in order")
    }

    /// The records in a payload that was checked.
    pub(crate) fn records_of<'a>(&self, payload: &'a [u8]) -> Option<Records<'a>> {
        let bodies_len = payload.len().checked_sub(self.records as usize * 4)?;
        let (bodies, table) = payload.split_at_checked(bodies_len)?;
        Some(Records {
            first: self.first,
            bodies,
            table,
        })
    }
}

/// One thing that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its place in the log.
    pub sequence: Sequence,
    /// What kind of thing; the engine knows.
    pub kind: u8,
    /// The rest.
    pub payload: &'a [u8],
}

/// The records of one frame, in order.
#[derive(Debug, Clone, Copy)]
pub struct Records<'a> {
    first: Sequence,
    bodies: &'a [u8],
    table: &'a [u8],
}

impl<'a> Records<'a> {
    pub(crate) const fn new(first: Sequence, bodies: &'a [u8], table: &'a [u8]) -> Self {
        Self {
            first,
            bodies,
            table,
        }
    }

    /// Without the records before `from`.
    #[must_use]
    pub fn since(mut self, from: Sequence) -> Self {
        let skip = from.0.saturating_sub(self.first.0);
        let octets = usize::try_from(skip).map_or(usize::MAX, |skip| skip.saturating_mul(4));
        self.table = self.table.get(octets..).unwrap_or_default();
        self.first = Sequence(self.first.0.saturating_add(skip));
        self
    }

    /// The table begins at 0 and every record has at least its kind.
    pub(crate) fn is_sound(&self) -> bool {
        let mut next_min = 0;
        let sound = self.starts().enumerate().all(|(at, start)| {
            let good = if at == 0 {
                start == 0
            } else {
                start >= next_min
            };
            next_min = start + 1;
            good
        });
        sound && next_min <= self.bodies.len()
    }

    fn starts(&self) -> impl Iterator<Item = usize> {
        let (table, _) = self.table.as_chunks::<4>();
        table
            .iter()
            .map(|start| u32::from_le_bytes(*start) as usize)
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        let (start, rest) = self.table.split_first_chunk::<4>()?;
        let start = u32::from_le_bytes(*start) as usize;
        let end = rest
            .first_chunk::<4>()
            .map_or(self.bodies.len(), |next| u32::from_le_bytes(*next) as usize);
        let (kind, payload) = self.bodies.get(start..end)?.split_first()?;
        let record = Record {
            sequence: self.first,
            kind: *kind,
            payload,
        };
        self.table = rest;
        self.first = self.first.next();
        Some(record)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let count = self.table.len() / 4;
        (count, Some(count))
    }
}

impl ExactSizeIterator for Records<'_> {}

/// A frame that was read and found whole.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    pub(crate) header: FrameHeader,
    pub(crate) offset: u64,
    pub(crate) vouched: bool,
    pub(crate) lost: Option<(Sequence, Sequence)>,
    pub(crate) records: Records<'a>,
}

impl<'a> Frame<'a> {
    /// The sequence of its first record.
    #[must_use]
    pub const fn first(&self) -> Sequence {
        self.header.first
    }

    /// The sequence of its last record.
    #[must_use]
    pub const fn last(&self) -> Sequence {
        Sequence(self.header.end().0.saturating_sub(1))
    }

    /// Which opening of the log wrote it.
    #[must_use]
    pub const fn epoch(&self) -> u64 {
        self.header.epoch
    }

    /// When it was written, everything before this sequence was durable, in the log and in the buffers.
    #[must_use]
    pub const fn vouched_before(&self) -> Sequence {
        self.header.vouched_before
    }

    /// Whether a later frame says that this one and its articles were durable.
    #[must_use]
    pub const fn is_vouched(&self) -> bool {
        self.vouched
    }

    /// What was durable between the frame handed out before and this one and is lost: from the first sequence to the one
    /// behind the last.  Only recovery tells of it.
    #[must_use]
    pub const fn lost(&self) -> Option<(Sequence, Sequence)> {
        self.lost
    }

    /// Its records.
    #[must_use]
    pub const fn records(&self) -> Records<'a> {
        self.records
    }

    /// The segment it is in.
    #[must_use]
    pub const fn segment(&self) -> u64 {
        self.header.segment
    }

    /// Where in the segment it begins, octets.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Octets it takes on disk.
    #[must_use]
    pub const fn disk_octets(&self) -> u64 {
        self.header.disk_octets()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: u32 = 0x1234;

    /// A frame of three records: header and payload.
    fn sample() -> (FrameHeader, Vec<u8>) {
        let (bodies, table) = (b"\x01one\x02\x03three", [0_u32, 4, 5]);
        let table: Vec<u8> = table.iter().flat_map(|start| start.to_le_bytes()).collect();
        let header = FrameHeader {
            octets: (bodies.len() + table.len()) as u32,
            records: 3,
            payload_crc: FrameHeader::payload_crc(SEED, bodies, &table),
            segment: 7,
            epoch: 2,
            first: Sequence(10),
            follows: Sequence(9),
            vouched_before: Sequence(8),
        };
        (header, [&bodies[..], &table].concat())
    }

    #[test]
    fn header_and_records_round_trip() {
        let (header, payload) = sample();
        let encoded = header.encode(SEED);
        assert_eq!(FrameHeader::decode(&encoded, SEED, 7), Some(header));
        assert_eq!(
            FrameHeader::decode(&encoded, SEED + 1, 7),
            None,
            "another spool's"
        );
        assert_eq!(
            FrameHeader::decode(&encoded, SEED, 8),
            None,
            "another segment's"
        );
        assert_eq!((header.end(), header.disk_octets()), (Sequence(13), 4096));
        header.check(&payload, SEED).unwrap();
        let records: Vec<_> = header.records_of(&payload).unwrap().collect();
        let record = |sequence, kind, payload| Record {
            sequence: Sequence(sequence),
            kind,
            payload,
        };
        assert_eq!(
            records,
            [
                record(10, 1, b"one"),
                record(11, 2, b""),
                record(12, 3, b"three")
            ]
        );
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_seen() {
        let (header, payload) = sample();
        let encoded = header.encode(SEED);
        for bit in 0..FRAME_HEADER_OCTETS * 8 {
            let mut bad = encoded;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(FrameHeader::decode(&bad, SEED, 7), None, "header bit {bit}");
        }
        for bit in 0..payload.len() * 8 {
            let mut bad = payload.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(header.check(&bad, SEED).is_err(), "payload bit {bit}");
        }
        for len in 0..payload.len() {
            assert!(
                header.check(&payload[..len], SEED).is_err(),
                "payload cut at {len}"
            );
        }
        for len in 0..FRAME_HEADER_OCTETS {
            assert_eq!(
                FrameHeader::decode(&encoded[..len], SEED, 7),
                None,
                "header cut at {len}"
            );
        }
    }

    #[test]
    fn a_table_that_lies_is_refused_though_its_crc_is_right() {
        for table in [
            [0_u32, 4, 4],
            [1, 4, 5],
            [0, 5, 4],
            [0, 4, 11],
            [0, 4, u32::MAX],
        ] {
            let (mut header, mut payload) = sample();
            payload.truncate(payload.len() - 12);
            payload.extend(table.iter().flat_map(|start| start.to_le_bytes()));
            header.payload_crc = crc32c::crc32c_append(SEED, &payload);
            assert!(header.check(&payload, SEED).is_err(), "{table:?}");
            for record in header.records_of(&payload).unwrap() {
                assert!(
                    record.payload.len() < payload.len(),
                    "not checked, and no panic either"
                );
            }
        }
    }
}
