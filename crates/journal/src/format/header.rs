//! A segment's first page: which spool, which segment, from which sequence on.
//!
//! A segment is prepared before it is used: then its first sequence is 0.  The page is written again, with the
//! segment's first frame behind it, when the segment is begun.

use newsreel_wire::Sequence;

use super::{Fields, PAGE_OCTETS};
use crate::SpoolId;

const MAGIC: [u8; 8] = *b"NEWSRLOG";
/// The version of segment and frame layout.
pub(crate) const VERSION: u32 = 1;
/// Octets covered by the crc.
const COVERED: usize = 64;

/// What a segment says about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) spool: SpoolId,
    pub(crate) segment: u64,
    /// The first sequence in this segment; 0 while it is only prepared.
    pub(crate) first: Sequence,
    /// The sequence behind the last good one before this segment: what is between it and `first` was aborted.
    pub(crate) follows: Sequence,
    pub(crate) epoch: u64,
}

/// What a first page turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// A header of this version, whole.
    Header(SegmentHeader),
    /// A header of another version.
    Version(u32),
    /// Not a header, or a damaged one.
    Nothing,
}

impl SegmentHeader {
    /// Whether the segment is prepared and not begun.
    pub(crate) const fn is_prepared(&self) -> bool {
        self.first.0 == 0
    }

    /// The first page.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut page = Vec::with_capacity(PAGE_OCTETS as usize);
        page.extend_from_slice(&MAGIC);
        page.extend_from_slice(&VERSION.to_le_bytes());
        page.extend_from_slice(&0_u32.to_le_bytes());
        page.extend_from_slice(&self.spool.0);
        for number in [self.segment, self.first.0, self.follows.0, self.epoch] {
            page.extend_from_slice(&number.to_le_bytes());
        }
        let crc = crc32c::crc32c(&page);
        page.extend_from_slice(&crc.to_le_bytes());
        page.resize(PAGE_OCTETS as usize, 0);
        page
    }

    pub(crate) fn decode(page: &[u8]) -> Found {
        Self::parse(page).unwrap_or(Found::Nothing)
    }

    fn parse(page: &[u8]) -> Option<Found> {
        let mut fields = Fields(page);
        let magic: [u8; 8] = fields.array()?;
        let version = fields.u32()?;
        fields.u32()?;
        let spool = SpoolId(fields.array()?);
        let header = Self {
            spool,
            segment: fields.u64()?,
            first: fields.sequence()?,
            follows: fields.sequence()?,
            epoch: fields.u64()?,
        };
        let whole = fields.u32()? == crc32c::crc32c(page.get(..COVERED)?);
        Some(match (magic == MAGIC && whole, version) {
            (false, _) => Found::Nothing,
            (true, VERSION) => Found::Header(header),
            (true, other) => Found::Version(other),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> SegmentHeader {
        SegmentHeader {
            spool: SpoolId(*b"0123456789abcdef"),
            segment: 7,
            first: Sequence(100),
            follows: Sequence(90),
            epoch: 3,
        }
    }

    #[test]
    fn header_round_trip_and_every_damage_is_seen() {
        let page = sample().encode();
        assert_eq!(page.len(), 4096);
        assert_eq!(SegmentHeader::decode(&page), Found::Header(sample()));
        assert!(!sample().is_prepared());
        for at in 0..COVERED + 4 {
            let mut bad = page.clone();
            bad[at] ^= 1;
            assert_eq!(SegmentHeader::decode(&bad), Found::Nothing, "octet {at}");
            assert_eq!(
                SegmentHeader::decode(&page[..at]),
                Found::Nothing,
                "cut at {at}"
            );
        }
    }

    #[test]
    fn a_later_version_is_told_from_damage() {
        let mut page = sample().encode();
        page[8] = 2;
        let crc = crc32c::crc32c(&page[..COVERED]);
        page[COVERED..COVERED + 4].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(SegmentHeader::decode(&page), Found::Version(2));
    }
}
