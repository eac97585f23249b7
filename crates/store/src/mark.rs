//! The mark in the directory of a set: the directory is the set's, and its disk is mounted.
//!
//! A set makes its directory when it has none, so one whose disk is not mounted would go on below the mount point, where nobody finds
//! anything again.  The register says that there is a mark ([`crate::register::Register::is_marked`]); where that is so and there is none, the set is not
//! opened.  The mark is durable before the register says so.  One that is damaged, or empty, is as good as a whole one and is
//! written again: whoever has lost a disk for good makes an empty one.  Format: docs/formats/spool.md.
//!
//! A directory may go while its set is open (a lazy unmount, another disk mounted over it, a rename), and then looks as if somebody had
//! removed all that was in it.  So an open set keeps its [`Mark`], and looks at it before anything is called lost or removed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_host::{
    Disk, Error as HostError, ErrorKind, Op, OpenMode, read_what_is_left, replace_file,
};

use crate::config::SetConfig;
use crate::error::{Error, Result};
use crate::methods::Opening;
use crate::store::Access;

/// Its name in the directory, which tells Usenetfs whose that is.
pub(crate) const MARK: &str = newsreel_layout::SET_MARK;
const WORDS: &str = "newsreel set 1 ";
/// Words, an id, a name and a checksum.
const OCTETS_MAX: usize = 1 << 10;

/// A set's directory, before the set is opened.
#[derive(Debug)]
pub(crate) struct Marking {
    path: PathBuf,
    text: String,
    found: Found,
}

/// What was found of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    Sound,
    /// It is to be written.
    Due,
    /// It is not there, and whether this is the directory is not sure.
    Unsure,
}

/// What the mark of a set of this spool says.
fn text_of(spool: [u8; 16], name: &str) -> String {
    let digits: String = spool.iter().map(|octet| format!("{octet:02x}")).collect();
    let said = format!("{WORDS}{digits} {name}");
    let crc = crc32c::crc32c(said.as_bytes());
    format!("{said} {crc:08x}\n")
}

/// The set that a sound mark names, if it is one.
pub(crate) fn named(text: &[u8]) -> Option<&str> {
    let line = std::str::from_utf8(text).ok()?.strip_suffix('\n')?;
    let (said, crc) = line.rsplit_once(' ')?;
    let is_sound = u32::from_str_radix(crc, 16) == Ok(crc32c::crc32c(said.as_bytes()));
    let (_, name) = said.strip_prefix(WORDS)?.split_once(' ')?;
    is_sound.then_some(name)
}

/// Whether a file of this name is a mark, or one that was not written to its end.
pub(crate) fn is_of_mark(name: &str) -> bool {
    name.strip_prefix(MARK)
        .is_some_and(|rest| rest.is_empty() || rest == ".new")
}

/// The mark of a set that is open.
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    text: String,
}

impl Mark {
    /// Looks whether the directory is still that of the set.  A damaged mark is as good as a whole one; an empty one begins the set anew,
    /// which is for a start to do.
    ///
    /// # Errors
    /// When the mark is not there, or is that of another set.
    pub(crate) fn look(&self) -> newsreel_host::Result<()> {
        let path = &self.path;
        let why = match read(self.disk.as_ref(), path)? {
            Some(there) if there == self.text.as_bytes() => return Ok(()),
            Some(there) if there.is_empty() => "it is empty".to_owned(),
            Some(there) => match named(&there) {
                Some(other) => format!("it is that of set {other:?} of this or another spool"),
                None => return Ok(()),
            },
            None => {
                return Err(HostError::NotFound {
                    op: Op::Open,
                    path: path.clone(),
                });
            }
        };
        let why = std::io::Error::other(why);
        Err(HostError::from_io(Op::Read, path, why))
    }

    /// What it means that it is not there, and what to do.
    pub(crate) fn said(&self, error: &HostError) -> String {
        let dir = self.path.parent().unwrap_or(&self.path);
        format!(
            "{error}: {dir} is not the directory of the set any more; is its disk mounted, or was it moved? Until it is back its articles \
             cannot be read, and none are taken, withdrawn or removed: mount it, or move it back, and the set goes on by itself. If this \
             is the directory all the same, or what was in it is lost for good, stop the server, `mkdir -p {dir} && touch {mark}`, and \
             start it",
            dir = dir.display(),
            mark = self.path.display()
        )
    }
}

impl Marking {
    /// Looks whether a set's directory is there.
    ///
    /// # Errors
    /// When it should have a mark and has none, or that of another set.
    pub(crate) fn look(opening: &Opening<'_>, set: &SetConfig, dir: &Path) -> Result<Self> {
        let disk = opening.disk.as_ref();
        let (path, text) = (dir.join(MARK), text_of(opening.spool, &set.name));
        let wrong = |why: String| Error::Buffer {
            name: set.name.clone(),
            path: dir.to_path_buf(),
            why,
        };
        let found = match read(disk, &path)? {
            Some(there) if there == text.as_bytes() => Found::Sound,
            Some(there) => match named(&there) {
                Some(other) => {
                    return Err(wrong(format!(
                        "it is the directory of set {other:?} of this or another spool, as {MARK} in it says; mend `directory`, or remove \
                         that file if the set is no more"
                    )));
                }
                None => Found::Due,
            },
            None => {
                if opening.register.is_marked(&set.name) {
                    return Err(wrong(format!(
                        "{MARK} is not there, which this set had made: is its disk mounted? Nothing is written below a mount point; mount it, \
                         and start again. If it is, and was not when the set was made, what the set took lies below the mount point: \
                         `umount {dir}`, move what is there (with {MARK}) elsewhere, mount it again and lay that there. If this is the directory all the same, or what was in it is lost for good: `mkdir -p {dir} \
                         && touch {mark}`",
                        dir = dir.display(),
                        mark = path.display()
                    )));
                }
                // Of an earlier version it has none; a directory with nothing in it may be a mount point.
                match !opening.register.has(&set.name) || has_any(disk, dir)? {
                    true => Found::Due,
                    false => Found::Unsure,
                }
            }
        };
        Ok(Self { path, text, found })
    }

    /// What an open set keeps of it: nothing where nothing may be written, or it has none yet.
    pub(crate) fn mark(&self, opening: &Opening<'_>) -> Option<Mark> {
        let is_kept = opening.access == Access::Write && self.found != Found::Unsure;
        is_kept.then(|| Mark {
            disk: Arc::clone(opening.disk),
            path: self.path.clone(),
            text: self.text.clone(),
        })
    }

    /// Makes the mark of a set that was opened, durably, and says so in the register.
    pub(crate) fn keep(&self, opening: &mut Opening<'_>, set: &SetConfig) -> Result<()> {
        if opening.access == Access::ReadOnly || self.found == Found::Unsure {
            return Ok(());
        }
        let disk = opening.disk.as_ref();
        if self.found == Found::Due {
            if let Some(dir) = self.path.parent() {
                disk.create_dir_all(dir)?;
            }
            replace_file(disk, &self.path, self.text.as_bytes())?;
        }
        opening.register.set_marked(&set.name);
        opening.register.save(disk)
    }
}

/// What there is of a mark; one that is too long is damaged.
fn read(disk: &dyn Disk, path: &Path) -> newsreel_host::Result<Option<Vec<u8>>> {
    let len = match disk.open(path, OpenMode::Read) {
        Ok(file) => file.len()?,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match len > OCTETS_MAX as u64 {
        true => Ok(Some(vec![b'?'])),
        false => Ok(Some(read_what_is_left(disk, path, OCTETS_MAX)?)),
    }
}

fn has_any(disk: &dyn Disk, dir: &Path) -> Result<bool> {
    match disk.list(dir) {
        Ok(entries) => Ok(!entries.is_empty()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_names_its_set() {
        let text = text_of([7; 16], "text");
        assert_eq!(named(text.as_bytes()), Some("text"));
        let mut damaged = text.clone().into_bytes();
        damaged[20] ^= 1;
        assert_eq!(named(&damaged), None);
        assert_eq!(named(b""), None);
        assert_eq!(
            text,
            format!("newsreel set 1 {} text 5a722cf2\n", "07".repeat(16))
        );
    }
}
