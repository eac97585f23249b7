//! Frames: octets in a run with their length and a checksum.
//!
//! ```text
//! 0..4   crc32c over run id u64, offset of the frame u64, length u32, payload
//! 4..8   length of the payload
//! 8..    payload
//! ```
//! The run id and the offset are in the checksum, so a frame read from the wrong place is as bad as a rotten one.

use crate::cursor::{Bad, array_at};

/// Octets before the payload.
pub(crate) const FRAME_HEADER: usize = 8;

/// The header of a frame with these payload parts, at this place.
pub(crate) fn header(run: u64, offset: u64, parts: &[&[u8]]) -> [u8; FRAME_HEADER] {
    let len: usize = parts.iter().map(|part| part.len()).sum();
    let len = u32::try_from(len).unwrap_or(u32::MAX);
    let crc = parts.iter().fold(seed(run, offset, len), |crc, part| {
        crc32c::crc32c_append(crc, part)
    });
    let [c0, c1, c2, c3] = crc.to_le_bytes();
    let [l0, l1, l2, l3] = len.to_le_bytes();
    [c0, c1, c2, c3, l0, l1, l2, l3]
}

fn seed(run: u64, offset: u64, len: u32) -> u32 {
    let mut salt = [0; 20];
    salt[..8].copy_from_slice(&run.to_le_bytes());
    salt[8..16].copy_from_slice(&offset.to_le_bytes());
    salt[16..].copy_from_slice(&len.to_le_bytes());
    crc32c::crc32c(&salt)
}

/// The payload of the frame that `bytes` begin with, if it is what was written at this place of this run.
pub(crate) fn payload(run: u64, offset: u64, bytes: &[u8]) -> Result<&[u8], Bad> {
    let crc = u32::from_le_bytes(array_at(bytes, 0));
    let len = u32::from_le_bytes(array_at(bytes, 4));
    let payload = bytes
        .get(FRAME_HEADER..)
        .and_then(|rest| rest.get(..len as usize))
        .ok_or(Bad("a block is longer than its place"))?;
    if crc32c::crc32c_append(seed(run, offset, len), payload) != crc {
        return Err(Bad("a block's checksum is wrong"));
    }
    Ok(payload)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_good_only_as_written_and_where_written() {
        let mut bytes = header(7, 4096, &[b"over", b"view"]).to_vec();
        bytes.extend_from_slice(b"overview");
        assert_eq!(payload(7, 4096, &bytes), Ok(&b"overview"[..]));
        assert!(payload(8, 4096, &bytes).is_err(), "another run");
        assert!(payload(7, 8192, &bytes).is_err(), "another place");
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(payload(7, 4096, &bad).is_err(), "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert!(payload(7, 4096, &bytes[..len]).is_err(), "cut at {len}");
        }
    }
}
