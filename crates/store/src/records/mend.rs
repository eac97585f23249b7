//! Writing the header of a record again that was damaged, from what history and log know of the article and what is left.
//!
//! It is written only where its own checksum proves that, and with it the article behind it; or where nothing but that checksum or the
//! sequence is damaged, and the log has the article under the sequence that it must have been: then the checksums of the article prove
//! it; or where nothing at all is left of it, and history, log and overview vouch for the text.  It goes the way of batches, on their thread, as overwriting does, so that nobody
//! begins to write there meanwhile.  What cannot be proven stays as it is.

use std::sync::Arc;

use newsreel_wire::{BufferId, IdHash, Sequence, Token, UnixTime};

use super::buffer::Buffer;
use super::format::{Mark, RECORD_CRC, RECORD_HEADER, RecordHeader};
use super::geometry::in_memory;
use super::packing;
use super::placing::token_of;
use crate::error::Result;
use crate::method::{BatchWrite, Witness};

/// A record whose header may be written again.
#[derive(Debug)]
pub(crate) struct Mending {
    pub(crate) buffer: Arc<Buffer>,
    pub(crate) token: Token,
    pub(crate) arrival: UnixTime,
    pub(crate) id_hash: IdHash,
    /// The sequence under which the log has it, if it has.
    pub(crate) sequence: Option<Sequence>,
    /// Where nothing of it is left: the sequence under which the log has it, and the checksum of the text that was vouched for.
    pub(crate) vouched: Option<(Sequence, u32)>,
    pub(crate) is_written: bool,
}

impl Mending {
    /// Asks what is known of it besides what lies there.
    pub(crate) fn ask(&mut self, witness: &dyn Witness) {
        let Ok(Some(record)) = self.record() else {
            return;
        };
        let Some((stored, article)) = record.split_first_chunk::<RECORD_HEADER>() else {
            return;
        };
        let sequences = RecordHeader::sequences_in(stored, self.buffer.key);
        let mut sequences = sequences.into_iter();
        self.sequence = sequences.find(|sequence| witness.is_logged(*sequence));
        let (is_packed, mut unpacked) = (packing::is_packed(article), Vec::new());
        let right = self.header(article, Sequence::ZERO, &mut unpacked);
        let is_lost = right.is_some_and(|right| RecordHeader::is_nothing_left(stored, &right));
        if self.sequence.is_none() && is_lost {
            let text = if is_packed { &unpacked } else { article };
            let vouched = witness.vouches(text);
            self.vouched = vouched.map(|sequence| (sequence, crc32c::crc32c(article)));
        }
    }

    /// The record's octets; `None` when it is gone.
    fn record(&self) -> newsreel_host::Result<Option<Vec<u8>>> {
        let (buffer, start) = (&self.buffer, self.token.position());
        let len = RECORD_HEADER as u64 + u64::from(self.token.len());
        if start < buffer.floor() || !buffer.geometry().holds(start, len) {
            return Ok(None);
        }
        let mut octets = vec![0; in_memory(len)];
        let file = buffer.home.file(start.cycle())?;
        file.read_exact_at(&mut octets, start.offset())?;
        Ok(Some(octets))
    }

    /// The header as it has to be, if what lies there proves it, or somebody vouches for that.
    fn proven(&self, record: &[u8]) -> Option<[u8; RECORD_HEADER]> {
        let (stored, article) = record.split_first_chunk::<RECORD_HEADER>()?;
        let sequence = self.sequence.unwrap_or(RecordHeader::sequence_in(stored));
        let right = self.header(article, sequence, &mut Vec::new())?;
        let is_proven = stored[RECORD_CRC..] == right[RECORD_CRC..]
            || self.sequence.is_some() && RecordHeader::are_alike(stored, &right);
        if is_proven {
            return Some(right);
        }
        let (sequence, _) = self
            .vouched
            .filter(|(_, crc)| *crc == crc32c::crc32c(article))?;
        self.header(article, sequence, &mut Vec::new())
    }

    /// The header of this article, as it is stored, under this sequence; `unpacked` has its text where it is packed.
    fn header(
        &self,
        article: &[u8],
        sequence: Sequence,
        unpacked: &mut Vec<u8>,
    ) -> Option<[u8; RECORD_HEADER]> {
        let [h0, h1, h2, h3, ..] = self.token.tail();
        let head_len = u32::from_le_bytes([h0, h1, h2, h3]);
        let is_packed = packing::is_packed(article);
        let text = match is_packed {
            true => {
                let position = self.token.position();
                let told = self.buffer.unpack(position, article, true, unpacked);
                told.ok()?;
                unpacked
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
            sequence,
            arrival: self.arrival,
            id_hash: self.id_hash,
        };
        let is_it = token_of(&self.buffer, &header) == self.token;
        is_it.then(|| header.encode(self.buffer.key))
    }

    /// Whether it was written.
    fn mend(&self) -> newsreel_host::Result<bool> {
        let Some(octets) = self.record()? else {
            return Ok(false);
        };
        let Some(right) = self.proven(&octets) else {
            return Ok(false);
        };
        let start = self.token.position();
        // Also where it is right here: then it is the medium that has another.
        let file = self.buffer.home.file(start.cycle())?;
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
        self.buffer.sync(cycle..=cycle, self.buffer.given_up())
    }
}
