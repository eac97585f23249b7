//! The algorithms: which name of a directory's view lies in which bucket below it.
//!
//! Pure functions of the name.  Every name has exactly one bucket; what is no article lies in `aaa`.  On disk:
//! `docs/formats/managed-directory.md`.
//!
//! To add one that takes other digits: a row in `DIGITS`.  To add one of another kind: a file here with its rank,
//! `write` and `parse`, a variant of `Algorithm`, and its line in each `match` below; the property tests, the
//! conversions and the measurements take it from `ALL`.

mod digits;
mod range;
#[cfg(test)]
mod tests;

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::name::Name;

/// The bucket of what is no article.
pub const OTHERS: &str = "aaa";

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

/// An algorithm: the rule that gives every name its bucket.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Algorithm(Rule);

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Rule {
    /// A row of `DIGITS`.
    Digits(usize),
    /// So many consecutive numbers.
    Range(u32),
}

/// A bucket of some algorithm; `aaa` comes before all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bucket(pub(crate) Option<u64>);

impl Bucket {
    /// The bucket of what is no article.
    pub const OTHERS: Self = Self(None);
}

/// What a directory below a managed one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Node {
    /// A bucket.
    Bucket(Bucket),
    /// A directory of buckets.
    Inner(u64),
}

/// No algorithm has that name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no algorithm; there are yyy, 34/56, 56/34, 456, range1024 and range with any number from 2 to 16777216"
)]
pub struct AlgorithmError(pub String);

impl Algorithm {
    /// The paper's: digits two, three and four from the end.
    pub const YYY: Self = Self(Rule::Digits(0));
    /// 1024 consecutive numbers to a bucket; the one for new directories.
    pub const RANGE_1024: Self = Self(Rule::Range(1024));

    /// One of each: all of fixed digits, and the usual range.
    pub const ALL: [Self; 5] = [
        Self(Rule::Digits(0)),
        Self(Rule::Digits(1)),
        Self(Rule::Digits(2)),
        Self(Rule::Digits(3)),
        Self::RANGE_1024,
    ];

    /// `numbers` consecutive numbers to a bucket, if that is a sensible size.
    #[must_use]
    pub fn range(numbers: u32) -> Option<Self> {
        let sensible = (2..=range::NUMBERS_MAX).contains(&numbers);
        sensible.then_some(Self(Rule::Range(numbers)))
    }

    /// The bucket of a name.
    #[must_use]
    pub fn bucket(&self, name: Name<'_>) -> Bucket {
        Bucket(match self.0 {
            Rule::Digits(row) => name.digits().map(|digits| DIGITS[row].rank(digits)),
            Rule::Range(numbers) => range::rank(name, numbers),
        })
    }

    /// Where a bucket lies, seen from the managed directory.
    #[must_use]
    pub fn bucket_path(&self, bucket: Bucket) -> PathBuf {
        let mut path = String::new();
        match (self.0, bucket.0) {
            (_, None) => path.push_str(OTHERS),
            (Rule::Digits(row), Some(rank)) => DIGITS[row].write(rank, &mut path),
            (Rule::Range(_), Some(rank)) => range::write(rank, &mut path),
        }
        PathBuf::from(path)
    }

    /// Where a name lies, seen from the managed directory.
    #[must_use]
    pub fn place(&self, name: Name<'_>) -> PathBuf {
        let mut path = self.bucket_path(self.bucket(name));
        path.push(name.as_os_str());
        path
    }

    /// Whether emptied buckets are removed, because they are not needed again.
    #[must_use]
    pub const fn drops_empty_buckets(&self) -> bool {
        matches!(self.0, Rule::Range(_))
    }

    /// What a directory called `name` is, in the managed directory or in the inner directory `above`.
    pub(crate) fn node(&self, above: Option<u64>, name: &OsStr) -> Option<Node> {
        let name = name.as_bytes();
        if above.is_none() && name == OTHERS.as_bytes() {
            return Some(Node::Bucket(Bucket::OTHERS));
        }
        match self.0 {
            Rule::Digits(row) => DIGITS[row].parse(above, name).map(|(rank, last)| {
                if last {
                    Node::Bucket(Bucket(Some(rank)))
                } else {
                    Node::Inner(rank)
                }
            }),
            Rule::Range(numbers) => {
                let rank = range::parse(name, numbers)?;
                above.is_none().then_some(Node::Bucket(Bucket(Some(rank))))
            }
        }
    }

    /// Whether buckets lie in directories of their own kind.
    pub(crate) const fn has_two_levels(&self) -> bool {
        match self.0 {
            Rule::Digits(row) => DIGITS[row].levels.len() > 1,
            Rule::Range(_) => false,
        }
    }

    /// Whether the rank of a bucket is the first of its numbers.
    pub(crate) const fn range_numbers(&self) -> Option<u32> {
        match self.0 {
            Rule::Range(numbers) => Some(numbers),
            Rule::Digits(_) => None,
        }
    }
}

impl Default for Algorithm {
    fn default() -> Self {
        Self::RANGE_1024
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Rule::Digits(row) => f.write_str(DIGITS[row].name),
            Rule::Range(numbers) => write!(f, "range{numbers}"),
        }
    }
}

impl fmt::Debug for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Algorithm({self})")
    }
}

impl FromStr for Algorithm {
    type Err = AlgorithmError;

    fn from_str(text: &str) -> Result<Self, AlgorithmError> {
        let fixed = DIGITS.iter().position(|row| row.name == text);
        fixed
            .map(|row| Self(Rule::Digits(row)))
            .or_else(|| {
                let numbers = text.strip_prefix("range")?;
                let numbers = crate::name::written_number(numbers.as_bytes())?;
                Self::range(u32::try_from(numbers).ok()?)
            })
            .ok_or_else(|| AlgorithmError(text.to_owned()))
    }
}
