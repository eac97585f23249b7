//! Keys with what is said of them: names, other keys for signing, how long they hold.
//!
//! What is said counts if the key itself said it.  A name of a key of version 3 may go without: programs of its time
//! signed none.  That a key is whose name it bears is for whoever takes it into a keyring to know.

use pgp::packet::{PacketHeader, SignatureType as Kind, UserId};
use pgp::types::{KeyDetails as _, Tag};

use crate::armor::key_blocks;
use crate::error::Error;
use crate::key::{Fingerprint, Key, KeyId};
use crate::packet::next;
use crate::signature::Signature;

/// Names and signatures of one key that are looked at; real ones have some dozens.
const PARTS_MAX: usize = 10_000;

/// What a signature can be of.
#[derive(Debug, Clone)]
struct Part<T> {
    of: T,
    signatures: Vec<Signature>,
}

/// Takes one more of its parts; where the signatures of that go.
fn added<T>(parts: &mut Vec<Part<T>>, of: T) -> Option<&mut Vec<Signature>> {
    let signatures = Vec::new();
    parts.push(Part { of, signatures });
    parts.last_mut().map(|part| &mut part.signatures)
}

/// A public key with its names.
#[derive(Debug, Clone)]
pub struct Certificate {
    primary: Part<Key>,
    names: Vec<Part<UserId>>,
    subkeys: Vec<Part<Key>>,
    octets: Vec<u8>,
}

/// A packet's header and body.
type Packet<'a> = (PacketHeader, &'a [u8]);

/// What a key may be used for, by its own word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Its names.
    pub names: Vec<String>,
    /// When it holds no longer, seconds since 1970.
    pub expires: Option<u64>,
    /// Whether its owner has taken it back.
    pub is_revoked: bool,
}

/// All keys of a file, armored or not, each with why it cannot be taken.
///
/// # Errors
/// When it is no file of keys.
pub fn certificates(octets: &[u8]) -> Result<Vec<Result<Certificate, Error>>, Error> {
    let mut all = Vec::new();
    for block in key_blocks(octets)? {
        let mut rest = block.as_slice();
        // From the start of one key to that of the next.
        let (mut start, mut packets) = (rest, Vec::new());
        while !rest.is_empty() {
            let before = rest;
            let packet = next(&mut rest)?;
            match packet.0.tag() {
                Tag::SecretKey | Tag::SecretSubkey => {
                    return Err(Error::Unsupported(
                        "there is a secret key in it: give the public one",
                    ));
                }
                Tag::PublicKey => {
                    let octets = start.len() - before.len();
                    all.extend(made(&packets, start, octets));
                    (start, packets) = (before, vec![packet]);
                }
                _ => packets.push(packet),
            }
        }
        all.extend(made(&packets, start, start.len()));
    }
    Ok(all)
}

/// The certificate of these packets, which are the first so many octets; none: there is no packet.
fn made(packets: &[Packet<'_>], start: &[u8], octets: usize) -> Option<Result<Certificate, Error>> {
    if packets.is_empty() {
        return None;
    }
    let octets = start.get(..octets).unwrap_or_default();
    Some(Certificate::of(packets, octets.to_vec()))
}

impl Certificate {
    fn of(packets: &[Packet<'_>], octets: Vec<u8>) -> Result<Self, Error> {
        let Some(((_, body), rest)) = packets
            .split_first()
            .filter(|((header, _), _)| header.tag() == Tag::PublicKey)
        else {
            return Err(Error::Malformed("it does not begin with a public key"));
        };
        if rest.len() > PARTS_MAX {
            return Err(Error::Unsupported("it has too many names and signatures"));
        }
        let mut found = Self {
            primary: Part {
                of: Key::parse(body)?,
                signatures: Vec::new(),
            },
            names: Vec::new(),
            subkeys: Vec::new(),
            octets,
        };
        // None: signatures of what is not understood are of nothing.
        let mut last = Some(&mut found.primary.signatures);
        for (header, body) in rest {
            match header.tag() {
                Tag::Signature => {
                    if let Some(last) = &mut last {
                        last.extend(Signature::parse(*header, body));
                    }
                }
                Tag::UserId => {
                    let name = UserId::try_from_reader(*header, *body).ok();
                    last = name.and_then(|name| added(&mut found.names, name));
                }
                Tag::PublicSubkey => {
                    let key = Key::parse(body).ok();
                    last = key.and_then(|key| added(&mut found.subkeys, key));
                }
                // Markers, trust and padding are about nothing.
                Tag::Marker | Tag::Trust | Tag::Padding => {}
                _ => last = None,
            }
        }
        Ok(found)
    }

    /// The key's own octets, without armor: what [`certificates`] reads again.
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        &self.octets
    }

    /// What tells it from all others.
    #[must_use]
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.primary.of.fingerprint
    }

    /// When it was made, seconds since 1970.
    #[must_use]
    pub fn created(&self) -> u32 {
        self.primary.of.created()
    }

    /// Its kind and size, as in `RSA 2048`.
    #[must_use]
    pub fn algorithm(&self) -> String {
        self.primary.of.name.clone()
    }

    /// Whether a signature that names this key may be its own, or one of its subkeys'.
    #[must_use]
    pub fn may_be(&self, issuer: &KeyId) -> bool {
        self.keys().any(|key| key.id == *issuer)
    }

    fn keys(&self) -> impl Iterator<Item = &Key> {
        let subkeys = self.subkeys.iter().map(|part| &part.of);
        std::iter::once(&self.primary.of).chain(subkeys)
    }

    /// What the key itself says of it.  Each signature of its own is verified for that.
    #[must_use]
    pub fn standing(&self) -> Standing {
        let primary = &self.primary.of;
        let of_key = self.primary.signatures.iter();
        let own = |it: &&Signature| it.packet.verify_key(&primary.packet).is_ok();
        let is_revoked = of_key
            .clone()
            .any(|it| it.kind == Kind::KeyRevocation && own(&it));
        let direct = of_key.filter(|it| it.kind == Kind::Key && own(it));
        let mut says: Vec<&Signature> = direct.collect();
        let mut names = Vec::new();
        for name in &self.names {
            // Of what else is said of a name the library says that it is no certification.
            let own = |it: &&Signature| {
                let packet = &it.packet;
                let said = packet.verify_certification(&primary.packet, Tag::UserId, &name.of);
                said.is_ok()
            };
            let of_name = name.signatures.iter().filter(own);
            let newest = of_name.max_by_key(|it| it.created());
            let is_name = match newest {
                None => primary.version() < 4,
                Some(newest) => newest.kind != Kind::CertRevocation,
            };
            if is_name {
                names.push(String::from_utf8_lossy(name.of.id()).into_owned());
                says.extend(newest);
            }
        }
        let valid_s = match primary.packet.legacy_v3_expiration_days() {
            Some(days) => u64::from(days) * 86_400,
            None => {
                let newest = says.iter().max_by_key(|it| it.created());
                u64::from(newest.map_or(0, |it| it.key_valid_s()))
            }
        };
        Standing {
            names,
            expires: (valid_s > 0).then(|| u64::from(primary.created()) + valid_s),
            is_revoked,
        }
    }

    /// Whether this key, or one that it signs with, made this signature of a text, whose lines end with LF; what the key
    /// says of itself.
    ///
    /// # Errors
    /// Why it did not, or why the key may not be used for it.
    pub fn verify(&self, signature: &Signature, text: &[u8]) -> Result<Standing, Error> {
        let mut why = Error::OtherKey;
        let primary = &self.primary.of;
        for key in self.keys().filter(|key| signature.is_of(key)) {
            match signature.verify_text(key, text) {
                Ok(()) if key.id == primary.id || self.signs_with(key, signature.created()) => {
                    return self.at(signature);
                }
                Ok(()) => why = Error::Unusable("the key is not one for signing"),
                Err(error) => why = error,
            }
        }
        Err(why)
    }

    /// What the key says of itself, unless it did not hold when it signed.
    fn at(&self, signature: &Signature) -> Result<Standing, Error> {
        let standing = self.standing();
        let created = signature.created();
        if standing.is_revoked {
            return Err(Error::Unusable("the key has been revoked"));
        }
        if created < self.primary.of.created() {
            return Err(Error::Unusable("the key was made later than the signature"));
        }
        let is_over = |expires| u64::from(created) >= expires;
        if standing.expires.is_some_and(is_over) {
            return Err(Error::Unusable("the key had expired before"));
        }
        Ok(standing)
    }

    /// Whether the primary key says last that this one signed for it then, and this one says so too: else a key could take
    /// another's signatures for its own.
    fn signs_with(&self, key: &Key, then: u32) -> bool {
        let primary = &self.primary.of.packet;
        let parts = self.subkeys.iter().filter(|part| part.of.id == key.id);
        let said = parts.flat_map(|part| &part.signatures);
        // Of another kind than these two the library says that it is none.
        let said = said.filter(|it| {
            let verified = it.packet.verify_subkey_binding(primary, &key.packet);
            verified.is_ok()
        });
        let newest = said.max_by_key(|it| (it.created(), it.kind == Kind::SubkeyRevocation));
        newest.is_some_and(|it| {
            let valid_s = it.key_valid_s();
            let holds = valid_s == 0 || then < key.created().saturating_add(valid_s);
            let back = it.packet.embedded_signature();
            let back = back.map(|back| back.verify_primary_key_binding(&key.packet, primary));
            it.kind == Kind::SubkeyBinding
                && it.packet.key_flags().sign()
                && matches!(back, Some(Ok(())))
                && holds
        })
    }
}
