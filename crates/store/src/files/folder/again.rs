//! A file made again of octets that were kept, after a power cut took it, or a part of it.

use std::path::{Path, PathBuf};

use newsreel_host::{ErrorKind, OpenMode, read_whole};
use newsreel_wire::UnixTime;

use super::{COLLISIONS_MAX, Card, Folder, TextError};
use crate::records::geometry::{PAGE_LEN, in_memory};
use crate::records::placing::ARTICLE_OCTETS_MAX;

impl Folder {
    /// Sees that the file of a card, which has these octets, is there under each of its names, and writes it; whether it was not there. What was
    /// changed is added to `changed`.
    pub(in crate::files) fn make_again(
        &self,
        card: &Card,
        arrival: UnixTime,
        octets: &[u8],
        changed: &mut Vec<PathBuf>,
    ) -> newsreel_host::Result<bool> {
        let is = |path: &Path| {
            self.stored(path)
                .map(|stored| stored.as_deref() == Some(octets))
        };
        let named = |name: &str| {
            let mut paths = (0..COLLISIONS_MAX).map(|collisions| self.path(name, collisions));
            let found = paths.find_map(|path| match is(&path) {
                Ok(false) => None,
                found => Some(found.map(|_| path)),
            });
            found.transpose()
        };
        let mut own = Vec::new();
        for name in card.names() {
            own.push(named(name)?);
        }
        let is_whole = own.iter().all(Option::is_some);
        let file = match own.iter().flatten().next() {
            Some(file) => file.clone(),
            None => self.file_to_mend(card, octets)?,
        };
        self.disk
            .open(&file, OpenMode::ReadWrite)?
            .write_at(octets, 0)?;
        for (name, own) in card.names().zip(own) {
            // It may be there by now, as another name of the file that was written.
            if own.is_none() && named(name)?.is_none() {
                changed.push(self.link(&file, name)?);
            }
        }
        let _ = self.disk.date(&file, arrival.0);
        changed.push(file);
        Ok(!is_whole)
    }

    /// The file of a card of which a power cut left a part, or a new one.
    fn file_to_mend(&self, card: &Card, octets: &[u8]) -> newsreel_host::Result<PathBuf> {
        for name in card.names() {
            let path = self.path(name, 0);
            let stored = self.stored(&path)?;
            if stored.is_some_and(|stored| is_torn(&stored, octets)) {
                return Ok(path);
            }
        }
        self.write(&card.name, octets)
    }

    /// What a file has; none where there is none, or a directory.
    fn stored(&self, path: &Path) -> newsreel_host::Result<Option<Vec<u8>>> {
        let read = read_whole(self.disk.as_ref(), path, in_memory(ARTICLE_OCTETS_MAX));
        match read.map_err(TextError::from) {
            Ok(octets) => Ok(Some(octets)),
            Err(TextError::Host(error))
                if !error.is_medium() && error.kind() != ErrorKind::NotAFile =>
            {
                Err(error)
            }
            Err(_) => Ok(None),
        }
    }
}

/// Whether this may be what a power cut left of these octets: pages that were written, and others that were not.
fn is_torn(stored: &[u8], octets: &[u8]) -> bool {
    let pages = stored.chunks(PAGE_LEN).zip(octets.chunks(PAGE_LEN));
    let mut torn = pages
        .map(|(stored, page)| page.starts_with(stored) || stored.iter().all(|octet| *octet == 0));
    stored.len() <= octets.len() && torn.all(|is| is)
}
