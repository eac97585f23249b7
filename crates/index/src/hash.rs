//! The keyed hash under which message-ids are known.
//!
//! 128 bits of BLAKE3 in its keyed mode: nobody who does not know the spool's key can make two ids collide, and the
//! octets are mixed well enough to be used as positions in tables and filters directly.

use newsreel_wire::{IdHash, MessageId};

/// The hash of a message-id under the spool's key.
#[must_use]
pub fn id_hash(key: &[u8; 32], id: MessageId<'_>) -> IdHash {
    let hash = blake3::keyed_hash(key, id.as_bytes());
    let mut octets = [0; 16];
    octets.copy_from_slice(&hash.as_bytes()[..16]);
    IdHash(octets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_and_the_id_decide() {
        let id = |text: &'static [u8]| MessageId::parse(text).unwrap();
        let hash = id_hash(&[7; 32], id(b"<1@t.example>"));
        assert_eq!(hash, id_hash(&[7; 32], id(b"<1@t.example>")));
        assert_ne!(hash, id_hash(&[8; 32], id(b"<1@t.example>")));
        assert_ne!(hash, id_hash(&[7; 32], id(b"<2@t.example>")));
        assert_ne!(hash.prefix(), hash.suffix());
    }
}
