//! Writing the header of a record again that was damaged, from what history and log know of the article and what is left.
//!
//! It is written only where its own checksum proves that, and with it the article behind it; or where nothing but that checksum or the
//! sequence is damaged, and the log has the article under the sequence that it must have been: then the checksums of the article prove
//! it.  It goes the way of batches, on their thread, as overwriting does, so that nobody
//! begins to write there meanwhile.  What cannot be proven stays as it is.

use std::sync::Arc;

use newsreel_wire::{BufferId, IdHash, Position, Sequence, Token, UnixTime};

use super::buffer::Buffer;
use super::format::{Mark, RECORD_CRC, RECORD_HEADER, RecordHeader};
use super::geometry::in_memory;
use super::packing;
use super::placing::token_of;
use crate::error::Result;
use crate::method::BatchWrite;

/// A record whose header may be written again.
#[derive(Debug)]
pub(crate) struct Mending {
    pub(crate) buffer: Arc<Buffer>,
    pub(crate) token: Token,
    pub(crate) arrival: UnixTime,
    pub(crate) id_hash: IdHash,
    /// The sequence under which the log has it, if it has.
    pub(crate) sequence: Option<Sequence>,
    pub(crate) is_written: bool,
}

/// Under which of the sequences that a damaged record may have had it is in the log.
pub(crate) fn sequence_of(
    buffer: &Buffer,
    start: Position,
    is_logged: &dyn Fn(Sequence) -> bool,
) -> Option<Sequence> {
    let mut stored = [0; RECORD_HEADER];
    if !buffer.geometry().holds(start, RECORD_HEADER as u64) {
        return None;
    }
    let file = buffer.home.file(start.cycle()).ok()?;
    file.read_exact_at(&mut stored, start.offset()).ok()?;
    let mut sequences = RecordHeader::sequences_in(&stored, buffer.key).into_iter();
    sequences.find(|sequence| is_logged(*sequence))
}

impl Mending {
    /// The header as it has to be, if what lies there proves it.
    fn proven(&self, record: &[u8]) -> Option<[u8; RECORD_HEADER]> {
        let (stored, article) = record.split_first_chunk::<RECORD_HEADER>()?;
        let [h0, h1, h2, h3, ..] = self.token.tail();
        let head_len = u32::from_le_bytes([h0, h1, h2, h3]);
        let mut unpacked = Vec::new();
        let is_packed = packing::is_packed(article);
        let text = match is_packed {
            true => {
                let position = self.token.position();
                let told = self.buffer.unpack(position, article, true, &mut unpacked);
                told.ok()?;
                &unpacked
            }
            false => article,
        };
        let (head, body) = text.split_at_checked(head_len as usize)?;
        let header = RecordHeader {
            mark: Mark::Article,
            is_packed,
            article_len: self.token.len(),
            head_len,
            crc_head: crc32c::crc32c(head),
            crc_body: crc32c::crc32c(body),
            position: self.token.position(),
            sequence: self.sequence.unwrap_or(RecordHeader::sequence_in(stored)),
            arrival: self.arrival,
            id_hash: self.id_hash,
        };
        let right = header.encode(self.buffer.key);
        let is_proven = stored[RECORD_CRC..] == right[RECORD_CRC..]
            || self.sequence.is_some() && RecordHeader::are_alike(stored, &right);
        (is_proven && token_of(&self.buffer, &header) == self.token).then_some(right)
    }

    /// Whether it was written.
    fn mend(&self) -> newsreel_host::Result<bool> {
        let (buffer, start) = (&self.buffer, self.token.position());
        let len = RECORD_HEADER as u64 + u64::from(self.token.len());
        if start < buffer.floor() || !buffer.geometry().holds(start, len) {
            return Ok(false);
        }
        let file = buffer.home.file(start.cycle())?;
        let mut octets = vec![0; in_memory(len)];
        file.read_exact_at(&mut octets, start.offset())?;
        let Some(right) = self.proven(&octets) else {
            return Ok(false);
        };
        // Also where it is right here: then it is the medium that has another.
        file.write_at(&right, start.offset())?;
        Ok(true)
    }
}

impl BatchWrite for Mending {
    fn buffer(&self) -> BufferId {
        self.buffer.id
    }

    fn write(&mut self) -> Result<()> {
        if let Some(error) = self.buffer.suspended_error() {
            return Err(error);
        }
        self.is_written = self.mend().unwrap_or_else(|error| {
            // It was damaged before, and no article that comes has to wait for that.
            tracing::error!(%error, buffer = %self.buffer.name, "a damaged record cannot be written again");
            false
        });
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        if !self.is_written {
            return Ok(());
        }
        let cycle = self.token.position().cycle();
        self.buffer
            .unless_failed(self.buffer.home.sync(cycle..=cycle))
    }
}
