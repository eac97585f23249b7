//! Signatures: packets of versions 3 and 4 (RFC 9580 section 5.2), and what is hashed beside the text.

use std::borrow::Cow;

use crate::error::Error;
use crate::hash::Hash;
use crate::key::{Key, KeyId};
use crate::packet::{Reader, octets_of};
use crate::verify::Made;

/// Kinds of signatures (section 5.2.1).
pub(crate) mod kind {
    pub(crate) const BINARY: u8 = 0x00;
    pub(crate) const TEXT: u8 = 0x01;
    pub(crate) const CERTIFICATIONS: std::ops::RangeInclusive<u8> = 0x10..=0x13;
    pub(crate) const SUBKEY: u8 = 0x18;
    pub(crate) const DIRECT: u8 = 0x1f;
    pub(crate) const KEY_REVOKED: u8 = 0x20;
    pub(crate) const SUBKEY_REVOKED: u8 = 0x28;
    pub(crate) const CERTIFICATION_REVOKED: u8 = 0x30;
}

/// A detached signature, or one that says something of a key.
#[derive(Debug, Clone)]
pub struct Signature {
    version: u8,
    pub(crate) kind: u8,
    pub(crate) created: u32,
    pub(crate) issuer: Option<KeyId>,
    /// Seconds that the key holds from its making on, where that is said here.
    pub(crate) key_valid_s: Option<u32>,
    /// What the key is for; none: it is not said.
    pub(crate) key_flags: Option<u8>,
    hash: Hash,
    made: Made,
    /// What is hashed behind the text.
    trailer: Vec<u8>,
}

impl Signature {
    /// Reads one packet, and nothing behind it.
    ///
    /// # Errors
    /// When it is no signature, or one of a kind that is not verified here.
    pub fn read(octets: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader(octets);
        match reader.packet()? {
            (2, body) if reader.is_empty() => Self::parse(body),
            (2, _) => Err(Error::Malformed("something follows the signature")),
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

    pub(crate) fn parse(body: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader(body);
        match reader.octet()? {
            2 | 3 => Self::parse_old(&mut reader),
            4 => Self::parse_new(body, &mut reader),
            _ => Err(Error::Unsupported("its version is not 3 or 4")),
        }
    }

    fn parse_old(reader: &mut Reader<'_>) -> Result<Self, Error> {
        if reader.octet()? != 5 {
            return Err(Error::Malformed(
                "what is hashed is not as long as it must be",
            ));
        }
        let mut hashed = Reader(reader.take(5)?);
        let trailer = hashed.0.to_vec();
        let (kind, created) = (hashed.octet()?, hashed.number(4)?);
        let issuer = reader.take(8)?.try_into().ok();
        let (algorithm, hash) = (reader.octet()?, Hash::of_number(reader.octet()?)?);
        reader.take(2)?;
        Ok(Self {
            version: 3,
            kind,
            created,
            issuer,
            key_valid_s: None,
            key_flags: None,
            hash,
            made: Made::parse(algorithm, reader)?,
            trailer,
        })
    }

    fn parse_new(body: &[u8], reader: &mut Reader<'_>) -> Result<Self, Error> {
        let kind = reader.octet()?;
        let (algorithm, hash) = (reader.octet()?, Hash::of_number(reader.octet()?)?);
        let octets = reader.number(2)?;
        let hashed = Reader(reader.take(octets as usize)?);
        let unhashed = reader.number(2)? as usize;
        let unhashed = Reader(reader.take(unhashed)?);
        reader.take(2)?;
        let front = body.get(..6 + octets as usize).unwrap_or_default();
        let behind = octets_of(6 + octets);
        let mut signature = Self {
            version: 4,
            kind,
            created: 0,
            issuer: None,
            key_valid_s: None,
            key_flags: None,
            hash,
            made: Made::parse(algorithm, reader)?,
            trailer: [front, &[4, 0xff], &behind].concat(),
        };
        signature.take_subpackets(hashed, true)?;
        signature.take_subpackets(unhashed, false)?;
        Ok(signature)
    }

    /// Takes what is said beside (section 5.2.3.7); what is not hashed may only help to find the key.
    fn take_subpackets(&mut self, mut reader: Reader<'_>, is_hashed: bool) -> Result<(), Error> {
        while !reader.is_empty() {
            let octets = match reader.octet()? {
                short @ 0..=191 => usize::from(short),
                255 => reader.number(4)? as usize,
                first => ((usize::from(first) - 192) << 8) + usize::from(reader.octet()?) + 192,
            };
            let mut content = Reader(reader.take(octets)?);
            let tag = content.octet()?;
            match (tag & 0x7f, is_hashed) {
                (2, true) => self.created = content.number(4)?,
                (9, true) => self.key_valid_s = Some(content.number(4)?),
                (27, true) => self.key_flags = Some(content.octet().unwrap_or_default()),
                (16, _) => self.issuer = content.take(8)?.try_into().ok(),
                // A fingerprint of version 4 ends with the id.
                (33, _) => self.issuer = content.rest().last_chunk::<8>().copied(),
                // Facts that nothing here depends on.
                (3 | 4 | 7 | 11 | 21..=23 | 25 | 30, _) => {}
                // Who signs says that whoever does not know this must not believe it.
                (_, true) if tag & 0x80 != 0 => {
                    return Err(Error::Unsupported(
                        "it says something that is not known here",
                    ));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether it says of something else than a text that it was made by this key.
    pub(crate) fn is_of(&self, key: &Key) -> bool {
        self.issuer.is_none_or(|issuer| issuer == key.id)
    }

    /// Whether this key signed these parts.
    pub(crate) fn verify(&self, key: &Key, parts: &[&[u8]]) -> Result<(), Error> {
        if !self.is_of(key) {
            return Err(Error::OtherKey);
        }
        let digest = self.hash.of(&[parts, &[&self.trailer]].concat());
        key.material.verify(self.hash, &digest, &self.made)
    }

    /// Whether this key signed this text, whose lines end with LF.
    pub(crate) fn verify_text(&self, key: &Key, text: &[u8]) -> Result<(), Error> {
        let text = match self.kind {
            kind::BINARY => Cow::Borrowed(text),
            kind::TEXT => Cow::Owned(with_crlf(text)),
            _ => return Err(Error::Malformed("it is no signature of a text")),
        };
        self.verify(key, &[&text])
    }

    /// What is hashed of a name that a key is given.
    pub(crate) fn hashed_name(&self, name: &[u8]) -> Vec<u8> {
        match self.version {
            3 => name.to_vec(),
            _ => {
                let octets = u32::try_from(name.len()).unwrap_or(u32::MAX);
                [&[0xb4], &octets_of(octets)[..], name].concat()
            }
        }
    }
}

/// With CRLF for LF.
fn with_crlf(text: &[u8]) -> Vec<u8> {
    let mut made = Vec::with_capacity(text.len() + text.len() / 16);
    for line in text.split_inclusive(|octet| *octet == b'\n') {
        match line {
            [line @ .., b'\n'] => {
                made.extend_from_slice(line);
                made.extend_from_slice(b"\r\n");
            }
            line => made.extend_from_slice(line),
        }
    }
    made
}
