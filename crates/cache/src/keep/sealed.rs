//! What stands around each value of the table: a version and a checksum over key and value.
//!
//! A value that is of another version, or damaged, or another key's, counts as not there: it is fetched again.  The layout is
//! in `docs/formats/cache.md`.

/// The version of every value.
const VERSION: u8 = 1;

/// Octets in front of a value.
const FRONT: usize = 5;

fn checksum(key: &[u8], value: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(key), value)
}

/// A value as it is kept.
pub(crate) fn seal(key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(FRONT + value.len());
    out.push(VERSION);
    out.extend_from_slice(&checksum(key, value).to_le_bytes());
    out.extend_from_slice(value);
    out
}

/// The value, if it is sound and this key's.
pub(crate) fn open<'v>(key: &[u8], sealed: &'v [u8]) -> Option<&'v [u8]> {
    let (front, value) = sealed.split_at_checked(FRONT)?;
    let (version, sum) = front.split_first()?;
    let is_sound = *version == VERSION && *sum == checksum(key, value).to_le_bytes();
    is_sound.then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_octet_may_be_another() {
        let sealed = seal(b"key", b"value");
        assert_eq!(open(b"key", &sealed), Some(&b"value"[..]));
        assert_eq!(open(b"kez", &sealed), None);
        for place in 0..sealed.len() {
            let mut other = sealed.clone();
            other[place] ^= 4;
            assert_eq!(open(b"key", &other), None, "{place}");
            assert_eq!(open(b"key", &sealed[..place]), None, "cut at {place}");
        }
    }
}
