//! Overwriting the text of withdrawn articles, where the set wants that.
//!
//! It goes the way of batches, on their thread, and after the log has told of the withdrawal durably: so nobody writes
//! to the same pages meanwhile, and what is erased is never missed.  The record stays, marked, so that who walks the
//! buffer steps over it.

use std::collections::BTreeSet;
use std::sync::Arc;

use newsreel_host::{AlignedBuf, ErrorKind};
use newsreel_wire::{BufferId, Position, Token};

use super::buffer::Buffer;
use super::format::{Mark, RECORD_HEADER, RecordHeader};
use super::geometry::{PAGE, in_memory};
use crate::error::Result;
use crate::method::BatchWrite;

/// Articles to be overwritten in one buffer.
#[derive(Debug)]
pub(crate) struct Erasure {
    buffer: Arc<Buffer>,
    starts: Vec<Position>,
    /// The cycles in which something was written.
    written: BTreeSet<u32>,
}

impl Erasure {
    pub(crate) const fn new(buffer: Arc<Buffer>, starts: Vec<Position>) -> Self {
        Self {
            buffer,
            starts,
            written: BTreeSet::new(),
        }
    }

    /// Overwrites the article here, if it is still this one and nobody may begin to write there; whether it was.
    fn erase(&self, start: Position) -> newsreel_host::Result<bool> {
        let buffer = &self.buffer;
        let offset = start.offset();
        let mut octets = [0; RECORD_HEADER];
        if start < buffer.floor() || !buffer.geometry.holds(start, RECORD_HEADER as u64) {
            return Ok(false);
        }
        let file = match buffer.home.file(start.cycle()) {
            // It was dropped meanwhile, or somebody removed it: there is nothing to overwrite.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            file => file?,
        };
        file.read_exact_at(&mut octets, offset)?;
        let Ok(header) = RecordHeader::decode(&octets, buffer.key) else {
            return Ok(false);
        };
        let len = RECORD_HEADER as u64 + u64::from(header.article_len);
        let is_it = header.position == start && header.mark == Mark::Article;
        if !is_it || !buffer.geometry.holds(start, len) {
            return Ok(false);
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
            file.write_at(&pages, from)?;
        } else {
            file.write_direct_at(&pages, from)?;
        }
        Ok(true)
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
        let mut written = BTreeSet::new();
        let mut starts = self.starts.iter();
        let erased = starts.try_for_each(|start| {
            if self.erase(*start)? {
                written.insert(start.cycle());
            }
            Ok(())
        });
        self.written = written;
        self.buffer.unless_failed(erased)
    }

    fn sync(&mut self) -> Result<()> {
        if let Some(error) = self.buffer.suspended_error() {
            return Err(error);
        }
        let (Some(first), Some(last)) = (self.written.first(), self.written.last()) else {
            return Ok(());
        };
        let home = &self.buffer.home;
        // Each cycle has a file of its own, or all have one.
        let synced = match home.is_endless() {
            true => {
                let mut cycles = self.written.iter();
                cycles.try_for_each(|cycle| home.sync(*cycle..=*cycle))
            }
            false => home.sync(*first..=*last),
        };
        self.buffer.unless_failed(synced)
    }

    fn article(&self, _: &Token) -> Option<(&[u8], u32)> {
        None
    }
}
