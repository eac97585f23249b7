//! What it means that a file is not there: somebody removed it, or its disk is missing.

use std::path::Path;

use newsreel_host::ErrorKind;

use super::Folder;
use crate::files::CATALOGUE;
use crate::files::card::Card;

impl Folder {
    /// Whether the directory is there, or was surely removed, and no other file system is missed, or a strange one met, where the
    /// files of a card should be.
    pub(crate) fn is_there(&self, card: &Card) -> bool {
        if let Some(lender) = &self.lender {
            return lender.is_sound();
        }
        let are_known = !self.has_hierarchies || self.roots.are_known();
        !self.roots.hides(card.names())
            // What somebody has turned over lies elsewhere.
            && !self.has_turned_over(card)
            && card.names().all(|name| {
                let path = self.path(name, 0);
                let dir = path.parent().unwrap_or(&self.dir);
                if self.has_hierarchies && !self.roots.were_seen(dir) {
                    return false;
                }
                match self.disk.has_entries(dir) {
                    Ok(has_entries) => has_entries || are_known,
                    Err(error) if error.kind() == ErrorKind::NotFound => {
                        are_known && self.is_no_link(dir).unwrap_or(false)
                    }
                    Err(_) => false,
                }
            })
    }

    /// Whether a directory that is not there is no link that leads nowhere, nor below one.
    fn is_no_link(&self, dir: &Path) -> newsreel_host::Result<bool> {
        // The catalogue is in use: without it the disk of the whole set is missing.
        if !self.disk.exists(&self.dir.join(CATALOGUE))? {
            return Ok(false);
        }
        Ok(self.roots.entry_at(dir)?.is_none())
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use newsreel_host::{Disk, RealDisk};

    use super::super::TextError;
    use super::super::tests::{NEVER, card, folder, read, roots};
    use super::*;
    use crate::files::roots::Roots;
    use crate::method::Want;

    #[test]
    fn an_article_is_there_as_long_as_one_of_its_names() {
        let folder = folder();
        let text = b"Subject: x\r\n\r\n.\r\n";
        let names = ["a/1", "b/2", "c/3"].map(str::to_owned).to_vec();
        let card = Card::of(text, 12, names, b"").unwrap();
        let mut paths: Vec<PathBuf> = Vec::new();
        for name in card.names() {
            let made = match paths.first() {
                None => folder.write(name, text),
                Some(first) => folder.link(first, name),
            };
            paths.push(made.unwrap());
            assert_eq!(
                folder.find(name, &card, NEVER).unwrap(),
                paths[paths.len() - 1]
            );
        }
        for path in paths {
            assert_eq!(read(&folder, &card, Want::Whole).unwrap(), text);
            folder.disk.remove(&path).unwrap();
        }
        let missing = read(&folder, &card, Want::Whole);
        assert!(matches!(missing, Err(TextError::Missing)));
        // Each of its directories is empty now, as one is whose disk is not mounted: which have one of their own is not known.
        let folder = Folder {
            roots: Roots::open(&folder.disk, &folder.dir, Path::new("/none"), false).unwrap(),
            ..folder
        };
        let mut others = ["a/x", "b/x", "c/x"].into_iter();
        assert!(others.all(|other| {
            let was_there = folder.is_there(&card);
            folder.write(other, text).unwrap();
            !was_there
        }));
        assert!(folder.is_there(&card));
        let elsewhere = Card::of(text, 12, vec!["d/1".to_owned()], b"").unwrap();
        assert!(!folder.is_there(&elsewhere), "there is no such directory");
    }

    #[test]
    fn a_directory_that_was_removed_is_told_from_a_link_that_leads_nowhere() {
        let temporary = tempfile::tempdir().unwrap();
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        let text = b"Subject: x\r\n\r\nx\r\n.\r\n";
        let card = card(text, 12, "comp/lang/1");
        let folder = Folder {
            roots: roots(&disk, temporary.path()),
            disk: Arc::clone(&disk),
            dir: temporary.path().to_path_buf(),
            ..folder()
        };
        assert!(folder.is_there(&card));
        let path = folder.write(&card.name, text).unwrap();
        disk.remove(&path).unwrap();
        assert!(folder.is_there(&card));
        let (comp, away) = (temporary.path().join("comp"), temporary.path().join("away"));
        disk.rename(&comp, &away).unwrap();
        assert!(folder.is_there(&card));
        // A symbolic link: no file system links directories.
        disk.link(&away, &comp).unwrap();
        assert!(folder.is_there(&card));
        disk.rename(&away, &temporary.path().join("nowhere"))
            .unwrap();
        assert!(!folder.is_there(&card));
        disk.remove(&comp).unwrap();
        assert!(folder.is_there(&card));
        disk.rename(&temporary.path().join(CATALOGUE), &away)
            .unwrap();
        assert!(!folder.is_there(&card), "the whole set is missing");
    }
}
