//! Removing the files of withdrawn articles.
//!
//! It goes the way of batches, on their thread, and after the log has told of the withdrawal durably.  A file is removed only if
//! it is the article's that was withdrawn; then its card is overwritten, so that it is never removed again.

use std::path::PathBuf;
use std::sync::Arc;

use newsreel_host::ErrorKind;
use newsreel_wire::{BufferId, Token};

use super::card::Card;
use super::folder::{Folder, TextError};
use super::hollows::Hollows;
use crate::error::{ReadError, Result};
use crate::method::{BatchWrite, Blocking, BufferReader as _, Want};
use crate::records::buffer::Buffer;
use crate::records::erase::Erasure;

/// Articles of one set that are to go.
#[derive(Debug)]
pub(super) struct Removal {
    pub(super) cards: Arc<Buffer>,
    pub(super) folder: Arc<Folder>,
    pub(super) hollows: Arc<Hollows>,
    /// The tokens of their cards.
    pub(super) tokens: Vec<Token>,
    /// The files that were removed.
    pub(super) removed: Vec<PathBuf>,
    /// Their cards, as far as they are to be overwritten.
    pub(super) erasure: Option<Erasure>,
}

impl Removal {
    /// Removes the file of this card, under all its names; `false` when there is no such card any more.
    fn remove(&mut self, token: &Token, memory: &mut Vec<u8>) -> Result<bool> {
        let read = self.cards.read(token, Want::Whole, Blocking::Yes, memory);
        let (card, arrival) = match read {
            Ok(stored) => {
                let card = Card::decode(memory.get(stored.octets).unwrap_or_default());
                (card, stored.arrival)
            }
            Err(ReadError::Host(error)) if !error.is_medium() => return Err(error.into()),
            // It was removed before.
            Err(ReadError::Gone) => return Ok(false),
            // Nothing tells any more which file it was: perhaps a power cut while it was overwritten.
            Err(_) => return Ok(true),
        };
        let Ok(card) = card else {
            return Ok(true);
        };
        if self.folder.roots.hides(card.names()) {
            tracing::warn!(
                file = card.name,
                "the file of a withdrawn article is on a file system that is not there: it stays"
            );
            return Ok(false);
        }
        // The first name last: a link may be a symbolic one that leads to it.
        for name in card.names().rev() {
            let path = match self.folder.find(name, &card, arrival) {
                Ok(path) => path,
                Err(TextError::Host(error)) => return Err(error.into()),
                Err(_) => continue,
            };
            match self.folder.disk.remove(&path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
                _ => self.removed.push(path),
            }
        }
        Ok(true)
    }
}

impl BatchWrite for Removal {
    fn buffer(&self) -> BufferId {
        self.cards.id
    }

    fn write(&mut self) -> Result<()> {
        if let Some(error) = self.cards.suspended_error() {
            return Err(error);
        }
        let mut memory = Vec::new();
        let mut tokens = std::mem::take(&mut self.tokens);
        tokens.retain(|token| {
            self.remove(token, &mut memory).unwrap_or_else(|error| {
                // Nobody is shown it any more, and articles are taken all the same.
                tracing::error!(%error, "the file of a withdrawn article stays");
                false
            })
        });
        let starts = tokens.iter().map(Token::position).collect();
        let erasure = Erasure::new(Arc::clone(&self.cards), starts);
        let erasure = self.erasure.insert(erasure);
        self.hollows.erase(&tokens, || erasure.write())
    }

    fn sync(&mut self) -> Result<()> {
        let removed = self.removed.iter().map(PathBuf::as_path);
        let removed = self.cards.unless_failed(self.folder.sync(removed));
        removed?;
        self.erasure.as_mut().map_or(Ok(()), Erasure::sync)
    }
}
