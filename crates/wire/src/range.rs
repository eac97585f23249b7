//! Article number ranges: `n`, `n-`, `n-m` (RFC 3977 section 6.1.2 and 9.2).
//!
//! A range whose end is before its beginning is well-formed and holds nothing.  Numbers have at most 16 digits, as the
//! RFC's grammar says, so they always fit.

use std::fmt;

use crate::error::RangeError;
use crate::ids::ArticleNumber;

/// Digits of the largest number (RFC 3977 section 9.8, `article-number`).
pub const NUMBER_DIGITS_MAX: usize = 16;

/// A range of article numbers, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NumberRange {
    /// The first number.
    pub low: ArticleNumber,
    /// The last number; `None` means whatever is the highest.
    pub high: Option<ArticleNumber>,
}

impl NumberRange {
    /// Every number.
    pub const ALL: Self = Self {
        low: ArticleNumber(1),
        high: None,
    };

    /// Reads one argument.
    ///
    /// # Errors
    /// When it is not one of the three forms, or a number has too many digits.
    pub fn parse(argument: &[u8]) -> Result<Self, RangeError> {
        let Some(dash) = memchr::memchr(b'-', argument) else {
            let low = parse_number(argument)?;
            return Ok(Self {
                low,
                high: Some(low),
            });
        };
        let (low, high) = argument.split_at_checked(dash).unwrap_or_default();
        let low = parse_number(low)?;
        let high = match high.get(1..).unwrap_or_default() {
            [] => None,
            digits => Some(parse_number(digits)?),
        };
        Ok(Self { low, high })
    }

    /// Whether a number is inside.
    #[must_use]
    pub fn contains(&self, number: ArticleNumber) -> bool {
        self.low <= number && self.high.is_none_or(|high| number <= high)
    }

    /// Whether no number can be inside.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.high.is_some_and(|high| high < self.low)
    }

    /// The part inside `low..=high`, as a pair for loops; `None` when there is none.
    #[must_use]
    pub fn clamp(
        &self,
        low: ArticleNumber,
        high: ArticleNumber,
    ) -> Option<(ArticleNumber, ArticleNumber)> {
        let first = self.low.max(low);
        let last = self.high.map_or(high, |own| own.min(high));
        (first <= last).then_some((first, last))
    }
}

/// Reads an article number argument: 1 to 16 digits.
///
/// # Errors
/// When there is something else, or more digits.
pub fn parse_number(digits: &[u8]) -> Result<ArticleNumber, RangeError> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(RangeError::Form);
    }
    if digits.len() > NUMBER_DIGITS_MAX {
        return Err(RangeError::TooLarge);
    }
    Ok(ArticleNumber(digits.iter().fold(0, |number, digit| {
        number * 10 + u64::from(digit - b'0')
    })))
}

impl fmt::Display for NumberRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.high {
            Some(high) if high == self.low => write!(f, "{high}"),
            Some(high) => write!(f, "{}-{high}", self.low),
            None => write!(f, "{}-", self.low),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn range(low: u64, high: Option<u64>) -> NumberRange {
        NumberRange {
            low: ArticleNumber(low),
            high: high.map(ArticleNumber),
        }
    }

    #[test]
    fn three_forms() {
        assert_eq!(NumberRange::parse(b"17"), Ok(range(17, Some(17))));
        assert_eq!(NumberRange::parse(b"17-"), Ok(range(17, None)));
        assert_eq!(NumberRange::parse(b"17-20"), Ok(range(17, Some(20))));
        assert_eq!(NumberRange::parse(b"20-17"), Ok(range(20, Some(17))));
        assert_eq!(NumberRange::parse(b"0017"), Ok(range(17, Some(17))));
        assert_eq!(
            NumberRange::parse(b"9999999999999999"),
            Ok(range(9_999_999_999_999_999, Some(9_999_999_999_999_999)))
        );
    }

    #[test]
    fn refuses_by_reason() {
        for text in [
            "", "-", "-5", "a", "1-a", "1--2", "1-2-3", "+1", " 1", "<1@a>",
        ] {
            assert_eq!(
                NumberRange::parse(text.as_bytes()),
                Err(RangeError::Form),
                "{text}"
            );
        }
        assert_eq!(
            NumberRange::parse(b"1-12345678901234567"),
            Err(RangeError::TooLarge)
        );
    }

    #[test]
    fn clamps() {
        let clamp = |text: &[u8]| {
            NumberRange::parse(text)
                .unwrap()
                .clamp(ArticleNumber(10), ArticleNumber(20))
                .map(|(a, b)| (a.0, b.0))
        };
        assert_eq!(clamp(b"1-15"), Some((10, 15)));
        assert_eq!(clamp(b"15-"), Some((15, 20)));
        assert_eq!(clamp(b"21-"), None);
        assert_eq!(clamp(b"15-12"), None);
    }

    proptest! {
        #[test]
        fn prop_ranges_round_trip(low in 0..10u64.pow(16), high in proptest::option::of(0..10u64.pow(16)), n: u64) {
            let range = range(low, high);
            prop_assert_eq!(NumberRange::parse(range.to_string().as_bytes()), Ok(range));
            prop_assert_eq!(range.contains(ArticleNumber(n)), n >= low && n <= high.unwrap_or(u64::MAX));
            prop_assert_eq!(range.is_empty(), high.is_some_and(|high| high < low));
        }
    }
}
