//! Public keys: packets of versions 2 to 4 (RFC 4880 section 5.5.2), which of them are taken, and their fingerprints.

use std::fmt;

use pgp::crypto::hash::HashAlgorithm;
use pgp::packet::{PacketHeader, PublicKey};
use pgp::ser::Serialize as _;
use pgp::types::{
    KeyDetails as _, KeyVersion, Mpi, PacketHeaderVersion, PacketLength, PublicParams, Tag,
};

use crate::error::Error;
use crate::packet::said;

/// Bits of an RSA modulus and of a DSA prime.  Shorter ones are factored by anybody; the library has the upper limits.
const BITS_MIN: usize = 1024;

/// Bits of the order of a DSA key.
const ORDER_BITS_MIN: usize = 160;

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

/// One public key, which may be another's subkey: what is hashed of it is the same.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) packet: PublicKey,
    pub(crate) id: KeyId,
    pub(crate) fingerprint: Fingerprint,
    /// Its kind and size, for people.
    pub(crate) name: String,
}

impl Key {
    pub(crate) fn parse(body: &[u8]) -> Result<Self, Error> {
        if !matches!(body.first(), Some(2..=4)) {
            return Err(Error::Unsupported("its version is not 2, 3 or 4"));
        }
        let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
        let length = PacketLength::Fixed(length);
        let header = PacketHeader::from_parts(PacketHeaderVersion::New, Tag::PublicKey, length);
        let header = header.map_err(said)?;
        let packet = PublicKey::try_from_reader(header, body).map_err(said)?;
        let id = packet.legacy_key_id().as_ref().try_into();
        Ok(Self {
            id: id.map_err(|_| Error::Malformed("its id is not 8 octets"))?,
            fingerprint: Fingerprint(fingerprint(&packet)?),
            name: name(&packet)?,
            packet,
        })
    }

    pub(crate) fn version(&self) -> u8 {
        self.packet.version().into()
    }

    /// When it was made, seconds since 1970.
    pub(crate) fn created(&self) -> u32 {
        self.packet.created_at().as_secs()
    }
}

/// The library makes those of old keys of the numbers' lengths too, where RFC 4880 section 12.2 takes the numbers alone.
fn fingerprint(packet: &PublicKey) -> Result<Vec<u8>, Error> {
    if packet.version() >= KeyVersion::V4 {
        return Ok(packet.fingerprint().as_bytes().to_vec());
    }
    let numbers = numbers(packet, 2)?;
    let octets: Vec<&[u8]> = numbers.iter().map(Mpi::as_ref).collect();
    let digest = HashAlgorithm::Md5.digest(&octets.concat());
    digest.map_err(|_| Error::Unsupported("its fingerprint cannot be made here"))
}

/// Its kind and size, as in `RSA 2048`; a key that anybody can make signatures of is refused.
fn name(packet: &PublicKey) -> Result<String, Error> {
    let (kind, limits): (_, &[usize]) = match packet.public_params() {
        PublicParams::RSA(_) => ("RSA", &[BITS_MIN]),
        PublicParams::DSA(_) => ("DSA", &[BITS_MIN, ORDER_BITS_MIN]),
        PublicParams::EdDSALegacy(_) | PublicParams::Ed25519(_) => return Ok("Ed25519".to_owned()),
        PublicParams::ECDSA(_) => return Ok("ECDSA".to_owned()),
        _ => return Ok("other".to_owned()),
    };
    let sizes = numbers(packet, limits.len())?;
    let sizes: Vec<usize> = sizes.iter().map(bits).collect();
    if sizes.iter().zip(limits).any(|(size, limit)| size < limit) {
        return Err(Error::Unsupported(
            "its numbers are too short: an RSA or DSA key has 1024 bits or more",
        ));
    }
    Ok(format!("{kind} {}", sizes.first().unwrap_or(&0)))
}

/// The first of the numbers that it is made of.
fn numbers(packet: &PublicKey, many: usize) -> Result<Vec<Mpi>, Error> {
    let octets = packet.public_params().to_bytes().map_err(said)?;
    let mut rest = octets.as_slice();
    let numbers = (0..many).map(|_| Mpi::try_from_reader(&mut rest).map_err(said));
    numbers.collect()
}

fn bits(number: &Mpi) -> usize {
    let octets = number.as_ref();
    let zeros = octets.first().map_or(0, |first| first.leading_zeros());
    octets.len() * 8 - zeros as usize
}
