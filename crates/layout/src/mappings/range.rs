//! Buckets of consecutive numbers: what arrives together lies together, is listed together and expires together.
//!
//! A bucket is called `r` and its first number, so that no article's name looks like one.  An emptied bucket can be
//! removed, because numbers are never used again.

use std::fmt::Write;

use crate::name::{Name, written_number};

/// The largest range: beyond that nothing is small any more.
pub(super) const NUMBERS_MAX: u32 = 1 << 24;

/// The first number of the name's bucket; `None` for what is not a number as it is written.
pub(super) fn rank(name: Name<'_>, numbers: u32) -> Option<u64> {
    let number = name.number()?;
    Some(number - number % u64::from(numbers))
}

/// The bucket's path.
pub(super) fn write(rank: u64, path: &mut String) {
    // Writing into a string cannot fail.
    let _ = write!(path, "r{rank}");
}

/// The first number of a bucket of that name.
pub(super) fn parse(name: &[u8], numbers: u32) -> Option<u64> {
    let first = written_number(name.strip_prefix(b"r")?)?;
    first.is_multiple_of(u64::from(numbers)).then_some(first)
}
