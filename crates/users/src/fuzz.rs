//! Takes any octets for a file of users: the door for fuzzers.  Must never panic.

use crate::file;

/// Decodes `octets`; what is understood must be written the same way again.
#[must_use]
pub fn decode(octets: &[u8]) -> bool {
    match file::decode(octets) {
        Ok(contents) => {
            // What was written by an older version is written by this one from the next change on.
            if let Some(secret) = contents.secret {
                assert_eq!(file::encode(&secret, &contents.users).as_bytes(), octets);
            }
            true
        }
        Err(_) => false,
    }
}

/// The same behind a right first line.
#[must_use]
pub fn decode_made(octets: &[u8]) -> bool {
    decode(&file::sealed(octets))
}
