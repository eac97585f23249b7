//! An article's row in the table: where it lies, and what policies know of it.
//!
//! The layout is in `docs/formats/cache.md`.

use newsreel_wire::{TOKEN_OCTETS, Token};

/// An article as the table has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// Where it lies.
    pub token: Token,
    /// Stands for the first of its groups.
    pub group: u64,
    /// Its date, seconds since 1970.
    pub dated: u64,
    /// When it was asked for last: later is more.
    pub used: u64,
    /// How often it was asked for.
    pub uses: u32,
    /// When it was asked for last, seconds since 1970; 0: nobody knows.
    pub used_at: u64,
}

/// Octets of a row without the time of its last use: of those that were written before there was one.
const TIMELESS_OCTETS: usize = TOKEN_OCTETS + 28;

impl Row {
    /// As it is kept.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = self.token.as_bytes().to_vec();
        for number in [self.group, self.dated, self.used] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(&self.uses.to_le_bytes());
        out.extend_from_slice(&self.used_at.to_le_bytes());
        out
    }

    /// From what was kept; none: it is no such thing.  Of those that have only a token nothing else is known.
    #[must_use]
    pub fn decode(octets: &[u8]) -> Option<Self> {
        let (octets, used_at) = octets
            .split_at_checked(TIMELESS_OCTETS)
            .unwrap_or((octets, &[]));
        let (token, rest) = octets.split_at_checked(TOKEN_OCTETS)?;
        let mut row = Self {
            token: Token::from_bytes(token.try_into().ok()?),
            group: 0,
            dated: 0,
            used: 0,
            uses: 1,
            used_at: 0,
        };
        if !used_at.is_empty() {
            row.used_at = u64::from_le_bytes(used_at.try_into().ok()?);
        }
        if !rest.is_empty() {
            let (numbers, uses) = rest.as_chunks();
            let [group, dated, used] = numbers.try_into().ok()?;
            row.group = u64::from_le_bytes(group);
            row.dated = u64::from_le_bytes(dated);
            row.used = u64::from_le_bytes(used);
            row.uses = u32::from_le_bytes(uses.try_into().ok()?);
        }
        Some(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_what_is_read() {
        let row = Row {
            token: Token::from_bytes([7; TOKEN_OCTETS]),
            group: 1,
            dated: 1 << 40,
            used: u64::MAX,
            uses: 9,
            used_at: 7,
        };
        let octets = row.encode();
        assert_eq!(Row::decode(&octets), Some(row));
        // Before there were policies a row was its token.
        let first = Row::decode(&[7; TOKEN_OCTETS]).unwrap();
        assert_eq!((first.token, first.uses), (row.token, 1));
        // Before times were noted it had none.
        let timeless = Row::decode(&octets[..TIMELESS_OCTETS]).unwrap();
        assert_eq!(timeless, Row { used_at: 0, ..row });
        let whole = [TOKEN_OCTETS, TIMELESS_OCTETS];
        for end in (0..octets.len()).filter(|end| !whole.contains(end)) {
            assert_eq!(Row::decode(&octets[..end]), None, "{end}");
        }
    }
}
