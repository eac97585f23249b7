//! Public keys: packets of versions 3 and 4 (RFC 4880 section 5.5.2), their fingerprints and what they verify with.

use std::fmt;

use crate::error::Error;
use crate::hash::Hash;
use crate::packet::{Reader, number};
use crate::verify::Material;

/// Eight octets by which a signature names its key; two keys can have the same.
pub type KeyId = [u8; 8];

/// What tells a key from all others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fingerprint(Vec<u8>);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|octet| write!(f, "{octet:02X}"))
    }
}

/// One public key.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) version: u8,
    pub(crate) created: u32,
    /// Seconds from then on for which a key of version 3 holds; 0: for ever.
    pub(crate) valid_s: u32,
    pub(crate) id: KeyId,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) material: Material,
    /// The packet's body, as it is hashed.
    body: Vec<u8>,
}

impl Key {
    pub(crate) fn parse(body: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader(body);
        let version = reader.octet()?;
        if !matches!(version, 2..=4) {
            return Err(Error::Unsupported("its version is not 2, 3 or 4"));
        }
        let created = reader.number(4)?;
        let valid_days = if version < 4 { reader.number(2)? } else { 0 };
        let algorithm = reader.octet()?;
        let mut of_material = reader;
        let material = Material::parse(algorithm, &mut reader)?;
        let (id, fingerprint) = if version < 4 {
            // Of the numbers' octets alone, without their lengths.
            let (modulus, exponent) = (of_material.mpi()?, of_material.mpi()?);
            let id = modulus.last_chunk::<8>().copied();
            (id, Hash::Md5.of(&[modulus, exponent]))
        } else {
            let fingerprint = Hash::Sha1.of(&[&header(body), body]);
            (fingerprint.last_chunk::<8>().copied(), fingerprint)
        };
        Ok(Self {
            version,
            created,
            valid_s: valid_days * 86_400,
            id: id.ok_or(Error::Malformed("the key is too short"))?,
            fingerprint: Fingerprint(fingerprint),
            material,
            body: body.to_vec(),
        })
    }

    /// What is hashed of it where something is said of it (RFC 9580 section 5.2.4).
    pub(crate) fn hashed(&self) -> Vec<u8> {
        [&header(&self.body)[..], &self.body].concat()
    }
}

/// In front of a key where it is hashed.
fn header(body: &[u8]) -> [u8; 3] {
    let octets = body.len().to_le_bytes();
    debug_assert_eq!(
        number(&[octets[1], octets[0]]) as usize,
        body.len() & 0xffff
    );
    [0x99, octets[1], octets[0]]
}
