//! Reading articles of a set of files: the card by the token, the file by the card.
//!
//! Whether an article is alive is the catalogue's to say, before and after its file is read.  Where a file is not there
//! somebody removed it, or its disk: which of the two is told apart as far as it can be.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_host::read_whole;
use newsreel_wire::{BufferId, IdHash, Position, Sequence, SetId, Token};

use super::card::Card;
use super::folder::{Folder, TextError};
use super::holes::{self, Hole};
use super::hollows::Hollows;
use super::lent::Lent;
use super::lying::{Walk, to_wire};
use super::restore::{Cards, Restoring, Written};
use super::scan::FileScan;
use super::set::FILE_OCTETS;
use super::{Naming, article_token, card_token};
use crate::error::{ReadError, Result};
use crate::facts::BufferFacts;
use crate::method::{
    BatchWrite, Blocking, BufferReader, FileOf, FileWalk, Lying, Place, RecordScan, Removed,
    ScanRange, Stored, Want,
};
use crate::records::buffer::Buffer;
use crate::records::format::RECORD_HEADER;
use crate::records::placing::ARTICLE_OCTETS_MAX;

/// The readers' half of a set of files.
#[derive(Debug)]
pub(crate) struct FileReader {
    pub(crate) cards: Arc<Buffer>,
    pub(crate) folder: Arc<Folder>,
    /// How its files are named, where that is known.
    pub(crate) naming: Option<Arc<dyn Naming>>,
    /// Which files of the catalogue are worth a look.
    pub(crate) hollows: Arc<Hollows>,
}

impl FileReader {
    /// The card of an article, and what its record says.
    pub(super) fn card(
        &self,
        token: &Token,
        blocking: Blocking,
        memory: &mut Vec<u8>,
    ) -> std::result::Result<(Card, Stored), ReadError> {
        let stored = self
            .cards
            .read(&card_token(token), Want::Whole, blocking, memory)?;
        let card = self.decoded(token, &memory[stored.octets.clone()])?;
        Ok((card, stored))
    }

    fn decoded(&self, token: &Token, octets: &[u8]) -> std::result::Result<Card, ReadError> {
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
    ) -> std::result::Result<Range<usize>, ReadError> {
        let mut text = Vec::new();
        let read = self.folder.read(card, want, blocking, &mut text);
        read.map_err(|error| match error {
            TextError::Missing => match self.cards.unless_away() {
                ReadError::Gone => ReadError::Removed,
                away => away,
            },
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

    /// Whether this is one of an article's files, or nobody's with the same text.
    fn whose(&self, file: &Lying, front: &[u8], token: &Token) -> Option<FileOf> {
        let (path, octets) = (file.path.as_path(), Some(file.octets));
        let (card, _) = self.card(token, Blocking::Yes, &mut Vec::new()).ok()?;
        // Under its own name, as long, and with its header block: it need not be read whole once more.
        let head = front.get(..card.head_len as usize);
        let is_head = head.is_some_and(|head| crc32c::crc32c(head) == card.crc_head);
        let is_as_long = octets == card.file_len.map(u64::from);
        if is_head && is_as_long && card.names().any(|name| self.folder.dir.join(name) == path) {
            return Some(FileOf::Article);
        }
        let mut text = Vec::new();
        let own = self.folder.own(&card, &mut text);
        if own.iter().any(|own| own == path) {
            return Some(FileOf::Article);
        }
        if own.is_empty() {
            // Damaged, most likely.
            let is_named = self.folder.is_named(&card, path);
            return is_named.then_some(FileOf::Article);
        }
        let other = self.text_in(path)?;
        // Numbers, and so Xref, may differ.
        let body = text.get(card.head_len as usize..)?;
        other.ends_with(body).then_some(FileOf::Copy)
    }

    /// What a file has, in wire form.
    fn text_in(&self, path: &Path) -> Option<Vec<u8>> {
        let limit = usize::try_from(ARTICLE_OCTETS_MAX).unwrap_or(usize::MAX);
        let octets = read_whole(self.folder.disk.as_ref(), path, limit).ok()?;
        let mut text = Vec::new();
        to_wire(&octets, &mut text);
        Some(text)
    }

    /// The token of the article whose card is this record, as far as it can be read.
    pub(crate) fn token_of(
        &self,
        card: &Token,
        memory: &mut Vec<u8>,
    ) -> std::result::Result<Token, ReadError> {
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

    fn cut_at(&self) -> Option<u64> {
        self.cards.cut_at()
    }

    fn look(&self) -> Result<()> {
        self.cards.look()
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
    ) -> std::result::Result<Stored, ReadError> {
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
    ) -> std::result::Result<(), ReadError> {
        let card = card_token(token);
        self.cards.verify(&card, sequence, id_hash, memory)?;
        let at = RECORD_HEADER;
        let octets = memory.get(at..at + card.len() as usize);
        let card = self.decoded(token, octets.unwrap_or_default())?;
        if self.folder.lender.is_some() {
            // No commit of ours wrote the text.
            return Ok(());
        }
        let wanted = (Want::Whole, Blocking::Yes);
        self.text(token, &card, wanted, memory).map(|_| ())
    }

    fn removed(&self, token: &Token) -> Option<Removed> {
        let mut memory = Vec::new();
        let (card, record) = self.card(token, Blocking::Yes, &mut memory).ok()?;
        // The directory of the set may go, or come back, beside this.
        let was_there = self.cards.look().is_ok() && self.folder.is_there(&card);
        let read = self
            .folder
            .read(&card, Want::Head, Blocking::Yes, &mut memory);
        matches!(read, Err(TextError::Missing)).then(|| Removed {
            id_hash: record.id_hash,
            arrival: record.arrival,
            is_certain: !self.cards.read_only
                && self.folder.is_there(&card)
                && was_there
                && self.cards.look().is_ok(),
            xref: card.xref,
        })
    }

    fn removes_files(&self) -> bool {
        self.cards.is_usable()
    }

    fn file_of(&self, token: &Token) -> Option<PathBuf> {
        let (card, _) = self.card(token, Blocking::Yes, &mut Vec::new()).ok()?;
        let is_own = self.folder.lender.is_none();
        is_own.then(|| self.folder.dir.join(card.name))
    }

    fn files(self: Arc<Self>) -> Option<Box<dyn FileWalk>> {
        let folder = Arc::clone(&self.folder);
        let is_there = self.removes_files() && self.cards.look().is_ok();
        (is_there && folder.lender.is_none()).then(|| Box::new(Walk::new(folder)) as _)
    }

    fn files_to_look_at(self: Arc<Self>) -> Option<Box<dyn FileWalk>> {
        let folder = Arc::clone(&self.folder);
        let is_there = self.cards.read_only && self.cards.look().is_ok();
        (is_there && folder.lender.is_none()).then(|| Box::new(Walk::new(folder)) as _)
    }

    fn is_file_of(&self, file: &Lying, front: &[u8], token: &Token) -> FileOf {
        self.whose(file, front, token).unwrap_or(FileOf::Unknown)
    }

    fn card_again(&self, file: &Lying, place: &Place<'_>, token: &Token) -> Option<Vec<u8>> {
        Self::card_again(self, file, place, token)
    }

    fn lacks_card(&self, token: &Token) -> bool {
        self.folder.lender.is_some() && self.is_lost(token)
    }

    fn card_of_lent(&self, lies_at: &str, place: &Place<'_>, token: &Token) -> Option<Vec<u8>> {
        Self::card_of_lent(self, lies_at, place, token)
    }

    fn restoring(
        self: Arc<Self>,
        cards: Cards,
        written: Arc<Written>,
    ) -> Option<Box<dyn BatchWrite>> {
        let restoring = Restoring {
            buffer: Arc::clone(&self.cards),
            hollows: Arc::clone(&self.hollows),
            cards,
            written,
            count: 0,
            cycles: BTreeSet::new(),
        };
        let is_there = self.removes_files() && self.cards.look().is_ok();
        is_there.then(|| Box::new(restoring) as _)
    }

    fn holes(&self) -> Result<Vec<Hole>> {
        match self.removes_files() && self.cards.look().is_ok() {
            true => holes::holes(&self.cards),
            false => Ok(Vec::new()),
        }
    }

    fn closed(&self, holes: &[Hole], wanted: &[Token]) -> Cards {
        holes::closed(&self.cards, holes, wanted)
    }

    fn has_text(&self, file: &Lying, text: &[u8]) -> bool {
        self.text_in(&file.path).is_some_and(|there| there == text)
    }

    fn may_own(&self, path: &Path, token: &Token) -> bool {
        let card = self.card(token, Blocking::Yes, &mut Vec::new());
        card.map_or(true, |(card, _)| self.folder.may_own(&card, path))
    }

    fn is_named(&self, path: &Path, token: &Token) -> bool {
        let card = self.card(token, Blocking::Yes, &mut Vec::new());
        card.is_ok_and(|(card, _)| self.folder.is_named(&card, path))
    }

    fn turned_over(&self, path: &Path) -> Option<PathBuf> {
        self.folder.turned_over(path)
    }

    fn remove_copy(&self, path: &Path) -> Result<()> {
        self.cards.look()?;
        Ok(self.folder.disk.remove(path)?)
    }

    fn name_plainly(&self, later: &[(PathBuf, Token)]) -> Result<u64> {
        self.cards.look()?;
        let mut memory = Vec::new();
        let carded = later.iter().filter_map(|(path, token)| {
            let card = self.card(token, Blocking::Yes, &mut memory);
            card.ok().map(|(card, _)| (path.clone(), card))
        });
        Ok(self.folder.name_plainly(&carded.collect::<Vec<_>>())?)
    }

    fn token_at(&self, position: Position) -> std::result::Result<Token, ReadError> {
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

    fn lent(&self) -> Option<Result<Lent>> {
        Some(self.folder.lender.as_ref()?.look())
    }

    fn facts(&self) -> BufferFacts {
        let (lender, facts) = (self.folder.lender.as_ref(), self.cards.facts());
        let path = lender.map_or(&*self.folder.dir, |lender| lender.path());
        BufferFacts {
            path: path.display().to_string(),
            capacity_octets: None,
            free_octets: self.folder.free_octets().ok(),
            article_octets_max: ARTICLE_OCTETS_MAX,
            complaint: facts
                .complaint
                .or_else(|| lender.and_then(|lender| lender.complaint())),
            ..facts
        }
    }

    fn take_memory(&self) {
        self.cards.take_memory();
    }
}
