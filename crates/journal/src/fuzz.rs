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
use crate::format::{Found, PAGE_OCTETS, SegmentHeader};
use crate::recovery::Recovery;
use crate::table::path_of;

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
