//! Cards that were lost, made again from the files that are there.
//!
//! A token has the place and the length of its card, so a card that is made again lies where the lost one did, and nothing that leads to
//! the article changes.  What it says is read from the file; its name is one of those that its method gives, and it is as long as the
//! lost one was: else it is another's.  Cards are written on the thread of batches, and only where none can be read.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use newsreel_host::{ErrorKind, File, read_whole};
use newsreel_wire::nntp::framing::lf_to_wire;
use newsreel_wire::{BufferId, Position, Token};

use super::card::Card;
use super::card_token;
use super::lost;
use super::lying::to_wire;
use super::reader::FileReader;
use crate::error::{ReadError, Result};
use crate::method::{BatchWrite, Blocking, BufferReader as _, Lying, Place};
use crate::records::buffer::Buffer;
use crate::records::format::{Mark, RECORD_HEADER, RecordHeader};
use crate::records::geometry::{PAGE, in_memory};
use crate::records::placing::ARTICLE_OCTETS_MAX;

/// Cards by their places, as they are to be written.
pub type Cards = BTreeMap<Position, Vec<u8>>;

impl FileReader {
    /// Whether there was a card of this article which cannot be read any more.
    fn is_lost(&self, token: &Token) -> bool {
        let at = token.position();
        let (floor, end) = (self.cards.floor(), self.cards.facts());
        let end = Position::checked(end.cycle, end.free_offset).unwrap_or_default();
        if self.cards.read_only || at < floor || at >= end {
            return false;
        }
        match self.card(token, Blocking::Yes, &mut Vec::new()) {
            Ok(_) | Err(ReadError::WouldBlock) => false,
            Err(ReadError::Corrupt { .. }) => true,
            // Overwritten, unless its file is gone.
            Err(ReadError::Gone | ReadError::Removed) => {
                let file = self.cards.home.file(at.cycle());
                file.is_err_and(|error| error.kind() == ErrorKind::NotFound)
            }
            Err(ReadError::Host(error)) => error.is_medium(),
        }
    }

    /// The record of the card that this article had, if it is lost and this is its file.
    pub(super) fn card_again(
        &self,
        file: &Lying,
        place: &Place<'_>,
        token: &Token,
    ) -> Option<Vec<u8>> {
        if !self.is_lost(token) {
            return None;
        }
        let (text, file_len) = self.text_of(&file.path, token)?;
        let own = self.name_of(&file.path)?;
        let names = self.naming.as_ref().map(|naming| naming.names(place));
        let named = names.filter(|names| names.contains(&own));
        let card = |names: Vec<String>, xref: &[u8]| {
            let card = Card::of(&text, place.head_len, names, xref)?;
            Some(Card {
                file_len: Some(file_len),
                ..card
            })
        };
        let wanted = card_token(token).len();
        let is_as_long = |card: &Card| {
            let mut octets = Vec::new();
            card.encode(&mut octets);
            u32::try_from(octets.len()) == Ok(wanted)
        };
        // An older one did not say how long its file is, and what is filed nowhere has another's Xref.
        let tries = named.into_iter().chain([vec![own.clone()]]);
        let tries = tries.flat_map(|names| [(names.clone(), place.xref), (names, &b""[..])]);
        let tries = tries.filter_map(|(names, xref)| card(names, xref));
        let mut tries = tries.flat_map(|card| {
            let older = Card {
                file_len: None,
                ..card.clone()
            };
            [card, older]
        });
        let card = match tries.find(is_as_long) {
            Some(card) => card,
            // It has names that nobody can tell: with this one it is served, and is as long with spaces behind its Xref.
            None => padded(card(vec![own], place.xref)?, wanted)?,
        };
        self.record(&card, place, token)
    }

    /// The article in a file, in wire form, and the length of the file, if it is as long as the token says.
    fn text_of(&self, path: &Path, token: &Token) -> Option<(Vec<u8>, u32)> {
        let limit = usize::try_from(ARTICLE_OCTETS_MAX).unwrap_or(usize::MAX);
        let octets = read_whole(self.folder.disk.as_ref(), path, limit).ok()?;
        let file_len = u32::try_from(octets.len()).ok()?;
        if file_len == token.len() {
            return Some((octets, file_len));
        }
        let mut text = Vec::new();
        lf_to_wire(&octets, &mut text);
        if text.len() != token.len() as usize {
            to_wire(&octets, &mut text);
        }
        (text.len() == token.len() as usize).then_some((text, file_len))
    }

    /// The name that a file was given below the directory, but for what was appended where that was taken.
    fn name_of(&self, path: &Path) -> Option<String> {
        let below = path.strip_prefix(&self.folder.dir).ok()?.to_str()?;
        Some(below.trim_end_matches('+').to_owned())
    }

    /// The record of a card in its place.
    fn record(&self, card: &Card, place: &Place<'_>, token: &Token) -> Option<Vec<u8>> {
        let mut octets = vec![0; RECORD_HEADER];
        card.encode(&mut octets);
        let (front, card) = octets.split_first_chunk_mut::<RECORD_HEADER>()?;
        let header = RecordHeader {
            mark: Mark::Article,
            is_packed: false,
            article_len: u32::try_from(card.len()).ok()?,
            head_len: 0,
            crc_head: crc32c::crc32c(b""),
            crc_body: crc32c::crc32c(card),
            position: token.position(),
            sequence: place.sequence,
            arrival: place.arrival,
            id_hash: place.id_hash,
        };
        *front = header.encode(self.cards.key);
        Some(octets)
    }
}

/// A card with so many octets, if it has no more.
fn padded(mut card: Card, octets: u32) -> Option<Card> {
    let mut encoded = Vec::new();
    card.encode(&mut encoded);
    let more = (octets as usize).checked_sub(encoded.len())?;
    card.xref.resize(card.xref.len() + more, b' ');
    Some(card)
}

/// Cards that are written again.
#[derive(Debug)]
pub(super) struct Restoring {
    pub(super) buffer: Arc<Buffer>,
    pub(super) cards: Cards,
}

impl Restoring {
    /// Writes one, unless a card is there by now.
    fn restore(&self, position: Position, record: &[u8]) -> newsreel_host::Result<()> {
        let buffer = &self.buffer;
        if position < buffer.floor() || !buffer.geometry().holds(position, record.len() as u64) {
            return Ok(());
        }
        let file = buffer.home.file(position.cycle())?;
        match self.is_there(&*file, position) {
            true => Ok(()),
            false => file.write_at(record, position.offset()),
        }
    }

    /// Between the last card of a batch and the page on which the next begins there was nothing: what rot left there would be told as damage
    /// for ever.  Where something may have been it stays.
    fn clear_behind(&self, position: Position, record: &[u8]) -> newsreel_host::Result<()> {
        let geometry = &self.buffer.geometry();
        let end = position.offset() + (record.len() as u64).next_multiple_of(geometry.block);
        let page = end.next_multiple_of(PAGE);
        let cycle = position.cycle();
        let at = |offset: u64| Position::checked(cycle, offset).unwrap_or_default();
        let file = self.buffer.home.file(cycle)?;
        let blocks = (end..page).step_by(in_memory(geometry.block));
        let is_any =
            |offset| self.cards.contains_key(&at(offset)) || self.is_there(&*file, at(offset));
        let written = Position(self.buffer.written.load(Ordering::Acquire));
        let is_last = page >= geometry.data_end || at(page) >= written;
        if end == page || blocks.clone().any(is_any) || !(is_last || is_any(page)) {
            return Ok(());
        }
        file.write_at(&vec![0; in_memory(page - end)], end)
    }

    /// Whether a sound card lies here, or one that was overwritten.
    fn is_there(&self, file: &dyn File, position: Position) -> bool {
        let mut stored = [0; RECORD_HEADER];
        if file.read_exact_at(&mut stored, position.offset()).is_err() {
            return false;
        }
        let header = RecordHeader::decode(&stored, self.buffer.key).ok();
        let Some(header) = header.filter(|header| header.position == position) else {
            return false;
        };
        if header.mark != Mark::Article {
            return true;
        }
        let octets = u64::from(header.article_len).min(self.buffer.geometry().capacity());
        let mut card = vec![0; in_memory(octets)];
        let read = file.read_exact_at(&mut card, position.offset() + RECORD_HEADER as u64);
        read.is_ok() && header.signs(&card)
    }
}

impl BatchWrite for Restoring {
    fn buffer(&self) -> BufferId {
        self.buffer.id
    }

    fn write(&mut self) -> Result<()> {
        if let Some(error) = self.buffer.suspended_error() {
            return Err(error);
        }
        let mut remade = 0;
        for (position, record) in &self.cards {
            let cycle = position.cycle();
            let is_there = match cycle == remade || *position < self.buffer.floor() {
                true => Ok(()),
                false => self.buffer.home.remake(cycle),
            };
            remade = cycle;
            if let Err(error) = is_there.and_then(|()| self.restore(*position, record)) {
                // It was lost before, and no article that comes has to wait for that.
                tracing::error!(%error, buffer = %self.buffer.name, "a lost card cannot be written again");
                return Ok(());
            }
        }
        for (position, record) in &self.cards {
            if let Err(error) = self.clear_behind(*position, record) {
                tracing::warn!(%error, buffer = %self.buffer.name, "what rot left behind a card stays");
                break;
            }
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        let cycles = self.cards.keys().map(|position| position.cycle());
        let (Some(first), Some(last)) = (cycles.clone().min(), cycles.max()) else {
            return Ok(());
        };
        self.buffer
            .unless_failed(self.buffer.home.sync(first..=last))?;
        let is_told = self.buffer.complaint();
        if is_told.is_some_and(|told| told.starts_with(lost::TOLD))
            && lost::damage(&self.buffer)?.is_none()
        {
            self.buffer.is_mended();
        }
        Ok(())
    }
}
