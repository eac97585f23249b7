//! Signatures: packets of versions 2 to 4 (RFC 9580 section 5.2).

use pgp::crypto::public_key::PublicKeyAlgorithm as Algorithm;
use pgp::packet::{self, PacketHeader, SignatureType, SignatureVersion};
use pgp::types::Tag;

use crate::error::Error;
use crate::key::{Key, KeyId};
use crate::packet::{next, said};

/// A detached signature, or one that says something of a key.
#[derive(Debug, Clone)]
pub struct Signature {
    pub(crate) packet: packet::Signature,
    pub(crate) kind: SignatureType,
    created: u32,
    issuer: Option<KeyId>,
}

impl Signature {
    /// Reads one packet, and nothing behind it.
    ///
    /// # Errors
    /// When it is no signature, or one of a kind that is not verified here.
    pub fn read(octets: &[u8]) -> Result<Self, Error> {
        let mut rest = octets;
        let (header, body) = next(&mut rest)?;
        match header.tag() {
            Tag::Signature if rest.is_empty() => Self::parse(header, body),
            Tag::Signature => Err(Error::Malformed("something follows the signature")),
            _ => Err(Error::Malformed("it is no signature")),
        }
    }

    /// When it says that it was made, seconds since 1970.
    #[must_use]
    pub const fn created(&self) -> u32 {
        self.created
    }

    /// The key that it says made it.
    #[must_use]
    pub const fn issuer(&self) -> Option<KeyId> {
        self.issuer
    }

    pub(crate) fn parse(header: PacketHeader, body: &[u8]) -> Result<Self, Error> {
        use SignatureVersion::{V2, V3, V4};
        let packet = packet::Signature::try_from_reader(header, body).map_err(said)?;
        let known = packet
            .config()
            .filter(|it| matches!(it.version(), V2 | V3 | V4))
            .ok_or(Error::Unsupported("its version is not 2, 3 or 4"))?;
        if known.hash_alg.digest_size().is_none() {
            return Err(Error::Unsupported("its hash function is not known here"));
        }
        if !is_known(known.pub_alg) {
            return Err(Error::Unsupported("its algorithm is not known here"));
        }
        let ids = known.issuer_key_id();
        let id = ids.last().map(|id| id.as_ref());
        // A fingerprint of version 4 ends with the id.
        let prints = known.issuer_fingerprint();
        let named = prints.last().map(|print| print.as_bytes());
        let issuer = id.or(named).and_then(|octets| octets.last_chunk::<8>());
        Ok(Self {
            kind: known.typ(),
            created: known.created().map_or(0, |created| created.as_secs()),
            issuer: issuer.copied(),
            packet,
        })
    }

    /// Whether it may be of this key.
    pub(crate) fn is_of(&self, key: &Key) -> bool {
        self.issuer.is_none_or(|issuer| issuer == key.id)
    }

    /// Whether this key signed this text, whose lines end with LF.
    pub(crate) fn verify_text(&self, key: &Key, text: &[u8]) -> Result<(), Error> {
        if !matches!(self.kind, SignatureType::Binary | SignatureType::Text) {
            return Err(Error::Malformed("it is no signature of a text"));
        }
        let verified = self.packet.verify(&key.packet, text);
        verified.map_err(|error| match error {
            pgp::errors::Error::Unsupported { .. } => said(error),
            _ => Error::Wrong,
        })
    }

    /// Seconds that the key holds from its making on, where that is said here; 0: for ever.
    pub(crate) fn key_valid_s(&self) -> u32 {
        let said = self.packet.key_expiration_time();
        said.map_or(0, |it| it.as_secs())
    }
}

const fn is_known(algorithm: Algorithm) -> bool {
    use Algorithm::{DSA, ECDSA, Ed25519, EdDSALegacy, RSA, RSASign};
    matches!(
        algorithm,
        RSA | RSASign | DSA | ECDSA | EdDSALegacy | Ed25519
    )
}
