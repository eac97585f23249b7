//! Keys with what is said of them: names, other keys for signing, how long they hold.
//!
//! What is said counts if the key itself said it.  A name of a key of version 3 may go without: programs of its time
//! signed none.  That a key is whose name it bears is for whoever takes it into a keyring to know.

use crate::armor::key_blocks;
use crate::error::Error;
use crate::key::{Fingerprint, Key, KeyId};
use crate::packet::Reader;
use crate::signature::{Signature, kind};

/// Names and signatures of one key that are looked at; real ones have some dozens.
const PARTS_MAX: usize = 10_000;

/// What a signature can be of.
#[derive(Debug, Clone, Default)]
struct Part<T> {
    of: T,
    signatures: Vec<Signature>,
}

/// A public key with its names.
#[derive(Debug, Clone)]
pub struct Certificate {
    primary: Part<Box<Key>>,
    names: Vec<Part<Vec<u8>>>,
    subkeys: Vec<Part<Box<Key>>>,
    octets: Vec<u8>,
}

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
        let mut reader = Reader(&block);
        // From the start of one key to that of the next.
        let (mut start, mut packets) = (block.as_slice(), Vec::new());
        while !reader.is_empty() {
            let before = reader.0;
            let (tag, body) = reader.packet()?;
            match tag {
                5 | 7 => {
                    return Err(Error::Unsupported(
                        "there is a secret key in it: give the public one",
                    ));
                }
                6 => {
                    let octets = start.len() - before.len();
                    all.extend(made(&packets, start, octets));
                    (start, packets) = (before, vec![(tag, body)]);
                }
                _ => packets.push((tag, body)),
            }
        }
        all.extend(made(&packets, start, start.len()));
    }
    Ok(all)
}

/// The certificate of these packets, which are the first so many octets; none: there is no packet.
fn made(
    packets: &[(u8, &[u8])],
    start: &[u8],
    octets: usize,
) -> Option<Result<Certificate, Error>> {
    if packets.is_empty() {
        return None;
    }
    let octets = start.get(..octets).unwrap_or_default();
    Some(Certificate::of(packets, octets.to_vec()))
}

impl Certificate {
    fn of(packets: &[(u8, &[u8])], octets: Vec<u8>) -> Result<Self, Error> {
        let Some(((6, body), rest)) = packets.split_first() else {
            return Err(Error::Malformed("it does not begin with a public key"));
        };
        if rest.len() > PARTS_MAX {
            return Err(Error::Unsupported("it has too many names and signatures"));
        }
        let part = |body| {
            Ok::<_, Error>(Part {
                of: Box::new(Key::parse(body)?),
                signatures: Vec::new(),
            })
        };
        let mut found = Self {
            primary: part(body)?,
            names: Vec::new(),
            subkeys: Vec::new(),
            octets,
        };
        // Signatures of what is not understood are of nothing.
        let mut unknown = Vec::new();
        let mut last = &mut found.primary.signatures;
        for (tag, body) in rest {
            match tag {
                2 => last.extend(Signature::parse(body)),
                13 => {
                    found.names.push(Part {
                        of: body.to_vec(),
                        signatures: Vec::new(),
                    });
                    last = match found.names.last_mut() {
                        Some(part) => &mut part.signatures,
                        None => &mut unknown,
                    };
                }
                14 => {
                    found.subkeys.extend(part(body));
                    last = match found.subkeys.last_mut() {
                        Some(part) => &mut part.signatures,
                        None => &mut unknown,
                    };
                }
                // Markers, trust and padding are about nothing.
                10 | 12 | 21 => {}
                _ => last = &mut unknown,
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
        self.primary.of.created
    }

    /// Its kind and size, as in `RSA 2048`.
    #[must_use]
    pub fn algorithm(&self) -> String {
        self.primary.of.material.name()
    }

    /// Whether a signature that names this key may be its own, or one of its subkeys'.
    #[must_use]
    pub fn may_be(&self, issuer: &KeyId) -> bool {
        self.keys().any(|key| key.id == *issuer)
    }

    fn keys(&self) -> impl Iterator<Item = &Key> {
        let subkeys = self.subkeys.iter().map(|part| &*part.of);
        std::iter::once(&*self.primary.of).chain(subkeys)
    }

    /// What the key itself says of it.  Each signature of its own is verified for that.
    #[must_use]
    pub fn standing(&self) -> Standing {
        let primary = &self.primary.of;
        let hashed = primary.hashed();
        let own = |signature: &&Signature| signature.verify(primary, &[&hashed]).is_ok();
        let of_key = self.primary.signatures.iter();
        let is_revoked = of_key
            .clone()
            .any(|it| it.kind == kind::KEY_REVOKED && own(&it));
        let direct = of_key.filter(|it| it.kind == kind::DIRECT && own(it));
        let mut says: Vec<&Signature> = direct.collect();
        let mut names = Vec::new();
        for name in &self.names {
            let own = |it: &&Signature| {
                let hashed_name = it.hashed_name(&name.of);
                it.verify(primary, &[&hashed, &hashed_name]).is_ok()
            };
            let is_about = |it: &&Signature| {
                kind::CERTIFICATIONS.contains(&it.kind) || it.kind == kind::CERTIFICATION_REVOKED
            };
            let of_name = name.signatures.iter().filter(is_about).filter(own);
            let newest = of_name.max_by_key(|it| it.created);
            let is_name = match newest {
                None => primary.version < 4,
                Some(newest) => newest.kind != kind::CERTIFICATION_REVOKED,
            };
            if is_name {
                names.push(String::from_utf8_lossy(&name.of).into_owned());
                says.extend(newest);
            }
        }
        let newest = says.iter().max_by_key(|it| it.created);
        let valid_s = match primary.version {
            4 => newest.and_then(|it| it.key_valid_s).unwrap_or_default(),
            _ => primary.valid_s,
        };
        Standing {
            names,
            expires: (valid_s > 0).then(|| u64::from(primary.created) + u64::from(valid_s)),
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
                Ok(()) if key.id == primary.id || self.signs_with(key, signature.created) => {
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
        let created = signature.created;
        if standing.is_revoked {
            return Err(Error::Unusable("the key has been revoked"));
        }
        if created < self.primary.of.created {
            return Err(Error::Unusable("the key was made later than the signature"));
        }
        let is_over = |expires| u64::from(created) >= expires;
        if standing.expires.is_some_and(is_over) {
            return Err(Error::Unusable("the key had expired before"));
        }
        Ok(standing)
    }

    /// Whether the primary key says last that this one signed for it then.
    fn signs_with(&self, key: &Key, then: u32) -> bool {
        let primary = &self.primary.of;
        let (hashed, other) = (primary.hashed(), key.hashed());
        let parts = self.subkeys.iter().filter(|part| part.of.id == key.id);
        let said = parts.flat_map(|part| &part.signatures).filter(|it| {
            matches!(it.kind, kind::SUBKEY | kind::SUBKEY_REVOKED)
                && it.verify(primary, &[&hashed, &other]).is_ok()
        });
        let newest = said.max_by_key(|it| (it.created, it.kind));
        newest.is_some_and(|it| {
            let flags = it.key_flags.unwrap_or_default();
            let valid_s = it.key_valid_s.unwrap_or_default();
            let holds = valid_s == 0 || then < key.created.saturating_add(valid_s);
            it.kind == kind::SUBKEY && flags & 2 != 0 && holds
        })
    }
}
