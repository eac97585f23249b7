//! The files that lie in the directory of a set, whoever made them: for who looks for those to which no card leads.
//!
//! Such are made before their cards, so a power cut may leave some.  Only names that the methods give are looked at: a file of another
//! name is somebody's.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_host::{Disk, ErrorKind, OpenMode};
use newsreel_wire::nntp::framing::lf_to_wire;

use super::CATALOGUE;
use super::folder::Folder;
use crate::error::Result;
use crate::method::{FileWalk, Lying};
use crate::records::geometry::in_memory;
use crate::records::placing::ARTICLE_OCTETS_MAX;

/// So much of a file is read at first: most header blocks are shorter.
const FRONT_OCTETS: u64 = 16 << 10;

/// A walk over one directory and those below it, but for those behind links: what is there may lie here, too.
#[derive(Debug)]
pub(super) struct Walk {
    folder: Arc<Folder>,
    /// What is mounted below.
    mounts: Vec<PathBuf>,
    /// Still to be looked into, and whether nothing is mounted above them.
    dirs: Vec<(PathBuf, bool)>,
    /// Of the directory that was looked into last, from the last to the first.
    files: Vec<(PathBuf, bool)>,
}

impl Walk {
    pub(super) fn new(folder: Arc<Folder>) -> Self {
        let mounts = folder.disk.mounts_below(&folder.dir);
        Self {
            // Where that cannot be told anything may be.
            dirs: vec![(folder.dir.clone(), mounts.is_ok())],
            mounts: mounts.unwrap_or_default(),
            folder,
            files: Vec::new(),
        }
    }

    fn look_into(&mut self, (dir, is_plain): &(PathBuf, bool)) -> Result<()> {
        let entries = match self.folder.disk.list(dir) {
            // Somebody removed it meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        for entry in entries.into_iter().rev() {
            let path = dir.join(&entry.name);
            if entry.is_dir && entry.name != CATALOGUE {
                let is_plain = *is_plain && !self.mounts.contains(&path);
                self.dirs.push((path, is_plain));
            } else if !entry.is_dir && is_like_an_article(&entry.name) {
                self.files.push((path, *is_plain));
            }
        }
        Ok(())
    }
}

impl FileWalk for Walk {
    fn step(&mut self, text: &mut Vec<u8>) -> Result<Option<Lying>> {
        loop {
            if let Some((path, is_plain)) = self.files.pop() {
                match read_front(self.folder.disk.as_ref(), &path, text) {
                    // It went, or is what no article is.
                    Err(error)
                        if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotAFile) => {}
                    Err(error) if error.is_medium() => {}
                    octets => {
                        return Ok(Some(Lying {
                            octets: octets?,
                            path,
                            is_plain,
                        }));
                    }
                }
                continue;
            }
            let Some(dir) = self.dirs.pop() else {
                return Ok(None);
            };
            self.look_into(&dir)?;
        }
    }
}

/// Whether a method may have given this name: numbers and hexadecimal digits, and what is appended to a name that was taken.
pub(super) fn is_like_an_article(name: &str) -> bool {
    let name = name.trim_end_matches('+');
    let is_one = |octet: u8| octet.is_ascii_hexdigit() || octet == b'-';
    !name.is_empty() && name.bytes().all(is_one)
}

/// Reads the front of a file, in wire form, with the header block of the article in it; all of it where that has no end. How long the
/// file is.
pub(super) fn read_front(
    disk: &dyn Disk,
    path: &Path,
    text: &mut Vec<u8>,
) -> newsreel_host::Result<u64> {
    let file = disk.open(path, OpenMode::Read)?;
    let octets = file.len()?;
    let len = octets.min(ARTICLE_OCTETS_MAX);
    for most in [FRONT_OCTETS, ARTICLE_OCTETS_MAX] {
        let mut stored = vec![0; in_memory(len.min(most))];
        let got = file.read_at(&mut stored, 0)?;
        stored.truncate(got);
        to_wire(&stored, text);
        if len <= most || text.windows(4).any(|end| end == b"\r\n\r\n") {
            break;
        }
    }
    Ok(octets)
}

/// An article as it lies in a file, in wire form.
pub(super) fn to_wire(octets: &[u8], text: &mut Vec<u8>) {
    text.clear();
    let first = octets.iter().position(|octet| *octet == b'\n');
    let is_wire = first.is_some_and(|at| octets[..at].ends_with(b"\r"));
    match is_wire {
        true => text.extend_from_slice(octets),
        false => lf_to_wire(octets, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_no_method_gives_are_somebodys() {
        for name in ["7", "123+", "77ebdad1", "0007-6a3d", "0007-16a3d++"] {
            assert!(is_like_an_article(name), "{name}");
        }
        for name in ["", "+", ".overview", "7.bak", "README", "7~", "misc"] {
            assert!(!is_like_an_article(name), "{name}");
        }
    }
}
