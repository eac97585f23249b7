//! Files of articles that went and that are there still: the disk refused to remove them, or a crash came between.
//!
//! The catalogue is the list of them: a card is overwritten when its file is gone.  So the file of a card is to go where the
//! history knows the article and does not lead to it: it was withdrawn, or lies in another set.  What the history does not know at all may
//! be of a log that was lost, and stays; and nothing is removed while articles move, as nobody is led to their copies yet.

use std::path::PathBuf;
use std::sync::Arc;

use newsreel_store::BufferReader;
use newsreel_wire::{IdHash, Sequence, Token};

use crate::requests::Request;
use crate::shared::Shared;
use crate::walk::Met;

/// So many are removed at once.
const AT_ONCE: usize = 1024;

/// What a scrub met of them in one buffer.
#[derive(Debug)]
pub(crate) struct LeftOver<'a> {
    shared: &'a Shared,
    buffer: &'a Arc<dyn BufferReader>,
    /// What came later may be on its way.
    until: Sequence,
    met: Vec<(Token, IdHash)>,
    removed: u64,
    stay: u64,
    /// The first of those that stay.
    first: Option<PathBuf>,
}

impl<'a> LeftOver<'a> {
    pub(crate) fn new(shared: &'a Shared, buffer: &'a Arc<dyn BufferReader>) -> Self {
        Self {
            shared,
            buffer,
            until: shared.committed(),
            met: Vec::new(),
            removed: 0,
            stay: 0,
            first: None,
        }
    }

    /// Whether this is an article that is to go and whose card is there still: then it is kept in mind.
    pub(crate) fn is(&mut self, met: &Met) -> bool {
        let (Met::Sound {
            token,
            sequence,
            id_hash,
            ..
        }
        | Met::Unwanted {
            token,
            sequence,
            id_hash,
        }) = met
        else {
            return false;
        };
        let is =
            self.buffer.removes_files() && *sequence <= self.until && self.went(token, id_hash);
        if is {
            self.met.push((*token, *id_hash));
            if self.met.len() == AT_ONCE {
                self.remove();
            }
        }
        is
    }

    fn went(&self, token: &Token, id_hash: &IdHash) -> bool {
        let known = self.shared.views.history().lookup(id_hash);
        // Where the article lies beside this card, what both say may be one file.
        let is_elsewhere = |known: Token| known.buffer() != token.buffer();
        known.is_ok_and(|entry| entry.is_some_and(|entry| entry.token.is_none_or(is_elsewhere)))
    }

    fn remove(&mut self) {
        let mut left = std::mem::take(&mut self.met);
        let Some(_nothing_moves) = self.shared.moving.rests().filter(|_| !left.is_empty()) else {
            return;
        };
        // What went just now is removed by the commit that is under way.
        self.shared.have_done(Request::Clear(Vec::new()));
        left.retain(|(token, id_hash)| {
            self.buffer.file_of(token).is_some() && self.went(token, id_hash)
        });
        let tokens: Vec<Token> = left.iter().map(|(token, _)| *token).collect();
        // Of those that went many at once the files are gone, and the cards go with the next sync.
        left.retain(|(token, _)| self.buffer.removed(token).is_none());
        self.shared.have_done(Request::Clear(tokens));
        for (token, _) in left {
            // Its card stays until the removal is durable.
            let file = self.buffer.file_of(&token);
            match file.filter(|_| self.buffer.removed(&token).is_none()) {
                None => self.removed += 1,
                Some(file) => {
                    self.stay += 1;
                    self.first.get_or_insert(file);
                }
            }
        }
    }

    /// Removes what is left to be, and says what was met.
    pub(crate) fn end(mut self) -> Option<String> {
        self.remove();
        let (buffer, removed, stay) = (self.buffer.name(), self.removed, self.stay);
        let first = self.first.unwrap_or_default();
        let first = first.display();
        let said = match (removed, stay) {
            (0, 0) => return None,
            (_, 0) => {
                format!("files of {removed} articles that went were there still; they were removed")
            }
            (0, _) => format!(
                "files of {stay} articles that went cannot be removed, first {first}: see the log"
            ),
            _ => format!(
                "files of {} articles that went were there still; {removed} were removed, {stay} cannot be, first {first}: see the log",
                removed + stay
            ),
        };
        tracing::warn!(buffer, "{said}");
        Some(format!("buffer {buffer}: {said}"))
    }
}
