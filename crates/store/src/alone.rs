//! Articles of whatever spool, opened by the path of their file or directory alone: read, and never written.
//!
//! No spool is needed, no log and no configuration.  What a file is follows from where it lies: one in a directory
//! [`CATALOGUE`] has cards, and their articles are files in the directory above.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_host::{Disk, OpenMode};

use crate::config::FileFormat;
use crate::error::{Error, Result};
use crate::files::card::Card;
use crate::files::folder::Folder;
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
    first: Option<Arc<dyn BufferReader>>,
    later: std::vec::IntoIter<PathBuf>,
    octets: u64,
}

impl Alone {
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
            Some(first) => Some(Ok(first)),
            None => Some(open_file(&self.disk, &self.later.next()?)),
        }
    }
}

/// Opens a file of a buffer, segment or catalogue, or the directory of a set, which has several of them.
/// Everything in them that was not overwritten since can be read and walked.
///
/// # Errors
/// When it cannot be read, is nothing of the kind, or nothing in the first file tells how to read it.
pub fn open_alone(disk: &Arc<dyn Disk>, path: &Path) -> Result<Alone> {
    let files = files_of(disk.as_ref(), path)?;
    let mut octets = 0_u64;
    for path in &files {
        let len = disk.open(path, OpenMode::Read)?.len()?;
        octets = octets.saturating_add(len);
    }
    let mut later = files.into_iter();
    let first = later
        .next()
        .map(|path| open_file(disk, &path))
        .transpose()?;
    Ok(Alone {
        disk: Arc::clone(disk),
        first,
        later,
        octets,
    })
}

fn open_file(disk: &Arc<dyn Disk>, path: &Path) -> Result<Arc<dyn BufferReader>> {
    let buffer = cnfs::open_file(disk.as_ref(), path)?;
    Ok(match folder_of(path) {
        Some(dir) => Arc::new(FileReader {
            cards: buffer,
            folder: Arc::new(Folder {
                roots: Roots::open(disk, dir, &dir.join(CATALOGUE), false)?,
                disk: Arc::clone(disk),
                dir: dir.to_path_buf(),
                format: FileFormat::Native,
                has_hierarchies: true,
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

/// The files of records at a path.
fn files_of(disk: &dyn Disk, path: &Path) -> Result<Vec<PathBuf>> {
    if disk.list(path).is_err() {
        // No directory: whether it is a file is found out when it is opened.
        return Ok(vec![path.to_path_buf()]);
    }
    let catalogue = path.join(CATALOGUE);
    let dir = match disk.exists(&catalogue)? {
        true => &catalogue,
        false => path,
    };
    let files = segment::files_in(disk, dir)?;
    match files.is_empty() {
        true => Err(wrong(path, "no articles of a set lie in this directory")),
        false => Ok(files),
    }
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
