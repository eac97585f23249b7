//! What SCRAM-SHA-256 needs of a password (RFC 5802 section 3, RFC 5803): a salt and two keys, from which nobody can log in.
//!
//! It is easier to try passwords against than an argon2id hash, so it is made only where that is asked for.

use std::num::NonZeroU32;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::{digest, hmac, pbkdf2};

/// Rounds over a password: as many as the clients' libraries take (Cyrus SASL: 65,536), and no fewer than RFC 7677 has.
const ROUNDS: NonZeroU32 = match NonZeroU32::new(65_536) {
    Some(rounds) => rounds,
    None => NonZeroU32::MIN,
};

/// The fewest that a file may ask for (RFC 7677 section 4), and the most.
const ROUNDS_ALLOWED: std::ops::RangeInclusive<u32> = 4096..=1_000_000;

/// What a proof is held against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScramKeys {
    /// What is mixed with the password.
    pub salt: [u8; 16],
    /// Rounds over it.
    pub iterations: u32,
    /// The hash of the client's key.
    pub stored: [u8; 32],
    /// The server's key.
    pub server: [u8; 32],
}

/// Those of a password; none where its octets depend on how it is typed (RFC 4013): it has others than ASCII.
pub(crate) fn keys(password: &str, salt: &[u8; 16]) -> Option<ScramKeys> {
    if !password.is_ascii() {
        return None;
    }
    let mut salted = [0; 32];
    let algorithm = pbkdf2::PBKDF2_HMAC_SHA256;
    pbkdf2::derive(algorithm, ROUNDS, salt, password.as_bytes(), &mut salted);
    let client = sign(&salted, b"Client Key");
    Some(ScramKeys {
        salt: *salt,
        iterations: ROUNDS.get(),
        stored: octets_of(digest::digest(&digest::SHA256, &client).as_ref()),
        server: sign(&salted, b"Server Key"),
    })
}

/// What somebody gets whom nobody knows: the same each time they ask, and of no password.
pub(crate) fn of_nobody(secret: &[u8; 32], name: &str) -> ScramKeys {
    let of = |what: &str| sign(secret, [what, name].concat().as_bytes());
    ScramKeys {
        salt: octets_of(&of("salt ")),
        iterations: ROUNDS.get(),
        stored: of("stored "),
        server: of("server "),
    }
}

fn sign(key: &[u8], octets: &[u8]) -> [u8; 32] {
    octets_of(hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), octets).as_ref())
}

/// The first octets of a hash.
fn octets_of<const N: usize>(hash: &[u8]) -> [u8; N] {
    hash.first_chunk().copied().unwrap_or([0; N])
}

/// As the file has it: rounds, salt and keys.
pub(crate) fn print(keys: Option<&ScramKeys>) -> String {
    let Some(keys) = keys else {
        return "-".to_owned();
    };
    let [salt, stored, server] =
        [&keys.salt[..], &keys.stored, &keys.server].map(|it| STANDARD.encode(it));
    format!("{}:{salt}:{stored}:{server}", keys.iterations)
}

/// Reads what `print` has written.
pub(crate) fn parse(text: &str) -> Option<Option<ScramKeys>> {
    if text == "-" {
        return Some(None);
    }
    let mut fields = text.split(':');
    let iterations = fields.next()?;
    let keys = ScramKeys {
        iterations: iterations
            .parse()
            .ok()
            .filter(|it| ROUNDS_ALLOWED.contains(it))?,
        salt: decode(fields.next()?)?,
        stored: decode(fields.next()?)?,
        server: decode(fields.next()?)?,
    };
    // One number has many texts.
    let is_whole = fields.next().is_none() && iterations == keys.iterations.to_string();
    is_whole.then_some(Some(keys))
}

/// So many octets in base64.
pub(crate) fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    STANDARD.decode(text).ok()?.try_into().ok()
}

/// Octets in base64.
pub(crate) fn encode(octets: &[u8]) -> String {
    STANDARD.encode(octets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_belong_to_a_password_and_a_salt() {
        let made = keys("correct-horse", &[7; 16]).unwrap();
        assert_eq!(keys("correct-horse", &[7; 16]), Some(made.clone()));
        assert_ne!(keys("correct-horse", &[8; 16]), Some(made.clone()));
        assert_ne!(keys("correct-hors", &[7; 16]), Some(made));
        assert_eq!(keys("p\u{e9}ch\u{e9}-mignon", &[7; 16]), None);
    }

    #[test]
    fn nobody_looks_like_somebody() {
        let nobody = of_nobody(&[1; 32], "eve");
        assert_eq!(of_nobody(&[1; 32], "eve"), nobody);
        assert_ne!(of_nobody(&[1; 32], "mallory").salt, nobody.salt);
        assert_ne!(of_nobody(&[2; 32], "eve").salt, nobody.salt);
        assert_eq!(
            keys("correct-horse", &[7; 16]).unwrap().iterations,
            nobody.iterations
        );
    }

    #[test]
    fn what_is_printed_is_read() {
        let made = of_nobody(&[1; 32], "eve");
        let text = print(Some(&made));
        assert_eq!(parse(&text), Some(Some(made)));
        assert_eq!(parse(&print(None)), Some(None));
        for bad in [
            text.replace("65536", "065536"),
            text.replace("65536", "4095"),
            text.replace("65536", "1000001"),
            text.clone() + ":",
            text.replace(':', "|"),
            text.get(..text.len() - 4).unwrap_or_default().to_owned(),
            String::new(),
        ] {
            assert_eq!(parse(&bad), None, "{bad}");
        }
    }
}
