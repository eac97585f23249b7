//! Takes any octets for a file of the queue: the door for fuzzers.  Must never panic.

use crate::format;

/// Decodes `octets`; what is understood must be written the same way again.
#[must_use]
pub fn decode(octets: &[u8]) -> bool {
    match format::decode(octets) {
        Ok(mail) => {
            assert_eq!(format::encode(&mail).as_deref(), Some(octets));
            true
        }
        Err(_) => false,
    }
}

/// The same behind a right checksum.
#[must_use]
pub fn decode_made(octets: &[u8]) -> bool {
    decode(&format::sealed(octets))
}
