//! The hash functions of signatures, by their numbers (RFC 9580 section 9.5).

use sha1::Sha1;
use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use crate::error::Error;

/// One of them.  MD5 and SHA-1 are among them because real hierarchies have nothing newer: to forge one of their
/// signatures takes a second preimage, not a collision, as long as they sign only what they wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hash {
    Md5,
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
}

impl Hash {
    pub(crate) const fn of_number(number: u8) -> Result<Self, Error> {
        Ok(match number {
            1 => Self::Md5,
            2 => Self::Sha1,
            8 => Self::Sha256,
            9 => Self::Sha384,
            10 => Self::Sha512,
            11 => Self::Sha224,
            _ => return Err(Error::Unsupported("its hash function is not known here")),
        })
    }

    /// The hash of these parts, one behind the other.
    pub(crate) fn of(self, parts: &[&[u8]]) -> Vec<u8> {
        fn made<D: Digest>(parts: &[&[u8]]) -> Vec<u8> {
            let mut digest = D::new();
            for part in parts {
                digest.update(part);
            }
            digest.finalize().to_vec()
        }
        match self {
            Self::Md5 => made::<md5::Md5>(parts),
            Self::Sha1 => made::<Sha1>(parts),
            Self::Sha224 => made::<Sha224>(parts),
            Self::Sha256 => made::<Sha256>(parts),
            Self::Sha384 => made::<Sha384>(parts),
            Self::Sha512 => made::<Sha512>(parts),
        }
    }

    /// What stands before the hash in a signature by RSA (RFC 9580 section 5.2.2).
    pub(crate) const fn der_prefix(self) -> &'static [u8] {
        match self {
            Self::Md5 => {
                b"\x30\x20\x30\x0c\x06\x08\x2a\x86\x48\x86\xf7\x0d\x02\x05\x05\x00\x04\x10"
            }
            Self::Sha1 => b"\x30\x21\x30\x09\x06\x05\x2b\x0e\x03\x02\x1a\x05\x00\x04\x14",
            Self::Sha224 => {
                b"\x30\x2d\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x04\x05\x00\x04\x1c"
            }
            Self::Sha256 => {
                b"\x30\x31\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x01\x05\x00\x04\x20"
            }
            Self::Sha384 => {
                b"\x30\x41\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x02\x05\x00\x04\x30"
            }
            Self::Sha512 => {
                b"\x30\x51\x30\x0d\x06\x09\x60\x86\x48\x01\x65\x03\x04\x02\x03\x05\x00\x04\x40"
            }
        }
    }
}
