//! Mailbox lists: what From, Reply-To and Sender of a posted article must hold (RFC 5322 section 3.4, RFC 5536 section 3.1.2).
//!
//! This is the grammar an injecting agent holds its own posters to; what is relayed is only looked at as far as
//! decision 0006 says.  White space and comments may stand between the parts, a dot in a phrase (as in `Ada B. Example`)
//! and UTF-8 in phrases, comments and quoted strings are let through; an address itself is ASCII and without blanks.
//! Nothing is decoded and nothing is allocated; comments nest without recursion.

use crate::article::is_blank;
use crate::error::MailboxError;

/// Checks a list of mailboxes and gives the address of the first, without brackets.
///
/// # Errors
/// What is wrong at the first place where the list breaks the grammar.
pub fn first_mailbox(content: &[u8]) -> Result<&[u8], MailboxError> {
    let mut scan = Scan { rest: content };
    let first = scan.mailbox()?;
    loop {
        scan.blanks()?;
        match scan.rest {
            [] => return Ok(first),
            [b',', after @ ..] => scan.rest = after,
            _ => return Err(MailboxError::Stray),
        }
        scan.mailbox()?;
    }
}

/// Whether this is one mailbox and not several.
#[must_use]
pub fn is_one_mailbox(content: &[u8]) -> bool {
    let mut scan = Scan { rest: content };
    scan.mailbox().is_ok() && scan.blanks().is_ok() && scan.rest.is_empty()
}

/// Whether this is a list of mailboxes and groups of them, as Reply-To may be (RFC 5322 section 3.4).
#[must_use]
pub fn is_address_list(content: &[u8]) -> bool {
    let mut scan = Scan { rest: content };
    scan.address_list().is_ok()
}

/// What follows white space, folds and comments; `None`: one is not closed, or has an octet that may not be there.
pub(super) fn skip_blanks(content: &[u8]) -> Option<&[u8]> {
    let mut scan = Scan { rest: content };
    scan.blanks().ok()?;
    Some(scan.rest)
}

/// Whether this is exactly one address, `name@host.example`, with nothing around it.
#[must_use]
pub fn is_address(text: &[u8]) -> bool {
    let mut scan = Scan { rest: text };
    scan.address().is_ok() && scan.rest.is_empty()
}

/// What is left to read.
#[derive(Debug, Clone, Copy)]
struct Scan<'a> {
    rest: &'a [u8],
}

impl<'a> Scan<'a> {
    /// `Name <address>` or `address`.
    fn mailbox(&mut self) -> Result<&'a [u8], MailboxError> {
        self.blanks()?;
        let start = *self;
        let mut words = 0;
        loop {
            match self.rest.first() {
                None if words == 0 => return Err(MailboxError::Nobody),
                Some(b'<') => return self.in_brackets(),
                Some(b'"') => self.quoted()?,
                Some(octet) if is_atom(*octet) || *octet == b'.' || *octet >= 0x80 => self.atoms(),
                _ if words == 0 => return Err(MailboxError::Nobody),
                // What looked like words of a name was an address.
                _ => {
                    *self = start;
                    return self.address();
                }
            }
            words += 1;
            self.blanks()?;
        }
    }

    /// Mailboxes and groups with commas between them, to the end.
    fn address_list(&mut self) -> Result<(), MailboxError> {
        loop {
            if self.is_group_next() {
                self.group()?;
            } else {
                self.mailbox()?;
            }
            self.blanks()?;
            match self.rest {
                [] => return Ok(()),
                [b',', after @ ..] => self.rest = after,
                _ => return Err(MailboxError::Stray),
            }
        }
    }

    /// Whether a phrase and a colon are next; then it goes behind the colon.
    fn is_group_next(&mut self) -> bool {
        let mut ahead = *self;
        let mut words = 0;
        loop {
            if ahead.blanks().is_err() {
                return false;
            }
            match ahead.rest {
                [b':', after @ ..] if words > 0 => {
                    self.rest = after;
                    return true;
                }
                [b'"', ..] => {
                    if ahead.quoted().is_err() {
                        return false;
                    }
                }
                [octet, ..] if is_atom(*octet) || *octet == b'.' || *octet >= 0x80 => {
                    ahead.atoms();
                }
                _ => return false,
            }
            words += 1;
        }
    }

    /// What stands behind the colon: mailboxes or none, and a semicolon.
    fn group(&mut self) -> Result<(), MailboxError> {
        self.blanks()?;
        if let [b';', after @ ..] = self.rest {
            self.rest = after;
            return Ok(());
        }
        loop {
            self.mailbox()?;
            self.blanks()?;
            match self.rest {
                [b';', after @ ..] => {
                    self.rest = after;
                    return Ok(());
                }
                [b',', after @ ..] => self.rest = after,
                _ => return Err(MailboxError::Stray),
            }
        }
    }

    fn in_brackets(&mut self) -> Result<&'a [u8], MailboxError> {
        self.rest = self.rest.get(1..).unwrap_or_default();
        self.blanks()?;
        let address = self.address()?;
        self.blanks()?;
        match self.rest {
            [b'>', after @ ..] => {
                self.rest = after;
                Ok(address)
            }
            _ => Err(MailboxError::Bracket),
        }
    }

    /// `local@domain`, without blanks.
    fn address(&mut self) -> Result<&'a [u8], MailboxError> {
        let start = self.rest;
        if self.rest.first() == Some(&b'"') {
            self.quoted()?;
        } else {
            self.dot_atom()?;
        }
        match self.rest {
            [b'@', after @ ..] => self.rest = after,
            _ => return Err(MailboxError::NoAt),
        }
        if self.rest.first() == Some(&b'[') {
            self.literal()?;
        } else {
            self.dot_atom()?;
        }
        let address = start
            .get(..start.len() - self.rest.len())
            .unwrap_or_default();
        if address.is_ascii() {
            Ok(address)
        } else {
            Err(MailboxError::Octet)
        }
    }

    /// Atoms with single dots between them.
    fn dot_atom(&mut self) -> Result<(), MailboxError> {
        loop {
            let atom = self.rest.iter().take_while(|octet| is_atom(**octet));
            let len = atom.count();
            if len == 0 {
                return Err(match self.rest.first() {
                    Some(0x80..) => MailboxError::Octet,
                    _ => MailboxError::Address,
                });
            }
            self.rest = self.rest.get(len..).unwrap_or_default();
            match self.rest {
                [b'.', after @ ..] => self.rest = after,
                _ => return Ok(()),
            }
        }
    }

    /// Octets of a phrase's words.
    fn atoms(&mut self) {
        let is_word = |octet: &u8| is_atom(*octet) || *octet == b'.' || *octet >= 0x80;
        let len = self.rest.iter().take_while(|octet| is_word(octet)).count();
        self.rest = self.rest.get(len..).unwrap_or_default();
    }

    fn quoted(&mut self) -> Result<(), MailboxError> {
        let mut escaped = false;
        for (at, octet) in self.rest.iter().enumerate().skip(1) {
            match octet {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => {
                    self.rest = self.rest.get(at + 1..).unwrap_or_default();
                    return Ok(());
                }
                _ if is_text(*octet) => {}
                _ => return Err(MailboxError::Octet),
            }
        }
        Err(MailboxError::Unclosed)
    }

    /// `[192.0.2.1]`.
    fn literal(&mut self) -> Result<(), MailboxError> {
        let end = self.rest.iter().position(|octet| *octet == b']');
        let end = end.ok_or(MailboxError::Unclosed)?;
        let inner = self.rest.get(1..end).unwrap_or_default();
        let is_inside = |octet: &u8| octet.is_ascii_graphic() && !b"[\\".contains(octet);
        if inner.is_empty() || !inner.iter().all(is_inside) {
            return Err(MailboxError::Address);
        }
        self.rest = self.rest.get(end + 1..).unwrap_or_default();
        Ok(())
    }

    /// White space, folds and comments.
    fn blanks(&mut self) -> Result<(), MailboxError> {
        let (mut depth, mut escaped) = (0usize, false);
        for (at, octet) in self.rest.iter().enumerate() {
            match octet {
                _ if escaped => escaped = false,
                b'(' => depth += 1,
                b')' if depth > 0 => depth -= 1,
                b'\\' if depth > 0 => escaped = true,
                _ if is_blank(*octet) => {}
                _ if depth == 0 => {
                    self.rest = self.rest.get(at..).unwrap_or_default();
                    return Ok(());
                }
                _ if is_text(*octet) => {}
                _ => return Err(MailboxError::Octet),
            }
        }
        if depth > 0 || escaped {
            return Err(MailboxError::Unclosed);
        }
        self.rest = &[];
        Ok(())
    }
}

/// RFC 5322 section 3.2.3.
const fn is_atom(octet: u8) -> bool {
    octet.is_ascii_alphanumeric()
        || matches!(
            octet,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'/'
                | b'='
                | b'?'
                | b'^'
                | b'_'
                | b'`'
                | b'{'
                | b'|'
                | b'}'
                | b'~'
        )
}

/// What a quoted string or a comment may hold: no control but blanks and folds.
const fn is_text(octet: u8) -> bool {
    is_blank(octet) || octet >= b' ' && octet != 0x7f
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(content: &str, expected: Result<&str, MailboxError>) {
        let got = first_mailbox(content.as_bytes());
        assert_eq!(got, expected.map(str::as_bytes), "{content:?}");
    }

    #[test]
    fn mailboxes() {
        for (content, address) in [
            ("ada@a.example", "ada@a.example"),
            ("Ada <ada@a.example>", "ada@a.example"),
            ("<ada@a.example>", "ada@a.example"),
            ("ada@a.example (Ada (really))", "ada@a.example"),
            (
                "Ada B. Example\r\n <ada.b+x@a.example>",
                "ada.b+x@a.example",
            ),
            ("\"A. <B>\" <ada@[192.0.2.1]>", "ada@[192.0.2.1]"),
            ("\"a b\"@a.example", "\"a b\"@a.example"),
            ("J\u{f6}rg <j@a.example>, b@b.example", "j@a.example"),
            (" (\\() ada@a.example ", "ada@a.example"),
            ("ada@localhost", "ada@localhost"),
        ] {
            check(content, Ok(address));
        }
    }

    #[test]
    fn what_is_none() {
        for (content, why) in [
            ("", MailboxError::Nobody),
            ("(Ada)", MailboxError::Nobody),
            ("Ada", MailboxError::NoAt),
            ("Ada Example", MailboxError::NoAt),
            ("Ada <>", MailboxError::Address),
            ("Ada <ada>", MailboxError::NoAt),
            ("Ada <ada@a.example", MailboxError::Bracket),
            ("Ada <ada at a dot example>", MailboxError::NoAt),
            ("ada@", MailboxError::Address),
            ("ada@a..example", MailboxError::Address),
            (".ada@a.example", MailboxError::Address),
            ("ada@a.example x", MailboxError::Stray),
            ("ada@a.example,", MailboxError::Nobody),
            ("a@b@c", MailboxError::Stray),
            ("<a@b.example> <", MailboxError::Stray),
            ("\"Ada <ada@a.example>", MailboxError::Unclosed),
            ("ada@a.example (Ada", MailboxError::Unclosed),
            ("ada@a.example (\x07)", MailboxError::Octet),
            ("\u{e4}@a.example", MailboxError::Octet),
            ("\"\u{e4}\"@a.example", MailboxError::Octet),
            ("ada@[x", MailboxError::Unclosed),
            ("old.example!ada", MailboxError::NoAt),
        ] {
            check(content, Err(why));
        }
    }

    /// A group of addresses, as RFC 5322 lets Reply-To have, was refused.
    #[test]
    fn lists_with_groups() {
        for list in [
            "ada@a.example",
            "A group: ada@a.example, Bob <b@b.example>;",
            "(x) \"A, b\" c.: ada@a.example ; (y), eve@b.example",
            "Nobody:;, J\u{f6}rg: (none) ;",
            "\"a b\"@a.example",
        ] {
            assert!(is_address_list(list.as_bytes()), "{list}");
        }
        for none in [
            "",
            "A group: ada@a.example",
            "A group: ada@a.example,;",
            "A: b: ada@a.example;;",
            ": ada@a.example;",
            "A group: Ada;",
            "A:; x",
            "ada@a.example,",
            "\"A: ada@a.example;",
        ] {
            assert!(!is_address_list(none.as_bytes()), "{none}");
            assert!(
                first_mailbox(b"A: ada@a.example;").is_err(),
                "From has none"
            );
        }
    }

    #[test]
    fn one_address() {
        assert!(is_address(b"news@a.example") && is_address(b"a@[::1]"));
        for none in ["", "a", "<a@b>", " a@b", "a@b c", "a@b,", "-x"] {
            assert!(!is_address(none.as_bytes()), "{none}");
        }
    }

    proptest! {
        #[test]
        fn prop_what_is_put_together_by_the_grammar_is_taken(
            name in "([A-Za-z]{1,8} ){0,3}", comment in "[a-z ()]{0,0}|\\([a-z ]{0,9}\\)",
            local in "[a-z]{1,9}(\\.[a-z0-9+-]{1,5}){0,2}", host in "[a-z]{1,9}(\\.[a-z]{1,5}){0,3}",
        ) {
            let address = format!("{local}@{host}");
            let content = format!("{comment} {name}<{address}> {comment}");
            prop_assert_eq!(first_mailbox(content.as_bytes()), Ok(address.as_bytes()));
            prop_assert_eq!(first_mailbox(address.as_bytes()), Ok(address.as_bytes()));
            prop_assert!(is_address(address.as_bytes()));
        }

        #[test]
        fn prop_an_address_that_is_found_is_one(content in "[a-z@.<>,\"() \\\\\u{e4}\\[\\]]{0,24}") {
            if let Ok(address) = first_mailbox(content.as_bytes()) {
                prop_assert!(is_address(address), "{:?}", address);
            }
        }
    }
}
