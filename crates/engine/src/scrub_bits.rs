//! The bitmap of a buffer beside its articles, as the scrub passes them: where they do not agree it is written again.
//!
//! Nothing is served by it, so what cannot be told for certain is left: stretches with damage in them, and what withdrawals
//! are still about to change.

use std::sync::Arc;

use newsreel_store::BufferReader;
use newsreel_wire::{IdHash, Position, Token};

use crate::shared::Shared;

/// What the scrub has passed since it looked last, and what it found.
#[derive(Debug)]
pub(crate) struct Bits {
    from: Position,
    /// The articles that begin since then.
    pub(crate) starts: Vec<(Token, IdHash)>,
    /// Somewhere since then it cannot be told what begins.
    pub(crate) is_unsure: bool,
    wrong: u64,
    is_written: bool,
}

impl Bits {
    /// From a position on.
    pub(crate) const fn new(from: Position) -> Self {
        Self {
            from,
            starts: Vec::new(),
            is_unsure: false,
            wrong: 0,
            is_written: true,
        }
    }

    /// It goes on somewhere else.
    pub(crate) fn restart(&mut self, from: Position) {
        self.from = from;
        self.starts.clear();
        self.is_unsure = false;
    }

    /// Compares what was passed up to here.
    pub(crate) fn look(&mut self, shared: &Shared, buffer: &Arc<dyn BufferReader>, at: Position) {
        if !self.is_unsure
            && let Err(error) = self.compare(shared, buffer, at)
        {
            tracing::error!(buffer = buffer.name(), %error, "its bitmap cannot be looked at");
        }
        self.restart(at);
    }

    fn compare(
        &mut self,
        shared: &Shared,
        buffer: &Arc<dyn BufferReader>,
        at: Position,
    ) -> Result<(), newsreel_store::Error> {
        let starts: Vec<Position> = self
            .starts
            .iter()
            .map(|(token, _)| token.position())
            .collect();
        let mut wrong = buffer.wrong_bits(self.from..at, &starts)?;
        let is_wanted = |start: &Position| {
            let found = self
                .starts
                .iter()
                .find(|(token, _)| token.position() == *start);
            found.is_some_and(|(token, hash)| shared.is_wanted(token, hash))
        };
        wrong.missing.retain(is_wanted);
        let count = (wrong.missing.len() + wrong.extra.len()) as u64;
        if count > 0 {
            self.is_written &= buffer.mend_bits(&wrong)?;
            self.wrong += count;
        }
        Ok(())
    }

    /// What was found, for people; it is logged, too.
    pub(crate) fn told(&self, buffer: &str) -> Option<String> {
        if self.wrong == 0 {
            return None;
        }
        let (wrong, done) = (
            self.wrong,
            match self.is_written {
                true => "it was written again",
                false => "nothing was written",
            },
        );
        tracing::error!(
            buffer,
            "its bitmap was wrong at {wrong} of its bits; {done}"
        );
        Some(format!(
            "buffer {buffer}: its bitmap was wrong at {wrong} of its bits; {done}"
        ))
    }
}
