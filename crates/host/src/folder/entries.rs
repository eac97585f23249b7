//! A directory's entries as a stream: no more than one block of names is in memory.
//!
//! What is made or removed while the stream is read may or may not be seen; everything else is seen exactly once.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::Dir;

use super::{Folder, Kind};
use crate::error::{Error, ErrorKind, Op, Result};

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entry {
    /// The name, any octets but `/` and NUL.
    pub name: OsString,
    /// What it names.
    pub kind: Kind,
    /// The inode's number.
    pub inode: u64,
}

impl Entry {
    /// The name as a path of one part.
    #[must_use]
    pub fn path(&self) -> &Path {
        Path::new(&self.name)
    }
}

/// The stream of a folder's entries.
pub struct Entries<'a> {
    folder: &'a Folder,
    stream: Dir,
}

impl<'a> Entries<'a> {
    pub(super) const fn new(folder: &'a Folder, stream: Dir) -> Self {
        Self { folder, stream }
    }
}

impl Iterator for Entries<'_> {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let entry = match self.stream.read()? {
                Ok(entry) => entry,
                Err(errno) => {
                    return Some(Err(Error::from_io(
                        Op::List,
                        self.folder.path(),
                        errno.into(),
                    )));
                }
            };
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            let name = OsStr::from_bytes(name).to_os_string();
            let kind = match Kind::of(entry.file_type()) {
                Some(kind) => kind,
                // Some file systems do not say.
                None => match self.folder.facts_of(Path::new(&name)) {
                    Ok(facts) => facts.kind,
                    Err(e) if e.kind() == ErrorKind::NotFound => continue,
                    Err(e) => return Some(Err(e)),
                },
            };
            let inode = entry.ino();
            return Some(Ok(Entry { name, kind, inode }));
        }
    }
}

impl fmt::Debug for Entries<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Entries({})", self.folder.path().display())
    }
}
