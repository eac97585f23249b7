//! Articles of whatever spool, opened by the path of their file or directory alone: read, and never written.
//!
//! No spool is needed, no log and no configuration.  What a file is follows from where it lies: one in a directory
//! [`CATALOGUE`] has cards, and their articles are files in the directory above.  A directory without one, or of which that is damaged,
//! is one of files to which no cards lead.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_host::{Disk, OpenMode};
use parking_lot::Mutex;

use crate::config::FileFormat;
use crate::error::{Error, Result};
use crate::files::card::Card;
use crate::files::folder::Folder;
use crate::files::lent::Lent;
use crate::files::loose::Loose;
use crate::files::reader::FileReader;
use crate::files::roots::Roots;
use crate::files::{CATALOGUE, CATALOGUE_OCTETS};
use crate::method::{BufferReader, ScanRange, Scanned};
use crate::methods::{cnfs, segment};
use crate::records::buffer::Buffer;

/// The files of a path, in order, one of them open at a time: a set may have more of them than a program may open.
#[derive(Debug)]
pub struct Alone {
    disk: Arc<dyn Disk>,
    /// Opened at once, so that what is nothing of the kind is found out before anything is done.
    first: Option<Result<Arc<dyn BufferReader>>>,
    later: std::vec::IntoIter<PathBuf>,
    /// Files to which no cards lead, behind those.
    loose: Option<Loose>,
    octets: u64,
}

impl Alone {
    /// A file that is open already.
    #[must_use]
    pub fn of(lent: &Lent, disk: &Arc<dyn Disk>) -> Self {
        let reader = lent.reader();
        Self {
            disk: Arc::clone(disk),
            octets: reader.facts().octets,
            first: Some(Ok(reader)),
            later: Vec::new().into_iter(),
            loose: None,
        }
    }

    /// Octets of all files together.
    #[must_use]
    pub const fn octets(&self) -> u64 {
        self.octets
    }
}

impl Iterator for Alone {
    type Item = Result<Arc<dyn BufferReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.first.take() {
            Some(first) => Some(first),
            None => match self.later.next() {
                Some(path) => Some(open_file(&self.disk, &path)),
                None => Some(Ok(Arc::new(self.loose.take()?))),
            },
        }
    }
}

/// Opens a file of a buffer, segment or catalogue, or the directory of a set, which has several of them.
/// Everything in them that was not overwritten since can be read and walked.
///
/// # Errors
/// When it cannot be read, is nothing of the kind, or is one file of which nothing tells how to read it.
pub fn open_alone(disk: &Arc<dyn Disk>, path: &Path) -> Result<Alone> {
    let (files, loose) = files_of(disk, path)?;
    let mut octets = 0_u64;
    for path in &files {
        let len = disk.open(path, OpenMode::Read)?.len()?;
        octets = octets.saturating_add(len);
    }
    let is_one = files.len() == 1;
    let mut later = files.into_iter();
    let first = match later.next().map(|path| open_file(disk, &path)) {
        Some(Err(error)) if is_one && loose.is_none() => return Err(error),
        first => first,
    };
    Ok(Alone {
        disk: Arc::clone(disk),
        first,
        later,
        loose,
        octets,
    })
}

fn open_file(disk: &Arc<dyn Disk>, path: &Path) -> Result<Arc<dyn BufferReader>> {
    let buffer = cnfs::open_file(disk.as_ref(), path)?;
    Ok(match folder_of(path) {
        Some(dir) => Arc::new(FileReader {
            cards: buffer,
            naming: None,
            hollows: Arc::default(),
            folder: Arc::new(Folder {
                roots: Roots::open(disk, dir, &dir.join(CATALOGUE), false)?,
                disk: Arc::clone(disk),
                dir: dir.to_path_buf(),
                format: FileFormat::Native,
                has_hierarchies: true,
                lender: None,
                told: Mutex::default(),
            }),
        }),
        None if has_cards(&buffer)? => {
            let why = format!(
                "it is of a catalogue, and tells of articles that are files of their own: put it into {CATALOGUE:?} in \
                 the directory where they lie"
            );
            return Err(wrong(path, why));
        }
        None => buffer,
    })
}

/// The files of records at a path, and the files of articles there to which no cards lead.
fn files_of(disk: &Arc<dyn Disk>, path: &Path) -> Result<(Vec<PathBuf>, Option<Loose>)> {
    if disk.list(path).is_err() {
        // No directory: whether it is a file is found out when it is opened.
        return Ok((vec![path.to_path_buf()], None));
    }
    let catalogue = path.join(CATALOGUE);
    let has_cards = disk.exists(&catalogue)?;
    let dir = if has_cards { &catalogue } else { path };
    let files = segment::files_in(disk.as_ref(), dir)?;
    let loose = match files.is_empty() || has_cards && is_hurt(disk, &files) {
        true => Loose::open(disk, path)?,
        false => None,
    };
    match files.is_empty() && loose.is_none() {
        true => Err(wrong(path, "no articles of a set lie in this directory")),
        false => Ok((files, loose)),
    }
}

/// Whether cards of a catalogue are lost, as far as its files tell.
fn is_hurt(disk: &Arc<dyn Disk>, files: &[PathBuf]) -> bool {
    let number = |path: Option<&PathBuf>| {
        let name = path.and_then(|path| path.file_stem()?.to_str());
        name.and_then(|name| name.parse::<usize>().ok())
    };
    let (first, last) = (number(files.first()), number(files.last()));
    let follow = |(first, last)| last - first + 1 == files.len();
    let mut has_any = false;
    let is_whole = |path: &PathBuf| {
        let Ok(cards) = cnfs::open_file(disk.as_ref(), path) else {
            return false;
        };
        let mut scan = cards.scan(ScanRange::Live);
        loop {
            match scan.step() {
                Ok(None) => return true,
                Ok(Some(Scanned::Passed)) => {}
                Ok(Some(Scanned::Record { sound: true, .. })) => has_any = true,
                Ok(Some(_)) | Err(_) => return false,
            }
        }
    };
    !first.zip(last).is_some_and(follow) || !files.iter().all(is_whole) || !has_any
}

/// Where the articles of a file lie whose records are cards, by its path.
fn folder_of(path: &Path) -> Option<&Path> {
    let dir = path.parent()?;
    let is_catalogue = dir.file_name() == Some(OsStr::new(CATALOGUE));
    dir.parent().filter(|_| is_catalogue)
}

/// Whether the first sound record is a card: no article is without header block.
fn has_cards(buffer: &Arc<Buffer>) -> Result<bool> {
    if buffer.geometry().data_end != CATALOGUE_OCTETS {
        return Ok(false);
    }
    let mut scan = Arc::clone(buffer).scan(ScanRange::Live);
    while let Some(scanned) = scan.step()? {
        if let Scanned::Record {
            head_len,
            sound: true,
            ..
        } = scanned
        {
            return Ok(head_len == 0 && Card::decode(scan.article()).is_ok());
        }
    }
    Ok(false)
}

fn wrong(path: &Path, why: impl Into<String>) -> Error {
    Error::Buffer {
        name: path.file_name().unwrap_or_default().display().to_string(),
        path: path.to_path_buf(),
        why: why.into(),
    }
}
