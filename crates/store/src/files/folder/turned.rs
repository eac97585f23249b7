//! Directories of a set that somebody turned over with Usenetfs, or is turning over: their files lie elsewhere than their cards say.
//!
//! Usenetfs refuses the directory of a set; a bit that is set by hand, a copy, or an earlier version does not ask.  To who follows the cards the files
//! then look as if somebody had removed them.  So a file that is not where its card says is looked for where the mark of a directory, or any layout
//! in its place, would have it; what the checksums of the card say it is, is read there.  And where a directory on the way has such a mark nothing
//! counts as removed, and nothing is taken away.

use std::path::{Path, PathBuf};

use newsreel_host::ErrorKind;
use newsreel_layout::{ATTRIBUTE, Algorithm, Mark, Name};

use super::{Folder, TextError};
use crate::files::card::Card;
use crate::method::{Blocking, Want};

/// So many directories above a file may be of its layout.
const LEVELS: usize = 2;

/// So many directories are told of.
const TOLD_MAX: usize = 100;

impl Folder {
    /// The directory on the way to a path that says that it is laid out by somebody else, the outermost; one that lets nobody look counts as such.
    pub(crate) fn turned_over(&self, path: &Path) -> Option<PathBuf> {
        if self.lender.is_some() {
            return None;
        }
        let below = path.strip_prefix(&self.dir).ok()?;
        let mut at = self.dir.clone();
        let mut parts = below.iter();
        loop {
            match self.mark_of(&at) {
                Ok(Some(Mark::None)) => {}
                // What is not there lies nowhere, nor what is in it.
                Err(error) if error.kind() == ErrorKind::NotFound => return None,
                Err(error) if error.is_below_a_file() => return None,
                _ => return Some(at),
            }
            at.push(parts.next()?);
            if parts.as_path() == Path::new("") {
                return None;
            }
        }
    }

    /// The same for the directories of all names of a card.
    pub(super) fn has_turned_over(&self, card: &Card) -> bool {
        let mut paths = card.names().map(|name| self.path(name, 0));
        paths.any(|path| self.turned_over(&path).is_some())
    }

    /// Reads the file of a card that lies elsewhere than under this name of it, if one does; where.
    pub(super) fn read_elsewhere(
        &self,
        name: &str,
        card: &Card,
        want: Want,
        text: &mut Vec<u8>,
    ) -> Option<PathBuf> {
        let mut places: Vec<PathBuf> = self.by_the_marks(name).into_iter().collect();
        self.by_any_layout(name, &mut places);
        let found = places.into_iter().find(|path| {
            let read = self.read_file(path, card, want, Blocking::Yes, text);
            read.is_ok()
        })?;
        self.tell(name, &found);
        Some(found)
    }

    /// What a directory says of itself; `None` is something that nobody understands.
    fn mark_of(&self, dir: &Path) -> newsreel_host::Result<Option<Mark>> {
        let (attribute, mode) = self.disk.folder_mark(dir, ATTRIBUTE)?;
        Ok(Mark::of(attribute.as_deref(), mode))
    }

    /// Where a name lies when the directories on its way are followed as their marks have it.
    fn by_the_marks(&self, name: &str) -> Option<PathBuf> {
        let (mut at, mut is_turned) = (self.dir.clone(), false);
        for part in Path::new(name) {
            let placed = match self.mark_of(&at) {
                Ok(Some(Mark::Managed(algorithm))) => {
                    Name::parse(part).ok().map(|it| algorithm.place(it))
                }
                Ok(_) => None,
                Err(_) => return None,
            };
            is_turned |= placed.is_some();
            at.push(placed.as_deref().unwrap_or(Path::new(part)));
        }
        is_turned.then_some(at)
    }

    /// Where a file lies when its directory, or one that was part of its layout, has another one now.
    fn by_any_layout(&self, name: &str, places: &mut Vec<PathBuf>) {
        let own = self.path(name, 0);
        let Some(Ok(file)) = own.file_name().map(Name::parse) else {
            return;
        };
        let above = own.ancestors().skip(1).take(1 + LEVELS);
        for dir in above.take_while(|dir| dir.starts_with(&self.dir)) {
            places.push(dir.join(file.as_os_str()));
            places.extend(Algorithm::ALL.map(|layout| dir.join(layout.place(file))));
        }
        places.retain(|place| *place != own);
    }

    /// Says of each such directory once that it is one.
    fn tell(&self, name: &str, found: &Path) {
        let card = self.path(name, 0);
        let dir = self.turned_over(&card);
        let dir = dir.or_else(|| card.parent().map(Path::to_path_buf));
        let dir = dir.unwrap_or_else(|| self.dir.clone());
        let mut told = self.told.lock();
        if told.len() < TOLD_MAX && told.insert(dir.clone()) {
            tracing::error!(
                directory = %dir.display(),
                file = %found.display(),
                "a directory of a set was turned over behind the server's back: its articles are read where they lie now, and nothing is removed \
                 there while it is marked; stop the server and `newsreel usenetfs convert off` it"
            );
        }
    }
}

impl Folder {
    /// Reads what a card tells of where it lies elsewhere than under any of its names; `Missing` where it does not.
    pub(super) fn read_turned_over(
        &self,
        card: &Card,
        (want, blocking): (Want, Blocking),
        text: &mut Vec<u8>,
    ) -> Result<(), TextError> {
        // To look there takes calls that wait.
        if blocking == Blocking::No {
            return Err(TextError::WouldBlock);
        }
        let mut names = card.names();
        let found = names.find_map(|name| self.read_elsewhere(name, card, want, text));
        match found {
            Some(path) if self.has_hierarchies && !self.roots.saw(&path, blocking) => {
                Err(TextError::WouldBlock)
            }
            Some(_) => Ok(()),
            None => Err(TextError::Missing),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use newsreel_host::{Disk, Folder as Opened, RealDisk};
    use newsreel_layout::SET_UID;

    use super::super::tests::{card, folder, roots};
    use super::*;
    use crate::files::CATALOGUE;

    const TEXT: &[u8] = b"Subject: x\r\n\r\nx\r\n.\r\n";

    fn set() -> (tempfile::TempDir, Folder) {
        let temporary = tempfile::tempdir().unwrap();
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        disk.make_dirs(&temporary.path().join(CATALOGUE)).unwrap();
        let folder = Folder {
            roots: roots(&disk, temporary.path()),
            disk: Arc::clone(&disk),
            dir: temporary.path().to_path_buf(),
            ..folder()
        };
        (temporary, folder)
    }

    fn moved(folder: &Folder, from: &str, to: &str) {
        let to = folder.dir.join(to);
        folder.disk.make_dirs(to.parent().unwrap()).unwrap();
        folder.disk.rename(&folder.dir.join(from), &to).unwrap();
    }

    #[track_caller]
    fn is_read(folder: &Folder, card: &Card) {
        let mut text = Vec::new();
        folder
            .read(card, Want::Whole, Blocking::Yes, &mut text)
            .unwrap();
        assert_eq!(text, TEXT);
        assert_eq!(folder.own(card, &mut text).len(), 1);
    }

    /// What was turned over was withdrawn, and then removed.
    #[test]
    fn a_marked_directory_is_followed_and_nothing_counts_as_removed() {
        let (_dir, folder) = set();
        let of = card(TEXT, 12, "misc/flat/17");
        folder.write(&of.name, TEXT).unwrap();
        folder.write("misc/flat/18", TEXT).unwrap();
        assert!(folder.is_there(&of) && !folder.has_turned_over(&of));
        let opened = Opened::open(&folder.dir.join("misc/flat")).unwrap();
        opened
            .set_attribute(ATTRIBUTE, b"1 convert flat range100 scatter")
            .unwrap();
        moved(&folder, "misc/flat/17", "misc/flat/.usenetfs-convert/r0/17");
        let missing = folder.read(&of, Want::Whole, Blocking::Yes, &mut Vec::new());
        assert!(matches!(missing, Err(TextError::Missing)), "{missing:?}");
        assert!(!folder.is_there(&of), "it is on its way");
        moved(
            &folder,
            "misc/flat/.usenetfs-convert/r0/17",
            "misc/flat/r0/17",
        );
        opened.set_attribute(ATTRIBUTE, b"1 range100").unwrap();
        opened.set_mode(0o755 | SET_UID).unwrap();
        is_read(&folder, &of);
        let turned = folder.turned_over(&folder.dir.join("misc/flat/r0/17"));
        assert_eq!(turned, Some(folder.dir.join("misc/flat")));
        assert_eq!(folder.turned_over(&folder.dir.join("misc/other/1")), None);
        folder
            .disk
            .remove(&folder.dir.join("misc/flat/r0/17"))
            .unwrap();
        assert!(!folder.is_there(&of), "it may be where nobody looked");
        opened.set_attribute(ATTRIBUTE, b"rubbish").unwrap();
        assert!(!folder.is_there(&of));
        opened.remove_attribute(ATTRIBUTE).unwrap();
        assert!(!folder.is_there(&of), "the bit alone");
        opened.set_mode(0o755).unwrap();
        assert!(folder.is_there(&of));
    }

    #[test]
    fn what_lies_in_another_layout_without_a_mark_is_found_by_its_checksums() {
        let (_dir, folder) = set();
        for (name, lies) in [
            ("a/r0/17", "a/17"),
            ("b/017/17", "b/r0/17"),
            ("c/17", "c/00/17/17"),
            ("d/00/17/17", "d/17"),
        ] {
            let of = card(TEXT, 12, name);
            folder.write(name, TEXT).unwrap();
            moved(&folder, name, lies);
            is_read(&folder, &of);
        }
        let of = card(TEXT, 12, "e/17");
        folder.write("e/17", TEXT).unwrap();
        folder.write("e/r0/18", TEXT).unwrap();
        moved(&folder, "e/r0/18", "e/r0/17");
        folder.disk.remove(&folder.dir.join("e/17")).unwrap();
        is_read(&folder, &of);
        let other = card(b"Subject: y\r\n\r\nx\r\n.\r\n", 12, "e/17");
        let missing = folder.read(&other, Want::Whole, Blocking::Yes, &mut Vec::new());
        assert!(matches!(missing, Err(TextError::Missing)), "{missing:?}");
    }
}
