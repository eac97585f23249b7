//! Directories that newsreel's own server keeps: the sets of a spool, which lay out their groups by themselves.
//!
//! Such a server knows where each of its files lies by a card, and a directory that is turned over behind its back looks to it as if
//! everybody had removed the files.  So what lies in the directory of a set is neither converted nor mounted.

use std::path::{Path, PathBuf};

use newsreel_host::folder::Kind;
use newsreel_host::{ErrorKind, Folder};

use crate::error::Result;
use crate::mark::ATTRIBUTE;

/// The file that a set of newsreel's has in its directory.
pub const SET_MARK: &str = ".newsreel-set";

/// The directory of a set that a directory is, or lies in, as far up as may be looked.
pub fn set_at_or_above(folder: &Folder) -> Result<Option<PathBuf>> {
    if is_of_set(folder, Path::new(""))? {
        return Ok(Some(folder.path().to_path_buf()));
    }
    let up = Path::new("..");
    let mut inner = folder.facts()?;
    let mut above = folder.open_folder(up);
    let mut path = PathBuf::from("..");
    while let Ok(level) = above {
        let facts = level.facts()?;
        if facts.is_same_as(&inner) {
            break;
        }
        if is_of_set(&level, Path::new(""))? {
            let absolute = newsreel_host::mounts::canonical(&folder.path().join(&path));
            return Ok(Some(absolute));
        }
        path.push("..");
        inner = facts;
        above = level.open_folder(up);
    }
    Ok(None)
}

/// The same, and those that lie right in it.
pub fn set_around(folder: &Folder) -> Result<Option<PathBuf>> {
    if let Some(found) = set_at_or_above(folder)? {
        return Ok(Some(found));
    }
    for entry in folder.entries()? {
        let entry = entry?;
        if entry.kind == Kind::Folder && is_of_set(folder, entry.path())? {
            return Ok(Some(folder.path().join(entry.path())));
        }
    }
    Ok(None)
}

/// Whether the directory `at` this place of another is that of a set.
pub(crate) fn is_of_set(folder: &Folder, at: &Path) -> Result<bool> {
    match folder.facts_of(&at.join(SET_MARK)) {
        Ok(_) => Ok(true),
        // Nobody who may not look there has made a set there, nor does anybody who goes on by name find one.
        Err(error) if error.kind() == ErrorKind::NotFound || error.is_denied() => Ok(false),
        Err(error) if error.is_below_a_file() => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Whether a directory says in words how it lies: one that has a set-uid bit alone may be anything.
pub(crate) fn is_marked(folder: &Folder) -> Result<bool> {
    Ok(folder.attribute(ATTRIBUTE)?.is_some())
}
