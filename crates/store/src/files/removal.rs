//! Removing the files of withdrawn articles.
//!
//! It goes the way of batches, on their thread, and after the log has told of the withdrawal durably.  A file is removed only if
//! it is the article's that was withdrawn; then its card is overwritten, so that it is never removed again.  What the disk refuses
//! is kept in mind and tried again; behind a restart the scrub meets its card.  A card is overwritten when the removal is durable,
//! not before: a power cut leaves no file to which no card leads.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use newsreel_host::ErrorKind;
use newsreel_wire::{BufferId, Position, Token, UnixTime};
use parking_lot::Mutex;

use super::card::Card;
use super::folder::{Folder, TextError};
use super::hollows::Hollows;
use crate::error::{ReadError, Result};
use crate::method::{BatchWrite, Blocking, BufferReader as _, TRIED_AGAIN_AFTER_S, Want};
use crate::records::buffer::Buffer;
use crate::records::erase::Erasure;
use crate::records::format::RECORD_HEADER;
use crate::records::geometry::PAGE;

/// So many cards are kept in mind whose files cannot be removed; of more the scrub knows.
pub const REFUSED_MAX: usize = 10_000;

/// So many that go at once are what expires, not what somebody cancels.
const LARGE: usize = 100;

/// So many threads remove the files of one batch.
const SIDE_BY_SIDE: usize = 4;

/// Cards of one set whose files could not be removed.
#[derive(Debug, Default)]
pub(super) struct Refused(Mutex<RefusedInner>);

#[derive(Debug, Default)]
struct RefusedInner {
    cards: Vec<Token>,
    /// When they are tried again.
    at: Option<UnixTime>,
}

impl Refused {
    fn add(&self, card: Token) {
        let mut inner = self.0.lock();
        if inner.cards.len() < REFUSED_MAX {
            inner.cards.push(card);
        }
    }

    /// Those that are to be tried again now.
    pub(super) fn due(&self, now: UnixTime) -> Vec<Token> {
        let mut inner = self.0.lock();
        if inner.cards.is_empty() {
            return Vec::new();
        }
        let at = *inner
            .at
            .get_or_insert(UnixTime(now.0 + TRIED_AGAIN_AFTER_S));
        // A clock that went back knows nothing of it.
        if now < at && at.0 - now.0 <= TRIED_AGAIN_AFTER_S {
            return Vec::new();
        }
        inner.at = None;
        std::mem::take(&mut inner.cards)
    }
}

/// Cards whose files were removed and not yet durably, and the paths of those.
///
/// Nothing waits for a removal: the log has told of it, and a card that is not overwritten leads who scrubs to a file that a power cut
/// brought back.  So what goes in large numbers becomes durable with the sync of articles that come, at a checkpoint, or when there is
/// very much of it: a sync for each thousand wrote the directories, which hold a few of each, again and again.
#[derive(Debug, Default)]
pub(super) struct Removed(Mutex<Vec<(Token, Vec<PathBuf>)>>);

impl Removed {
    fn add(&self, card: Token, paths: Vec<PathBuf>) {
        self.0.lock().push((card, paths));
    }

    /// Whether there are any.
    pub(super) fn waits(&self) -> bool {
        !self.0.lock().is_empty()
    }

    /// There are so many that they are not to wait for a sync that somebody else needs.
    fn is_full(&self) -> bool {
        self.0.lock().len() >= REFUSED_MAX
    }

    /// All of them, and their paths.
    pub(super) fn take(&self) -> (Vec<Token>, Vec<PathBuf>) {
        let (cards, paths): (Vec<_>, Vec<_>) =
            std::mem::take(&mut *self.0.lock()).into_iter().unzip();
        (cards, paths.concat())
    }

    /// Those whose cards lie in pages to which nothing is added any more, and their paths.
    fn take_settled(&self, cards: &Buffer) -> (Vec<Token>, Vec<PathBuf>) {
        let end = Position(cards.written.load(Ordering::Acquire));
        let (cycle, page) = (end.cycle(), end.offset() - end.offset() % PAGE);
        let is_behind = |card: &Token| {
            let at = card.position();
            let behind = at.offset() + RECORD_HEADER as u64 + u64::from(card.len());
            at.cycle() < cycle || (at.cycle() == cycle && behind <= page)
        };
        let mut waiting = self.0.lock();
        let (settled, others) = std::mem::take(&mut *waiting)
            .into_iter()
            .partition(|(card, _)| is_behind(card));
        *waiting = others;
        let (cards, paths): (Vec<_>, Vec<_>) = Vec::into_iter(settled).unzip();
        (cards, paths.concat())
    }
}

/// Makes it durable that the files of these cards are gone, and overwrites the cards.
fn settle(
    (cards, folder, hollows): (&Arc<Buffer>, &Folder, &Hollows),
    (tokens, paths): (Vec<Token>, Vec<PathBuf>),
) -> Result<()> {
    if tokens.is_empty() {
        return Ok(());
    }
    let synced = folder.sync(paths.iter().map(PathBuf::as_path));
    cards.unless_failed(synced)?;
    overwrite(cards, hollows, &tokens)
}

/// Settles beside the thread of commits what was removed: what it may write to meanwhile is left to it.
pub(super) fn settle_beside(
    of: (&Arc<Buffer>, &Folder, &Hollows),
    removed: &Removed,
) -> Result<()> {
    settle(of, removed.take_settled(of.0))
}

/// Overwrites these cards, whose files are gone durably.
pub(super) fn overwrite(cards: &Arc<Buffer>, hollows: &Hollows, tokens: &[Token]) -> Result<()> {
    if tokens.is_empty() {
        return Ok(());
    }
    let starts = tokens.iter().map(Token::position).collect();
    let mut erasure = Erasure::new(Arc::clone(cards), starts, false);
    hollows.erase(tokens, || erasure.write())?;
    erasure.sync()
}

/// What became of the file of a card.
enum Outcome {
    /// It is not there, and the card is not needed any more.
    Removed,
    /// The card was overwritten before.
    Nothing,
    /// It cannot be removed.
    Stays(String),
}

/// Articles of one set that are to go.
#[derive(Debug)]
pub(super) struct Removal {
    pub(super) cards: Arc<Buffer>,
    pub(super) folder: Arc<Folder>,
    pub(super) hollows: Arc<Hollows>,
    /// The tokens of their cards.
    pub(super) tokens: Vec<Token>,
    /// Those whose files stay.
    pub(super) refused: Arc<Refused>,
    /// That was told of these.
    pub(super) is_again: bool,
    /// Those whose files were removed.
    pub(super) removed: Arc<Removed>,
    /// There are so many that more will come, and nobody waits for them.
    pub(super) is_large: bool,
}

impl Removal {
    /// Removes the file of this card, under all its names.
    fn remove(
        &self,
        token: &Token,
        memory: &mut Vec<u8>,
        removed: &mut Vec<PathBuf>,
    ) -> Result<Outcome> {
        let read = self.cards.read(token, Want::Whole, Blocking::Yes, memory);
        let (card, arrival) = match read {
            Ok(stored) => {
                let card = Card::decode(memory.get(stored.octets).unwrap_or_default());
                (card, stored.arrival)
            }
            Err(ReadError::Host(error)) if !error.is_medium() => return Err(error.into()),
            // It was removed before.
            Err(ReadError::Gone) => return Ok(Outcome::Nothing),
            // Nothing tells any more which file it was: perhaps a power cut while it was overwritten.
            Err(_) => return Ok(Outcome::Removed),
        };
        let Ok(card) = card else {
            return Ok(Outcome::Removed);
        };
        if self.folder.lender.is_some() {
            // What lies in another spool is not ours to remove.
            return Ok(Outcome::Removed);
        }
        if self.folder.roots.hides(card.names()) {
            let why = format!("{}: its file system is not there", card.name);
            return Ok(Outcome::Stays(why));
        }
        // The first name last: a link may be a symbolic one that leads to it.
        for name in card.names().rev() {
            let path = match self.folder.find(name, &card, arrival) {
                Ok(path) => path,
                Err(TextError::Host(error)) => return Err(error.into()),
                Err(_) => match self.folder.link_without_file(name, &card) {
                    Some(link) => link,
                    None => continue,
                },
            };
            match self.folder.disk.remove(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
                _ => removed.push(path),
            }
        }
        if removed.is_empty()
            && let Err(error) = self.cards.look()
        {
            return Ok(Outcome::Stays(error.to_string()));
        }
        Ok(Outcome::Removed)
    }

    /// Removes the files of these cards, one after the other; those whose files are removed.
    fn remove_all(&self, tokens: &[Token]) -> Vec<Token> {
        let mut memory = Vec::new();
        let removed = tokens.iter().copied();
        removed
            .filter(|token| self.is_removed(token, &mut memory))
            .collect()
    }

    /// The same by some threads: what is old is in no memory, and each waits for directories and inodes of its own.
    fn remove_side_by_side(&self, tokens: &[Token]) -> Vec<Token> {
        std::thread::scope(|scope| {
            let pieces = tokens.chunks(tokens.len().div_ceil(SIDE_BY_SIDE));
            let removing: Vec<_> = pieces
                .map(|piece| (piece, scope.spawn(|| self.remove_all(piece))))
                .collect();
            let removed = removing.into_iter().flat_map(|(piece, thread)| {
                // One that ended by a defect has told of it; its files are tried again.
                thread.join().unwrap_or_else(|_| {
                    piece.iter().for_each(|token| self.refused.add(*token));
                    Vec::new()
                })
            });
            removed.collect()
        })
    }

    /// Whether the file of this card was removed.
    fn is_removed(&self, token: &Token, memory: &mut Vec<u8>) -> bool {
        let mut paths = Vec::new();
        let outcome = self.remove(token, memory, &mut paths);
        match outcome.unwrap_or_else(|error| Outcome::Stays(error.to_string())) {
            Outcome::Removed => {
                self.removed.add(*token, paths);
                true
            }
            Outcome::Nothing => false,
            // Nobody is shown it any more, and articles are taken all the same.
            Outcome::Stays(why) => {
                if !self.is_again {
                    tracing::error!(
                        why,
                        "the file of a withdrawn article stays; its removal is tried again"
                    );
                }
                self.refused.add(*token);
                false
            }
        }
    }
}

impl Removal {
    fn settle(&self) -> Result<()> {
        let of = (&self.cards, &*self.folder, &*self.hollows);
        settle(of, self.removed.take())
    }
}

impl BatchWrite for Removal {
    fn buffer(&self) -> BufferId {
        self.cards.id
    }

    fn write(&mut self) -> Result<()> {
        let mut tokens = std::mem::take(&mut self.tokens);
        let is_away = self.cards.look().err();
        if let Some(error) = is_away.or_else(|| self.cards.suspended_error()) {
            tokens.into_iter().for_each(|token| self.refused.add(token));
            return Err(error);
        }
        let tried = tokens.len();
        self.is_large = tried >= LARGE;
        tokens = match self.is_large {
            true => self.remove_side_by_side(&tokens),
            false => self.remove_all(&tokens),
        };
        if self.is_again && !tokens.is_empty() {
            let (removed, tried) = (tokens.len(), tried);
            tracing::warn!(
                removed,
                tried,
                "files of withdrawn articles that had stayed are removed"
            );
        }
        match self.removed.is_full() {
            true => self.settle(),
            false => Ok(()),
        }
    }

    fn sync(&mut self) -> Result<()> {
        match self.is_large {
            true => Ok(()),
            false => self.settle(),
        }
    }
}
