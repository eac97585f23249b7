//! What is kept of a group: its marks, its count and its status, and when the server told them.
//!
//! The layout is in `docs/formats/cache.md`.

use newsreel_wire::{ArticleNumber, UnixTime};

/// The longest status field that is kept: an alias with a group's name.
const STATUS_OCTETS_MAX: usize = 600;

/// A group as the server told it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptGroup {
    /// The lowest number.
    pub low: ArticleNumber,
    /// The highest.
    pub high: ArticleNumber,
    /// How many articles.
    pub count: u64,
    /// When it was told.
    pub told: UnixTime,
    /// How often anything had been posted when the server was asked for it.
    pub asked: u64,
    /// ... and when something was posted to it last.  Neither is kept over a restart.
    pub posted: u64,
    /// Which one of its name it is: another number once it was seen to have gone, or to have become another one.  Not kept over a
    /// restart.
    pub generation: u64,
    /// Octets of overview that are kept of it.
    pub overview_octets: u64,
    /// The status field.
    pub status: Box<str>,
}

impl KeptGroup {
    /// Whether it may have changed since it was told, as something was posted.
    #[must_use]
    pub const fn is_outdated(&self) -> bool {
        self.posted > self.asked
    }

    /// As it is kept; none: its status cannot be one.
    #[must_use]
    pub fn encode(&self) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(40 + self.status.len());
        let Self {
            low,
            high,
            count,
            told,
            overview_octets,
            ..
        } = self;
        for number in [low.0, high.0, *count, told.0, *overview_octets] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(self.status.as_bytes());
        (self.status.len() <= STATUS_OCTETS_MAX).then_some(out)
    }

    /// From what was kept; none: it is no such thing.
    #[must_use]
    pub fn decode(octets: &[u8]) -> Option<Self> {
        let (numbers, status) = octets.split_at_checked(40)?;
        let mut numbers = numbers.as_chunks().0.iter();
        let mut number = || numbers.next().map(|octets| u64::from_le_bytes(*octets));
        Some(Self {
            low: ArticleNumber(number()?),
            high: ArticleNumber(number()?),
            count: number()?,
            told: UnixTime(number()?),
            asked: 0,
            posted: 0,
            generation: 0,
            overview_octets: number()?,
            status: std::str::from_utf8(status)
                .ok()
                .filter(|status| status.len() <= STATUS_OCTETS_MAX)?
                .into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_what_is_read() {
        let group = KeptGroup {
            low: ArticleNumber(3),
            high: ArticleNumber(9),
            count: 5,
            told: UnixTime(1_767_225_600),
            asked: 0,
            posted: 0,
            generation: 0,
            overview_octets: 77,
            status: "=misc.other".into(),
        };
        let octets = group.encode().unwrap();
        // Written by other means than ours; those of version 1 are read for ever.
        let first = include_bytes!("../../../../fuzz/corpus/cache_values/group");
        assert_eq!(KeptGroup::decode(first), Some(group.clone()));
        assert_eq!(KeptGroup::decode(&octets), Some(group.clone()));
        assert_eq!(KeptGroup::decode(&octets[..39]), None);
        assert_eq!(KeptGroup::decode(&[octets, vec![0xff]].concat()), None);
        let status = "x".repeat(STATUS_OCTETS_MAX + 1).into();
        assert_eq!(KeptGroup { status, ..group }.encode(), None);
    }
}
