//! Reading an article while the free pointer may overtake it.
//!
//! Alive? Copy the record to the reader's memory. Still alive? Then the copy was made before the
//! region could be touched, because the floor rises first. Checksums and position are verified
//! before anything is handed out: what is served is what was stored, or nothing.

use newsreel_wire::{Position, Token, TokenParts};

use super::METHOD;
use super::file::Buffer;
use super::format::{RECORD_HEADER, RecordHeader};
use crate::error::ReadError;
use crate::method::{ArticleReader, Blocking, Stored, Want};

/// A header block is looked for in so many octets first when the article is longer than that.
const HEAD_FIRST: usize = 16 * 1024;

impl ArticleReader for Buffer {
    fn floor(&self) -> Position {
        Self::floor(self)
    }

    fn read(
        &self,
        token: &Token,
        want: Want,
        blocking: Blocking,
        memory: &mut Vec<u8>,
    ) -> Result<Stored, ReadError> {
        let whole = RECORD_HEADER + token.len() as usize;
        let mut len = match want {
            Want::Whole => whole,
            Want::Head => whole.min(HEAD_FIRST),
        };
        self.fetch(token, blocking, memory, len)?;
        let mut header = self.header_of(token, memory)?;
        let head_end = RECORD_HEADER + header.head_len as usize;
        if head_end > len {
            len = head_end;
            self.fetch(token, blocking, memory, len)?;
            header = self.header_of(token, memory)?;
        }
        let corrupt = |what| self.corrupt(token, what);
        if crc32c::crc32c(&memory[RECORD_HEADER..head_end]) != header.crc_head {
            return Err(corrupt("checksum of the header block"));
        }
        let octets = match want {
            Want::Head => RECORD_HEADER..head_end,
            Want::Whole => {
                if crc32c::crc32c(&memory[head_end..whole]) != header.crc_body {
                    return Err(corrupt("checksum of the body"));
                }
                RECORD_HEADER..whole
            }
        };
        Ok(Stored {
            octets,
            head_len: header.head_len as usize,
            sequence: header.sequence,
            arrival: header.arrival,
            id_hash: header.id_hash,
        })
    }
}

impl Buffer {
    fn is_live(&self, token: &Token) -> bool {
        token.position() >= self.floor()
    }

    /// Copies the first `len` octets of the record, alive before and after.
    fn fetch(
        &self,
        token: &Token,
        blocking: Blocking,
        memory: &mut Vec<u8>,
        len: usize,
    ) -> Result<(), ReadError> {
        if !self.is_live(token) {
            return Err(ReadError::Gone);
        }
        let offset = token.position().offset();
        let fits = offset >= self.data_start && offset + len as u64 <= self.data_end;
        if !fits {
            return Err(self.corrupt(token, "the token points outside the buffer"));
        }
        if memory.len() < len {
            memory.resize(len, 0);
        }
        let into = &mut memory[..len];
        match blocking {
            Blocking::Yes => self.file.read_exact_at(into, offset)?,
            Blocking::No => match self.file.read_cached_at(into, offset)? {
                Some(got) if got == len => {}
                _ => return Err(ReadError::WouldBlock),
            },
        }
        if !self.is_live(token) {
            return Err(ReadError::Gone);
        }
        Ok(())
    }

    fn header_of(&self, token: &Token, memory: &[u8]) -> Result<RecordHeader, ReadError> {
        let header = RecordHeader::decode(memory).map_err(|what| self.corrupt(token, what))?;
        if header.position != token.position() {
            return Err(self.corrupt(token, "the record was written for another place or cycle"));
        }
        if header.article_len != token.len() {
            return Err(self.corrupt(token, "the record has another length than the token"));
        }
        Ok(header)
    }

    /// The token of the record that begins at this place, if one does.
    #[must_use]
    pub fn token_at(&self, position: Position) -> Option<Token> {
        let offset = position.offset();
        if offset < self.data_start || offset + RECORD_HEADER as u64 > self.data_end {
            return None;
        }
        let mut octets = [0; RECORD_HEADER];
        self.file.read_exact_at(&mut octets, offset).ok()?;
        let header = RecordHeader::decode(&octets).ok()?;
        (header.position == position).then(|| {
            Token::new(TokenParts {
                method: METHOD,
                set: self.set,
                buffer: self.id,
                len: header.article_len,
                position,
                tail: [0; 8],
            })
        })
    }

    fn corrupt(&self, token: &Token, what: &'static str) -> ReadError {
        ReadError::Corrupt {
            buffer: self.id,
            offset: token.position().offset(),
            what,
        }
    }
}
