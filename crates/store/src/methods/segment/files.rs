//! The files of a set of segments, named by their cycle.
//!
//! A file is made when the first article needs it, with its room and its headers; it gets its name when it has both.  A
//! file that somebody removed has no articles any more, and costs nobody else anything.  One that is not what its name says
//! (see `standing`) is read as what it is and neither written nor removed.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use newsreel_host::{Disk, ErrorKind, File, Op, OpenMode, set_aside};
use newsreel_wire::{CYCLE_MAX, Position, UnixTime};
use parking_lot::Mutex;

use super::names::{UNFINISHED, cycle_of, list, path_of};
use super::standing::{Standing, standing};
use crate::error::{PlaceError, Result};
use crate::mark::Mark;
use crate::methods::cnfs::STARTS_MAX;
use crate::records::Home;
use crate::records::format::{FileHeader, FileKey, Hints, SECOND_HEADER};
use crate::records::geometry::Geometry;
use crate::records::gone::Gone;
use crate::records::headers::{Headers, Written, read_headers, write_twice};
use crate::records::home::{Away, FileRef, Kind};

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

    /// Removes the files below a cycle; while their directory is not there they stay, for the next time.
    pub(super) fn remove_below(&self, cycle: u32) {
        if self.look().is_err() {
            return;
        }
        let mut inner = self.inner.lock();
        let kept = inner.files.split_off(&cycle);
        let gone = std::mem::replace(&mut inner.files, kept);
        let ours = inner.header.header.clone();
        drop(inner);
        for (cycle, held) in gone {
            let path = &held.path;
            if let Err(why) = self.may_remove(cycle, &held, &ours) {
                tracing::error!(path = %path.display(), why, "a segment whose turn has come is not removed; move it elsewhere");
                continue;
            }
            match self.disk.remove(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    tracing::error!(%error, "a dropped segment cannot be removed");
                }
                _ => tracing::info!(path = %path.display(), "a segment is dropped"),
            }
        }
    }

    /// Whether a file is what its name says, looked at once more: it may have been put there since.
    fn may_remove(
        &self,
        cycle: u32,
        held: &Held,
        ours: &FileHeader,
    ) -> std::result::Result<(), &'static str> {
        if !held.is_ours() {
            return Err("it is not what its name says");
        }
        let file = match self.disk.open(&held.path, OpenMode::Read) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            file => file.map_err(|_| "it cannot be opened")?,
        };
        match standing(file.as_ref(), cycle, ours, &self.geometry) {
            Ok(Standing::Right | Standing::Headless(_)) => Ok(()),
            Ok(Standing::Unknown(_)) => Err("nothing in it tells whether it is what its name says"),
            Ok(Standing::Of(_)) => Err("it is another segment than its name says"),
            Ok(Standing::Foreign(_)) => Err("it belongs to another set or spool"),
            Err(_) => Err("its header cannot be read"),
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

    /// Articles were withdrawn: their files say so from the next checkpoint on.
    pub(super) fn withdraw(&self, starts: impl Iterator<Item = Position>) {
        let mut withdrawn = self.withdrawn.lock();
        let room = STARTS_MAX.saturating_sub(withdrawn.len());
        withdrawn.extend(starts.take(room));
    }

    /// Whether there is something of that to be said.
    pub(super) fn has_withdrawn(&self) -> bool {
        !self.withdrawn.lock().is_empty()
    }

    /// Notes in each file what was withdrawn of it.  Nothing depends on that but who has the file alone: what cannot be noted is told
    /// in the log, and left.
    pub(super) fn write_withdrawn(&self) {
        let mut of_cycles: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
        for start in std::mem::take(&mut *self.withdrawn.lock()) {
            of_cycles
                .entry(start.cycle())
                .or_default()
                .push(start.offset());
        }
        for (cycle, offsets) in of_cycles {
            match self.note_gone(cycle, &offsets) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    tracing::error!(%error, segment = cycle, "what was withdrawn of a segment cannot be noted in its file");
                }
                _ => {}
            }
        }
    }

    fn note_gone(&self, cycle: u32, offsets: &[u64]) -> newsreel_host::Result<()> {
        let (octets, key) = {
            let inner = self.inner.lock();
            let is_written = |held: &Held| held.standing == Standing::Right;
            if !inner.files.get(&cycle).is_some_and(is_written) {
                return Ok(());
            }
            let header = &inner.header.header;
            (header.octets, key_of(header))
        };
        let file = self.beside(cycle)?;
        Gone::read(&*file, octets, key)?.add(&*file, offsets, key)
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

    /// The same, as the file of this cycle says it.
    fn of_cycle(&self, cycle: u32, hints: Hints) -> Hints {
        Hints {
            bitmap_end: hints.bitmap_end.max(self.start_of(cycle)),
            ..hints
        }
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

    fn removed(&self, cycles: RangeInclusive<u32>) -> Option<String> {
        let inner = self.inner.lock();
        let mut open = inner.files.range(cycles);
        // Whether it is there is not told by a path that cannot be looked at.
        let is_removed = |file: &Arc<dyn File>| !file.is_in_place().unwrap_or(true);
        let removed = open.find_map(|(_, held)| held.open.as_ref().filter(|file| is_removed(file)));
        Some(format!(
            "{} was removed, or another file was put in its place, while articles were written to it: those that come go to the next one. \
             What was acknowledged before can be read, and copied, while this server runs (`/proc/{}/fd`, marked as deleted), and is lost \
             with its end unless the copy is put there before the next start",
            removed?.path().display(),
            std::process::id()
        ))
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
                self.is_unnamed.store(true, Ordering::Release);
                Ok(cycle)
            }
            Err(_) if self.look().is_err() => Err(PlaceError::Suspended),
            Err(error) => {
                if !inner.is_full {
                    tracing::warn!(%error, "no new segment can be made");
                }
                inner.is_full = true;
                // Dropping the oldest may help, where that is allowed.
                Err(PlaceError::NeedsReservation)
            }
        }
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

/// A file that is another than its name says stands in the way.
fn not_named_right(path: &Path) -> newsreel_host::Error {
    let why =
        std::io::Error::other("it is another file than its name says: give it its own name first");
    newsreel_host::Error::from_io(Op::Write, path, why)
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
