//! What one commit writes into one buffer: at most two stretches, because the buffer may wrap.

use std::sync::Arc;

use newsreel_host::File;
use newsreel_wire::{BufferId, Token};

use super::format::{PAGE, RECORD_HEADER, RecordHeader};
use crate::method::BatchWrite;

/// Octets that go to one place of the file, in whole pages.
#[derive(Debug, Default)]
pub(super) struct Stretch {
    /// Where in the file; a multiple of the page.
    pub(super) offset: u64,
    /// The octets.
    pub(super) octets: Vec<u8>,
}

impl Stretch {
    /// Fills up to a whole page, so that nothing must be read back before it is written.
    pub(super) fn pad(&mut self) {
        let len = (self.octets.len() as u64).next_multiple_of(PAGE);
        // The length is at most a batch: it fits.
        self.octets.resize(len as usize, 0);
    }
}

/// A batch for one buffer.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) buffer: BufferId,
    pub(super) file: Arc<dyn File>,
    pub(super) stretches: Vec<Stretch>,
}

impl BatchWrite for Batch {
    fn buffer(&self) -> BufferId {
        self.buffer
    }

    fn write(&mut self) -> newsreel_host::Result<()> {
        for stretch in &self.stretches {
            self.file.write_at(&stretch.octets, stretch.offset)?;
        }
        Ok(())
    }

    fn sync(&mut self) -> newsreel_host::Result<()> {
        self.file.sync_data()
    }

    fn article(&self, token: &Token) -> Option<(&[u8], u32)> {
        let offset = token.position().offset();
        self.stretches.iter().find_map(|stretch| {
            let at = usize::try_from(offset.checked_sub(stretch.offset)?).ok()?;
            let record = stretch.octets.get(at..)?;
            let header = RecordHeader::decode(record).ok()?;
            if header.position != token.position() {
                return None;
            }
            let article = record
                .get(RECORD_HEADER..)?
                .get(..header.article_len as usize)?;
            Some((article, header.head_len))
        })
    }

    fn into_memory(self: Box<Self>) -> Vec<Vec<u8>> {
        self.stretches
            .into_iter()
            .map(|stretch| stretch.octets)
            .collect()
    }
}
