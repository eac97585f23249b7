//! A name in the view of a directory: one part of a path, well-formed, and what of it is an article's number.
//!
//! Names are octets, compared octet for octet.  Only a validating parse makes one, so no `..` and no slash ever gets
//! into a path that is built from it.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;

/// The longest name that Linux file systems take.
pub const NAME_BYTES_MAX: usize = 255;

/// The numbers of articles lie below this; a longer row of digits is still a name.
pub const NUMBER_END: u64 = 1 << 62;

/// A well-formed name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name<'a>(&'a OsStr);

/// Why something is no name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Empty, `.` or `..`.
    #[error("is no name of an entry")]
    NoName,
    /// Longer than a file system takes.
    #[error("is longer than {NAME_BYTES_MAX} octets")]
    TooLong,
    /// With a slash or a NUL in it.
    #[error("has a slash or a NUL in it")]
    Octet,
}

impl<'a> Name<'a> {
    /// Takes exactly one name, nothing around it.
    ///
    /// # Errors
    /// When it is empty, `.`, `..`, too long, or has a slash or a NUL in it.
    pub fn parse(text: &'a OsStr) -> Result<Self, NameError> {
        match text.as_bytes() {
            b"" | b"." | b".." => Err(NameError::NoName),
            octets if octets.len() > NAME_BYTES_MAX => Err(NameError::TooLong),
            octets if octets.iter().any(|o| matches!(o, b'/' | 0)) => Err(NameError::Octet),
            _ => Ok(Self(text)),
        }
    }

    /// The name.
    #[must_use]
    pub const fn as_os_str(&self) -> &'a OsStr {
        self.0
    }

    /// The digits, if there is nothing else: the name of an article, or of a subdirectory that looks like one.
    #[must_use]
    pub fn digits(&self) -> Option<&'a [u8]> {
        let octets = self.0.as_bytes();
        octets.iter().all(u8::is_ascii_digit).then_some(octets)
    }

    /// The number, if the name is a number as it is written: digits without leading zeros, below [`NUMBER_END`].
    #[must_use]
    pub fn number(&self) -> Option<u64> {
        written_number(self.digits()?)
    }
}

/// The number that `digits` are the one way to write.
pub(crate) fn written_number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || (digits.len() > 1 && digits.first() == Some(&b'0')) {
        return None;
    }
    digits.iter().try_fold(0_u64, |number, octet| {
        let digit = char::from(*octet).to_digit(10)?;
        let number = number.checked_mul(10)?.checked_add(u64::from(digit))?;
        (number < NUMBER_END).then_some(number)
    })
}

impl fmt::Debug for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Name({:?})", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &[u8], expected: Result<Option<u64>, NameError>) {
        let parsed = Name::parse(OsStr::from_bytes(text));
        assert_eq!(parsed.map(|name| name.number()), expected, "{text:?}");
    }

    #[test]
    fn what_is_a_name_and_what_a_number() {
        for (text, number) in [
            (&b"0"[..], Some(0)),
            (b"123456", Some(123_456)),
            (b"4611686018427387903", Some(NUMBER_END - 1)),
            (b"4611686018427387904", None),
            (b"99999999999999999999999999", None),
            (b"0123", None),
            (b"00", None),
            (b"12a", None),
            (b"-1", None),
            (b"aaa", None),
            (b"...", None),
            (b"\xff\n \\", None),
            (&[b'9'; 255], None),
        ] {
            check(text, Ok(number));
        }
        check(b"", Err(NameError::NoName));
        check(b".", Err(NameError::NoName));
        check(b"..", Err(NameError::NoName));
        check(b"a/b", Err(NameError::Octet));
        check(b"a\0", Err(NameError::Octet));
        check(&[b'a'; 256], Err(NameError::TooLong));
    }

    #[test]
    fn digits_are_ascii_digits() {
        let digits = |text| Name::parse(OsStr::new(text)).unwrap().digits();
        assert_eq!(digits("0123"), Some(&b"0123"[..]));
        assert_eq!(digits("12a"), None);
        assert_eq!(digits("\u{661}"), None);
    }
}
