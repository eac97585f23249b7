//! The files of a set of segments, named by their cycle.
//!
//! A file is made when the first article needs it, with its room and its headers; it gets its name when it has both.  A
//! file that somebody removed has no articles any more, and costs nobody else anything.  One that is not what its name says
//! (see `standing`) is read as what it is and neither written nor removed.

mod going;
mod making;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use newsreel_host::{Disk, ErrorKind, File, Op, OpenMode};
use newsreel_wire::{Position, UnixTime};
use parking_lot::Mutex;

use super::names::{cycle_of, list, path_of};
use super::standing::Standing;
use crate::error::{PlaceError, Result};
use crate::mark::Mark;
use crate::records::Home;
use crate::records::format::{FileHeader, FileKey, Hints};
use crate::records::geometry::Geometry;
use crate::records::headers::{Headers, Written, read_headers, write_twice};
use crate::records::home::{Away, FileRef, Kind, lies_at};

/// The smallest segment, octets.
pub const SEGMENT_OCTETS_MIN: u64 = 1 << 20;
/// So many files are kept open.
pub const OPEN_SEGMENTS_MAX: usize = 256;
/// A generation has above these bits the cycle with which the files of a set were begun anew while all others were away or lost.
const CHAIN_BITS: u32 = 32;

/// The files of one set.
#[derive(Debug)]
pub(super) struct Segments {
    kind: Kind,
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    /// What tells that the directory is there.
    mark: Option<Mark>,
    read_only: bool,
    geometry: Geometry,
    opened: Hints,
    /// A new file has not been made durable under its name.
    is_unnamed: AtomicBool,
    /// What the set is limited by lets a file go early that has no articles any more.
    drops_vacated: AtomicBool,
    /// In files of cycles below this no article is left.
    vacated: AtomicU32,
    /// Where articles lie that were withdrawn since the last checkpoint.
    withdrawn: Mutex<Vec<Position>>,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// The files that are there.
    files: BTreeMap<u32, Held>,
    /// The newest file's header, and what the next one's will be made from.
    header: Written,
    /// There was no room for another.
    is_full: bool,
    /// The last one that was wanted could not be made, which was told.
    is_failing: bool,
}

/// The file of one cycle.
#[derive(Debug)]
pub(super) struct Held {
    /// Where it lies, under whatever name.
    pub(super) path: PathBuf,
    pub(super) standing: Standing,
    open: Option<Arc<dyn File>>,
    /// It was not found where it should be, which was told.
    is_told: bool,
}

impl Held {
    pub(super) const fn new(path: PathBuf, standing: Standing) -> Self {
        Self {
            path,
            standing,
            open: None,
            is_told: false,
        }
    }

    /// Whether it goes when its turn comes: its content says that it is what its name says.
    const fn is_ours(&self) -> bool {
        matches!(self.standing, Standing::Right | Standing::Headless(_))
    }
}

/// What is in a directory of segments.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) files: BTreeMap<u32, Held>,
    /// The newest sound header of them, or one for the first file to come.
    pub(super) header: FileHeader,
    /// Where that lies in its file.
    pub(super) newest_at: u64,
    /// The header was made again, as no file has a sound one.
    pub(super) is_rescued: bool,
    /// What is wrong with some of them, in a line.
    pub(super) complaint: Option<String>,
}

impl Segments {
    pub(super) fn new(
        kind: Kind,
        disk: &Arc<dyn Disk>,
        (dir, mark): (PathBuf, Option<Mark>),
        read_only: bool,
        geometry: Geometry,
        found: Found,
    ) -> Self {
        let Found {
            files,
            header,
            newest_at,
            is_rescued: _,
            complaint: _,
        } = found;
        Self {
            kind,
            disk: Arc::clone(disk),
            dir,
            mark,
            read_only,
            geometry,
            opened: header.hints,
            is_unnamed: AtomicBool::new(false),
            drops_vacated: AtomicBool::new(false),
            vacated: AtomicU32::new(0),
            withdrawn: Mutex::default(),
            inner: Mutex::new(Inner {
                files,
                header: Written { header, newest_at },
                is_full: false,
                is_failing: false,
            }),
        }
    }

    /// The oldest file and the one behind it.
    pub(super) fn oldest(&self) -> Option<(u32, Option<u32>)> {
        let inner = self.inner.lock();
        let mut cycles = inner.files.keys();
        Some((*cycles.next()?, cycles.next().copied()))
    }

    /// A file goes early when no article is left in it.
    pub(super) fn drop_vacated(&self) {
        self.drops_vacated.store(!self.read_only, Ordering::Relaxed);
    }

    /// In files of cycles below this no article is left.
    pub(super) fn vacated_below(&self) -> u32 {
        self.vacated.load(Ordering::Relaxed)
    }

    /// When the newest article of this file arrived: the next one was made then.  Where its headers are damaged, the first
    /// behind it that has a sound one tells a later time.
    pub(super) fn arrival_of(&self, cycle: u32) -> Result<Option<UnixTime>> {
        let inner = self.inner.lock();
        let behind = inner.files.range(cycle + 1..).map(|(cycle, _)| *cycle);
        let behind: Vec<u32> = behind.collect();
        drop(inner);
        for cycle in behind {
            match self.header_of(cycle)?.map(|header| header.hints.arrival) {
                // Earlier versions did not know it behind a start.
                Some(UnixTime(0)) => continue,
                Some(arrival) => return Ok(Some(arrival)),
                None => {}
            }
            tracing::error!(segment = cycle, "neither header of a segment can be used");
        }
        Ok(None)
    }

    /// Whether articles may be written into the file of this cycle, or it may be made.
    pub(super) fn may_write(&self, cycle: u32) -> bool {
        let inner = self.inner.lock();
        let held = inner.files.get(&cycle);
        held.is_none_or(|held| held.standing == Standing::Right)
    }

    /// The newest file, if it may be written.
    fn newest_to_write(&self) -> Option<u32> {
        let inner = self.inner.lock();
        let (cycle, held) = inner.files.last_key_value()?;
        (held.standing == Standing::Right).then_some(*cycle)
    }

    /// Whether neither this file is there nor any behind it.
    pub(super) fn is_missing(&self, cycle: u32) -> bool {
        let inner = self.inner.lock();
        let newest = inner.files.keys().next_back();
        newest.is_none_or(|newest| *newest < cycle)
    }

    /// What is to be told where the newest files are not there, up to this one, though articles were in them.
    pub(super) fn newest_missing(&self, cycle: u32) -> newsreel_host::Result<Option<String>> {
        // A server may have made it since its directory was looked at.
        if !self.is_missing(cycle) || self.disk.exists(&path_of(&self.dir, cycle))? {
            return Ok(None);
        }
        let what = match self.are_none() {
            true => "there are no segments any more, so their disk may not be mounted".to_owned(),
            false => format!("there is no {cycle:08}.seg, the newest, but files in front of it"),
        };
        Ok(Some(format!(
            "{}: {what}: what was in there is lost if somebody removed it; put it back and start again, or see `newsreel store scrub` for \
             what is lost",
            self.dir.display()
        )))
    }

    /// The cycle of the oldest file, if none from this one up to it is there, whatever it is; and how many are, where it is sure that some
    /// were there together with those.
    pub(super) fn missing_from(&self, first: u32) -> Result<Option<(u32, Option<u32>)>> {
        let inner = self.inner.lock();
        let there = u32::try_from(inner.files.len()).unwrap_or(u32::MAX);
        let oldest = inner.files.keys().next().copied();
        drop(inner);
        let Some(oldest) = oldest.filter(|oldest| *oldest > first) else {
            return Ok(None);
        };
        let names = list(self.disk.as_ref(), &self.dir, true)?;
        let named = names.into_iter().find(|name| *name >= first);
        let below = named.map_or(oldest, |named| named.min(oldest));
        if below <= first {
            return Ok(None);
        }
        let header = self.header_of(oldest).unwrap_or_default();
        let began = header.map(|header| header.generation >> CHAIN_BITS);
        let were_together = began.is_some_and(|began| began <= u64::from(first));
        Ok(Some((below, were_together.then_some(there))))
    }

    /// Whether there is no file at all.
    pub(super) fn are_none(&self) -> bool {
        self.inner.lock().files.is_empty()
    }

    /// Whether the last file could not be made because there was no room; asked once.
    pub(super) fn take_full(&self) -> bool {
        std::mem::take(&mut self.inner.lock().is_full)
    }

    /// Octets that are free where they lie.
    pub(super) fn free_octets(&self) -> newsreel_host::Result<u64> {
        self.disk.free_bytes(&self.dir)
    }

    /// What the headers of this cycle's file say.
    fn header_of(&self, cycle: u32) -> Result<Option<FileHeader>> {
        let file = self.file(cycle)?;
        Ok(match read_headers(&*file)? {
            Headers::Sound(header, ..) => Some(*header),
            _ => None,
        })
    }

    fn open(&self, path: PathBuf, mode: OpenMode) -> newsreel_host::Result<Arc<dyn File>> {
        match self.disk.open(&path, mode) {
            // What has its name has no octets.
            Err(error) if error.kind() == ErrorKind::NotAFile => {
                let op = Op::Open;
                Err(newsreel_host::Error::NotFound { op, path })
            }
            file => file,
        }
    }

    /// Brings both copies of the newest file's header up to date, one after the other.
    pub(super) fn write_both_headers(&self, hints: Hints) -> newsreel_host::Result<()> {
        let Some(newest) = self.newest_to_write() else {
            return Ok(());
        };
        let file = self.beside(newest)?;
        write_twice(&*file, || self.write_header(newest, &*file, hints))
    }

    /// Brings one copy of the header of this cycle's file up to date, if it is still the newest: the header of the next one is not for it.
    fn write_header(&self, cycle: u32, file: &dyn File, hints: Hints) -> newsreel_host::Result<()> {
        let hints = self.of_cycle(cycle, hints);
        let mut inner = self.inner.lock();
        let newest = inner.files.last_key_value();
        if newest.is_none_or(|(newest, _)| *newest != cycle) {
            return Ok(());
        }
        inner.header.write(file, hints)
    }

    /// The same, as the file of this cycle says it.
    fn of_cycle(&self, cycle: u32, hints: Hints) -> Hints {
        Hints {
            bitmap_end: hints.bitmap_end.max(self.start_of(cycle)),
            ..hints
        }
    }

    fn start_of(&self, cycle: u32) -> Position {
        self.geometry.start_of(cycle).unwrap_or_default()
    }
}

impl Home for Segments {
    fn kind(&self) -> Kind {
        self.kind
    }

    fn drops_vacated(&self) -> bool {
        self.drops_vacated.load(Ordering::Relaxed)
    }

    fn vacated(&self, cycle: u32) {
        self.vacated.fetch_max(cycle, Ordering::Relaxed);
    }

    fn file(&self, cycle: u32) -> newsreel_host::Result<FileRef<'_>> {
        let mut inner = self.inner.lock();
        let held = inner.files.get(&cycle);
        if let Some(file) = held.and_then(|held| held.open.as_ref()) {
            return Ok(FileRef::Held(Arc::clone(file)));
        }
        let mode = match self.read_only || held.is_some_and(|held| held.standing != Standing::Right)
        {
            true => OpenMode::Read,
            false => OpenMode::ReadWrite,
        };
        let path = held.map_or_else(|| path_of(&self.dir, cycle), |held| held.path.clone());
        let file = self.open(path, mode)?;
        let open = inner.files.values().filter(|held| held.open.is_some());
        if open.count() >= OPEN_SEGMENTS_MAX {
            // The oldest are read least, and any may be opened again.
            let old = inner.files.values_mut().filter(|held| held.open.is_some());
            old.take(OPEN_SEGMENTS_MAX / 2)
                .for_each(|held| held.open = None);
        }
        if let Some(held) = inner.files.get_mut(&cycle) {
            held.open = Some(Arc::clone(&file));
            // It is there; whether it goes again is another matter.
            held.is_told = false;
        }
        Ok(FileRef::Held(file))
    }

    fn beside(&self, cycle: u32) -> newsreel_host::Result<FileRef<'_>> {
        let path = {
            let inner = self.inner.lock();
            let held = inner.files.get(&cycle);
            held.map_or_else(|| path_of(&self.dir, cycle), |held| held.path.clone())
        };
        Ok(FileRef::Held(self.open(path, OpenMode::ReadWrite)?))
    }

    fn path(&self) -> &Path {
        &self.dir
    }

    fn look(&self) -> std::result::Result<(), Away> {
        let Some(mark) = &self.mark else {
            return Ok(());
        };
        mark.look().map_err(|error| Away {
            why: mark.said(&error),
            error,
        })
    }

    fn unfit(&self, cycles: RangeInclusive<u32>) -> Option<String> {
        let inner = self.inner.lock();
        let octets = inner.header.header.octets;
        let open = inner.files.range(cycles);
        let mut open = open.filter_map(|(_, held)| held.open.as_ref());
        open.find_map(|file| removed(file.as_ref()).or_else(|| cut(file.as_ref(), octets)))
    }

    fn missing(&self, cycle: u32) -> Option<PathBuf> {
        let mut inner = self.inner.lock();
        let held = inner.files.get_mut(&cycle).filter(|_| !self.read_only)?;
        (!std::mem::replace(&mut held.is_told, true)).then(|| held.path.clone())
    }

    fn came_back(&self) {
        let mut inner = self.inner.lock();
        inner.files.values_mut().for_each(|held| held.open = None);
    }

    fn octets(&self) -> u64 {
        let inner = self.inner.lock();
        inner.header.header.octets * inner.files.len() as u64
    }

    fn article_octets_max(&self, capacity: u64) -> u64 {
        super::article_octets_max(capacity)
    }

    fn is_endless(&self) -> bool {
        true
    }

    fn oldest_cycle(&self) -> u32 {
        self.oldest().map_or(0, |(oldest, _)| oldest)
    }

    fn make(&self, cycle: u32, arrival: UnixTime) -> std::result::Result<u32, PlaceError> {
        self.make_from(cycle, arrival)
    }

    fn lost(&self, cycles: RangeInclusive<u32>) -> Result<(u64, u64)> {
        let octets = self.inner.lock().header.header.octets;
        let entries = match self.disk.list(&self.dir) {
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            entries => entries?,
        };
        let there = entries.iter().filter(|entry| !entry.is_dir);
        let there: BTreeMap<u32, u64> = there
            .filter_map(|entry| Some((cycle_of(&entry.name)?, entry.len)))
            .collect();
        let there = there.range(cycles.clone());
        let cut = there.clone().filter(|(_, len)| **len < octets).count() as u64;
        let count = u64::from(cycles.end() - cycles.start()) + 1;
        Ok((count.saturating_sub(there.count() as u64), cut))
    }

    fn remake(&self, cycle: u32) -> newsreel_host::Result<()> {
        self.make_again(cycle)
    }

    fn sync(&self, cycles: RangeInclusive<u32>) -> newsreel_host::Result<()> {
        for cycle in cycles {
            let is_written = |held: &Held| held.standing == Standing::Right;
            if self.inner.lock().files.get(&cycle).is_some_and(is_written) {
                self.file(cycle)?.sync_data()?;
            }
        }
        if self.is_unnamed.swap(false, Ordering::AcqRel) {
            let synced = self.disk.sync_dir(&self.dir);
            if synced.is_err() {
                self.is_unnamed.store(true, Ordering::Release);
            }
            return synced;
        }
        Ok(())
    }

    fn opened(&self) -> Hints {
        self.opened
    }

    fn written(&self) -> Hints {
        self.inner.lock().header.header.hints
    }

    fn know(&self, hints: Hints) {
        self.inner.lock().header.header.hints = hints;
    }

    fn write_with_batch(&self, hints: Hints) -> newsreel_host::Result<()> {
        let Some(newest) = self.newest_to_write() else {
            return Ok(());
        };
        let file = self.file(newest)?;
        self.write_header(newest, &*file, hints)
    }

    fn placed(&self, starts: &mut Vec<Position>) {
        starts.clear();
    }

    fn go_on(&self, _: Position) {}

    fn floor_by_now(&self) -> Position {
        let cycles = list(self.disk.as_ref(), &self.dir, true).unwrap_or_default();
        let oldest = cycles.first().map(|cycle| self.start_of(*cycle));
        oldest.unwrap_or_default()
    }
}

/// What is to be told of a segment to which its path leads no more.
fn removed(file: &dyn File) -> Option<String> {
    // Whether it is there is not told by a path that cannot be looked at.
    if file.is_in_place().unwrap_or(true) {
        return None;
    }
    Some(format!(
        "{} was removed or renamed, or another file was put in its place, while articles were written to it: those that come go to the next \
         one. What was acknowledged before can be read while this server runs, and {}; it is lost when the server stops, unless it has its \
         name again, or a copy has it",
        file.path().display(),
        lies_at(file)
    ))
}

/// What is to be told of a segment that is shorter than it was made.
fn cut(file: &dyn File, octets: u64) -> Option<String> {
    let len = file.len().ok().filter(|len| *len < octets)?;
    let shown = file.path().display();
    Some(format!(
        "{shown} was cut: it has {len} octets, and had {octets}: articles that come go to the next one. What was cut off is lost; \
         `newsreel store scrub` says what that is"
    ))
}

/// The header of the first file of a set.
pub(super) fn first_header(header: FileHeader, geometry: &Geometry) -> FileHeader {
    let start = geometry.start_of(1).unwrap_or_default();
    FileHeader {
        hints: header.hints.at(start),
        ..header
    }
}

/// The key of records under this header.
pub(super) fn key_of(header: &FileHeader) -> FileKey {
    FileKey::of(&header.uuid)
}

#[cfg(test)]
mod tests;
