//! What one commit writes into one buffer.
//!
//! Whatever fails, the buffer is suspended before anyone is told, and the articles stay readable here until the batch
//! is dropped.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use newsreel_wire::{BufferId, Token};

use super::buffer::Buffer;
use super::format::{Hints, Mark, RECORD_HEADER, RecordHeader};
use super::memory::Sealed;
use crate::error::Result;
use crate::method::{BatchWrite, KeptArticle};

/// A batch for one buffer.
#[derive(Debug)]
pub(crate) struct Batch {
    pub(crate) buffer: Arc<Buffer>,
    pub(crate) sealed: Arc<Sealed>,
    /// How many files had been given up when it was sealed.
    pub(crate) given_up: u64,
    /// The header is brought up to date with it.
    pub(crate) hints: Option<Hints>,
}

impl Batch {
    fn try_write(&self) -> newsreel_host::Result<()> {
        if let Some(hints) = self.hints {
            // First: who looks at the file beside the server sees in it what may be overwritten from here on.
            self.buffer.home.write_with_batch(hints)?;
        }
        for stretch in &self.sealed.stretches {
            let octets = self.sealed.octets(stretch);
            let file = self.buffer.home.file(stretch.at.cycle())?;
            if self.buffer.is_cached {
                file.write_at(octets, stretch.at.offset())?;
            } else {
                file.write_direct_at(octets, stretch.at.offset())?;
            }
        }
        Ok(())
    }
}

impl BatchWrite for Batch {
    fn buffer(&self) -> BufferId {
        self.buffer.id
    }

    fn write(&mut self) -> Result<()> {
        if let Some(error) = self.buffer.refuses(self.given_up) {
            return Err(error);
        }
        self.buffer.writes(self.sealed.from.cycle());
        self.buffer.unless_failed(self.try_write())?;
        self.buffer
            .written
            .store(self.sealed.end.0, Ordering::Release);
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        if let Some(error) = self.buffer.refuses(self.given_up) {
            return Err(error);
        }
        let (from, end) = (self.sealed.from.cycle(), self.sealed.end.cycle());
        self.buffer.sync_to(from, end, self.given_up)?;
        self.buffer
            .synced
            .fetch_max(self.sealed.end.0, Ordering::AcqRel);
        Ok(())
    }

    fn has_articles(&self) -> bool {
        true
    }

    fn article(&self, token: &Token) -> Option<KeptArticle<'_>> {
        if token.buffer() != self.buffer.id {
            return None;
        }
        let record = self.sealed.at(token.position())?;
        let header = RecordHeader::decode(record, self.buffer.key).ok()?;
        if header.position != token.position() || header.mark != Mark::Article {
            return None;
        }
        let stored = record.get(RECORD_HEADER..)?;
        let stored = stored.get(..header.article_len as usize)?;
        let text = if header.is_packed {
            let mut article = Vec::new();
            let unpacked = self
                .buffer
                .unpack(header.position, stored, true, &mut article);
            unpacked.ok()?;
            article.into()
        } else {
            stored.into()
        };
        Some(KeptArticle {
            text,
            head_len: header.head_len,
            format: None,
        })
    }
}
