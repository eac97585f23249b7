//! The readers' half of the store: any thread, any time.
//!
//! Whether an article is alive costs a comparison and no I/O.  What is read was alive before and after it was copied
//! and is what was stored, or it is an error.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use newsreel_wire::{BufferId, IdHash, Position, Sequence, Token, TokenText};
use parking_lot::RwLock;

use crate::error::{ReadError, Result};
use crate::facts::{BufferFacts, Oldest};
use crate::method::{
    Blocking, BufferReader, RecordScan, Removed, ScanRange, Scanned, Stored, Want,
};
use crate::records::reading::end_of;

/// Articles between which no more lies than this are read as one.
const APART_OCTETS: u64 = 64 << 10;

/// A part of a buffer in which wanted articles lie close together.
#[derive(Debug, PartialEq, Eq)]
struct Stretch {
    buffer: BufferId,
    from: Position,
    octets: u64,
}

/// The parts of buffers in which these articles lie.
fn stretches(tokens: &mut [Token]) -> Vec<Stretch> {
    tokens.sort_unstable_by_key(|token| (token.buffer(), token.position()));
    let mut all: Vec<Stretch> = Vec::new();
    for token in tokens.iter() {
        let (start, end) = (token.position(), end_of(token));
        let octets = end.offset().saturating_sub(start.offset());
        if let Some(last) = all.last_mut()
            && last.buffer == token.buffer()
            && last.from.cycle() == start.cycle()
        {
            let ahead = start.offset().saturating_sub(last.from.offset());
            if ahead <= last.octets + APART_OCTETS {
                last.octets = last.octets.max(ahead + octets);
                continue;
            }
        }
        all.push(Stretch {
            buffer: token.buffer(),
            from: start,
            octets,
        });
    }
    all
}

/// All buffers of a spool, to be read.
#[derive(Debug)]
pub struct StoreReader {
    buffers: Vec<Arc<dyn BufferReader>>,
    /// Where in `buffers` each id is.
    by_id: Vec<Option<u16>>,
    /// Those that came since, from the first place on.
    added: Box<[OnceLock<Arc<dyn BufferReader>>]>,
    /// Those that are not there any more: nothing in them is alive.
    removed: RwLock<Vec<BufferId>>,
    epoch: AtomicU64,
}

impl StoreReader {
    /// So many buffers are added while the spool is open: the places for them are there from the beginning, so that readers
    /// take no lock.
    pub const ADDED_MAX: usize = 64;

    pub(crate) fn new(buffers: Vec<Arc<dyn BufferReader>>) -> Self {
        let mut by_id = Vec::new();
        for (at, buffer) in (0..).zip(&buffers) {
            let id = usize::from(buffer.id().0);
            if by_id.len() <= id {
                by_id.resize(id + 1, None);
            }
            by_id[id] = Some(at);
        }
        Self {
            buffers,
            by_id,
            removed: RwLock::default(),
            added: (0..Self::ADDED_MAX).map(|_| OnceLock::new()).collect(),
            epoch: AtomicU64::new(1),
        }
    }

    /// Floors have moved.
    pub(crate) fn next_epoch(&self) {
        self.epoch.fetch_add(1, Ordering::SeqCst);
    }

    /// A buffer by its id.
    #[must_use]
    pub fn buffer(&self, id: BufferId) -> Option<&Arc<dyn BufferReader>> {
        match self.by_id.get(usize::from(id.0)) {
            Some(Some(at)) => self.buffers.get(usize::from(*at)),
            _ => self.added().find(|buffer| buffer.id() == id),
        }
    }

    /// All buffers, set by set; behind them those that were added.
    #[must_use]
    pub fn buffers(&self) -> Vec<&Arc<dyn BufferReader>> {
        let removed = self.removed.read();
        let all = self.buffers.iter().chain(self.added());
        all.filter(|buffer| !removed.contains(&buffer.id()))
            .collect()
    }

    /// This one is not there any more; by the sequencer's thread alone.
    pub(crate) fn remove(&self, buffer: BufferId) {
        self.removed.write().push(buffer);
    }

    fn added(&self) -> impl Iterator<Item = &Arc<dyn BufferReader>> {
        self.added.iter().map_while(OnceLock::get)
    }

    /// Whether a buffer could be added.
    pub(crate) fn has_room(&self) -> bool {
        self.added().count() < Self::ADDED_MAX
    }

    /// A buffer more; by the sequencer's thread alone.
    pub(crate) fn add(&self, buffer: &Arc<dyn BufferReader>) {
        let free = self.added.iter().find(|place| place.get().is_none());
        let is_added = free.is_some_and(|place| place.set(Arc::clone(buffer)).is_ok());
        debug_assert!(is_added, "there is room for it");
    }

    /// Positions below this are gone; all of them when there is no such buffer.
    #[must_use]
    pub fn floor(&self, buffer: BufferId) -> Position {
        let buffer = self.buffer(buffer);
        buffer.map_or(Position(u64::MAX), |buffer| buffer.floor())
    }

    /// Octets of one cycle, about; 0 when there is no such buffer.
    #[must_use]
    pub fn cycle_octets(&self, buffer: BufferId) -> u64 {
        let buffer = self.buffer(buffer);
        buffer.map_or(0, |buffer| buffer.cycle_octets())
    }

    /// Changes after any floor has moved.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::SeqCst)
    }

    /// Whether the article is still there; costs no I/O.
    #[must_use]
    pub fn is_live(&self, token: &Token) -> bool {
        token.position() >= self.floor(token.buffer())
    }

    /// Reads an article, or its header block, into memory that is used again.
    ///
    /// # Errors
    /// Gone, damaged, not in memory (when not blocking), or what the disk says.
    pub fn read(
        &self,
        token: &Token,
        want: Want,
        blocking: Blocking,
        memory: &mut Vec<u8>,
    ) -> std::result::Result<Stored, ReadError> {
        let buffer = self.buffer(token.buffer()).ok_or(ReadError::Gone)?;
        buffer.read(token, want, blocking, memory)
    }

    /// These articles will be read soon: what lies together comes into memory together.  May wait for the disk a little.
    pub fn will_need(&self, tokens: &mut [Token]) {
        for stretch in stretches(tokens) {
            if let Some(buffer) = self.buffer(stretch.buffer) {
                buffer.will_need(stretch.from, stretch.octets);
            }
        }
    }

    /// What is known of an article whose file is not there; none where it is there, or no file of its own.
    #[must_use]
    pub fn removed(&self, token: &Token) -> Option<Removed> {
        self.buffer(token.buffer())?.removed(token)
    }

    /// Whether an article is gone, as its buffer was put back as it had been before.
    #[must_use]
    pub fn lacks(&self, token: &Token) -> bool {
        let buffer = self.buffer(token.buffer());
        buffer.is_some_and(|buffer| buffer.lacks(token.position()))
    }

    /// Whether an article has a file of its own, that anybody can remove.
    #[must_use]
    pub fn is_file(&self, token: &Token) -> bool {
        let buffer = self.buffer(token.buffer());
        buffer.is_some_and(|buffer| buffer.removes_files())
    }

    /// The file of its own that an article has, or should have; none where several share one, or nothing tells it.
    #[must_use]
    pub fn file_of(&self, token: &Token) -> Option<PathBuf> {
        self.buffer(token.buffer())?.file_of(token)
    }

    /// For recovery: whether the record that the log tells of is whole and is the log's, alive or not.
    ///
    /// # Errors
    /// What does not agree, or what the disk says.
    pub fn verify(
        &self,
        token: &Token,
        sequence: Sequence,
        id_hash: &IdHash,
        memory: &mut Vec<u8>,
    ) -> std::result::Result<(), ReadError> {
        let buffer = self.buffer(token.buffer()).ok_or(ReadError::Gone)?;
        buffer.verify(token, sequence, id_hash, memory)
    }

    /// The records of a buffer.
    #[must_use]
    pub fn scan(&self, buffer: BufferId, range: ScanRange) -> Option<Box<dyn RecordScan>> {
        Some(Arc::clone(self.buffer(buffer)?).scan(range))
    }

    /// The oldest article alive in a buffer, found by reading where the floor is.
    ///
    /// # Errors
    /// What the disk says.
    pub fn oldest(&self, buffer: BufferId) -> Result<Option<Oldest>> {
        let Some(reader) = self.buffer(buffer) else {
            return Ok(None);
        };
        let cards = Arc::clone(reader).cards();
        let are_cards = cards.is_some();
        let mut scan = cards.unwrap_or_else(|| Arc::clone(reader).scan(ScanRange::Live));
        while let Some(scanned) = scan.step()? {
            if let Scanned::Record {
                token,
                sequence,
                arrival,
                sound,
                ..
            } = scanned
                && (sound || are_cards)
            {
                return Ok(Some(Oldest {
                    position: token.position(),
                    sequence,
                    arrival,
                }));
            }
        }
        Ok(None)
    }

    /// What there is to know about every buffer; costs no I/O.
    #[must_use]
    pub fn facts(&self) -> Vec<BufferFacts> {
        let buffers = self.buffers();
        buffers.iter().map(|buffer| buffer.facts()).collect()
    }

    /// A token in its text form.
    #[must_use]
    pub fn token_text(&self, token: &Token) -> Option<String> {
        let text = TokenText {
            name: self.buffer(token.buffer())?.name(),
            position: token.position(),
        };
        Some(text.to_string())
    }

    /// The token of the article at a place given in text form, by looking there.
    ///
    /// # Errors
    /// When there is no such buffer or article, or it is gone.
    pub fn token_at(&self, text: &TokenText<'_>) -> std::result::Result<Token, ReadError> {
        let mut buffers = self.buffers.iter().chain(self.added());
        let buffer = buffers.find(|buffer| buffer.name() == text.name);
        buffer.ok_or(ReadError::Gone)?.token_at(text.position)
    }
}

#[cfg(test)]
mod tests {
    use newsreel_wire::{SetId, TokenParts};

    use super::*;

    #[test]
    fn what_lies_together_is_read_together() {
        let token = |buffer, cycle, offset, len| {
            Token::new(TokenParts {
                method: 1,
                set: SetId(1),
                buffer: BufferId(buffer),
                len,
                position: Position::new(cycle, offset),
                tail: [0; 8],
            })
        };
        let mut tokens = [
            token(2, 1, 4096, 3000),
            token(1, 1, 1 << 20, 3000),
            token(1, 1, 8192, 3000),
            token(1, 2, 16_384, 3000),
            token(1, 1, 4096, 3000),
            token(1, 1, 69_632, 100),
        ];
        let found = stretches(&mut tokens);
        let places: Vec<_> = found
            .iter()
            .map(|it| (it.buffer.0, it.from.cycle(), it.from.offset()))
            .collect();
        assert_eq!(
            places,
            [(1, 1, 4096), (1, 1, 1 << 20), (1, 2, 16_384), (2, 1, 4096)]
        );
        assert!((65_637..67_000).contains(&found[0].octets), "{found:?}");
    }
}
