//! The hash of names in cookies and of entries in fingerprints.
//!
//! Never to be changed: both are kept over restarts.

/// FNV-1a with a last mix.
pub(crate) fn hash_of(octets: &[u8]) -> u64 {
    let hash = octets
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, octet| {
            (hash ^ u64::from(*octet)).wrapping_mul(0x0100_0000_01b3)
        });
    (hash ^ (hash >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
