//! Message-ids: `<left@right>`, 3 to 250 printable ASCII octets.
//!
//! `parse` keeps RFC 3977 section 3.6, which is what every command and every history key needs: `<`, printable ASCII
//! other than `>`, `>`.  It is deliberately wider than the `id-left@id-right` grammar of RFC 5536 section 3.1.3, because
//! articles with two dots, two `@` or a stray bracket have been on the net since 1984 and a relaying agent that
//! refused them would only lose articles.  A message-id is compared octet for octet, never normalised.

use std::fmt;

use crate::error::MessageIdError;

/// The shortest message-id: RFC 3977 section 3.6.
pub const MESSAGE_ID_OCTETS_MIN: usize = 3;

/// The longest message-id: RFC 3977 section 3.6, RFC 5536 section 3.1.3.
pub const MESSAGE_ID_OCTETS_MAX: usize = 250;

/// A well-formed message-id, brackets included.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId<'a>(&'a str);

impl<'a> MessageId<'a> {
    /// Takes exactly one message-id, nothing around it.
    ///
    /// # Errors
    /// When length, brackets or an octet break RFC 3977 section 3.6.
    pub fn parse(octets: &'a [u8]) -> Result<Self, MessageIdError> {
        if octets.len() > MESSAGE_ID_OCTETS_MAX {
            return Err(MessageIdError::TooLong);
        }
        if octets.len() < MESSAGE_ID_OCTETS_MIN {
            return Err(MessageIdError::TooShort);
        }
        let [b'<', inner @ .., b'>'] = octets else {
            return Err(MessageIdError::Brackets);
        };
        // One pass without early exit, so that it vectorises.
        let bad = inner.iter().fold(false, |bad, &octet| {
            bad | !octet.is_ascii_graphic() | (octet == b'>')
        });
        if bad {
            return Err(MessageIdError::Octet);
        }
        match std::str::from_utf8(octets) {
            Ok(text) => Ok(Self(text)),
            Err(_) => Err(MessageIdError::Octet),
        }
    }

    /// The text, brackets included.
    #[must_use]
    pub const fn as_str(&self) -> &'a str {
        self.0
    }

    /// The octets, brackets included.
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.0.as_bytes()
    }

    /// Whether there is an `@` with something on both sides, as RFC 5536 section 3.1.3 wants of an article's own id.
    #[must_use]
    pub fn has_two_parts(&self) -> bool {
        let octets = self.as_bytes();
        let inner = octets
            .get(1..octets.len().saturating_sub(1))
            .unwrap_or_default();
        memchr::memchr(b'@', inner).is_some_and(|at| at > 0 && at + 1 < inner.len())
    }
}

impl fmt::Display for MessageId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0)
    }
}

impl fmt::Debug for MessageId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MessageId({})", self.0)
    }
}

impl AsRef<[u8]> for MessageId<'_> {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(input: &[u8], expected: Result<(), MessageIdError>) {
        assert_eq!(
            MessageId::parse(input).map(|_| ()),
            expected,
            "{:?}",
            String::from_utf8_lossy(input)
        );
    }

    #[test]
    fn accepts_what_rfc_3977_and_real_articles_have() {
        for id in [
            "<1@a>",
            "<a.b@c.example>",
            "<x>",
            "<a@b@c>",
            "<a..b@c.>",
            "<<a@b>",
            "<a(b)\"c\"@[1.2.3.4]>",
        ] {
            check(id.as_bytes(), Ok(()));
            assert_eq!(MessageId::parse(id.as_bytes()).unwrap().to_string(), id);
        }
    }

    #[test]
    fn refuses_by_reason() {
        check(b"", Err(MessageIdError::TooShort));
        check(b"<>", Err(MessageIdError::TooShort));
        check(b"abc", Err(MessageIdError::Brackets));
        check(b"<a@b", Err(MessageIdError::Brackets));
        check(b"<a@b> ", Err(MessageIdError::Brackets));
        check(b"<a b@c>", Err(MessageIdError::Octet));
        check(b"<a\t@c>", Err(MessageIdError::Octet));
        check(b"<a>@c>", Err(MessageIdError::Octet));
        check(b"<\x7f@c>", Err(MessageIdError::Octet));
        check("<\u{e9}@c>".as_bytes(), Err(MessageIdError::Octet));
    }

    #[test]
    fn the_limit_is_250_octets() {
        let id = |len: usize| format!("<{}@b>", "a".repeat(len - 4));
        check(id(250).as_bytes(), Ok(()));
        check(id(251).as_bytes(), Err(MessageIdError::TooLong));
    }

    #[test]
    fn two_parts() {
        let two = |id: &str| MessageId::parse(id.as_bytes()).unwrap().has_two_parts();
        assert!(two("<1@a>"));
        assert!(two("<a@b@c>"));
        assert!(!two("<abc>") && !two("<@a>") && !two("<a@>"));
    }
}
