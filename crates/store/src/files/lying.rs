//! The files that lie in the directory of a set, whoever made them: for who looks for those to which no card leads.
//!
//! Such are made before their cards, so a power cut may leave some.  Only names that the methods give are looked at: a file of another
//! name is somebody's.  Where hierarchies may lie on disks of their own, a symbolic link that leads out of the directory of the set is
//! followed, once for each directory, and never to one above or below another that is walked.  What lies behind one is told with it, as anything else may lie
//! there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_host::{Disk, ErrorKind, OpenMode};
use newsreel_wire::nntp::framing::{dot_stuff, is_whole_block, lf_to_wire};

use super::CATALOGUE;
use super::folder::Folder;
use crate::error::Result;
use crate::method::{FileWalk, Lying};
use crate::records::geometry::in_memory;
use crate::records::placing::ARTICLE_OCTETS_MAX;

/// So much of a file is read at first: most header blocks are shorter.
const FRONT_OCTETS: u64 = 16 << 10;

/// So many links to directories are followed by one walk.
pub const FOLLOWED_MAX: usize = 1024;

/// What is still to be looked at.
#[derive(Debug, Clone)]
struct There {
    path: PathBuf,
    /// Nothing is mounted above it.
    is_plain: bool,
    /// The link that led there.
    link: Option<Arc<Path>>,
}

/// A walk over one directory and those below it.
#[derive(Debug)]
pub(super) struct Walk {
    folder: Arc<Folder>,
    /// What is mounted below.
    mounts: Vec<PathBuf>,
    dirs: Vec<There>,
    /// Of the directory that was looked into last, from the last to the first.
    files: Vec<There>,
    /// The directories that are walked, by the paths that have no links.
    walked: Vec<PathBuf>,
}

impl Walk {
    pub(super) fn new(folder: Arc<Folder>) -> Self {
        let mounts = folder.disk.mounts_below(&folder.dir);
        let own = folder.disk.canonical(&folder.dir);
        Self {
            dirs: vec![There {
                path: folder.dir.clone(),
                // Where that cannot be told anything may be.
                is_plain: mounts.is_ok(),
                link: None,
            }],
            mounts: mounts.unwrap_or_default(),
            walked: own.into_iter().collect(),
            folder,
            files: Vec::new(),
        }
    }

    fn look_into(&mut self, dir: &There) -> Result<()> {
        let entries = match self.folder.disk.list(&dir.path) {
            // Somebody removed it meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            // A disk behind a link is no reason not to look at the others, nor is a directory that is kept from us.
            Err(error) if dir.link.is_some() || error.is_denied() => {
                tracing::warn!(%error, "a directory below a set cannot be looked at");
                return Ok(());
            }
            entries => entries?,
        };
        for entry in entries.into_iter().rev() {
            let there = There {
                path: dir.path.join(&entry.name),
                ..dir.clone()
            };
            match (entry.is_dir, is_like_an_article(&entry.name)) {
                (true, _) if entry.name == CATALOGUE => {}
                (true, _) => {
                    let is_plain = there.is_plain && !self.mounts.contains(&there.path);
                    self.dirs.push(There { is_plain, ..there });
                }
                (false, true) => self.files.push(there),
                (false, false) => self.follow(there),
            }
        }
        Ok(())
    }

    /// What is no directory may be a link to one.
    fn follow(&mut self, there: There) {
        let disk = &self.folder.disk;
        if !self.folder.has_hierarchies || self.walked.len() > FOLLOWED_MAX {
            return;
        }
        let Ok(target) = disk.canonical(&there.path) else {
            return;
        };
        let is_walked =
            |walked: &PathBuf| target.starts_with(walked) || walked.starts_with(&target);
        if self.walked.iter().any(is_walked) || disk.has_entries(&target).is_err() {
            return;
        }
        self.walked.push(target);
        let below = there.path.strip_prefix(&self.folder.dir);
        let link = below.ok().map(Arc::from).or(there.link);
        self.dirs.push(There {
            is_plain: false,
            link,
            ..there
        });
    }
}

impl FileWalk for Walk {
    fn step(&mut self, text: &mut Vec<u8>) -> Result<Option<Lying>> {
        loop {
            if let Some(There {
                path,
                is_plain,
                link,
            }) = self.files.pop()
            {
                match read_front(self.folder.disk.as_ref(), &path, text) {
                    Err(error) if error.kind() == ErrorKind::NotAFile => {
                        self.follow(There {
                            path,
                            is_plain,
                            link,
                        });
                    }
                    // It went.
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    // Whose it is cannot be told; if it is an article's, who follows the cards has met it.
                    Err(error) if error.is_medium() || error.is_denied() => {}
                    octets => {
                        return Ok(Some(Lying {
                            octets: octets?,
                            path,
                            is_plain,
                            link,
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

/// An article as it lies in a file, in wire form: as it is where it is one block of CRLF lines and nothing more.  All else is text, whatever
/// its lines look like, with the line ends that the first has.
pub(super) fn to_wire(octets: &[u8], text: &mut Vec<u8>) {
    text.clear();
    let first = octets.iter().position(|octet| *octet == b'\n');
    match first.is_some_and(|at| octets[..at].ends_with(b"\r")) {
        true if is_whole_block(octets) => text.extend_from_slice(octets),
        true => dot_stuff(octets, text),
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
