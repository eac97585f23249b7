//! The byte layout of segments and frames, as `docs/formats/log.md` draws it.
//!
//! Everything is little-endian, everything has a crc32c that starts from the spool's identity, so that neither
//! another spool's octets nor octets chosen by an article's author pass for a frame.  Decoders treat every input as
//! hostile: they answer with nothing or an error, they never panic.

mod frame;
mod header;

pub(crate) use frame::{FRAME_HEADER_OCTETS, FrameHeader};
pub use frame::{Frame, Record, Records};
pub(crate) use header::{Found, SegmentHeader, VERSION};

use newsreel_wire::Sequence;

use crate::SpoolId;

/// Frames begin at multiples of this, so that a torn write never reaches into an earlier frame.
pub(crate) const PAGE_OCTETS: u64 = 4096;

/// Where a crc of this spool starts.
pub(crate) fn seed(spool: SpoolId) -> u32 {
    crc32c::crc32c(&spool.0)
}

/// Takes fields off the front of a slice; a slice that is too short gives `None` from then on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl Fields<'_> {
    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (field, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*field)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn sequence(&mut self) -> Option<Sequence> {
        self.u64().map(Sequence)
    }
}
