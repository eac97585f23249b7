//! Takes any octets for the parts of sealed files: the door for fuzzers.
//!
//! Files protect their parts by checksums, which a fuzzer does not get past; here each decoder gets the octets bare.
//! Must never panic, whatever comes.

use bytes::Bytes;

use crate::groups::seal::GroupRun;
use crate::history::bucket::BucketFacts;
use crate::overview::block::Columns;
use crate::overview::pack::decode_entries;
use crate::sealed::filter::Filter;
use crate::sealed::manifest::Manifest;

/// Decodes `octets` as each part that a file of the views can have; says how many took them.
#[must_use]
pub fn decode_parts(octets: &[u8]) -> usize {
    let columns = Columns::decode(Bytes::copy_from_slice(octets));
    if let Ok(columns) = &columns {
        for row in 0..columns.len() {
            let whole = columns.row(row, octets);
            assert_eq!(columns.position(whole.number), row, "numbers rise");
        }
    }
    let filter = Filter::decode(octets);
    if let Ok(filter) = &filter {
        let _ = filter.may_contain(0) | filter.may_contain(u64::MAX);
    }
    let end = u64::from(u32::MAX);
    let taken = [
        columns.is_ok(),
        filter.is_ok(),
        decode_entries(octets, end).is_ok(),
        BucketFacts::decode(octets).is_ok(),
        Manifest::decode(octets, &[0; 16]).is_ok(),
        GroupRun::decode(octets, octets, octets).is_ok(),
    ];
    taken.into_iter().filter(|taken| *taken).count()
}
