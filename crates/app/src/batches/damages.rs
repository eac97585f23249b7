//! What is damaged in batches: where, why, and the files that keep it; and, apart from that, what could not be read.

use std::fmt::Display;
use std::path::PathBuf;

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::kept::{Folder, Keeping};
use crate::input::Unread;

/// Places that are named; of others there is a count.
const NAMED_MAX: usize = 100;

/// Damage of one or more batches.
#[derive(Debug)]
pub(crate) struct Damages {
    /// Where what no article came of is kept; none: it stays where it is.
    folder: Option<Folder>,
    /// The input that is read.
    input: String,
    count: u64,
    named: Vec<String>,
    unread_count: u64,
    unread: Vec<String>,
    remains: Option<Keeping>,
    kept_in: Vec<PathBuf>,
}

impl Damages {
    pub(crate) const fn new(folder: Folder) -> Self {
        Self::kept_by(Some(folder))
    }

    /// Only names what is damaged: it stays where it is.
    pub(crate) const fn named() -> Self {
        Self::kept_by(None)
    }

    const fn kept_by(folder: Option<Folder>) -> Self {
        Self {
            folder,
            input: String::new(),
            count: 0,
            named: Vec::new(),
            unread_count: 0,
            unread: Vec::new(),
            remains: None,
            kept_in: Vec::new(),
        }
    }

    /// What follows is of this input.
    pub(crate) fn begin(&mut self, input: String) {
        self.input = input;
    }

    /// Something is damaged.
    pub(crate) fn add(&mut self, at: Option<u64>, why: &str) {
        self.count += 1;
        if self.named.len() < NAMED_MAX {
            let at = at.map_or_else(String::new, |at| format!(", octet {at}"));
            self.named.push(format!("{}{at}: {why}", self.input));
        }
    }

    /// Something could not be read, which may be as good as new; `why` says what.
    pub(crate) fn unread(&mut self, why: &dyn Display) {
        self.unread_count += 1;
        if self.unread.len() < NAMED_MAX {
            self.unread.push(why.to_string());
        }
    }

    /// Where something could not be read that is said, and the next is taken; any other error is one.
    pub(crate) fn or_unread(&mut self, taken: Result<()>) -> Result<()> {
        taken.or_else(|error| match Unread::of(&error) {
            Some(unread) => {
                self.unread(unread);
                Ok(())
            }
            None => Err(error),
        })
    }

    /// An error when something could not be read.
    pub(crate) fn all_was_read(&self) -> Result<()> {
        match (self.unread_count, self.unread.first()) {
            (0, _) | (_, None) => Ok(()),
            (1, Some(why)) => bail!("not everything could be read: {why}"),
            (many, Some(why)) => {
                bail!(
                    "not everything could be read: {many} files or directories, named above, the first of which: {why}"
                )
            }
        }
    }

    /// Keeps octets of which no article came.
    pub(crate) fn keep(&mut self, octets: &[u8]) -> Result<()> {
        match octets.is_empty() {
            true => Ok(()),
            false => self.remains()?.map_or(Ok(()), |it| it.write(octets)),
        }
    }

    /// Keeps an article that cannot be offered.
    pub(crate) fn keep_article(&mut self, article: &[u8]) -> Result<()> {
        self.remains()?.map_or(Ok(()), |it| it.article(article))
    }

    fn remains(&mut self) -> Result<Option<&mut Keeping>> {
        let Some(folder) = &self.folder else {
            return Ok(None);
        };
        Ok(Some(match &mut self.remains {
            Some(remains) => remains,
            none => none.insert(folder.damage()?),
        }))
    }

    /// A whole input was kept.
    pub(crate) fn kept(&mut self, path: PathBuf) {
        self.kept_in.push(path);
    }

    /// Makes what is kept durable.
    pub(crate) fn finish(&mut self) -> Result<()> {
        if let Some(remains) = self.remains.take() {
            self.kept_in.push(remains.finish()?);
        }
        Ok(())
    }

    /// Adds it to what programs are told.
    pub(crate) fn json(&self, report: &mut Value) {
        report["damaged"] = self.count.into();
        report["damages"] = json!(self.named);
        report["unreadable"] = self.unread_count.into();
        report["unread"] = json!(self.unread);
        report["kept_in"] = json!(self.kept_in);
    }

    /// What people are told.
    pub(crate) fn said(&self) -> String {
        let mut said = String::new();
        for damage in &self.named {
            said += &format!("damaged: {damage}\n");
        }
        if self.count > self.named.len() as u64 {
            said += &format!("damaged: {} places in all\n", self.count);
        }
        for why in &self.unread {
            said += &format!("{why}\n");
        }
        if self.unread_count > self.unread.len() as u64 {
            said += &format!("cannot read {} of them in all\n", self.unread_count);
        }
        for path in &self.kept_in {
            said += &format!("remains kept in {}\n", path.display());
        }
        said
    }
}
