//! Names that are taken: who comes gets the plain one, and what has it a later one.
//!
//! A name follows from the number of an article, so old tools look for an article under the plain one.  What has it when one comes is
//! mostly the file of an article that nobody was told was taken, left by a kill between files and log, which gave the number
//! away again.  It may be a live one as well (of a group that was removed and made anew), so it is renamed and nothing is
//! removed: readers and who removes try one name after the other.  A directory keeps its name, and the newcomer gets the later one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use newsreel_host::{Error as HostError, ErrorKind, OpenMode};

use super::{Folder, LATER_MAX, WRITTEN_WITHIN_S, later};
use crate::files::card::Card;
use crate::files::lying::is_like_an_article;

/// A file or a link that was made.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) path: PathBuf,
    /// What had its name was an article's of the same time, perhaps: that the two are told apart by when they were written, this one
    /// is to have been written then or later.
    pub(crate) not_before: Option<u64>,
}

impl Folder {
    /// Writes a file under its name; says under which, where something has it that stays.
    pub(crate) fn write_file(&self, name: &str, octets: &[u8]) -> newsreel_host::Result<Made> {
        let mut file = None;
        let made = self.make(name, &mut |path| {
            file = Some(self.create(path)?);
            Ok(())
        })?;
        let written = file.map_or(Ok(()), |file| file.write_at(octets, 0));
        if written.is_err() {
            // Half a file is no use; what its removal says does not matter beside the cause.
            let _ = self.disk.remove(&made.path);
        }
        written.map(|()| made)
    }

    /// Gives a file that was written another name; says which, where something has it that stays.
    pub(crate) fn link_file(&self, file: &Path, name: &str) -> newsreel_host::Result<Made> {
        self.make(name, &mut |path| {
            self.with_directory(path, || self.disk.link(file, path))
        })
    }

    /// Makes something that gets this name, or the next where a directory has it.
    fn make(
        &self,
        name: &str,
        make: &mut dyn FnMut(&Path) -> newsreel_host::Result<()>,
    ) -> newsreel_host::Result<Made> {
        let mut not_before = None;
        for collisions in 0..LATER_MAX {
            let path = self.path(name, collisions);
            let mut made = make(&path);
            if is_taken(&made) && collisions == 0 && self.is_article(&path) {
                not_before = self.give_way(&path)?;
                made = make(&path);
            }
            if !is_taken(&made) {
                return made.map(|()| Made { path, not_before });
            }
        }
        Err(HostError::Exists {
            op: newsreel_host::Op::Open,
            path: self.path(name, LATER_MAX - 1),
        })
    }

    /// Whether a file is there, or what may be a link to one of ours that is gone; not a directory, nor where one is mounted.
    fn is_article(&self, path: &Path) -> bool {
        let is_own = |target: PathBuf| {
            let name = target.file_name().and_then(|name| name.to_str());
            target.starts_with(&self.dir) && name.is_some_and(is_like_an_article)
        };
        match self.disk.open(path, OpenMode::Read) {
            Ok(_) => true,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let target = self.disk.link_target(path).ok().flatten();
                target.is_some_and(is_own)
            }
            Err(_) => false,
        }
    }

    fn is_link(&self, path: &Path) -> bool {
        self.disk.link_target(path).is_ok_and(|to| to.is_some())
    }

    /// Renames a file to the next later name that nobody has, if one is left; from when on what gets its name is told apart from it.
    fn give_way(&self, path: &Path) -> newsreel_host::Result<Option<u64>> {
        for collisions in 1..LATER_MAX {
            let later = later(path, collisions);
            if self.disk.exists(&later)? || self.is_link(&later) {
                continue;
            }
            let facts = self.disk.facts(path).ok().flatten();
            self.disk.rename(path, &later)?;
            tracing::info!(path = %later.display(), "what had the name of an article that came");
            // It may have arrived a second later than its file system says.
            return Ok(facts.map(|facts| facts.modified + WRITTEN_WITHIN_S + 2));
        }
        Ok(None)
    }

    /// Where a file was written too soon to be told apart from what had its name by when that was, it is told to be later.
    pub(crate) fn date_behind(&self, made: &Path, not_before: Option<u64>) {
        let modified = self.disk.facts(made).ok().flatten();
        let (Some(not_before), Some(modified)) = (not_before, modified) else {
            return;
        };
        if modified.modified < not_before {
            // What fails so costs nothing, unless both have the same length and one is removed.
            let _ = self.disk.date(made, not_before);
        }
    }

    /// Gives files of these cards that have a later name the plain one, where nobody has that any more; how many have it.
    ///
    /// Each has both names until that is durable.  One to which a symbolic link leads keeps its own.
    pub(crate) fn name_plainly(&self, later: &[(PathBuf, Card)]) -> newsreel_host::Result<u64> {
        let (mut named, mut renamed) = (BTreeSet::new(), Vec::new());
        for (path, card) in later {
            let paths = || card.names().map(|name| self.path(name, 0));
            let has_links = self.is_link(path) || paths().any(|name| self.is_link(&name));
            let plain = path.to_str().map(|path| path.trim_end_matches('+'));
            let plain = plain
                .map(PathBuf::from)
                .filter(|plain| paths().any(|name| name == *plain));
            let Some(plain) = plain.filter(|_| !has_links) else {
                continue;
            };
            // Of what came meanwhile the name stays.
            if named.insert(plain.clone()) && self.disk.link(path, &plain).is_ok() {
                renamed.push((path, plain));
            }
        }
        if renamed.is_empty() {
            return Ok(0);
        }
        self.sync(renamed.iter().map(|(_, plain)| plain.as_path()))?;
        for (path, _) in &renamed {
            match self.disk.remove(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(renamed.len() as u64)
    }
}

fn is_taken(made: &newsreel_host::Result<()>) -> bool {
    made.as_ref()
        .is_err_and(|error| error.kind() == ErrorKind::Exists)
}

#[cfg(test)]
impl Folder {
    pub(crate) fn write(&self, name: &str, octets: &[u8]) -> newsreel_host::Result<PathBuf> {
        self.write_file(name, octets).map(|made| made.path)
    }

    pub(crate) fn link(&self, file: &Path, name: &str) -> newsreel_host::Result<PathBuf> {
        self.link_file(file, name).map(|made| made.path)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use newsreel_host::RealDisk;

    use super::super::tests::{NEVER, folder, read, roots};
    use super::*;
    use crate::method::Want;

    fn text(of: &str) -> Vec<u8> {
        format!("Subject: {of}\r\n\r\nx\r\n.\r\n").into_bytes()
    }

    fn card(text: &[u8], names: &[&str]) -> Card {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Card::of(text, 12, names, b"").unwrap()
    }

    /// After a kill old tools found another article under a number than the server said.
    #[test]
    fn who_comes_gets_the_plain_name() {
        let temporary = tempfile::tempdir().unwrap();
        let disk: Arc<dyn newsreel_host::Disk> = Arc::new(RealDisk);
        let real = Folder {
            roots: roots(&disk, temporary.path()),
            disk,
            dir: temporary.path().to_path_buf(),
            ..folder()
        };
        for folder in [folder(), real] {
            let mut cards = Vec::new();
            for n in 0..9 {
                let text = text(&n.to_string());
                let made = folder.write_file("a/1", &text).unwrap();
                let link = folder.link_file(&made.path, "b/2").unwrap();
                folder.date_behind(&made.path, made.not_before.max(link.not_before));
                assert_eq!(made.path, folder.path("a/1", 0), "{n}");
                assert_eq!(link.path, folder.path("b/2", 0), "{n}");
                cards.push((card(&text, &["a/1", "b/2"]), text));
            }
            for (at, (card, text)) in cards.iter().enumerate() {
                let path = folder.path("b/2", if at == 8 { 0 } else { at + 1 });
                assert_eq!(&read(&folder, card, Want::Whole).unwrap(), text);
                let found = folder.find("b/2", card, NEVER);
                assert_eq!(found.ok(), Some(path), "{at}");
            }
        }
    }

    /// Both came in one minute and are as long: whose file is removed is told apart.
    #[test]
    fn what_gave_way_is_not_taken_for_who_came() {
        let temporary = tempfile::tempdir().unwrap();
        let disk: Arc<dyn newsreel_host::Disk> = Arc::new(RealDisk);
        let folder = Folder {
            roots: roots(&disk, temporary.path()),
            disk,
            dir: temporary.path().to_path_buf(),
            ..folder()
        };
        let mut arrived = Vec::new();
        for of in ["x", "y", "z"] {
            let text = text(of);
            let made = folder.write_file("a/1", &text).unwrap();
            let facts = folder.disk.facts(&made.path).unwrap().unwrap();
            folder.date_behind(&made.path, made.not_before);
            let mut card = card(&text, &["a/1"]);
            card.file_len = Some(text.len() as u32);
            arrived.push((card, newsreel_wire::UnixTime(facts.modified)));
        }
        for (card, arrival) in &arrived {
            let path = folder.find("a/1", card, *arrival).unwrap();
            let mut text = Vec::new();
            assert_eq!(folder.own(card, &mut text), [path]);
        }
    }

    #[test]
    fn a_plain_name_that_is_free_again_is_given_back() {
        let folder = folder();
        let (first, second) = (text("1"), text("2"));
        folder.write_file("a/1", &first).unwrap();
        folder.write_file("a/1", &second).unwrap();
        let card = card(&first, &["a/1"]);
        let later = [(folder.path("a/1", 1), card.clone())];
        assert_eq!(folder.name_plainly(&later).unwrap(), 0);
        folder.disk.remove(&folder.path("a/1", 0)).unwrap();
        assert_eq!(folder.name_plainly(&later).unwrap(), 1);
        assert_eq!(
            folder.find("a/1", &card, NEVER).unwrap(),
            folder.path("a/1", 0)
        );
        assert!(!folder.disk.exists(&folder.path("a/1", 1)).unwrap());
        assert_eq!(folder.name_plainly(&later).unwrap(), 0);
    }
}
