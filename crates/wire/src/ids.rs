//! The small numbers every crate passes around: article number, group id, sequence, time, hash, buffer, set.
//!
//! Each is its own type so that an article number can never be taken for a sequence. They are plain values:
//! nothing here checks that what a number names exists.

use std::fmt;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident($inner:ty)) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[repr(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl From<$inner> for $name {
            fn from(value: $inner) -> Self {
                Self(value)
            }
        }

        impl From<$name> for $inner {
            fn from(value: $name) -> Self {
                value.0
            }
        }
    };
}

number! {
    /// An article's number in one group: 1 and up, never reused (RFC 3977 section 6).  0 is the reply's "no number".
    ArticleNumber(u64)
}

number! {
    /// A group's id, given by the log when the group is made; never reused, also not by a group of the same name.
    GroupId(u32)
}

number! {
    /// A record's place in the log.  0 is before everything.
    Sequence(u64)
}

number! {
    /// Whole seconds since 1970-01-01 00:00:00 UTC, leap seconds not counted.
    UnixTime(u64)
}

number! {
    /// A storage buffer's id inside one spool; never reused.
    BufferId(u16)
}

number! {
    /// A buffer set's id: what storage rules choose.
    SetId(u8)
}

impl ArticleNumber {
    /// The largest number RFC 3977 section 6 lets a server offer.
    pub const RFC_MAX: Self = Self(2_147_483_647);

    /// The number after this one; stays at the largest.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl Sequence {
    /// Before every record.
    pub const ZERO: Self = Self(0);

    /// The sequence after this one; stays at the largest.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

/// The keyed 128-bit hash of a message-id, the key of every history view.  The hash is made in `index`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct IdHash(pub [u8; 16]);

impl IdHash {
    /// The first eight octets as a number: enough to choose a shard, a bucket or a filter bit.
    #[must_use]
    pub const fn prefix(&self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }

    /// The last eight octets as a number, independent of [`IdHash::prefix`].
    #[must_use]
    pub const fn suffix(&self) -> u64 {
        let [.., a, b, c, d, e, f, g, h] = self.0;
        u64::from_le_bytes([a, b, c, d, e, f, g, h])
    }

    /// The octets.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for IdHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

impl fmt::Debug for IdHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IdHash({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_print_bare_and_saturate() {
        assert_eq!(ArticleNumber(17).to_string(), "17");
        assert_eq!(ArticleNumber(u64::MAX).next(), ArticleNumber(u64::MAX));
        assert_eq!(Sequence::ZERO.next(), Sequence(1));
        assert_eq!(u64::from(UnixTime::from(5)), 5);
        assert_eq!(format!("{:>4}|{:04}", GroupId(3), BufferId(7)), "   3|0007");
    }

    #[test]
    fn hash_halves_are_little_endian_and_disjoint() {
        let mut octets = [0; 16];
        octets[0] = 1;
        octets[8] = 2;
        let hash = IdHash(octets);
        assert_eq!((hash.prefix(), hash.suffix()), (1, 2));
        assert_eq!(hash.to_string(), "01000000000000000200000000000000");
        assert_eq!(
            format!("{hash:?}"),
            "IdHash(01000000000000000200000000000000)"
        );
    }
}
