//! The header of a buffer made again when both copies of it are damaged.
//!
//! Name and sizes are in the configuration, the id in the register, and where the buffer stands is in the log; where articles
//! begin in one that was made larger its first record tells.  Only the key of its records is in the header alone, and each
//! record gives it away: it is what makes its checksum right.  A file in which no sound records agree on one is not touched.

use newsreel_host::{File, random_bytes};
use newsreel_wire::BufferId;

use super::create::new_header;
use super::file::Owner;
use crate::error::Result;
use crate::records::format::{FileHeader, FileKey, RecordHeader};
use crate::records::geometry::{BITMAP_START, Geometry, PAGE, PAGE_LEN, in_memory};
use crate::records::signed::{Signed, signed};

/// Octets read at once.
const WINDOW: u64 = 1 << 20;

/// A header for this file, and how many of its records bear it out; `None` when none does.
pub(super) fn header(
    file: &dyn File,
    owner: &Owner<'_>,
    id: BufferId,
) -> Result<Option<(FileHeader, u32)>> {
    let mut header = new_header(owner, id)?;
    let (len, octets) = (file.len()?, owner.config.octets);
    if len < octets {
        return Err(owner.wrong(format!(
            "it has {len} octets, the configuration says {octets}, and neither copy of its header can be used; it was \
             cut, or is no buffer: restore it, or take it out of the configuration"
        )));
    }
    let Some(geometry) = header.geometry() else {
        return Ok(None);
    };
    let Signed::By(key, records) = signed(file, &geometry)? else {
        return Ok(None);
    };
    header.data_start = data_start(file, &geometry, key)?;
    let random: [u8; 12] = random_bytes()?;
    Ok(key.uuid(&random).map(|uuid| {
        header.uuid = uuid;
        (header, records)
    }))
}

/// Where articles begin: in a buffer that was made larger before where its size says.  The first record of each cycle lies there.
fn data_start(file: &dyn File, geometry: &Geometry, key: FileKey) -> Result<u64> {
    let mut window = vec![0; in_memory(WINDOW)];
    let mut at = BITMAP_START + PAGE;
    while at < geometry.data_start {
        let octets = &mut window[..in_memory(WINDOW.min(geometry.data_start - at))];
        match file.read_exact_at(octets, at) {
            Err(error) if error.is_medium() => octets.fill(0),
            read => read?,
        }
        for (page, at) in octets.chunks(PAGE_LEN).zip((at..).step_by(PAGE_LEN)) {
            let record = RecordHeader::decode(page, key);
            if record.is_ok_and(|record| record.position.offset() == at) {
                return Ok(at);
            }
        }
        at += octets.len() as u64;
    }
    Ok(geometry.data_start)
}
