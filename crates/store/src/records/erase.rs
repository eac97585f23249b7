//! Overwriting the text of withdrawn articles, where the set wants that.
//!
//! It goes the way of batches, on their thread, and after the log has told of the withdrawal durably: so nobody writes
//! to the same pages meanwhile, and what is erased is never missed.  The record stays, marked, so that who walks the
//! buffer steps over it.

use std::sync::Arc;

use newsreel_host::AlignedBuf;
use newsreel_wire::{BufferId, Position, Token};

use super::buffer::Buffer;
use super::format::{Mark, RECORD_HEADER, RecordHeader};
use super::geometry::{PAGE, in_memory};
use crate::error::Result;
use crate::method::BatchWrite;

/// Articles to be overwritten in one buffer.
#[derive(Debug)]
pub(crate) struct Erasure {
    pub(crate) buffer: Arc<Buffer>,
    pub(crate) starts: Vec<Position>,
}

impl Erasure {
    /// Overwrites the article here, if it is still this one and nobody may begin to write there.
    fn erase(&self, start: Position) -> newsreel_host::Result<()> {
        let buffer = &self.buffer;
        let offset = start.offset();
        let mut octets = [0; RECORD_HEADER];
        if start < buffer.floor() || !buffer.geometry.holds(start, RECORD_HEADER as u64) {
            return Ok(());
        }
        let file = buffer.home.file(start.cycle())?;
        file.read_exact_at(&mut octets, offset)?;
        let Ok(header) = RecordHeader::decode(&octets, buffer.key) else {
            return Ok(());
        };
        let len = RECORD_HEADER as u64 + u64::from(header.article_len);
        let is_it = header.position == start && header.mark == Mark::Article;
        if !is_it || !buffer.geometry.holds(start, len) {
            return Ok(());
        }
        // Whole pages: the neighbours' octets in them are written back as they are.
        let (from, to) = (
            offset - offset % PAGE,
            (offset + len).next_multiple_of(PAGE),
        );
        let mut pages = AlignedBuf::new();
        let pages_octets = pages.append(in_memory(to - from));
        file.read_exact_at(pages_octets, from)?;
        let at = in_memory(offset - from);
        let record = &mut pages_octets[at..at + in_memory(len)];
        let (front, text) = record.split_at_mut(RECORD_HEADER);
        let erased = RecordHeader {
            mark: Mark::Erased,
            ..header
        };
        front.copy_from_slice(&erased.encode(buffer.key));
        text.fill(0);
        if buffer.is_cached {
            file.write_at(&pages, from)
        } else {
            file.write_direct_at(&pages, from)
        }
    }
}

impl BatchWrite for Erasure {
    fn buffer(&self) -> BufferId {
        self.buffer.id
    }

    fn write(&mut self) -> Result<()> {
        if let Some(error) = self.buffer.suspended_error() {
            return Err(error);
        }
        let mut starts = self.starts.iter();
        let erased = starts.try_for_each(|start| self.erase(*start));
        self.buffer.unless_failed(erased)
    }

    fn sync(&mut self) -> Result<()> {
        if let Some(error) = self.buffer.suspended_error() {
            return Err(error);
        }
        let cycles = self.starts.iter().map(|start| start.cycle());
        let (first, last) = (cycles.clone().min(), cycles.max());
        let cycles = first.unwrap_or_default()..=last.unwrap_or_default();
        self.buffer.unless_failed(self.buffer.home.sync(cycles))
    }

    fn article(&self, _: &Token) -> Option<(&[u8], u32)> {
        None
    }
}
