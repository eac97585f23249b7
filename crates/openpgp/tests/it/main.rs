//! Keys and signatures of GnuPG and of PGP 2.6's form, each held against what it is and what it is not.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

use newsreel_openpgp::{Certificate, Error, Signature, certificates, signature_block};
use proptest::prelude::*;

const TEXT: &str = include_str!("../../../../tests/fixtures/openpgp/text.txt");

macro_rules! fixture {
    ($name:literal) => {
        include_bytes!(concat!("../../../../tests/fixtures/openpgp/", $name))
    };
}

/// Keys by name, with the name that each has and what it is.
const KEYS: &[(&str, &[u8], &str, &str)] = &[
    ("rsa", fixture!("rsa.asc"), "rsa.a.example", "RSA 2048"),
    ("dsa", fixture!("dsa.asc"), "dsa.a.example", "DSA 1024"),
    (
        "ed25519",
        fixture!("ed25519.asc"),
        "ed25519.a.example",
        "Ed25519",
    ),
    ("ecdsa", fixture!("ecdsa.asc"), "ecdsa.a.example", "ECDSA"),
    (
        "subkey",
        fixture!("subkey.asc"),
        "subkey.a.example",
        "RSA 2048",
    ),
    ("v3", fixture!("v3.asc"), "v3.a.example", "RSA 1024"),
    (
        "v3-bare",
        fixture!("v3-bare.asc"),
        "v3.a.example",
        "RSA 1024",
    ),
    (
        "expired",
        fixture!("expired.asc"),
        "expired.a.example",
        "Ed25519",
    ),
    (
        "extended",
        fixture!("extended.asc"),
        "expired.a.example",
        "Ed25519",
    ),
    (
        "revoked",
        fixture!("revoked.asc"),
        "revoked.a.example",
        "Ed25519",
    ),
];

const SIGNATURES: &[(&str, &[u8])] = &[
    ("rsa", fixture!("rsa.sig")),
    ("rsa-binary", fixture!("rsa-binary.sig")),
    ("dsa", fixture!("dsa.sig")),
    ("ed25519", fixture!("ed25519.sig")),
    ("ecdsa", fixture!("ecdsa.sig")),
    ("subkey", fixture!("subkey.sig")),
    ("v3", fixture!("v3.sig")),
    ("v3-sha1", fixture!("v3-sha1.sig")),
    ("expired", fixture!("expired.sig")),
    ("expired-before", fixture!("expired-before.sig")),
    ("revoked", fixture!("revoked.sig")),
];

fn key(name: &str) -> Certificate {
    let (_, octets, ..) = KEYS.iter().find(|(known, ..)| *known == name).unwrap();
    let mut found = certificates(octets).unwrap();
    assert_eq!(found.len(), 1);
    found.remove(0).unwrap()
}

fn octets(name: &str) -> Vec<u8> {
    let (_, text) = SIGNATURES.iter().find(|(known, _)| *known == name).unwrap();
    signature_block(text).unwrap()
}

fn verify(signer: &str, signature: &str, text: &str) -> Result<Vec<String>, Error> {
    let signature = Signature::read(&octets(signature)).unwrap();
    let found = key(signer).verify(&signature, text.as_bytes());
    found.map(|standing| standing.names)
}

#[test]
fn keys_say_what_they_are() {
    for (name, _, user, algorithm) in KEYS {
        let key = key(name);
        let standing = key.standing();
        assert_eq!(standing.names, [*user], "{name}");
        assert_eq!(standing.is_revoked, *name == "revoked");
        // 2020-01-01, 365 days.
        let expires = (*name == "expired").then_some(1_577_836_800 + 365 * 86_400);
        assert_eq!(standing.expires, expires, "{name}");
        assert_eq!(key.algorithm(), *algorithm);
        let again = certificates(key.octets()).unwrap().remove(0).unwrap();
        assert_eq!(again.fingerprint(), key.fingerprint());
    }
    let fingerprint = |name| key(name).fingerprint().to_string();
    // As GnuPG says them.
    assert_eq!(
        fingerprint("rsa"),
        "45A2AB9F1C756F8A98907DD2015EC1609D2D0CEB"
    );
    assert_eq!(
        fingerprint("dsa"),
        "264F18F95E8964302A62A09DC006314CDDE406A3"
    );
    // MD5 of the modulus and the exponent, without their lengths.
    assert_eq!(fingerprint("v3"), "38D84D431B801627B2909B220DBB9935");
}

#[test]
fn a_signature_is_of_its_key_and_of_its_text() {
    for (signer, signature) in [
        ("rsa", "rsa"),
        ("rsa", "rsa-binary"),
        ("dsa", "dsa"),
        ("ed25519", "ed25519"),
        ("ecdsa", "ecdsa"),
        ("subkey", "subkey"),
        ("v3", "v3"),
        ("v3", "v3-sha1"),
        ("v3-bare", "v3"),
        ("expired", "expired-before"),
        ("extended", "expired"),
        ("extended", "expired-before"),
    ] {
        assert_eq!(
            verify(signer, signature, TEXT).unwrap().len(),
            1,
            "{signature}"
        );
        let other = TEXT.replace("What is new", "What is old");
        assert_eq!(
            verify(signer, signature, &other),
            Err(Error::Wrong),
            "{signature}"
        );
        let longer = format!("{TEXT}\n");
        assert_eq!(
            verify(signer, signature, &longer),
            Err(Error::Wrong),
            "{signature}"
        );
        let another = if signer == "dsa" { "rsa" } else { "dsa" };
        assert_eq!(
            verify(another, signature, TEXT),
            Err(Error::OtherKey),
            "{signature}"
        );
    }
}

#[test]
fn a_key_is_held_to_its_word() {
    let why = |signer, signature| match verify(signer, signature, TEXT) {
        Err(Error::Unusable(why)) => why,
        other => panic!("{other:?}"),
    };
    assert_eq!(why("expired", "expired"), "the key had expired before");
    assert_eq!(why("revoked", "revoked"), "the key has been revoked");
    // A subkey that the primary key says nothing of signs for nobody.
    let whole = key("subkey").octets().to_vec();
    let found: Vec<_> = (1..whole.len())
        .filter_map(|cut| {
            let mut found = certificates(&whole[..cut]).ok()?;
            Some(
                found
                    .pop()?
                    .ok()?
                    .verify(&Signature::read(&octets("subkey")).ok()?, TEXT.as_bytes()),
            )
        })
        .collect();
    let not_for_signing = Error::Unusable("the key is not one for signing");
    assert!(found.contains(&Err(not_for_signing)), "{found:?}");
    assert!(found.iter().all(Result::is_err));
}

/// A key could take another's signatures for its own if it were enough that it calls the other its subkey.
#[test]
fn a_subkey_says_itself_whose_it_is() {
    let mut whole = key("subkey").octets().to_vec();
    // What it says stands unhashed, in front of two octets of the hash and the primary key's RSA number.
    let last = whole.len() - (2 + 2 + 256) - 1;
    whole[last] ^= 1;
    let found = certificates(&whole).unwrap().remove(0).unwrap();
    let signature = Signature::read(&octets("subkey")).unwrap();
    assert_eq!(
        found.verify(&signature, TEXT.as_bytes()),
        Err(Error::Unusable("the key is not one for signing"))
    );
}

/// Of a signature all octets count but those that only help to find a key, and bits of a number's length that leave its
/// octets as many.
#[test]
fn every_octet_counts() {
    // In versions from 4 on the key's id is not hashed: what stands there may be something else that helps nobody.
    for (name, free) in [
        ("dsa", &[40, 52, 74][..]),
        ("v3", &[3, 23]),
        ("ed25519", &[40]),
    ] {
        let whole = octets(name);
        let stands = |at: &usize| {
            let mut other = whole.clone();
            other[*at] ^= 1;
            let other = Signature::read(&other);
            other.is_ok_and(|other| key(name).verify(&other, TEXT.as_bytes()).is_ok())
        };
        let standing: Vec<usize> = (0..whole.len()).filter(stands).collect();
        assert_eq!(standing, free, "{name} of {}", whole.len());
    }
}

#[test]
fn what_is_no_key_is_refused() {
    let secret = [0x94, 1, 4];
    assert!(
        matches!(certificates(&secret), Err(Error::Unsupported(why)) if why.contains("secret"))
    );
    assert!(certificates(b"hello").is_err());
    assert!(certificates(&[0x99, 0xff, 0xff, 1]).is_err());
    // A key of version 6 is told, and those beside it are there.
    let six = [&[0x98, 6, 6, 0, 0, 0, 0, 1][..], key("dsa").octets()].concat();
    let found = certificates(&six).unwrap();
    assert!(matches!(found[0], Err(Error::Unsupported(_))), "{found:?}");
    assert!(found[1].is_ok());
    for bad in [&b""[..], &[0x88, 1, 9], &[0x88, 0], &octets("dsa")[..9]] {
        assert!(Signature::read(bad).is_err(), "{bad:?}");
    }
    // Numbers that anybody can take apart.
    let rsa = |octets: u8| {
        let bits = [octets >> 5, octets << 3];
        let body = [&[4, 0, 0, 0, 0, 1][..], &bits, &vec![0xff; octets.into()]].concat();
        let body = [&body[..], &[0, 17, 1, 0, 1]].concat();
        let packet = [&[0x98, body.len() as u8][..], &body].concat();
        certificates(&packet).unwrap().remove(0)
    };
    assert!(matches!(rsa(127), Err(Error::Unsupported(why)) if why.contains("1024")));
    assert_eq!(rsa(128).unwrap().algorithm(), "RSA 1024");
    let more = [octets("dsa"), vec![0]].concat();
    assert!(Signature::read(&more).is_err());
}

proptest! {
    #[test]
    fn prop_any_octets_can_be_read(octets in prop::collection::vec(any::<u8>(), 0..200), at in 0usize..400, new: u8) {
        let _ = Signature::read(&octets);
        let _ = certificates(&octets);
        let mut damaged = key("dsa").octets().to_vec();
        let at = at % damaged.len();
        damaged[at] = new;
        for one in certificates(&damaged).into_iter().flatten().flatten() {
            let standing = one.standing();
            prop_assert!(standing.names.iter().all(|name| *name == "dsa.a.example"));
        }
    }
}
