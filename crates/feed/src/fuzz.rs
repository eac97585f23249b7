//! Takes any octets for the files of the feeds' and pulls' places: the door for fuzzers.
//!
//! Must never panic, whatever comes.

use crate::{place, pull};

/// Takes `octets` for the file, as they are and behind a right checksum; says whether they are one, the same when written again.
#[must_use]
pub fn decode_places(octets: &[u8]) -> bool {
    let _ = place::parse(&place::made(octets));
    place::parse(octets)
        .is_ok_and(|places| place::parse(place::print(&places).as_bytes()) == Ok(places))
}

/// Takes `octets` for the file of the pulls' marks; says whether they are one, the same when written again.
#[must_use]
pub fn decode_marks(octets: &[u8]) -> bool {
    pull::is_file(octets)
}
