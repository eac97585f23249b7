//! The records of groups that are made, changed or removed.
//!
//! As all records they say facts only, and decode what is hostile.

use newsreel_wire::{ArticleNumber, GroupId, Sequence, UnixTime};

use super::kind;
use super::octets::{Cursor, put_len};
use crate::error::Error;

/// A group as it was made or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GroupRecord<'a> {
    /// Its id, never given to another group.
    pub(crate) id: GroupId,
    /// When it happened; of a group that was made elsewhere, when that was.
    pub(crate) time: UnixTime,
    /// The lowest high mark it starts from: an imported one, or 0.
    pub(crate) high: ArticleNumber,
    /// Name; empty in a change.
    pub(crate) name: &'a str,
    /// Status field as in LIST ACTIVE: `y n m j x` or `=other.group`.
    pub(crate) status: &'a str,
    /// The line of LIST NEWSGROUPS.
    pub(crate) description: &'a str,
    /// Who made it, for LIST ACTIVE.TIMES.
    pub(crate) creator: &'a str,
}

impl<'a> GroupRecord<'a> {
    /// Writes the payload.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.id.0.to_le_bytes());
        out.extend_from_slice(&self.time.0.to_le_bytes());
        out.extend_from_slice(&self.high.0.to_le_bytes());
        for text in [self.name, self.status, self.description, self.creator] {
            put_len(out, text.len());
            out.extend_from_slice(text.as_bytes());
        }
    }

    /// Reads the payload of a `GROUP_MADE` or `GROUP_CHANGED` record.
    pub(crate) fn decode(sequence: Sequence, kind: u8, payload: &'a [u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(sequence, kind, payload);
        Ok(Self {
            id: GroupId(cursor.u32()?),
            time: UnixTime(cursor.u64()?),
            high: ArticleNumber(cursor.u64()?),
            name: cursor.text()?,
            status: cursor.text()?,
            description: cursor.text()?,
            creator: cursor.text()?,
        })
    }
}

/// A group was removed; its id and name stay taken, its numbers are never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupRemovedRecord {
    /// Its id.
    pub(crate) id: GroupId,
    /// When.
    pub(crate) time: UnixTime,
}

impl GroupRemovedRecord {
    /// Writes the payload.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.id.0.to_le_bytes());
        out.extend_from_slice(&self.time.0.to_le_bytes());
    }

    /// Reads the payload.
    pub(crate) fn decode(sequence: Sequence, payload: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(sequence, kind::GROUP_REMOVED, payload);
        Ok(Self {
            id: GroupId(cursor.u32()?),
            time: UnixTime(cursor.u64()?),
        })
    }
}
