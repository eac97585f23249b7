//! What a signature is by each algorithm: RSA (RFC 8017 section 8.2.2), DSA (FIPS 186-4 section 4.7), Ed25519 (RFC 8032).
//!
//! All that is here is public, so nothing depends on how long it takes.  Numbers of a key have sizes within which each step
//! is quick, and a signature's are smaller than its key's.

use num_bigint::BigUint;
use ring::signature::{ED25519, UnparsedPublicKey};

use crate::error::Error;
use crate::hash::Hash;
use crate::packet::Reader;

/// Bits of an RSA modulus and of a DSA prime.  Shorter ones are factored by anybody.
const BITS: std::ops::RangeInclusive<u64> = 1024..=8192;

/// Bits of the order of a DSA key.
const ORDER_BITS: std::ops::RangeInclusive<u64> = 160..=512;

/// Bits of an RSA exponent: all that are in use are far smaller.
const EXPONENT_BITS_MAX: u64 = 64;

/// Ed25519 as an object identifier, with its length in front.
const ED25519_OID: &[u8] = b"\x09\x2b\x06\x01\x04\x01\xda\x47\x0f\x01";

/// What a key verifies with.
#[derive(Debug, Clone)]
pub(crate) enum Material {
    Rsa {
        modulus: BigUint,
        exponent: BigUint,
    },
    Dsa {
        prime: BigUint,
        order: BigUint,
        base: BigUint,
        public: BigUint,
    },
    Ed25519([u8; 32]),
    /// A key of another kind: for encryption, or newer than this.
    Other,
}

/// The numbers of a signature, or its octets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Made {
    algorithm: u8,
    parts: Vec<Vec<u8>>,
}

impl Material {
    pub(crate) fn parse(algorithm: u8, reader: &mut Reader<'_>) -> Result<Self, Error> {
        let mut mpi = || Ok::<_, Error>(BigUint::from_bytes_be(reader.mpi()?));
        match algorithm {
            1 | 3 => {
                let (modulus, exponent) = (mpi()?, mpi()?);
                let is_sound = BITS.contains(&modulus.bits())
                    && (2..=EXPONENT_BITS_MAX).contains(&exponent.bits());
                match is_sound {
                    true => Ok(Self::Rsa { modulus, exponent }),
                    false => Err(Error::Unsupported(
                        "its RSA numbers are too short or too long: 1024 to 8192 bits are taken",
                    )),
                }
            }
            17 => {
                let (prime, order, base, public) = (mpi()?, mpi()?, mpi()?, mpi()?);
                let one = BigUint::from(1u8);
                let is_sound = BITS.contains(&prime.bits())
                    && ORDER_BITS.contains(&order.bits())
                    && [&base, &public].iter().all(|it| **it > one && **it < prime);
                match is_sound {
                    true => Ok(Self::Dsa {
                        prime,
                        order,
                        base,
                        public,
                    }),
                    false => Err(Error::Unsupported(
                        "its DSA numbers are too short or too long: 1024 to 8192 bits are taken",
                    )),
                }
            }
            22 if reader.0.starts_with(ED25519_OID) => {
                reader.take(ED25519_OID.len())?;
                // 0x40 says that the point is as Ed25519 has it.
                let point = reader.mpi()?.strip_prefix(&[0x40]);
                let point = point.and_then(|point| point.try_into().ok());
                let bad = Error::Malformed("its point is none of Ed25519");
                Ok(Self::Ed25519(point.ok_or(bad)?))
            }
            27 => {
                let point = reader.take(32)?.try_into();
                Ok(Self::Ed25519(point.map_err(|_| {
                    Error::Malformed("its point is none of Ed25519")
                })?))
            }
            _ => Ok(Self::Other),
        }
    }

    /// What it is, for people.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Rsa { modulus, .. } => format!("RSA {}", modulus.bits()),
            Self::Dsa { prime, .. } => format!("DSA {}", prime.bits()),
            Self::Ed25519(_) => "Ed25519".to_owned(),
            Self::Other => "other".to_owned(),
        }
    }

    /// Whether this key made that of a text with this hash.
    pub(crate) fn verify(&self, hash: Hash, digest: &[u8], made: &Made) -> Result<(), Error> {
        let is_right = match (self, made.algorithm, made.parts.as_slice()) {
            (Self::Rsa { modulus, exponent }, 1 | 3, [signature]) => {
                is_rsa(modulus, exponent, hash, digest, signature)
            }
            (
                Self::Dsa {
                    prime,
                    order,
                    base,
                    public,
                },
                17,
                [r, s],
            ) => is_dsa([prime, order, base, public], digest, r, s),
            (Self::Ed25519(point), 22, [r, s]) => {
                let signature = [padded(r), padded(s)].concat();
                is_ed25519(point, digest, &signature)
            }
            (Self::Ed25519(point), 27, [signature]) => is_ed25519(point, digest, signature),
            (Self::Other, ..) => {
                return Err(Error::Unsupported("keys of its kind are not known here"));
            }
            _ => return Err(Error::OtherKey),
        };
        is_right.then_some(()).ok_or(Error::Wrong)
    }
}

impl Made {
    pub(crate) fn parse(algorithm: u8, reader: &mut Reader<'_>) -> Result<Self, Error> {
        let parts = match algorithm {
            1 | 3 => vec![reader.mpi()?.to_vec()],
            17 | 22 => vec![reader.mpi()?.to_vec(), reader.mpi()?.to_vec()],
            27 => vec![reader.take(64)?.to_vec()],
            _ => return Err(Error::Unsupported("its algorithm is not known here")),
        };
        Ok(Self { algorithm, parts })
    }
}

/// The whole of what is signed is made anew and compared, so nothing can hide in it.
fn is_rsa(modulus: &BigUint, exponent: &BigUint, hash: Hash, digest: &[u8], made: &[u8]) -> bool {
    let made = BigUint::from_bytes_be(made);
    if made >= *modulus {
        return false;
    }
    let octets = usize::try_from(modulus.bits().div_ceil(8)).unwrap_or_default();
    let tail = [&[0], hash.der_prefix(), digest].concat();
    let filled = octets
        .checked_sub(tail.len() + 2)
        .filter(|filled| *filled >= 8);
    let Some(filled) = filled else { return false };
    let expected = [&[0, 1][..], &vec![0xff; filled], &tail].concat();
    made.modpow(exponent, modulus) == BigUint::from_bytes_be(&expected)
}

fn is_dsa([p, q, g, y]: [&BigUint; 4], digest: &[u8], r: &[u8], s: &[u8]) -> bool {
    let (r, s) = (BigUint::from_bytes_be(r), BigUint::from_bytes_be(s));
    let zero = BigUint::ZERO;
    let is_within = |number: &BigUint| *number > zero && number < q;
    let Some(inverse) = s.modinv(q).filter(|_| is_within(&r) && is_within(&s)) else {
        return false;
    };
    // Of the hash so many bits count as the order has.
    let surplus = (digest.len() as u64 * 8).saturating_sub(q.bits());
    let hash = BigUint::from_bytes_be(digest) >> surplus;
    let (one, other) = (hash * &inverse % q, &r * inverse % q);
    g.modpow(&one, p) * y.modpow(&other, p) % p % q == r
}

fn is_ed25519(point: &[u8; 32], digest: &[u8], signature: &[u8]) -> bool {
    let key = UnparsedPublicKey::new(&ED25519, point);
    key.verify(digest, signature).is_ok()
}

/// As 32 octets: numbers lose the zeros in front.
fn padded(number: &[u8]) -> Vec<u8> {
    let zeros = 32usize.saturating_sub(number.len());
    [&vec![0; zeros], number].concat()
}
