//! Articles on their way: read where they lie, and placed in the other set.
//!
//! A copy is durable when it is told of, and nobody is led to it yet.

use std::sync::Arc;

use newsreel_store::{Blocking, PlaceError, ReadError, Want};
use newsreel_wire::Token;
use newsreel_wire::article::{Headers, Known};
use parking_lot::Mutex;

use super::mover::Mover;
use super::sequencing::{Copied, Copies, Original};
use crate::error::Error;
use crate::places::places;
use crate::requests::Request;

/// So many octets of articles are handed to the sequencer at once: about as much as one commit holds.
pub(super) const COPIED_AT_ONCE_OCTETS: usize = 1 << 20;

/// An article on its way: where it lies, and what its copy is made of.
struct Read {
    old: Token,
    original: Original,
}

impl Mover<'_> {
    /// Copies these articles, those that can be.  Says whether to go on behind them.
    pub(super) fn copy(
        &mut self,
        tokens: &[Token],
        copied: &mut Vec<Copied>,
    ) -> Result<bool, Error> {
        let (mut batch, mut octets) = (Vec::new(), 0);
        let mut memory = Vec::new();
        let mut is_around = false;
        for token in tokens {
            match self.read(token, &mut memory)? {
                Some(read) => {
                    is_around = !self.takes(read.original.text.len() as u64);
                    if is_around {
                        break;
                    }
                    octets += read.original.text.len();
                    batch.push(read);
                }
                None => drop(self.left.insert(*token)),
            }
            if octets >= COPIED_AT_ONCE_OCTETS {
                octets = 0;
                if !self.place(std::mem::take(&mut batch), copied)?
                    || !self.goes_on(copied.len() as u64)
                {
                    return Ok(false);
                }
            }
        }
        let goes_on = self.place(batch, copied)?;
        if is_around {
            self.is_around();
        }
        Ok(goes_on && !is_around)
    }

    /// An article as its copy is made of it; `None`: it is not to be moved.
    fn read(&mut self, token: &Token, memory: &mut Vec<u8>) -> Result<Option<Read>, Error> {
        let store = &self.shared.store;
        let stored = match store.read(token, Want::Whole, Blocking::Yes, memory) {
            Ok(stored) => stored,
            Err(ReadError::Gone) => return Ok(None),
            Err(ReadError::Removed) => {
                self.removed(token);
                return Ok(None);
            }
            Err(ReadError::Host(error)) if !error.is_medium() => return Err(error.into()),
            Err(error) => {
                self.leave(*token, error.to_string());
                return Ok(None);
            }
        };
        let now = self.shared.time.judging();
        if let Some(why) = self.target.is_past(stored.arrival, now) {
            self.leave(*token, why);
            return Ok(None);
        }
        let text = &memory[stored.octets.clone()];
        let headers = Headers::scan_stored(text).ok();
        let content = |known| {
            let content = headers.as_ref().and_then(|headers| headers.content(known));
            content.unwrap_or_default().to_vec()
        };
        Ok(Some(Read {
            old: *token,
            original: Original {
                arrival: stored.arrival,
                id_hash: stored.id_hash,
                id: content(Known::MessageId),
                xref: content(Known::Xref),
                text: text.to_vec(),
                head_len: u32::try_from(stored.head_len).unwrap_or(u32::MAX),
            },
        }))
    }

    /// Its file is not there.
    fn removed(&mut self, token: &Token) {
        match self.shared.store.removed(token) {
            Some(removed) if !removed.is_certain => {
                let why = ReadError::Removed;
                let place = self.shared.store.token_text(token).unwrap_or_default();
                self.leave(
                    *token,
                    format!("{place}: {why}, or its disk is not mounted"),
                );
            }
            _ => self.report.gone += 1,
        }
    }

    /// This one cannot be moved.
    fn leave(&mut self, token: Token, why: String) {
        self.left.insert(token);
        self.report.left += 1;
        self.report.first_left.get_or_insert(why);
    }

    /// Has these placed, and waits until they are durable.  Says whether there was room for all.
    fn place(&mut self, batch: Vec<Read>, copied: &mut Vec<Copied>) -> Result<bool, Error> {
        let groups = self.shared.views.groups();
        let (olds, originals): (Vec<Token>, Vec<Original>) = batch
            .into_iter()
            .map(|read| (read.old, read.original))
            .unzip();
        let originals = Arc::new(originals);
        let mut at = 0;
        while at < olds.len() {
            let tokens = Arc::new(Mutex::new(Vec::new()));
            let copies = Copies {
                set: self.to,
                originals: Arc::clone(&originals),
                first: at,
                tokens: Arc::clone(&tokens),
            };
            let placed = self
                .engine
                .ask_until_it_fits(|| Request::Copy(copies.clone()));
            match (placed, olds.get(at)) {
                (Err(Error::Place(error @ PlaceError::TooLarge { .. })), Some(old)) => {
                    self.leave(*old, error.to_string());
                    at += 1;
                    continue;
                }
                (Err(Error::Place(PlaceError::NeedsReservation)), _) => {
                    self.report.stopped = Some(self.target.lack());
                    return Ok(false);
                }
                // What was copied before moves.
                (Err(error @ (Error::Place(_) | Error::Request(_))), _) => {
                    self.report.stopped = Some(error.to_string());
                    return Ok(false);
                }
                (placed, _) => placed?,
            }
            for new in tokens.lock().iter() {
                let (Some(old), Some(original)) = (olds.get(at), originals.get(at)) else {
                    break;
                };
                copied.push(Copied {
                    old: *old,
                    new: *new,
                    id_hash: original.id_hash,
                    arrival: original.arrival,
                    is_there: true,
                    places: places(groups, &self.retired, &original.xref),
                });
                at += 1;
            }
        }
        Ok(true)
    }
}
