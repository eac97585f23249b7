//! The records of articles that move from one set to another: copies, what counts from now on, and the pack that has their rows.
//!
//! As all records they say facts only, and decode what is hostile.

use newsreel_index::PackFacts;
use newsreel_wire::{IdHash, Sequence, Token, UnixTime};

use super::kind;
use super::octets::Cursor;
use crate::error::Error;

/// A copy of an article, which counts from a [`MovedRecord`] on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CopyRecord {
    /// Where it lies.
    pub(crate) token: Token,
    /// The keyed hash of its message-id.
    pub(crate) id_hash: IdHash,
}

impl CopyRecord {
    /// Octets of the payload.
    pub(crate) const OCTETS: usize = 24 + 16;

    /// Writes the payload.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.token.as_bytes());
        out.extend_from_slice(&self.id_hash.0);
    }

    /// Reads the payload.
    pub(crate) fn decode(sequence: Sequence, payload: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(sequence, kind::COPY, payload);
        Ok(Self {
            token: Token::from_bytes(cursor.array()?),
            id_hash: IdHash(cursor.array()?),
        })
    }
}

/// An article that lies elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MovedRecord {
    /// Where it lies by now.
    pub(crate) token: Token,
    /// The keyed hash of its message-id.
    pub(crate) id_hash: IdHash,
    /// From when on its id is remembered, as the history had it.
    pub(crate) arrival: UnixTime,
    /// It was withdrawn, or overwritten at its old place, before this: it stays withdrawn.
    pub(crate) is_withdrawn: bool,
}

impl MovedRecord {
    /// Writes the payload.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.token.as_bytes());
        out.extend_from_slice(&self.id_hash.0);
        out.extend_from_slice(&self.arrival.0.to_le_bytes());
        out.push(u8::from(self.is_withdrawn));
    }

    /// Reads the payload.
    pub(crate) fn decode(sequence: Sequence, payload: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(sequence, kind::MOVED, payload);
        let token = Token::from_bytes(cursor.array()?);
        let id_hash = IdHash(cursor.array()?);
        let arrival = UnixTime(cursor.u64()?);
        let [flags] = cursor.array()?;
        Ok(Self {
            token,
            id_hash,
            arrival,
            is_withdrawn: flags & 1 != 0,
        })
    }
}

/// A pack of the overview that stands in the place of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RepackedRecord {
    /// The id of the old one.
    pub(crate) old: u64,
    /// The new one; `None`: nothing was left of it.
    pub(crate) new: Option<PackFacts>,
}

impl RepackedRecord {
    /// Writes the payload.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.old.to_le_bytes());
        if let Some(new) = &self.new {
            for number in [new.id, new.octets, new.first.0, new.last.0, new.rows] {
                out.extend_from_slice(&number.to_le_bytes());
            }
        }
    }

    /// Reads the payload.
    pub(crate) fn decode(sequence: Sequence, payload: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(sequence, kind::REPACKED, payload);
        let old = cursor.u64()?;
        if cursor.is_empty() {
            return Ok(Self { old, new: None });
        }
        let new = PackFacts {
            id: cursor.u64()?,
            octets: cursor.u64()?,
            first: Sequence(cursor.u64()?),
            last: Sequence(cursor.u64()?),
            rows: cursor.u64()?,
        };
        Ok(Self {
            old,
            new: Some(new),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_a_move_round_trip() {
        let (token, id_hash) = (Token::from_bytes([7; 24]), IdHash([3; 16]));
        let mut text = Vec::new();
        let copy = CopyRecord { token, id_hash };
        copy.encode(&mut text);
        assert_eq!(CopyRecord::decode(Sequence(1), &text).unwrap(), copy);
        assert!(CopyRecord::decode(Sequence(1), &text[1..]).is_err());
        for is_withdrawn in [false, true] {
            text.clear();
            let moved = MovedRecord {
                token,
                id_hash,
                arrival: UnixTime(5),
                is_withdrawn,
            };
            moved.encode(&mut text);
            assert_eq!(MovedRecord::decode(Sequence(1), &text).unwrap(), moved);
            assert!(MovedRecord::decode(Sequence(1), &text[1..]).is_err());
        }
        let new = PackFacts {
            id: 9,
            octets: 4096,
            first: Sequence(1),
            last: Sequence(77),
            rows: 50,
        };
        for new in [Some(new), None] {
            text.clear();
            let repacked = RepackedRecord { old: 4, new };
            repacked.encode(&mut text);
            assert_eq!(
                RepackedRecord::decode(Sequence(1), &text).unwrap(),
                repacked
            );
            assert!(RepackedRecord::decode(Sequence(1), &text[1..]).is_err());
        }
    }
}
