//! A client of SCRAM-SHA-256 (RFC 5802, RFC 7677): what it says last, from what it said first and what it was asked.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::{digest, hmac, pbkdf2};

/// In front of the rest of a client's first message.
const HEADER: &str = "n,,";

/// What proves the password; messages in base64, as they are said.  None: what came is no challenge for that message.
pub(crate) fn proof(password: &[u8], first: &[u8], challenge: &[u8]) -> Option<String> {
    let text = |said: &[u8]| String::from_utf8(STANDARD.decode(said).ok()?).ok();
    let (first, challenge) = (text(first)?, text(challenge)?);
    let bare = first.strip_prefix(HEADER)?;
    let attribute = |name: &str| challenge.split(',').find_map(|it| it.strip_prefix(name));
    let salt = STANDARD.decode(attribute("s=")?).ok()?;
    let rounds = attribute("i=")?.parse().ok()?;
    let mut salted = [0; 32];
    let algorithm = pbkdf2::PBKDF2_HMAC_SHA256;
    pbkdf2::derive(algorithm, rounds, &salt, password, &mut salted);
    let client = sign(&salted, b"Client Key");
    let stored = digest::digest(&digest::SHA256, client.as_ref());
    let said = format!("c={},r={}", STANDARD.encode(HEADER), attribute("r=")?);
    let signature = sign(
        stored.as_ref(),
        [bare, &challenge, &said].join(",").as_bytes(),
    );
    let both = client.as_ref().iter().zip(signature.as_ref());
    let proof: Vec<u8> = both.map(|(one, other)| one ^ other).collect();
    Some(STANDARD.encode(format!("{said},p={}", STANDARD.encode(proof))))
}

fn sign(key: &[u8], octets: &[u8]) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), octets)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7677 section 3.
    #[test]
    fn the_example_of_the_rfc() {
        let nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let first = STANDARD.encode("n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        let challenge = format!("r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096");
        let last = format!("c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=");
        let said = proof(
            b"pencil",
            first.as_bytes(),
            STANDARD.encode(challenge).as_bytes(),
        );
        assert_eq!(said, Some(STANDARD.encode(last)));
        assert_eq!(proof(b"pencil", first.as_bytes(), b"="), None);
    }
}
