//! What one commit writes into a set of files: the files, then their cards.
//!
//! Whatever fails, the set is suspended before anyone is told, and the articles stay readable here until the batch is dropped.
//! The files that were made for it are removed then; a sync that failed may have concerned earlier ones too.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use newsreel_wire::{BufferId, Position, Token, UnixTime};

use super::folder::Folder;
use super::hollows::Hollows;
use super::redo::Redo;
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

impl Collected {
    /// What the file of one of them has.
    pub(super) fn file_of(&self, article: &Unwritten) -> &[u8] {
        let octets = match &article.native {
            Some(native) => self.native.get(native.clone()),
            None => self.text.get(article.text.clone()),
        };
        octets.unwrap_or_default()
    }
}

/// A batch for one set.
#[derive(Debug)]
pub(super) struct FileBatch {
    pub(super) buffer: Arc<Buffer>,
    pub(super) folder: Arc<Folder>,
    /// The cards, where they are not on their way.
    pub(super) cards: Option<Box<dyn BatchWrite>>,
    pub(super) collected: Collected,
    /// How many files of the catalogue had been given up when it was sealed.
    pub(super) given_up: u64,
    /// The files and links that are there.
    pub(super) made: Vec<PathBuf>,
    /// What batches before it have removed.
    pub(super) removed: Arc<Removed>,
    pub(super) hollows: Arc<Hollows>,
    pub(super) redo: Arc<Redo>,
    pub(super) beside: Beside,
}

/// What is made safe while files are written.
#[derive(Debug, Default)]
pub(super) enum Beside {
    /// Nothing: that comes behind them.
    #[default]
    No,
    /// As much as can be, since all is synced at once.
    Wanted,
    /// Their octets, and their cards.
    UnderWay(JoinHandle<(Result<()>, Box<dyn BatchWrite>)>),
}

impl FileBatch {
    /// Begins to make octets and cards safe while files are written: neither waits for the other, and nothing leads to either before the log.
    fn begin(&mut self) {
        let is_wanted = matches!(std::mem::take(&mut self.beside), Beside::Wanted);
        // Where file systems lie below it is seen first what lies there.
        if !is_wanted || self.redo.unsynced() > 0 || self.folder.roots.are_there() {
            return;
        }
        let Some(stretch) = self.redo.stretch(&self.collected, |_| false) else {
            return;
        };
        let Some(mut cards) = self.cards.take() else {
            return;
        };
        let (redo, buffer) = (Arc::clone(&self.redo), Arc::clone(&self.buffer));
        let folder = Arc::clone(&self.folder);
        let thread = std::thread::Builder::new().name("keep".to_owned());
        let begun = thread.spawn(move || {
            let kept = buffer.unless_failed(redo.keep((&buffer, &folder), stretch, true));
            let safe = kept
                .and_then(|()| cards.write())
                .and_then(|()| cards.sync());
            (safe, cards)
        });
        match begun {
            Ok(thread) => self.beside = Beside::UnderWay(thread),
            // The cards went with it.
            Err(error) => self
                .buffer
                .suspend(&format!("no thread can be started: {error}")),
        }
    }

    /// Waits for what was begun; none where nothing was.
    fn end(&mut self) -> Option<Result<()>> {
        let Beside::UnderWay(thread) = std::mem::take(&mut self.beside) else {
            return None;
        };
        let ended = thread.join();
        self.redo.caught_up();
        Some(match ended {
            Ok((safe, cards)) => {
                self.cards = Some(cards);
                safe
            }
            Err(_) => {
                let why = "a defect ended the thread that makes its files safe";
                self.buffer.suspend(why);
                Err(self.buffer.refusal(why.to_owned()))
            }
        })
    }

    /// Makes the files durable here or there, and the cards.
    fn sync_one_after_the_other(&mut self, elsewhere: &BTreeSet<PathBuf>) -> Result<()> {
        let is_elsewhere = |name: &str| {
            let path = self.folder.dir.join(name);
            path.parent().is_some_and(|dir| elsewhere.contains(dir))
        };
        let stretch = self.redo.stretch(&self.collected, is_elsewhere);
        let mut gone = Vec::new();
        match stretch.filter(|_| self.redo.unsynced() <= 1) {
            Some(stretch) => {
                let of = (&self.buffer, &*self.folder);
                self.buffer
                    .unless_failed(self.redo.keep(of, stretch, false))?;
            }
            None => {
                let (cards, paths) = self.removed.take();
                let synced = self.folder.sync(paths.iter().map(PathBuf::as_path));
                self.buffer.unless_failed(synced)?;
                gone = cards;
            }
        }
        if let Some(cards) = &mut self.cards {
            cards.sync()?;
        }
        overwrite(&self.buffer, &self.hollows, &gone)
    }

    fn write_files(&mut self) -> newsreel_host::Result<()> {
        if !self.made.is_empty() || self.folder.lender.is_some() {
            return Ok(());
        }
        let mut has_other_clock = None;
        for article in &self.collected.articles {
            let mut names = article.names.iter();
            let Some(name) = names.next() else { continue };
            let file = self.folder.write(name, self.collected.file_of(article));
            let file = file.inspect_err(|error| self.failed(name, error))?;
            self.made.push(file.clone());
            let of_first = || self.folder.has_other_clock(&file, article.arrival);
            if *has_other_clock.get_or_insert_with(of_first) {
                // Without it all is the same, only slower when it is removed.
                let _ = self.folder.disk.date(&file, article.arrival.0);
            }
            for name in names {
                let link = self.folder.link(&file, name);
                self.made
                    .push(link.inspect_err(|error| self.failed(name, error))?);
            }
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
        let made = self.made.iter().map(PathBuf::as_path);
        let elsewhere = self.folder.sync_elsewhere(made);
        let elsewhere = self.buffer.unless_failed(elsewhere)?;
        match self.end() {
            Some(safe) => safe?,
            None => self.sync_one_after_the_other(&elsewhere)?,
        }
        self.redo.synced();
        if self.lost_its_disk() {
            let why = "a file system below it went while articles were written to it";
            self.buffer.suspend(why);
            return Err(self.buffer.refusal(why.to_owned()));
        }
        Ok(())
    }
}

impl Drop for FileBatch {
    fn drop(&mut self) {
        self.end();
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
        self.begin();
        let written = self.write_files();
        let mut written = self.buffer.unless_failed(written);
        if let (Ok(()), Some(cards)) = (&written, &mut self.cards) {
            written = cards.write();
            self.redo.written();
        }
        if written.is_err() {
            self.end();
            self.remove_files();
        }
        written
    }

    fn sync(&mut self) -> Result<()> {
        let synced = self.sync_files();
        // Whatever failed first.
        let synced = self.end().unwrap_or(Ok(())).and(synced);
        if synced.is_err() {
            self.remove_files();
        }
        synced
    }

    fn will_sync(&mut self) {
        if !matches!(self.beside, Beside::UnderWay(_)) && self.made.is_empty() {
            self.beside = Beside::Wanted;
        }
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
