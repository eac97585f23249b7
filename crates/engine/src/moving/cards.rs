//! What the overview does not lead to: articles in no group, and what a crash left of a move.
//!
//! A card or a record that nothing leads to, because the article lies elsewhere, is a copy made in vain, or a place that was not
//! cleared any more.  Where articles are files those would stay for ever; elsewhere they go with their turn.

use std::sync::Arc;

use newsreel_index::Wait;
use newsreel_store::{RecordScan, ScanRange, Scanned};
use newsreel_wire::article::{Headers, Known};
use newsreel_wire::{IdHash, Sequence, Token};

use super::mover::Mover;
use crate::error::Error;
use crate::places::{Places, places};

/// So many left-over places are cleared at once.
const CLEARED_AT_ONCE: usize = 1024;

/// An article that a walk met.
struct Card {
    token: Token,
    sequence: Sequence,
    id_hash: IdHash,
    places: Places,
}

impl Mover<'_> {
    /// Clears what a crash left where articles are files.  Says whether to go on.
    pub(super) fn left_over(&mut self) -> Result<bool, Error> {
        if self.dry_run {
            return Ok(true);
        }
        let (shared, to) = (self.shared, self.to);
        for buffer in shared.store.buffers() {
            if buffer.set() != to && !self.from.contains(&buffer.id()) {
                continue;
            }
            let Some(mut cards) = Arc::clone(buffer).cards() else {
                continue;
            };
            let mut left = Vec::new();
            while let Some(card) = self.step(cards.as_mut(), true)? {
                if let Some(card) = card
                    && self.is_left_over(&card)?
                {
                    left.push(card.token);
                }
                if left.len() == CLEARED_AT_ONCE {
                    self.clear(std::mem::take(&mut left))?;
                }
                if !self.goes_on(0) {
                    return Ok(false);
                }
            }
            self.clear(left)?;
        }
        Ok(true)
    }

    /// Whether the article lies elsewhere, as all views say.  What is being stored has no entry in the history yet.
    fn is_left_over(&self, card: &Card) -> Result<bool, Error> {
        let views = &self.shared.views;
        let known = views.history().lookup(&card.id_hash)?;
        let known = known.and_then(|entry| entry.token);
        if known.is_none_or(|known| known.same_place(&card.token)) {
            return Ok(false);
        }
        let mut id = Vec::new();
        for (group, number) in &card.places {
            let row = views
                .overview()
                .column(*group, *number, Wait::Yes, &mut id)?;
            if row.is_some_and(|row| row.token.same_place(&card.token)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Moves articles in no group, where all are to move.  Says whether to go on.
    pub(super) fn ungrouped(&mut self) -> Result<bool, Error> {
        if !self.is_all() {
            return Ok(true);
        }
        let shared = self.shared;
        for buffer in shared.store.buffers() {
            if !self.from.contains(&buffer.id()) {
                continue;
            }
            let cards = Arc::clone(buffer).cards();
            let are_cards = cards.is_some();
            let mut walk = cards.unwrap_or_else(|| Arc::clone(buffer).scan(ScanRange::Live));
            let mut some = Vec::new();
            while let Some(card) = self.step(walk.as_mut(), are_cards)? {
                if let Some(card) = card.filter(|card| card.places.is_empty())
                    && card.sequence <= self.until
                    && !self.left.contains(&card.token)
                    && shared.leads_to(&card.id_hash, &card.token)?
                {
                    some.push(card.token);
                }
                let is_piece = some.len() == self.at_once;
                if (is_piece && !self.alone(std::mem::take(&mut some))?) || !self.goes_on(0) {
                    return Ok(false);
                }
            }
            if !self.alone(some)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Moves articles that have no rows.  Says whether to go on.
    fn alone(&mut self, tokens: Vec<Token>) -> Result<bool, Error> {
        if self.dry_run {
            tokens.iter().for_each(|token| self.would_move(token));
            return Ok(true);
        }
        let mut copied = Vec::new();
        let goes_on = self.copy(&tokens, &mut copied)?;
        if !copied.is_empty() {
            self.tell(copied, None)?;
        }
        Ok(goes_on)
    }

    /// A step of a walk: the end, nothing, or an article.
    fn step(
        &self,
        walk: &mut dyn RecordScan,
        are_cards: bool,
    ) -> Result<Option<Option<Card>>, Error> {
        let Some(scanned) = walk.step()? else {
            return Ok(None);
        };
        let Scanned::Record {
            token,
            sequence,
            id_hash,
            sound: true,
            live: true,
            ..
        } = scanned
        else {
            return Ok(Some(None));
        };
        let headers = (!are_cards).then(|| Headers::scan_stored(walk.article()));
        let xref = match &headers {
            None => walk.article(),
            Some(Ok(headers)) => headers.content(Known::Xref).unwrap_or_default(),
            Some(Err(_)) => return Ok(Some(None)),
        };
        Ok(Some(Some(Card {
            token,
            sequence,
            id_hash,
            places: places(self.shared.views.groups(), &self.retired, xref),
        })))
    }
}
