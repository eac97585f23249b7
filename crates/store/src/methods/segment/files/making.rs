//! Making the file of a cycle: with its room and headers, under a name that nobody else's file has.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use newsreel_host::{ErrorKind, File, Op, OpenMode, set_aside};
use newsreel_wire::{CYCLE_MAX, UnixTime};

use super::super::names::{UNFINISHED, path_of};
use super::super::standing::Standing;
use super::{CHAIN_BITS, Held, Inner, Segments};
use crate::error::PlaceError;
use crate::records::Home as _;
use crate::records::format::{FileHeader, Hints, SECOND_HEADER};
use crate::records::headers::Written;

impl Segments {
    /// Makes the file of this cycle, or of the first behind it that nothing is in the way of, if it is not there.
    pub(super) fn make_from(&self, cycle: u32, arrival: UnixTime) -> Result<u32, PlaceError> {
        let mut inner = self.inner.lock();
        let made = self.free_from(&inner, cycle).and_then(|free| {
            if inner.files.contains_key(&free) {
                return Ok((free, None));
            }
            let file = self.make_file(&mut inner, free, arrival)?;
            Ok((free, Some(file)))
        });
        match made {
            Ok((cycle, None)) => Ok(cycle),
            Ok((cycle, Some(file))) => {
                let held = Held {
                    path: path_of(&self.dir, cycle),
                    standing: Standing::Right,
                    open: Some(file),
                    is_told: false,
                };
                inner.files.insert(cycle, held);
                inner.is_failing = false;
                self.is_unnamed.store(true, Ordering::Release);
                Ok(cycle)
            }
            Err(_) if self.look().is_err() => Err(PlaceError::Suspended),
            Err(error) => {
                if !std::mem::replace(&mut inner.is_failing, true) {
                    tracing::warn!(%error, "no new segment can be made");
                }
                if error.kind() != ErrorKind::Full {
                    return Err(PlaceError::Suspended);
                }
                inner.is_full = true;
                // Dropping the oldest may help, where that is allowed.
                Err(PlaceError::NeedsReservation)
            }
        }
    }

    /// Makes the file of a cycle again, empty, if it is lost.
    pub(super) fn make_again(&self, cycle: u32) -> newsreel_host::Result<()> {
        let mut inner = self.inner.lock();
        let mut header = inner.header.header.clone();
        header.hints.bitmap_end = self.start_of(cycle);
        let held = inner.files.get(&cycle);
        if let Some(held) = held.filter(|held| matches!(held.standing, Standing::Of(_))) {
            // It is read as it is; nothing is written into it, and nothing takes its place.
            return Err(not_named_right(&held.path));
        }
        let there = held.map(|held| (held.path.clone(), held.standing.clone()));
        let (path, standing) = there.unwrap_or((path_of(&self.dir, cycle), Standing::Right));
        let file = match (held.is_some(), &standing) {
            (true, Standing::Right | Standing::Headless(_)) => {
                match self.disk.open(&path, OpenMode::ReadWrite) {
                    Err(error) if error.kind() == ErrorKind::NotFound => None,
                    file => Some(file?),
                }
            }
            _ => None,
        };
        let file = match file {
            Some(file) => file,
            None => {
                self.disk.create_dir_all(&self.dir)?;
                // What nobody can read may be somebody's only copy.
                self.clear_name(&inner, &path_of(&self.dir, cycle))?;
                let file = self.create(cycle, &header)?;
                self.is_unnamed.store(true, Ordering::Release);
                file
            }
        };
        let len = file.len()?;
        if len < header.octets {
            file.set_len(header.octets)?;
            file.reserve(len, header.octets - len)?;
        }
        if matches!(standing, Standing::Headless(_)) {
            let page = header.encode();
            file.write_at(&page, 0)?;
            file.write_at(&page, SECOND_HEADER)?;
        }
        let mut held = Held::new(file.path().to_path_buf(), Standing::Right);
        held.open = Some(file);
        inner.files.insert(cycle, held);
        Ok(())
    }

    /// Makes the file of a cycle, with its room and headers.
    fn make_file(
        &self,
        inner: &mut Inner,
        cycle: u32,
        arrival: UnixTime,
    ) -> newsreel_host::Result<Arc<dyn File>> {
        if inner.files.is_empty() {
            self.disk.create_dir_all(&self.dir)?;
        }
        // All that were before this one are away, or lost, if there are any.
        let began = match inner.files.is_empty() && cycle > 1 {
            true => u64::from(cycle) << CHAIN_BITS,
            false => 0,
        };
        let header = FileHeader {
            generation: began.max(inner.header.header.generation + 1),
            // Of the rest only what the log has is told.
            hints: Hints {
                bitmap_end: self.start_of(cycle),
                arrival,
                ..inner.header.header.hints
            },
            ..inner.header.header.clone()
        };
        let file = self.create(cycle, &header)?;
        inner.header = Written {
            header,
            newest_at: SECOND_HEADER,
        };
        Ok(file)
    }

    /// Makes a file with this header, and gives it its name.
    fn create(&self, cycle: u32, header: &FileHeader) -> newsreel_host::Result<Arc<dyn File>> {
        self.look().map_err(|away| away.error)?;
        let path = path_of(&self.dir, cycle);
        let unfinished = path.with_extension(&UNFINISHED[1..]);
        let file = self.disk.open(&unfinished, OpenMode::CreateNew)?;
        let page = header.encode();
        // Room that is only reserved is the file system's to note when it is written: of cards each commit syncs a few, and would wait for
        // that and all else that the file system has to note.
        let room = match self.kind.is_of_articles {
            true => file.reserve(0, header.octets),
            false => file.zero_fill(0, header.octets),
        };
        let made = room
            .and_then(|()| file.set_len(header.octets))
            .and_then(|()| file.write_at(&page, 0))
            .and_then(|()| file.write_at(&page, SECOND_HEADER))
            .and_then(|()| file.sync_all())
            .and_then(|()| self.disk.rename(&unfinished, &path));
        if let Err(error) = made {
            // Half a file is no use; what its removal says does not matter beside the cause.
            let _ = self.disk.remove(&unfinished);
            return Err(error);
        }
        // Opened under its name, which messages tell.
        self.disk.open(&path, OpenMode::ReadWrite)
    }

    /// The first cycle from here on whose file is there and may be written, or whose name is free: another's file keeps its name.
    fn free_from(&self, inner: &Inner, cycle: u32) -> newsreel_host::Result<u32> {
        for cycle in cycle..=CYCLE_MAX {
            let path = path_of(&self.dir, cycle);
            match inner.files.get(&cycle) {
                Some(held) if held.standing == Standing::Right => return Ok(cycle),
                None if !self.disk.exists(&path)? => return Ok(cycle),
                _ => {
                    tracing::error!(path = %path.display(), "another file has the name of a new segment: it is left alone, and \
                    articles go to the one behind it")
                }
            }
        }
        let why = std::io::Error::other("there is no cycle left");
        Err(newsreel_host::Error::from_io(Op::Open, &self.dir, why))
    }

    /// What has the name of a file that is about to be made again, and is nobody's, gets a name of its own.
    fn clear_name(&self, inner: &Inner, path: &Path) -> newsreel_host::Result<()> {
        let held = inner.files.values().find(|held| held.path == path);
        let is_unknown = held.map(|held| matches!(held.standing, Standing::Unknown(_)));
        // A link that leads nowhere may lead to somebody's disk again.
        if is_unknown != Some(true) && !self.disk.exists(path)? {
            return Ok(());
        }
        if is_unknown == Some(false) {
            return Err(not_named_right(path));
        }
        let aside = match set_aside(self.disk.as_ref(), path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            aside => aside?,
        };
        tracing::error!(path = %path.display(), aside = %aside.display(), "another file had the name of a segment that is made again");
        Ok(())
    }
}

/// A file that is another than its name says stands in the way.
fn not_named_right(path: &Path) -> newsreel_host::Error {
    let why =
        std::io::Error::other("it is another file than its name says: give it its own name first");
    newsreel_host::Error::from_io(Op::Write, path, why)
}
