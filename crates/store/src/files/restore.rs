//! Cards that were lost, made again from the files that are there.
//!
//! A token has the place and the length of its card, so a card that is made again lies where the lost one did, and nothing that leads to
//! the article changes.  What it says is read from the file; its name is one of those that its method gives, and it is as long as the
//! lost one was: else it is another's.  Cards are written on the thread of batches, and only where none can be read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use newsreel_host::{ErrorKind, File, read_whole};
use newsreel_wire::nntp::framing::lf_to_wire;
use newsreel_wire::{BufferId, Position, Token};
use parking_lot::Mutex;

use super::card::Card;
use super::card_token;
use super::hollows::Hollows;
use super::lent;
use super::lost;
use super::lying::to_wire;
use super::reader::FileReader;
use crate::error::{ReadError, Result};
use crate::method::{BatchWrite, Blocking, BufferReader as _, Lying, Place};
use crate::records::buffer::Buffer;
use crate::records::format::{Mark, RECORD_HEADER, RecordHeader};
use crate::records::geometry::in_memory;
use crate::records::placing::ARTICLE_OCTETS_MAX;

/// Cards by their places, as they are to be written.
pub type Cards = BTreeMap<Position, Vec<u8>>;

impl FileReader {
    /// Whether there was a card of this article which cannot be read any more.
    pub(super) fn is_lost(&self, token: &Token) -> bool {
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
        if let Some(link) = &file.link {
            // Anything may lie there: only where an article is filed leads there.
            let mut named = names.iter().flatten();
            if !named.any(|name| Path::new(name).starts_with(link)) {
                return None;
            }
        }
        let named = names.filter(|names| names.contains(&own));
        let card = |names: Vec<String>, xref: &[u8]| {
            let card = Card::of(&text, place.head_len, names, xref)?;
            Some(Card {
                file_len: Some(file_len),
                ..card
            })
        };
        let wanted = card_token(token).len();
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
        let card = match tries.find(|card| is_as_long(card, wanted)) {
            Some(card) => card,
            // It has names that nobody can tell: with this one it is served, and is as long with spaces behind its Xref.
            None => padded(card(vec![own], place.xref)?, wanted)?,
        };
        self.record(&card, place, token)
    }

    /// The record of the card that an article in another spool had, if it is lost and the article lies here in the file of this set.
    pub(super) fn card_of_lent(
        &self,
        lies_at: &str,
        place: &Place<'_>,
        token: &Token,
    ) -> Option<Vec<u8>> {
        let lender = self.folder.lender.as_ref()?;
        let wire = place.article.concat();
        let mut text = Vec::new();
        lent::file_here(&wire, place.head_len as usize, place.xref, &mut text);
        if text.len() != token.len() as usize || !self.is_lost(token) || !lender.has(lies_at) {
            return None;
        }
        let body_len = wire.len().checked_sub(place.head_len as usize)?;
        let head_len = u32::try_from(text.len().checked_sub(body_len)?).ok()?;
        let card = Card::of(&text, head_len, vec![lies_at.to_owned()], place.xref)?;
        is_as_long(&card, card_token(token).len()).then_some(())?;
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

/// Whether the stored form of a card has so many octets.
fn is_as_long(card: &Card, wanted: u32) -> bool {
    let mut octets = Vec::new();
    card.encode(&mut octets);
    u32::try_from(octets.len()) == Ok(wanted)
}

/// A card with so many octets, if it has no more.
fn padded(mut card: Card, octets: u32) -> Option<Card> {
    let mut encoded = Vec::new();
    card.encode(&mut encoded);
    let more = (octets as usize).checked_sub(encoded.len())?;
    card.xref.resize(card.xref.len() + more, b' ');
    Some(card)
}

/// What became of cards that were to be written.
#[derive(Debug, Default)]
pub struct Written {
    count: AtomicU64,
    refused: Mutex<Option<String>>,
}

impl Written {
    /// So many are there, durably.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Why others are not, if so.
    pub fn refused(&self) -> Option<String> {
        self.refused.lock().clone()
    }
}

/// Records that are written where nothing can be read.
#[derive(Debug)]
pub(super) struct Restoring {
    pub(super) buffer: Arc<Buffer>,
    pub(super) hollows: Arc<Hollows>,
    pub(super) cards: Cards,
    pub(super) written: Arc<Written>,
    /// So many were written, in these cycles.
    pub(super) count: u64,
    pub(super) cycles: BTreeSet<u32>,
}

impl Restoring {
    /// Writes one, unless a record is there by now.
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

    /// Whether a sound card lies here, one that was overwritten, or one that a later newsreel wrote.
    fn is_there(&self, file: &dyn File, position: Position) -> bool {
        let mut stored = [0; RECORD_HEADER];
        let read = file.read_exact_at(&mut stored, position.offset());
        if read.is_err() || !RecordHeader::is_of(&stored, self.buffer.key, position) {
            return false;
        }
        let header = match RecordHeader::decode(&stored, self.buffer.key) {
            Ok(header) if header.mark == Mark::Article => header,
            _ => return true,
        };
        let octets = u64::from(header.article_len).min(self.buffer.geometry().capacity());
        let mut card = vec![0; in_memory(octets)];
        let read = file.read_exact_at(&mut card, position.offset() + RECORD_HEADER as u64);
        read.is_ok() && header.signs(&card)
    }

    fn restore_all(&mut self) -> newsreel_host::Result<()> {
        for (position, record) in &self.cards {
            let cycle = position.cycle();
            if *position >= self.buffer.floor() && !self.cycles.contains(&cycle) {
                self.buffer.home.remake(cycle)?;
            }
            self.cycles.insert(cycle);
            self.restore(*position, record)?;
            self.count += 1;
        }
        Ok(())
    }

    fn refused(&self, error: &dyn std::fmt::Display) {
        let name = &self.buffer.name;
        tracing::error!(%error, buffer = %name, "lost cards cannot be written again");
        *self.written.refused.lock() = Some(error.to_string());
    }
}

impl BatchWrite for Restoring {
    fn buffer(&self) -> BufferId {
        self.buffer.id
    }

    fn write(&mut self) -> Result<()> {
        if let Some(error) = self.buffer.suspended_error() {
            self.refused(&error);
            return Err(error);
        }
        (self.count, self.cycles) = (0, BTreeSet::new());
        let hollows = Arc::clone(&self.hollows);
        // It was lost before, and no article that comes has to wait for that.
        if let Err(error) = hollows.alone(|| self.restore_all()) {
            self.refused(&error);
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        let (Some(first), Some(last)) = (self.cycles.first(), self.cycles.last()) else {
            return Ok(());
        };
        let synced = self.buffer.home.sync(*first..=*last);
        let synced = self.buffer.unless_failed(synced);
        synced.inspect_err(|error| self.refused(error))?;
        self.hollows.changed(&self.cycles);
        let is_told = self.buffer.complaint();
        if is_told.is_some_and(|told| told.contains(lost::TOLD))
            && lost::damage(&self.buffer)?.is_none()
        {
            self.buffer.is_mended(lost::TOLD);
        }
        self.written.count.fetch_add(self.count, Ordering::AcqRel);
        Ok(())
    }
}
