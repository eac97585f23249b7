//! What is said in an exchange of AUTHINFO SASL (RFC 4422, RFC 4643 section 2.4), without I/O and without knowing anybody.

mod scram;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

pub(crate) use self::scram::{Bad, Challenge, First, Proof};

/// How somebody can say who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mechanism {
    /// Name and password as they are (RFC 4616).
    Plain,
    /// A proof of the password, which it does not show (RFC 7677).
    Scram,
    /// What the connection shows already: the certificate of a client (RFC 4422 appendix A).
    External,
}

/// Where an exchange is: what the client's next line is taken for.
#[derive(Debug)]
pub(crate) enum Exchange {
    /// The first of a mechanism.
    First(Mechanism),
    /// The proof of SCRAM.
    Proof(Box<Challenge>),
}

impl Mechanism {
    /// The one of this name, in any case.
    pub(crate) fn find(name: &[u8]) -> Option<Self> {
        let all = [
            ("PLAIN", Self::Plain),
            ("SCRAM-SHA-256", Self::Scram),
            ("EXTERNAL", Self::External),
        ];
        let found = all
            .into_iter()
            .find(|(one, _)| name.eq_ignore_ascii_case(one.as_bytes()));
        Some(found?.1)
    }
}

/// A message as it is said.
pub(crate) fn encode(message: &str) -> String {
    STANDARD.encode(message)
}

/// The octets of an argument: base64, and `=` for none (RFC 4643 section 2.4.2).
pub(crate) fn decode(said: &[u8]) -> Option<Vec<u8>> {
    match said {
        b"=" => Some(Vec::new()),
        b"" => None,
        said => STANDARD.decode(said).ok(),
    }
}

/// Name and password of a message of PLAIN (RFC 4616 section 2).
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Plain<'m> {
    /// Who says so, and their password.
    Login(&'m str, &'m str),
    /// They want to be somebody else, which nobody may.
    SomebodyElse,
    /// It is no such message.
    Malformed,
}

/// Reads a message of PLAIN.
pub(crate) fn plain(message: &[u8]) -> Plain<'_> {
    let Ok(message) = std::str::from_utf8(message) else {
        return Plain::Malformed;
    };
    let mut parts = message.split('\0');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (_, Some(""), ..) | (_, _, Some(""), _) => Plain::Malformed,
        (Some(wanted), Some(name), Some(password), None) => {
            match wanted.is_empty() || wanted == name {
                true => Plain::Login(name, password),
                false => Plain::SomebodyElse,
            }
        }
        _ => Plain::Malformed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_plain() {
        let ada = Plain::Login("ada", "correct-horse");
        assert_eq!(plain(b"\0ada\0correct-horse"), ada);
        assert_eq!(plain(b"ada\0ada\0correct-horse"), ada);
        assert_eq!(
            plain("\0j\u{e9}\0p\u{e9}".as_bytes()),
            Plain::Login("j\u{e9}", "p\u{e9}")
        );
        assert_eq!(plain(b"eve\0ada\0correct-horse"), Plain::SomebodyElse);
        for bad in [
            &b""[..],
            b"ada",
            b"\0ada",
            b"\0\0correct-horse",
            b"\0ada\0",
            b"\0ada\0correct-horse\0",
            b"\0\xff\0correct-horse",
        ] {
            assert_eq!(plain(bad), Plain::Malformed, "{bad:?}");
        }
    }

    #[test]
    fn mechanisms_have_names_in_any_case() {
        assert_eq!(Mechanism::find(b"plain"), Some(Mechanism::Plain));
        assert_eq!(Mechanism::find(b"Scram-SHA-256"), Some(Mechanism::Scram));
        assert_eq!(Mechanism::find(b"external"), Some(Mechanism::External));
        assert_eq!(Mechanism::find(b"SCRAM-SHA-256-PLUS"), None);
    }

    #[test]
    fn arguments_are_base64() {
        assert_eq!(decode(b"="), Some(Vec::new()));
        assert_eq!(decode(b"AGFkYQ=="), Some(b"\0ada".to_vec()));
        for bad in [&b""[..], b"AGFkYQ", b"AGFk YQ==", b"*", b"==", b"AGFkYR=="] {
            assert_eq!(decode(bad), None, "{bad:?}");
        }
    }
}
