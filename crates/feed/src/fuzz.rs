//! Takes any octets for the file of the feeds' places: the door for fuzzers.
//!
//! Must never panic, whatever comes.

use crate::place;

/// Takes `octets` for the file, as they are and behind a right checksum; says whether they are one, the same when written again.
#[must_use]
pub fn decode_places(octets: &[u8]) -> bool {
    let _ = place::parse(&place::made(octets));
    place::parse(octets)
        .is_some_and(|places| place::parse(place::print(&places).as_bytes()) == Some(places))
}
