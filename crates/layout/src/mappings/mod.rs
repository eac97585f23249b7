//! The table of mappings: from a name to the rank of its bucket, from there to the bucket's path, and back.
//!
//! Pure functions.  On disk: `docs/formats/managed-directory.md`.
//!
//! To add one that takes other digits: a row in `DIGITS`.  To add one of another kind: a file here with its `rank`,
//! `write` and `parse`, a variant of `Mapping`, and its line in each `match` below; the property tests, the conversions
//! and the measurements take it from `Algorithm::ALL`.

mod digits;
mod range;

use crate::name::{Name, written_number};

/// The mappings by digits.
const DIGITS: [digits::Digits; 4] = [
    digits::Digits {
        name: "yyy",
        levels: &[&[3, 2, 1]],
    },
    digits::Digits {
        name: "34/56",
        levels: &[&[3, 2], &[1, 0]],
    },
    digits::Digits {
        name: "56/34",
        levels: &[&[1, 0], &[3, 2]],
    },
    digits::Digits {
        name: "456",
        levels: &[&[2, 1, 0]],
    },
];

/// A mapping.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Mapping {
    /// A row of `DIGITS`.
    Digits(usize),
    /// So many consecutive numbers.
    Range(u32),
}

impl Mapping {
    /// So many consecutive numbers, if that is a sensible size.
    pub(crate) fn range(numbers: u32) -> Option<Self> {
        let sensible = (2..=range::NUMBERS_MAX).contains(&numbers);
        sensible.then_some(Self::Range(numbers))
    }

    /// The mapping of that name.
    pub(crate) fn of_name(text: &str) -> Option<Self> {
        if let Some(row) = DIGITS.iter().position(|row| row.name == text) {
            return Some(Self::Digits(row));
        }
        let numbers = written_number(text.strip_prefix("range")?.as_bytes())?;
        Self::range(u32::try_from(numbers).ok()?)
    }

    /// Its name.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Digits(row) => DIGITS[row].name.to_owned(),
            Self::Range(numbers) => format!("range{numbers}"),
        }
    }

    /// The rank of a name's bucket; `None` for what is no article.
    pub(crate) fn rank(self, name: Name<'_>) -> Option<u64> {
        match self {
            Self::Digits(row) => name.digits().map(|digits| DIGITS[row].rank(digits)),
            Self::Range(numbers) => range::rank(name, numbers),
        }
    }

    /// Writes the path of a bucket.
    pub(crate) fn write(self, rank: u64, path: &mut String) {
        match self {
            Self::Digits(row) => DIGITS[row].write(rank, path),
            Self::Range(_) => range::write(rank, path),
        }
    }

    /// The rank of a directory called `name`, one level below `above`, and whether it is a bucket itself.
    pub(crate) fn parse(self, above: Option<u64>, name: &[u8]) -> Option<(u64, bool)> {
        match self {
            Self::Digits(row) => DIGITS[row].parse(above, name),
            Self::Range(numbers) if above.is_none() => Some((range::parse(name, numbers)?, true)),
            Self::Range(_) => None,
        }
    }

    /// Down how many directories its buckets lie.
    pub(crate) const fn levels(self) -> usize {
        match self {
            Self::Digits(row) => DIGITS[row].levels.len(),
            Self::Range(_) => 1,
        }
    }
}
