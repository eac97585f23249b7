//! Buckets by some of the digits of a name: the paper's algorithm and its three experiments.
//!
//! Digits are taken from the name as it is written, zeros in front of short ones, so rows of digits of any length have
//! their bucket.  Adjacent articles share a bucket only if the last digit is left out.

use std::fmt::Write;

/// Which digits make a bucket, level by level.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Digits {
    /// How it is called.
    pub(super) name: &'static str,
    /// Per level the places of its digits, counted from the last digit of the name, which is 0.
    pub(super) levels: &'static [&'static [usize]],
}

impl Digits {
    /// The digits of all levels behind each other, as a number.
    pub(super) fn rank(&self, name: &[u8]) -> u64 {
        let places = self.levels.iter().copied().flatten();
        places.fold(0, |rank, place| {
            let octet = name.iter().rev().nth(*place).copied().unwrap_or(b'0');
            rank * 10 + u64::from(octet - b'0')
        })
    }

    /// The bucket's path.
    pub(super) fn write(&self, rank: u64, path: &mut String) {
        let mut rest: usize = self.levels.iter().map(|level| level.len()).sum();
        for (at, level) in self.levels.iter().enumerate() {
            let width = level.len();
            rest -= width;
            let part = rank / power_of_ten(rest) % power_of_ten(width);
            let slash = if at == 0 { "" } else { "/" };
            // Writing into a string cannot fail.
            let _ = write!(path, "{slash}{part:0width$}");
        }
    }

    /// The rank of `name` one level below `above`, and whether that is the last level.
    pub(super) fn parse(&self, above: Option<u64>, name: &[u8]) -> Option<(u64, bool)> {
        let at = usize::from(above.is_some());
        let level = self.levels.get(at)?;
        if name.len() != level.len() || !name.iter().all(u8::is_ascii_digit) {
            return None;
        }
        let start = above.unwrap_or(0);
        let rank = name
            .iter()
            .fold(start, |rank, octet| rank * 10 + u64::from(octet - b'0'));
        Some((rank, at + 1 == self.levels.len()))
    }
}

fn power_of_ten(exponent: usize) -> u64 {
    (0..exponent).fold(1, |power, _| power * 10)
}
