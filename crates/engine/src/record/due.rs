//! The record of what is due behind a control message: done as soon as it is on disk, and after a crash at the next start.
//!
//! As all records it says facts only, and decodes what is hostile.

use newsreel_wire::{IdHash, Sequence};

use super::kind;
use super::octets::Cursor;
use crate::error::Error;

/// What is to be done behind a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DueKind {
    /// A mail tells of it.
    Mail,
    /// The articles that it lists go.
    Notice,
}

/// Something is due behind a message, or is no longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DueRecord {
    /// The keyed hash of its message-id.
    pub(crate) id: IdHash,
    /// None: nothing is due any more.
    pub(crate) kind: Option<DueKind>,
}

const OVER: u8 = 0;
const MAIL: u8 = 1;
const NOTICE: u8 = 2;

impl DueRecord {
    /// Octets of the payload.
    pub(crate) const OCTETS: usize = 16 + 1;

    /// Writes the payload.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.id.0);
        out.push(match self.kind {
            None => OVER,
            Some(DueKind::Mail) => MAIL,
            Some(DueKind::Notice) => NOTICE,
        });
    }

    /// Reads the payload.
    pub(crate) fn decode(sequence: Sequence, payload: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(sequence, kind::DUE, payload);
        let id = IdHash(cursor.array()?);
        let [what] = cursor.array()?;
        let kind = match what {
            MAIL => Some(DueKind::Mail),
            NOTICE => Some(DueKind::Notice),
            // What this newsreel does not know it cannot do.
            _ => None,
        };
        Ok(Self { id, kind })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_round_trips() {
        for kind in [None, Some(DueKind::Mail), Some(DueKind::Notice)] {
            let record = DueRecord {
                id: IdHash([3; 16]),
                kind,
            };
            let mut out = Vec::new();
            record.encode(&mut out);
            assert_eq!(out.len(), DueRecord::OCTETS);
            assert_eq!(DueRecord::decode(Sequence(1), &out).unwrap(), record);
            assert!(DueRecord::decode(Sequence(1), &out[1..]).is_err());
        }
    }
}
