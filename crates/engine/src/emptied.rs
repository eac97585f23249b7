//! Retired buffers in which no article is left though nothing was overwritten: none ever came, or all of them were withdrawn.
//!
//! With each checkpoint the history, and then the overview, are asked whether they lead to anything in front of where such a buffer
//! stood when the checkpoint was begun: its state record is durable by then, and so all of that is known to them.  The last article
//! that is left is looked up first the next time, so that the whole history is read again only when that has gone.  Where something
//! cannot be read nothing is told, nor while articles move: nobody is led to their copies yet.  No article is touched here.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use newsreel_wire::{BufferId, IdHash, Position, Token};

use crate::error::Error;
use crate::shared::Shared;
use crate::vacating::only_listed;

/// The last articles that are left.
#[derive(Debug)]
pub(crate) struct Emptied {
    shared: Arc<Shared>,
    left: HashMap<BufferId, (Token, IdHash)>,
}

impl Emptied {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            left: HashMap::new(),
        }
    }

    /// Tells those of these buffers that nothing is left in them; whether there are any.
    pub(crate) fn look(&mut self, draining: &[(BufferId, Position)]) -> bool {
        let shared = Arc::clone(&self.shared);
        let Some(_nothing_moves) = shared.moving.rests() else {
            return false;
        };
        let mut has_emptied = false;
        for (id, end) in draining {
            let Some(buffer) = shared.store.buffer(*id) else {
                continue;
            };
            match self.is_empty(*id, &(buffer.floor()..*end)) {
                Ok(true) => {
                    buffer.emptied(*end);
                    has_emptied = true;
                }
                Ok(false) => {}
                Err(error) => {
                    let buffer = buffer.name();
                    tracing::warn!(%error, buffer, "whether anything is left in a retired buffer cannot be told");
                }
            }
        }
        has_emptied
    }

    /// Whether nothing leads to this stretch.
    fn is_empty(&mut self, buffer: BufferId, stretch: &Range<Position>) -> Result<bool, Error> {
        if let Some((token, hash)) = self.left.get(&buffer)
            && stretch.contains(&token.position())
            && self.shared.leads_to(hash, token)?
        {
            return Ok(false);
        }
        self.left.remove(&buffer);
        let (shared, history) = (&self.shared, self.shared.views.history());
        let mut walk = history.tokens_in(buffer, stretch.clone())?;
        let (mut last, mut failed): (Option<(Token, IdHash)>, _) = (None, None);
        let mut has_more = true;
        while has_more {
            has_more = walk.step(history, |led| {
                let is_later = last.is_none_or(|(last, _)| last.position() < led.token.position());
                if led.is_withdrawn || !is_later || failed.is_some() {
                    return;
                }
                // An older bucket leads where a newer one says that it was withdrawn.
                match shared.leads_to(&led.hash, &led.token) {
                    Ok(true) => last = Some((led.token, led.hash)),
                    Ok(false) => {}
                    Err(error) => failed = Some(error),
                }
            })?;
        }
        failed.map_or(Ok(()), Err)?;
        if let Some(last) = last {
            self.left.insert(buffer, last);
            return Ok(false);
        }
        Ok(only_listed(shared, buffer, stretch)?.is_none())
    }
}
