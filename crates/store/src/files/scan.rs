//! A walk over the articles of a set of files: over the cards, each with its file.
//!
//! Or over the cards alone, which show where their articles are filed.  In the order of the catalogue; what lies in the directory without a card is not seen.  Its memory is that of the largest
//! article.

use std::sync::Arc;

use newsreel_wire::Position;

use super::article_token;
use super::card::Card;
use super::folder::{Folder, TextError};
use crate::error::Result;
use crate::method::{Blocking, RecordScan, Scanned, Want};
use crate::records::placing::ARTICLE_OCTETS_MAX;

/// A walk over one set.
#[derive(Debug)]
pub(super) struct FileScan {
    cards: Box<dyn RecordScan>,
    folder: Arc<Folder>,
    /// Only the cards are read.
    is_of_cards: bool,
    /// The article of the last step, or what is left of it; of a card its Xref.
    text: Vec<u8>,
    /// The file of the last step may not be read.
    is_denied: bool,
    octets_read: u64,
}

impl FileScan {
    pub(super) fn new(cards: Box<dyn RecordScan>, folder: Arc<Folder>) -> Self {
        Self {
            cards,
            folder,
            is_of_cards: false,
            text: Vec::new(),
            is_denied: false,
            octets_read: 0,
        }
    }

    /// Over the cards alone.
    pub(super) fn of_cards(cards: Box<dyn RecordScan>, folder: Arc<Folder>) -> Self {
        Self {
            is_of_cards: true,
            ..Self::new(cards, folder)
        }
    }

    /// Reads the article of the card that the last step found; `false` when it cannot be had as it was stored.
    fn read(&mut self) -> Result<(Option<Card>, bool)> {
        self.text.clear();
        let card = Card::decode(self.cards.article()).ok();
        let card = card.filter(|card| u64::from(card.article_len) <= ARTICLE_OCTETS_MAX);
        let Some(card) = card else {
            return Ok((None, false));
        };
        if self.is_of_cards {
            self.text.extend_from_slice(&card.xref);
            return Ok((Some(card), Card::has_xref(self.cards.article())));
        }
        let read = self
            .folder
            .read(&card, Want::Whole, Blocking::Yes, &mut self.text);
        self.octets_read += self.text.len() as u64;
        match read {
            Ok(_) => Ok((Some(card), true)),
            // One that its owner lets nobody read costs no other.
            Err(TextError::Host(error)) if error.is_denied() => {
                self.is_denied = true;
                Ok((Some(card), false))
            }
            Err(TextError::Host(error)) if !error.is_medium() => Err(error.into()),
            Err(_) => Ok((Some(card), false)),
        }
    }
}

impl RecordScan for FileScan {
    fn step(&mut self) -> Result<Option<Scanned>> {
        self.text.clear();
        self.is_denied = false;
        let scanned = self.cards.step()?;
        let Some(Scanned::Record {
            token,
            sequence,
            arrival,
            id_hash,
            sound,
            live,
            ..
        }) = scanned
        else {
            return Ok(scanned);
        };
        let (card, is_whole) = self.read()?;
        let (article_len, head_len) = card.map_or((0, 0), |card| (card.article_len, card.head_len));
        Ok(Some(Scanned::Record {
            token: article_token(&token, article_len),
            head_len,
            sequence,
            arrival,
            id_hash,
            sound: sound && is_whole,
            live,
        }))
    }

    fn is_denied(&self) -> bool {
        self.is_denied
    }

    fn article(&self) -> &[u8] {
        &self.text
    }

    fn at(&self) -> Position {
        self.cards.at()
    }

    fn octets_read(&self) -> u64 {
        self.cards.octets_read() + self.octets_read
    }
}
