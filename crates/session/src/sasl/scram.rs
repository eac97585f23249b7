//! The server's side of SCRAM-SHA-256 (RFC 5802, RFC 7677): messages read, made and verified, without I/O.
//!
//! Whoever is not known gets a challenge like anybody else, and the same answer as a wrong proof.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use newsreel_net::access::{ScramKeys, User};
use ring::{digest, hmac};
use subtle::ConstantTimeEq as _;

/// The longest nonce of a client that is taken, octets.
const NONCE_OCTETS_MAX: usize = 128;

/// The client's first message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct First {
    /// Who they say they are.
    pub(crate) name: String,
    /// What stands in front of it, to be said again by the last message.
    header: String,
    bare: String,
    nonce: String,
}

/// Why a first message leads nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bad {
    /// It is no such message.
    Malformed,
    /// They want to be somebody else, which nobody may.
    SomebodyElse,
}

impl First {
    /// Reads `n,,n=name,r=nonce`; binding to a channel (`p=`) is not offered.
    pub(crate) fn parse(message: &[u8]) -> Result<Self, Bad> {
        let message = std::str::from_utf8(message).map_err(|_| Bad::Malformed)?;
        let mut parts = message.splitn(3, ',');
        let (Some("n" | "y"), Some(wanted), Some(bare)) =
            (parts.next(), parts.next(), parts.next())
        else {
            return Err(Bad::Malformed);
        };
        let mut attributes = bare.split(',');
        let name = attributes.next().and_then(|it| it.strip_prefix("n="));
        let name = name.and_then(unescape).ok_or(Bad::Malformed)?;
        let nonce = attributes.next().and_then(|it| it.strip_prefix("r="));
        let nonce = nonce.filter(|it| is_nonce(it)).ok_or(Bad::Malformed)?;
        let wanted = match wanted {
            "" => name.clone(),
            wanted => wanted
                .strip_prefix("a=")
                .and_then(unescape)
                .ok_or(Bad::Malformed)?,
        };
        if wanted != name {
            return Err(Bad::SomebodyElse);
        }
        let header = message
            .get(..message.len() - bare.len())
            .unwrap_or_default();
        Ok(Self {
            header: header.to_owned(),
            bare: bare.to_owned(),
            nonce: nonce.to_owned(),
            name,
        })
    }
}

/// `=2C` and `=3D` stand for what has a meaning of its own.
fn unescape(name: &str) -> Option<String> {
    let plain = name.replace("=2C", ",").replace("=3D", "\0");
    let is_name = !plain.is_empty() && !plain.contains('=') && !name.contains('\0');
    is_name.then(|| plain.replace('\0', "="))
}

fn is_nonce(nonce: &str) -> bool {
    (1..=NONCE_OCTETS_MAX).contains(&nonce.len())
        && nonce.bytes().all(|octet| octet.is_ascii_graphic())
}

/// What the client's proof is held against.
#[derive(Debug)]
pub(crate) struct Challenge {
    first: First,
    keys: ScramKeys,
    user: Option<User>,
    nonce: String,
    text: String,
}

/// What a last message proves.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// It is no such message.
    Malformed,
    /// Nothing: the password is wrong, or nobody has the name.
    Wrong,
    /// Who it is, and what proves to them that we know them.
    Right(User, String),
}

impl Challenge {
    /// The answer to a first message: `more` is our part of the nonce.
    pub(crate) fn new(first: First, keys: ScramKeys, user: Option<User>, more: &[u8]) -> Self {
        let nonce = first.nonce.clone() + &STANDARD.encode(more);
        let text = format!(
            "r={nonce},s={},i={}",
            STANDARD.encode(&keys.salt),
            keys.iterations
        );
        Self {
            first,
            keys,
            user,
            nonce,
            text,
        }
    }

    /// What is said to the client.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Holds `c=header,r=nonce,p=proof` against what is known.
    pub(crate) fn verify(self, message: &[u8]) -> Proof {
        let message = std::str::from_utf8(message).unwrap_or_default();
        let Some((said, proof)) = message.rsplit_once(",p=") else {
            return Proof::Malformed;
        };
        let Ok(proof) = STANDARD.decode(proof) else {
            return Proof::Malformed;
        };
        let mut attributes = said.split(',');
        let header = attributes.next().and_then(|it| it.strip_prefix("c="));
        let nonce = attributes.next().and_then(|it| it.strip_prefix("r="));
        let (Some(header), Some(nonce)) = (header, nonce) else {
            return Proof::Malformed;
        };
        // Extensions that may stand behind are of no concern, but for one that must be understood, and is none of ours.
        if header != STANDARD.encode(&self.first.header) || nonce != self.nonce {
            return Proof::Wrong;
        }
        let all = [self.first.bare.as_str(), self.text.as_str(), said].join(",");
        let signature = sign(&self.keys.stored, &all);
        let client: Vec<u8> = proof
            .iter()
            .zip(signature.as_ref())
            .map(|(a, b)| a ^ b)
            .collect();
        let stored = digest::digest(&digest::SHA256, &client);
        let is_right = proof.len() == signature.as_ref().len()
            && bool::from(stored.as_ref().ct_eq(&self.keys.stored));
        match self.user.filter(|_| is_right) {
            Some(user) => {
                let ours = STANDARD.encode(sign(&self.keys.server, &all));
                Proof::Right(user, format!("v={ours}"))
            }
            None => Proof::Wrong,
        }
    }
}

fn sign(key: &[u8], text: &str) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a password becomes on both sides, with the salt of RFC 7677 section 3.
    fn salted() -> [u8; 32] {
        let mut salted = [0; 32];
        let iterations = std::num::NonZeroU32::new(4096).unwrap();
        let algorithm = ring::pbkdf2::PBKDF2_HMAC_SHA256;
        ring::pbkdf2::derive(algorithm, iterations, &salt(), b"pencil", &mut salted);
        salted
    }

    fn salt() -> Vec<u8> {
        STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap()
    }

    /// User `user`, password `pencil`.
    fn keys() -> ScramKeys {
        let client = sign(&salted(), "Client Key");
        let stored = digest::digest(&digest::SHA256, client.as_ref());
        ScramKeys {
            salt: salt(),
            iterations: 4096,
            stored: stored.as_ref().try_into().unwrap(),
            server: sign(&salted(), "Server Key").as_ref().try_into().unwrap(),
        }
    }

    /// What somebody who knows the password says last.
    fn proven(said: &str) -> String {
        let all = [&FIRST[3..], challenge(None).text(), said].join(",");
        let (client, signature) = (sign(&salted(), "Client Key"), sign(&keys().stored, &all));
        let both = client.as_ref().iter().zip(signature.as_ref());
        let proof: Vec<u8> = both.map(|(a, b)| a ^ b).collect();
        format!("{said},p={}", STANDARD.encode(proof))
    }

    const FIRST: &str = "n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
    const NONCE: &str = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
    const PROOF: &str = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";

    /// The challenge of the RFC's example, whose server has a nonce that is no base64.
    fn challenge(user: Option<User>) -> Challenge {
        let mut challenge =
            Challenge::new(First::parse(FIRST.as_bytes()).unwrap(), keys(), user, &[]);
        challenge.text = challenge.text.replace(&challenge.nonce, NONCE);
        challenge.nonce = NONCE.to_owned();
        challenge
    }

    fn user() -> User {
        User {
            name: "user".to_owned(),
            groups: Vec::new(),
        }
    }

    #[test]
    fn the_example_of_rfc_7677() {
        let one = challenge(Some(user()));
        assert_eq!(
            one.text(),
            format!("r={NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")
        );
        let last = format!("c=biws,r={NONCE},p={PROOF}");
        let ours = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=".to_owned();
        assert_eq!(one.verify(last.as_bytes()), Proof::Right(user(), ours));
        // Somebody whom nobody knows, or who is locked, has proved nothing.
        assert_eq!(challenge(None).verify(last.as_bytes()), Proof::Wrong);
    }

    #[test]
    fn what_proves_nothing() {
        let verify = |last: &str| challenge(Some(user())).verify(last.as_bytes());
        assert_eq!(
            proven(&format!("c=biws,r={NONCE}")),
            format!("c=biws,r={NONCE},p={PROOF}")
        );
        // Who knows the password, but answers something else than what was asked and said here.
        for said in [format!("c=biws,r={NONCE}x"), format!("c=eSws,r={NONCE}")] {
            assert_eq!(verify(&proven(&said)), Proof::Wrong, "{said}");
        }
        let other = PROOF.replace("dHzb", "dHzc");
        for last in [
            format!("c=biws,r={NONCE},p={other}"),
            format!("c=biws,r={NONCE},p="),
            format!("c=biws,r={NONCE},p=dHzb"),
            format!("c=biws,r={NONCE}x,p={PROOF}"),
            format!("c=eSws,r={NONCE},p={PROOF}"),
            format!("c=biws,r={NONCE},x=y,p={PROOF}"),
        ] {
            assert_eq!(verify(&last), Proof::Wrong, "{last}");
        }
        for last in [
            "",
            "c=biws",
            "c=biws,p=dHzb",
            "r=x,c=biws,p=dHzb",
            "c=biws,r=x,p=?",
        ] {
            assert_eq!(verify(last), Proof::Malformed, "{last}");
        }
    }

    #[test]
    fn first_messages() {
        let name = |message: &str| First::parse(message.as_bytes()).map(|first| first.name);
        assert_eq!(name("n,,n=ada,r=abc"), Ok("ada".to_owned()));
        assert_eq!(name("y,a=ada,n=ada,r=abc,x=y"), Ok("ada".to_owned()));
        assert_eq!(name("n,,n=a=2Cb=3Dc,r=abc"), Ok("a,b=c".to_owned()));
        assert_eq!(name("n,a=eve,n=ada,r=abc"), Err(Bad::SomebodyElse));
        for bad in [
            "",
            "n,,",
            "n,,n=ada",
            "n,,n=,r=abc",
            "n,,n=a=b,r=abc",
            "n,,n=ada,r=",
            "n,,r=abc,n=ada",
            "n,,m=x,n=ada,r=abc",
            "p=tls-unique,,n=ada,r=abc",
            "n,b,n=ada,r=abc",
        ] {
            assert_eq!(name(bad), Err(Bad::Malformed), "{bad}");
        }
        assert_eq!(
            name(&format!("n,,n=ada,r={}", "x".repeat(129))),
            Err(Bad::Malformed)
        );
    }
}
