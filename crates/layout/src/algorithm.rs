//! An algorithm: the rule that gives every name of a directory's view exactly one bucket below it.
//!
//! A pure function of the name; what is no article lies in `aaa`.  The rules themselves are in
//! `crates/layout/src/mappings`.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::mappings::Mapping;
use crate::name::Name;

/// The bucket of what is no article.
pub const OTHERS: &str = "aaa";

/// An algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Algorithm(Mapping);

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
    pub const YYY: Self = Self(Mapping::Digits(0));
    /// 1024 consecutive numbers to a bucket; the one for new directories.
    pub const RANGE_1024: Self = Self(Mapping::Range(1024));

    /// One of each: all of fixed digits, and the usual range.
    pub const ALL: [Self; 5] = [
        Self(Mapping::Digits(0)),
        Self(Mapping::Digits(1)),
        Self(Mapping::Digits(2)),
        Self(Mapping::Digits(3)),
        Self::RANGE_1024,
    ];

    /// `numbers` consecutive numbers to a bucket, if that is a sensible size.
    #[must_use]
    pub fn range(numbers: u32) -> Option<Self> {
        Mapping::range(numbers).map(Self)
    }

    /// The bucket of a name.
    #[must_use]
    pub fn bucket(&self, name: Name<'_>) -> Bucket {
        Bucket(self.0.rank(name))
    }

    /// Where a bucket lies, seen from the managed directory.
    #[must_use]
    pub fn bucket_path(&self, bucket: Bucket) -> PathBuf {
        let mut path = String::new();
        match bucket.0 {
            None => path.push_str(OTHERS),
            Some(rank) => self.0.write(rank, &mut path),
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
        self.range_numbers().is_some()
    }

    /// What a directory called `name` is, in the managed directory or in the inner directory `above`.
    pub(crate) fn node(&self, above: Option<u64>, name: &OsStr) -> Option<Node> {
        if above.is_none() && name == OTHERS {
            return Some(Node::Bucket(Bucket::OTHERS));
        }
        Some(match self.0.parse(above, name.as_bytes())? {
            (rank, true) => Node::Bucket(Bucket(Some(rank))),
            (rank, false) => Node::Inner(rank),
        })
    }

    /// Whether buckets lie in directories of their own kind.
    #[must_use]
    pub const fn has_two_levels(&self) -> bool {
        self.0.levels() > 1
    }

    /// How many consecutive numbers a bucket holds, if it does; its rank is the first of them.
    pub(crate) const fn range_numbers(&self) -> Option<u32> {
        match self.0 {
            Mapping::Range(numbers) => Some(numbers),
            Mapping::Digits(_) => None,
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
        f.write_str(&self.0.name())
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
        let mapping = Mapping::of_name(text);
        mapping
            .map(Self)
            .ok_or_else(|| AlgorithmError(text.to_owned()))
    }
}

#[cfg(test)]
#[path = "algorithm_tests.rs"]
mod tests;
