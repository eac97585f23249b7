//! Takes any octets for a segment: the door for fuzzers and for mutation tests.
//!
//! Everything a damaged or hostile segment file can reach is run: header, frames, records, a whole recovery and a
//! reader.  Must never panic, whatever comes.

use std::path::Path;
use std::sync::Arc;

use newsreel_host::{Disk, MemoryDisk, OpenMode};
use newsreel_wire::Sequence;

use crate::SpoolId;
use crate::error::{Error, Result};
use crate::format::{FRAME_HEADER_OCTETS, Found, FrameHeader, PAGE_OCTETS, SegmentHeader, seed};
use crate::recovery::Recovery;
use crate::table::path_of;

/// Where the checksum of the first page lies, and those of a frame: of its payload, and of its header.
const PAGE_CRC: usize = 64;
const PAYLOAD_CRC: usize = 12;
const HEADER_CRC: usize = FRAME_HEADER_OCTETS - 4;

/// What was found in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SegmentDigest {
    /// Whether the first page is whole.
    pub has_header: bool,
    /// Whole frames.
    pub frames: u64,
    /// Their records.
    pub records: u64,
    /// Octets of their payloads.
    pub payload_octets: u64,
    /// Damaged stretches.
    pub damaged: u64,
    /// Whether the end was cut.
    pub is_cut: bool,
}

/// Decodes `octets` as one segment file, with the spool and the id it names (or zeros).
pub fn decode_segment(octets: &[u8]) -> Result<SegmentDigest> {
    let header = match SegmentHeader::decode(octets.get(..PAGE_OCTETS as usize).unwrap_or(octets)) {
        Found::Header(header) => Some(header),
        Found::Version(_) | Found::Nothing => None,
    };
    let (spool, id) = header.map_or((SpoolId([0; 16]), 0), |h| (h.spool, h.segment));
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let dir = Path::new("/log");
    disk.create_dir_all(dir)?;
    disk.open(&path_of(dir, id), OpenMode::CreateNew)?
        .write_at(octets, 0)?;

    let from = header.map_or(Sequence(1), |header| header.follows);
    let mut recovery = Recovery::open_read_only(disk, dir, spool, from)?;
    let mut digest = SegmentDigest {
        has_header: header.is_some(),
        ..SegmentDigest::default()
    };
    while let Some(frame) = recovery.next_frame()? {
        digest.frames += 1;
        for record in frame.records() {
            digest.records += 1;
            digest.payload_octets += record.payload.len() as u64;
        }
    }
    let (journal, recovered) = recovery.finish_read_only()?;
    digest.damaged = recovered.damage_count;
    digest.is_cut = recovered.cut.is_some();
    let mut cursor = journal.read_from(from);
    loop {
        match cursor.next_frame() {
            Ok(Some(_)) | Err(Error::Damaged(_)) => {}
            Ok(None) | Err(Error::Gone { .. }) => return Ok(digest),
            Err(error) => return Err(error),
        }
    }
}

/// Decodes `octets` as one segment file behind right checksums: a fuzzer does not get past them.
pub fn decode_made_segment(octets: &[u8]) -> Result<SegmentDigest> {
    let mut made = octets.to_vec();
    if let Some((covered, crc)) = split_at_crc(&mut made, PAGE_CRC) {
        *crc = crc32c::crc32c(covered).to_le_bytes();
    }
    let Found::Header(header) = SegmentHeader::decode(&made) else {
        return decode_segment(&made);
    };
    let (seed, mut pages) = (seed(header.spool), made.as_mut_slice());
    let mut skipped = PAGE_OCTETS as usize;
    while let Some((_, frame)) = pages.split_at_mut_checked(skipped) {
        skipped = make_right(frame, seed).unwrap_or(PAGE_OCTETS as usize);
        pages = frame;
    }
    decode_segment(&made)
}

/// Puts the checksums into the frame that `octets` may begin with; what it takes on disk.
fn make_right(octets: &mut [u8], seed: u32) -> Option<usize> {
    if !FrameHeader::may_begin(octets) {
        return None;
    }
    let (_, len) = octets.split_first_chunk::<4>()?;
    let len = u32::from_le_bytes(*len.first_chunk()?) as usize;
    let payload = octets.get(FRAME_HEADER_OCTETS..)?.get(..len)?;
    let of_payload = crc32c::crc32c_append(seed, payload);
    let (_, crc) = split_at_crc(octets, PAYLOAD_CRC)?;
    *crc = of_payload.to_le_bytes();
    let (covered, crc) = split_at_crc(octets, HEADER_CRC)?;
    *crc = crc32c::crc32c_append(seed, covered).to_le_bytes();
    Some((FRAME_HEADER_OCTETS + len).next_multiple_of(PAGE_OCTETS as usize))
}

/// What lies before a checksum, and the checksum.
fn split_at_crc(octets: &mut [u8], at: usize) -> Option<(&[u8], &mut [u8; 4])> {
    let (covered, rest) = octets.split_at_mut_checked(at)?;
    Some((covered, rest.first_chunk_mut()?))
}
