//! Newsgroup names: components of letters, digits, `+`, `-`, `_` and UTF-8, joined by dots.
//!
//! RFC 5536 section 3.1.4 and RFC 3977 section 4.1: what would break a wildmat, a newsgroups list or a command line is
//! refused (controls, space, `!*,?[\]` and, as RFC 5536 section 3.1.4 and section 3.1.5 use them as delimiters, `:;<>@/"|`); anything
//! above ASCII must be UTF-8.  Names are compared octet for octet.  Reserved names (`example.*`, `poster`) are
//! policy, not syntax.

use std::fmt;

use crate::error::GroupNameError;

/// The longest name: a 512-octet command line minus its longest verb, arguments and CRLF (RFC 3977 section 3.1).
pub const GROUP_NAME_OCTETS_MAX: usize = 460;

/// A well-formed newsgroup name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupName<'a>(&'a str);

impl<'a> GroupName<'a> {
    /// Takes exactly one name, nothing around it.
    ///
    /// # Errors
    /// When the name is empty, too long, has an empty component, a forbidden octet, or is not UTF-8.
    pub fn parse(octets: &'a [u8]) -> Result<Self, GroupNameError> {
        if octets.is_empty() {
            return Err(GroupNameError::Empty);
        }
        if octets.len() > GROUP_NAME_OCTETS_MAX {
            return Err(GroupNameError::TooLong);
        }
        let mut previous = b'.';
        let mut classes = 0;
        for &octet in octets {
            let class = class_of(octet);
            if class == DOT && previous == b'.' {
                return Err(GroupNameError::EmptyComponent);
            }
            classes |= class;
            previous = octet;
        }
        if classes & FORBIDDEN != 0 {
            return Err(GroupNameError::Octet);
        }
        if previous == b'.' {
            return Err(GroupNameError::EmptyComponent);
        }
        match std::str::from_utf8(octets) {
            Ok(text) => Ok(Self(text)),
            Err(_) => Err(GroupNameError::NotUtf8),
        }
    }

    /// The name.
    #[must_use]
    pub const fn as_str(&self) -> &'a str {
        self.0
    }

    /// The name's octets.
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.0.as_bytes()
    }

    /// The components, `comp`, `lang`, `rust` of `comp.lang.rust`; never an empty one.
    pub fn components(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.0.split('.')
    }

    /// The first component, the hierarchy.
    #[must_use]
    pub fn hierarchy(&self) -> &'a str {
        self.0.split_once('.').map_or(self.0, |(first, _)| first)
    }

    /// Whether it is a group that servers file articles in by themselves, where no article's Newsgroups brings one:
    /// `control`, its sub-groups, and `junk`.
    #[must_use]
    pub fn is_of_servers(&self) -> bool {
        self.hierarchy() == "control" || self.0 == "junk"
    }

    /// Whether it is no group's name that articles are posted to (RFC 5536 section 3.1.4).
    #[must_use]
    pub fn is_reserved(&self) -> bool {
        matches!(
            self.hierarchy(),
            "control" | "junk" | "to" | "example" | "poster"
        ) || self.components().any(|part| matches!(part, "all" | "ctl"))
    }
}

const PLAIN: u8 = 0;
const DOT: u8 = 1;
const FORBIDDEN: u8 = 2;

const fn class_of(octet: u8) -> u8 {
    match octet {
        b'.' => DOT,
        0..=b' ' | 0x7f => FORBIDDEN,
        b'!' | b'*' | b',' | b'?' | b'[' | b'\\' | b']' => FORBIDDEN,
        b':' | b';' | b'<' | b'>' | b'@' | b'/' | b'"' | b'|' | b'(' | b')' => FORBIDDEN,
        _ => PLAIN,
    }
}

impl fmt::Display for GroupName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0)
    }
}

impl fmt::Debug for GroupName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GroupName({})", self.0)
    }
}

impl AsRef<[u8]> for GroupName<'_> {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(input: &[u8], expected: Result<(), GroupNameError>) {
        assert_eq!(
            GroupName::parse(input).map(|_| ()),
            expected,
            "{:?}",
            String::from_utf8_lossy(input)
        );
    }

    #[test]
    fn accepts_real_names() {
        for name in [
            "junk",
            "comp.lang.c++",
            "alt.0d",
            "de.alt.f\u{fc}r",
            "a.b_c-d.e=f",
            "alt.sex.~x",
            "X",
            "3b",
        ] {
            check(name.as_bytes(), Ok(()));
        }
        check("a".repeat(GROUP_NAME_OCTETS_MAX).as_bytes(), Ok(()));
    }

    #[test]
    fn refuses_by_reason() {
        check(b"", Err(GroupNameError::Empty));
        check(
            "a".repeat(GROUP_NAME_OCTETS_MAX + 1).as_bytes(),
            Err(GroupNameError::TooLong),
        );
        for name in [".", ".a", "a.", "a..b"] {
            check(name.as_bytes(), Err(GroupNameError::EmptyComponent));
        }
        for octet in b"\0\x01\t\r\n !*,?[\\]:;<>@/\"|()\x7f" {
            check(&[b'a', *octet, b'b'], Err(GroupNameError::Octet));
        }
        check(b"a.\xff", Err(GroupNameError::NotUtf8));
    }

    #[test]
    fn parts() {
        let name = GroupName::parse(b"comp.lang.rust").unwrap();
        assert_eq!(
            name.components().collect::<Vec<_>>(),
            ["comp", "lang", "rust"]
        );
        assert_eq!(name.hierarchy(), "comp");
        assert_eq!(GroupName::parse(b"junk").unwrap().hierarchy(), "junk");
    }

    #[test]
    fn names_that_are_not_for_articles() {
        let of = |name: &str| {
            let name = GroupName::parse(name.as_bytes()).unwrap();
            (name.is_reserved(), name.is_of_servers())
        };
        for name in ["control", "control.cancel", "junk"] {
            assert_eq!(of(name), (true, true), "{name}");
        }
        let reserved = [
            "to",
            "to.me",
            "example",
            "example.a",
            "poster",
            "all",
            "a.all.b",
            "a.ctl",
        ];
        for name in reserved.into_iter().chain(["junk.a"]) {
            assert_eq!(of(name), (true, false), "{name}");
        }
        for name in [
            "comp.control",
            "misc.junk",
            "totally.x",
            "a.example",
            "alt.allx",
        ] {
            assert_eq!(of(name), (false, false), "{name}");
        }
    }
}
