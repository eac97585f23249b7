//! Which of the articles that lie in files of ours are offered no more, for who reads those files by themselves.
//!
//! A record stays where it is when its article is cancelled, expires or moves, until its buffer comes around; only the history knows,
//! and the bitmap of a cyclic buffer since its last checkpoint.

use std::collections::HashMap;

use newsreel_wire::{BufferId, MessageId, TokenText};

use crate::engine::Engine;
use crate::error::Error;

impl Engine {
    /// Of each of these, by token and message-id: whether it was cancelled, expired or moved. `None`: the history does not know it, or
    /// it is about to be overwritten.
    ///
    /// # Errors
    /// When the history cannot be read.
    pub fn are_withdrawn(&self, articles: &[(String, String)]) -> Result<Vec<Option<bool>>, Error> {
        let shared = &self.shared;
        let buffers = shared.store.facts().into_iter();
        let ids: HashMap<String, BufferId> = buffers.map(|it| (it.name, BufferId(it.id))).collect();
        let is_withdrawn = |(token, id): &(String, String)| -> Result<Option<bool>, Error> {
            let (Ok(token), Ok(id)) = (TokenText::parse(token), MessageId::parse(id.as_bytes()))
            else {
                return Ok(None);
            };
            let Some(&buffer) = ids.get(token.name) else {
                return Ok(None);
            };
            if token.position < shared.store.floor(buffer) {
                return Ok(None);
            }
            let entry = shared.views.history().lookup(&shared.id_hash(id))?;
            let known = entry.map(|entry| entry.token.map(|it| (it.buffer(), it.position())));
            Ok(known.map(|place| place != Some((buffer, token.position))))
        };
        articles.iter().map(is_withdrawn).collect()
    }
}
