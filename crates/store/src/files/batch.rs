//! What one commit writes into a set of files: the files, then their cards.
//!
//! Whatever fails, the set is suspended before anyone is told, and the articles stay readable here until the batch is dropped.
//! The files that were made for it are removed then; a sync that failed may have concerned earlier ones too.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use newsreel_wire::{BufferId, Position, Token, UnixTime};

use super::folder::Folder;
use super::hollows::Hollows;
use super::removal::{Removed, overwrite};
use crate::config::FileFormat;
use crate::error::Result;
use crate::method::{BatchWrite, KeptArticle};
use crate::records::buffer::Buffer;

/// An article that has its card and no file yet.
#[derive(Debug)]
pub(super) struct Unwritten {
    /// Where its card lies.
    pub(super) position: Position,
    /// When it came.
    pub(super) arrival: UnixTime,
    /// Where it lies in the batch.
    pub(super) text: Range<usize>,
    /// Where its native form does, if its file has that.
    pub(super) native: Option<Range<usize>>,
    pub(super) head_len: u32,
    /// The first is its file's, the others are links to it.
    pub(super) names: Vec<String>,
}

/// Articles collected for one commit.
#[derive(Debug, Default)]
pub(super) struct Collected {
    /// In wire form: they are served from here until they are written.
    pub(super) text: Vec<u8>,
    /// In that of their files, where it is another.
    pub(super) native: Vec<u8>,
    pub(super) articles: Vec<Unwritten>,
}

/// A batch for one set.
#[derive(Debug)]
pub(super) struct FileBatch {
    pub(super) buffer: Arc<Buffer>,
    pub(super) folder: Arc<Folder>,
    /// The cards.
    pub(super) cards: Box<dyn BatchWrite>,
    pub(super) collected: Collected,
    /// How many files of the catalogue had been given up when it was sealed.
    pub(super) given_up: u64,
    /// The files and links that are there.
    pub(super) made: Vec<PathBuf>,
    /// What batches before it have removed.
    pub(super) removed: Arc<Removed>,
    pub(super) hollows: Arc<Hollows>,
}

impl FileBatch {
    fn write_files(&mut self) -> newsreel_host::Result<()> {
        if !self.made.is_empty() || self.folder.lender.is_some() {
            return Ok(());
        }
        let mut has_other_clock = None;
        for article in &self.collected.articles {
            let octets = match &article.native {
                Some(native) => self.collected.native.get(native.clone()),
                None => self.collected.text.get(article.text.clone()),
            };
            let mut names = article.names.iter();
            let Some(name) = names.next() else { continue };
            let file = self.folder.write_file(name, octets.unwrap_or_default());
            let file = file.inspect_err(|error| self.failed(name, error))?;
            let (file, mut not_before) = (file.path, file.not_before);
            self.made.push(file.clone());
            let of_first = || self.folder.has_other_clock(&file, article.arrival);
            if *has_other_clock.get_or_insert_with(of_first) {
                // Without it all is the same, only slower when it is removed.
                let _ = self.folder.disk.date(&file, article.arrival.0);
            }
            for name in names {
                let link = self.folder.link_file(&file, name);
                let link = link.inspect_err(|error| self.failed(name, error))?;
                not_before = not_before.max(link.not_before);
                self.made.push(link.path);
            }
            self.folder.date_behind(&file, not_before);
        }
        Ok(())
    }

    fn failed(&self, name: &str, error: &newsreel_host::Error) {
        let path = self.folder.dir.join(name);
        self.folder.roots.failed(&path, error);
    }

    /// Whether a root went while files were made on it: then they are in its place.
    fn lost_its_disk(&self) -> bool {
        let articles = self.collected.articles.iter();
        let names = articles.flat_map(|article| article.names.iter());
        self.folder.roots.hides(names.map(String::as_str))
    }

    /// Removes what was made for articles that are not taken: nothing will ever lead to it.
    fn remove_files(&mut self) {
        let made = std::mem::take(&mut self.made);
        for path in &made {
            if let Err(error) = self.folder.disk.remove(path) {
                tracing::warn!(%error, "a file of an article that was not taken stays");
            }
        }
        if let Err(error) = self.folder.sync(made.iter().map(PathBuf::as_path)) {
            tracing::warn!(%error, "after a power cut files of articles that were not taken may be there again");
        }
    }

    fn sync_files(&mut self) -> Result<()> {
        if let Some(error) = self.buffer.refuses(self.given_up) {
            return Err(error);
        }
        let (gone, paths) = self.removed.take();
        let changed = self.made.iter().chain(&paths).map(PathBuf::as_path);
        self.buffer.unless_failed(self.folder.sync(changed))?;
        if self.lost_its_disk() {
            let why = "a file system below it went while articles were written to it";
            self.buffer.suspend(why);
            return Err(self.buffer.refusal(why.to_owned()));
        }
        self.cards.sync()?;
        overwrite(&self.buffer, &self.hollows, &gone)
    }
}

impl BatchWrite for FileBatch {
    fn buffer(&self) -> BufferId {
        self.buffer.id
    }

    fn write(&mut self) -> Result<()> {
        if let Some(error) = self.buffer.refuses(self.given_up) {
            return Err(error);
        }
        // Nothing is made below a mount point.
        self.buffer.look()?;
        let written = self.write_files();
        let written = self.buffer.unless_failed(written);
        let written = written.and_then(|()| self.cards.write());
        if written.is_err() {
            self.remove_files();
        }
        written
    }

    fn sync(&mut self) -> Result<()> {
        let synced = self.sync_files();
        if synced.is_err() {
            self.remove_files();
        }
        synced
    }

    fn has_articles(&self) -> bool {
        true
    }

    fn article(&self, token: &Token) -> Option<KeptArticle<'_>> {
        if token.buffer() != self.buffer.id {
            return None;
        }
        let articles = &self.collected.articles;
        let found = articles.binary_search_by_key(&token.position(), |article| article.position);
        let article = articles.get(found.ok()?)?;
        let text = self.collected.text.get(article.text.clone())?;
        Some(KeptArticle {
            text: text.into(),
            head_len: article.head_len,
            format: Some(match article.native {
                Some(_) => FileFormat::Native,
                None => FileFormat::Wire,
            }),
        })
    }
}
