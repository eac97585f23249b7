//! Walks the records of a buffer in the order of the file, for `check`, scrubbing and tools.
//!
//! A damaged stretch is reported once and left behind at the next block where a sound record
//! begins.  Memory is bounded by the largest article.

use std::sync::Arc;

use newsreel_wire::{Position, Token, TokenParts};

use super::METHOD;
use super::checkpoint::bit_at;
use super::file::Buffer;
use super::format::{BLOCK, PAGE, RECORD_HEADER, RecordHeader};
use crate::error::Result;

/// One thing found in a buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scanned {
    /// A record whose header is sound.
    Record {
        /// Its header.
        header: RecordHeader,
        /// Its token.
        token: Token,
        /// Whether its article passes its checksums.
        sound: bool,
    },
    /// No record could be read in this range of the file, though articles should be there.
    Damaged {
        /// From here.
        from: u64,
        /// To here.
        to: u64,
    },
}

/// The records of one buffer, from the oldest alive to the newest.
#[derive(Debug)]
pub struct Scan {
    buffer: Arc<Buffer>,
    /// Parts of the file to look at, with the cycle whose records are expected there.
    parts: Vec<(u32, u64, u64)>,
    at: usize,
    offset: u64,
    memory: Vec<u8>,
}

impl Scan {
    /// Everything alive below `end`.
    #[must_use]
    pub fn new(buffer: Arc<Buffer>, end: Position) -> Self {
        let floor = buffer.floor();
        let (start, data_end) = (buffer.data_start, buffer.data_end);
        let mut parts = Vec::new();
        if floor.cycle() == end.cycle() {
            parts.push((end.cycle(), floor.offset(), end.offset()));
        } else {
            if floor.cycle() > 0 {
                parts.push((floor.cycle(), floor.offset().max(start), data_end));
            }
            parts.push((end.cycle(), start, end.offset()));
        }
        let offset = parts.first().map_or(0, |part| part.1);
        Self {
            buffer,
            parts,
            at: 0,
            offset,
            memory: Vec::new(),
        }
    }

    fn record_at(&self, cycle: u32, offset: u64, limit: u64) -> Result<Option<RecordHeader>> {
        if offset + RECORD_HEADER as u64 > limit {
            return Ok(None);
        }
        let mut octets = [0; RECORD_HEADER];
        self.buffer.file.read_exact_at(&mut octets, offset)?;
        let header = RecordHeader::decode(&octets).ok();
        Ok(header.filter(|header| {
            header.position == Position::new(cycle, offset) && offset + header.record_len() <= limit
        }))
    }

    fn check(&mut self, header: RecordHeader, offset: u64) -> Result<Scanned> {
        let len = header.article_len as usize;
        if self.memory.len() < len {
            self.memory.resize(len, 0);
        }
        let article = &mut self.memory[..len];
        self.buffer
            .file
            .read_exact_at(article, offset + RECORD_HEADER as u64)?;
        let (head, body) = article.split_at((header.head_len as usize).min(len));
        let sound =
            crc32c::crc32c(head) == header.crc_head && crc32c::crc32c(body) == header.crc_body;
        let token = Token::new(TokenParts {
            method: METHOD,
            set: self.buffer.set,
            buffer: self.buffer.id,
            len: header.article_len,
            position: header.position,
            tail: [0; 8],
        });
        Ok(Scanned::Record {
            header,
            token,
            sound,
        })
    }

    /// The next thing found; `None` at the end.
    pub fn step(&mut self) -> Result<Option<Scanned>> {
        let mut damaged_from = None;
        while let Some((cycle, _, limit)) = self.parts.get(self.at).copied() {
            while self.offset < limit {
                let offset = self.offset;
                if let Some(header) = self.record_at(cycle, offset, limit)? {
                    if let Some(from) = damaged_from {
                        return Ok(Some(Scanned::Damaged { from, to: offset }));
                    }
                    self.offset = offset + header.record_len();
                    return self.check(header, offset).map(Some);
                }
                // Between batches the rest of a page is empty; elsewhere a record should begin.
                let is_gap = self.is_gap(offset, limit)?;
                if is_gap {
                    if let Some(from) = damaged_from {
                        return Ok(Some(Scanned::Damaged { from, to: offset }));
                    }
                    self.offset = (offset + 1).next_multiple_of(PAGE).min(limit);
                } else {
                    damaged_from.get_or_insert(offset);
                    self.offset = offset + BLOCK;
                }
            }
            if let Some(from) = damaged_from {
                return Ok(Some(Scanned::Damaged { from, to: limit }));
            }
            self.at += 1;
            self.offset = self.parts.get(self.at).map_or(0, |part| part.1);
        }
        Ok(None)
    }

    /// Whether nothing begins between here and the end of the page: zeros, or the unused end of
    /// the buffer.
    fn is_gap(&mut self, offset: u64, limit: u64) -> Result<bool> {
        let page_end = (offset + 1).next_multiple_of(PAGE).min(limit);
        let len = (page_end - offset) as usize;
        if self.memory.len() < len {
            self.memory.resize(len, 0);
        }
        let rest = &mut self.memory[..len];
        self.buffer.file.read_exact_at(rest, offset)?;
        if rest.iter().all(|octet| *octet == 0) {
            return Ok(true);
        }
        // What an earlier cycle left behind where this one did not reach is no damage.
        Ok(!bit_at(&self.buffer, offset)?)
    }
}
