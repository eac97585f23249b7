//! The record of a message about groups that waits for approval.
//!
//! As all records it says facts only, and decodes what is hostile.

use newsreel_wire::{IdHash, Sequence, UnixTime};

use super::kind;
use super::octets::Cursor;
use crate::control::shares::Holder;
use crate::error::Error;

/// A message about groups that waits for approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WaitingRecord {
    /// The keyed hash of its message-id.
    pub(crate) id: IdHash,
    /// When it came.
    pub(crate) since: UnixTime,
    /// Whose share of the room it takes.
    pub(crate) holder: Holder,
    /// Somebody signed it whose key was in the keyring.
    pub(crate) is_signed: bool,
    /// It waits no longer: somebody approved it.
    pub(crate) is_over: bool,
    /// All was as it wants it when it came: it asks for something when that changes.
    pub(crate) is_idle: bool,
}

const IS_SIGNED: u8 = 1;
const IS_OVER: u8 = 2;
const IS_IDLE: u8 = 4;

impl WaitingRecord {
    /// Octets of the payload.
    pub(crate) const OCTETS: usize = 16 + 8 + 8 + 1;

    /// Writes the payload.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.id.0);
        out.extend_from_slice(&self.since.0.to_le_bytes());
        out.extend_from_slice(&self.holder.0.to_le_bytes());
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let is_over = flag(self.is_over, IS_OVER);
        out.push(flag(self.is_signed, IS_SIGNED) | is_over | flag(self.is_idle, IS_IDLE));
    }

    /// Reads the payload.
    pub(crate) fn decode(sequence: Sequence, payload: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(sequence, kind::WAITING, payload);
        let id = IdHash(cursor.array()?);
        let since = UnixTime(cursor.u64()?);
        let holder = Holder(cursor.u64()?);
        let [flags] = cursor.array()?;
        Ok(Self {
            id,
            since,
            holder,
            is_signed: flags & IS_SIGNED != 0,
            is_over: flags & IS_OVER != 0,
            is_idle: flags & IS_IDLE != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_waiting_message_round_trips() {
        for flags in [0, 1, 2, 4] {
            let [is_signed, is_over, is_idle] = [1, 2, 4].map(|flag| flags == flag);
            let record = WaitingRecord {
                id: IdHash([3; 16]),
                since: UnixTime(7),
                holder: Holder(5),
                is_signed,
                is_over,
                is_idle,
            };
            let mut out = Vec::new();
            record.encode(&mut out);
            assert_eq!(WaitingRecord::decode(Sequence(1), &out).unwrap(), record);
            assert!(WaitingRecord::decode(Sequence(1), &out[1..]).is_err());
        }
    }
}
