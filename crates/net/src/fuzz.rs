//! Takes any octets for a file of logins: the door for fuzzers.  Must never panic.

use crate::access::logins_file;

/// Decodes `octets`; what is understood must be written the same way again.
#[must_use]
pub fn decode_logins(octets: &[u8]) -> bool {
    let Ok(contents) = logins_file::decode(octets) else {
        return false;
    };
    assert_eq!(logins_file::encode(&contents).as_bytes(), octets);
    true
}

/// The same behind a right first line.
#[must_use]
pub fn decode_made_logins(octets: &[u8]) -> bool {
    let made = logins_file::sealed(octets);
    made.iter().any(|file| decode_logins(file))
}
