//! Files to which no card leads, for a scrub without a server: it tells of them, and leaves all as it is.
//!
//! What a running server's scrub does about them it does under the lock of the spool, and behind the commit under way.

use std::path::PathBuf;
use std::sync::Arc;

use newsreel_store::{BufferReader, Error as StoreError, FileOf, FileWalk};
use newsreel_wire::MessageId;
use newsreel_wire::article::{Headers, Known};

use crate::shared::Shared;

/// What was met of them in the directory of one set.
pub(crate) struct Looked<'a> {
    shared: &'a Shared,
    buffer: &'a Arc<dyn BufferReader>,
    files: Box<dyn FileWalk>,
    text: Vec<u8>,
    /// Those of articles that should be in this set, by the history.
    of_known: u64,
    /// All others, and the first.
    others: u64,
    first: Option<PathBuf>,
}

impl<'a> Looked<'a> {
    /// None where articles have no files of their own, or what is found may be mended.
    pub(crate) fn of(shared: &'a Shared, buffer: &'a Arc<dyn BufferReader>) -> Option<Self> {
        Some(Self {
            shared,
            buffer,
            files: Arc::clone(buffer).files_to_look_at()?,
            text: Vec::new(),
            of_known: 0,
            others: 0,
            first: None,
        })
    }

    /// Looks at one file more; how many octets were read, `None` at the end.
    pub(crate) fn step(&mut self) -> Result<Option<u64>, StoreError> {
        let Some(file) = self.files.step(&mut self.text)? else {
            return Ok(None);
        };
        let headers = Headers::scan_stored(&self.text).ok();
        let id = headers.and_then(|headers| headers.content(Known::MessageId));
        let id = id.and_then(|id| MessageId::parse(id).ok());
        let entry = id.and_then(|id| {
            let hash = self.shared.id_hash(id);
            self.shared.views.history().lookup(&hash).ok()?
        });
        let token = entry.and_then(|entry| entry.token);
        let own = token.filter(|token| token.buffer() == self.buffer.id());
        let whose = own.map(|token| self.buffer.is_file_of(&file, &self.text, &token));
        match (whose, token) {
            (Some(FileOf::Article), _) => {}
            // Its card is lost: what it had leads nowhere.
            (Some(FileOf::Unknown), Some(token)) if self.buffer.file_of(&token).is_none() => {
                self.of_known += 1;
            }
            // Anything may lie behind a link.
            _ if file.link.is_some() => {}
            _ => {
                self.others += 1;
                self.first.get_or_insert(file.path);
            }
        }
        Ok(Some(self.text.len() as u64))
    }

    /// What was met.
    pub(crate) fn told(self) -> Vec<String> {
        let buffer = self.buffer.name();
        let mut told = Vec::new();
        if self.of_known > 0 {
            told.push(format!(
                "buffer {buffer}: files of articles whose cards are lost: {}; the scrub of a running server makes the cards again",
                self.of_known
            ));
        }
        if let Some(first) = self.first {
            told.push(format!(
                "buffer {buffer}: files to which no card leads: {}, first {}; the scrub of a running server removes those that nobody needs, and \
                 tells of the others",
                self.others,
                first.display()
            ));
        }
        told
    }
}
