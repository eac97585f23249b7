//! Reading articles of a set of files: the card by the token, the file by the card.
//!
//! Whether an article is alive is the catalogue's to say, before and after its file is read.  Where a file is not there
//! somebody removed it, or its disk: which of the two is told apart as far as it can be.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use newsreel_wire::{BufferId, IdHash, Position, Sequence, SetId, Token};

use super::card::Card;
use super::folder::{Folder, TextError};
use super::scan::FileScan;
use super::set::FILE_OCTETS;
use super::{article_token, card_token};
use crate::error::ReadError;
use crate::facts::BufferFacts;
use crate::method::{Blocking, BufferReader, RecordScan, Removed, ScanRange, Stored, Want};
use crate::records::buffer::Buffer;
use crate::records::format::RECORD_HEADER;
use crate::records::placing::ARTICLE_OCTETS_MAX;

/// The readers' half of a set of files.
#[derive(Debug)]
pub(crate) struct FileReader {
    pub(crate) cards: Arc<Buffer>,
    pub(crate) folder: Arc<Folder>,
}

impl FileReader {
    /// The card of an article, and what its record says.
    fn card(
        &self,
        token: &Token,
        blocking: Blocking,
        memory: &mut Vec<u8>,
    ) -> Result<(Card, Stored), ReadError> {
        let stored = self
            .cards
            .read(&card_token(token), Want::Whole, blocking, memory)?;
        let card = self.decoded(token, &memory[stored.octets.clone()])?;
        Ok((card, stored))
    }

    fn decoded(&self, token: &Token, octets: &[u8]) -> Result<Card, ReadError> {
        let card = Card::decode(octets).map_err(|what| self.corrupt(token, what))?;
        if card.article_len != token.len() || u64::from(card.article_len) > ARTICLE_OCTETS_MAX {
            return Err(self.corrupt(token, "the card is of another article than the token"));
        }
        Ok(card)
    }

    /// The text of a card.
    fn text(
        &self,
        token: &Token,
        card: &Card,
        (want, blocking): (Want, Blocking),
        memory: &mut Vec<u8>,
    ) -> Result<Range<usize>, ReadError> {
        let mut text = Vec::new();
        let read = self.folder.read(card, want, blocking, &mut text);
        read.map_err(|error| match error {
            TextError::Missing => ReadError::Removed,
            TextError::WouldBlock => ReadError::WouldBlock,
            TextError::Damaged(what) => self.corrupt(token, what),
            TextError::Host(error) => error.into(),
        })?;
        let len = text.len();
        match memory.get_mut(..len) {
            // Memory that is longer stays so: the next card need not make it long again.
            Some(front) => front.copy_from_slice(&text),
            None => *memory = text,
        }
        Ok(0..len)
    }

    fn corrupt(&self, token: &Token, what: &'static str) -> ReadError {
        ReadError::Corrupt {
            buffer: self.cards.id,
            offset: token.position().offset(),
            what,
        }
    }

    /// The token of the article whose card is this record, as far as it can be read.
    pub(crate) fn token_of(&self, card: &Token, memory: &mut Vec<u8>) -> Result<Token, ReadError> {
        let octets = card.len();
        // A card is small; what a damaged header asks for need not be.
        if u64::from(octets) > self.cards.geometry().capacity() {
            return Err(self.corrupt(card, "the card is too large"));
        }
        let file = self.cards.home.file(card.position().cycle())?;
        memory.clear();
        memory.resize(octets as usize, 0);
        let at = card.position().offset() + RECORD_HEADER as u64;
        file.read_exact_at(memory, at)?;
        let read = Card::decode(memory).map_err(|what| self.corrupt(card, what))?;
        Ok(article_token(card, read.article_len))
    }
}

impl BufferReader for FileReader {
    fn id(&self) -> BufferId {
        self.cards.id
    }

    fn name(&self) -> &str {
        &self.cards.name
    }

    fn set(&self) -> SetId {
        self.cards.set
    }

    fn floor(&self) -> Position {
        self.cards.floor()
    }

    fn cycle_octets(&self) -> u64 {
        self.cards.cycle_octets()
    }

    fn octets_for(&self, article_len: u64) -> u64 {
        article_len.saturating_add(FILE_OCTETS)
    }

    fn read(
        &self,
        token: &Token,
        want: Want,
        blocking: Blocking,
        memory: &mut Vec<u8>,
    ) -> Result<Stored, ReadError> {
        let (card, record) = self.card(token, blocking, memory)?;
        let octets = self.text(token, &card, (want, blocking), memory)?;
        if !self.cards.is_live_after_reading(token.position()) {
            return Err(ReadError::Gone);
        }
        Ok(Stored {
            octets,
            head_len: card.head_len as usize,
            ..record
        })
    }

    fn verify(
        &self,
        token: &Token,
        sequence: Sequence,
        id_hash: &IdHash,
        memory: &mut Vec<u8>,
    ) -> Result<(), ReadError> {
        let card = card_token(token);
        self.cards.verify(&card, sequence, id_hash, memory)?;
        let at = RECORD_HEADER;
        let octets = memory.get(at..at + card.len() as usize);
        let card = self.decoded(token, octets.unwrap_or_default())?;
        let wanted = (Want::Whole, Blocking::Yes);
        self.text(token, &card, wanted, memory).map(|_| ())
    }

    fn removed(&self, token: &Token) -> Option<Removed> {
        let mut memory = Vec::new();
        let (card, record) = self.card(token, Blocking::Yes, &mut memory).ok()?;
        let read = self
            .folder
            .read(&card, Want::Head, Blocking::Yes, &mut memory);
        matches!(read, Err(TextError::Missing)).then(|| Removed {
            id_hash: record.id_hash,
            arrival: record.arrival,
            is_certain: !self.cards.read_only && self.folder.is_there(&card),
            xref: card.xref,
        })
    }

    fn removes_files(&self) -> bool {
        self.cards.is_usable()
    }

    fn file_of(&self, token: &Token) -> Option<PathBuf> {
        let (card, _) = self.card(token, Blocking::Yes, &mut Vec::new()).ok()?;
        Some(self.folder.dir.join(card.name))
    }

    fn token_at(&self, position: Position) -> Result<Token, ReadError> {
        let card = self.cards.token_at(position)?;
        self.token_of(&card, &mut Vec::new())
    }

    fn scan(self: Arc<Self>, range: ScanRange) -> Box<dyn RecordScan> {
        Box::new(FileScan::new(
            Arc::clone(&self.cards).scan(range),
            Arc::clone(&self.folder),
        ))
    }

    fn cards(self: Arc<Self>) -> Option<Box<dyn RecordScan>> {
        let cards = Arc::clone(&self.cards).scan(ScanRange::Live);
        let folder = Arc::clone(&self.folder);
        Some(Box::new(FileScan::of_cards(cards, folder)))
    }

    fn facts(&self) -> BufferFacts {
        BufferFacts {
            path: self.folder.dir.display().to_string(),
            capacity_octets: None,
            free_octets: self.folder.free_octets().ok(),
            article_octets_max: ARTICLE_OCTETS_MAX,
            ..self.cards.facts()
        }
    }

    fn take_memory(&self) {
        self.cards.take_memory();
    }
}
