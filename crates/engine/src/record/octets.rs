//! The octets of a payload: lengths, numbers, texts and places, as every record writes and reads them.
//!
//! What is read is hostile: running out is corruption of that record, never a panic.

use newsreel_wire::{ArticleNumber, GroupId, Sequence};
use smallvec::SmallVec;

use crate::error::Error;

/// A length as two octets; the accept path bounds all of them far below 64 Ki.
pub(super) fn put_len(out: &mut Vec<u8>, len: usize) {
    out.extend_from_slice(&u16::try_from(len).unwrap_or(u16::MAX).to_le_bytes());
}

/// Groups and numbers, with their count in front.
pub(super) fn put_places(out: &mut Vec<u8>, places: &[(GroupId, ArticleNumber)]) {
    put_len(out, places.len());
    for (group, number) in places {
        out.extend_from_slice(&group.0.to_le_bytes());
        out.extend_from_slice(&number.0.to_le_bytes());
    }
}

/// Reads a payload from the front; running out is corruption of that record.
pub(super) struct Cursor<'a> {
    sequence: Sequence,
    kind: u8,
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    pub(super) fn new(sequence: Sequence, kind: u8, payload: &'a [u8]) -> Self {
        Self {
            sequence,
            kind,
            rest: payload,
        }
    }

    pub(super) fn damaged(&self, what: &'static str) -> Error {
        Error::Record {
            sequence: self.sequence,
            kind: self.kind,
            what,
        }
    }

    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], Error> {
        let Some((head, rest)) = self.rest.split_at_checked(len) else {
            return Err(self.damaged("it ends too early"));
        };
        self.rest = rest;
        Ok(head)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut out = [0; N];
        out.copy_from_slice(self.take(N)?);
        Ok(out)
    }

    pub(super) fn u16(&mut self) -> Result<u16, Error> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(super) fn u32(&mut self) -> Result<u32, Error> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64, Error> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// What [`put_places`] wrote.
    pub(super) fn places(&mut self) -> Result<SmallVec<[(GroupId, ArticleNumber); 4]>, Error> {
        let count = self.u16()?;
        let mut place = || Ok((GroupId(self.u32()?), ArticleNumber(self.u64()?)));
        (0..count).map(|_| place()).collect()
    }

    pub(super) fn text(&mut self) -> Result<&'a str, Error> {
        let len = self.u16()?;
        let bytes = self.take(usize::from(len))?;
        std::str::from_utf8(bytes).map_err(|_| self.damaged("a text in it is no UTF-8"))
    }

    /// Texts, with their count in front.
    pub(super) fn texts(&mut self) -> Result<Vec<String>, Error> {
        let count = self.u16()?;
        (0..count).map(|_| Ok(self.text()?.to_owned())).collect()
    }

    /// Whether nothing is left.
    pub(super) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }
}
