//! The one file of a cyclic buffer: headers in front, bitmap, then the records of whatever cycle.

use std::collections::BTreeSet;
use std::ops::{Range, RangeInclusive};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use newsreel_host::{Disk, File, Op, OpenMode};
use newsreel_wire::{BufferId, Position, SetId, UnixTime};
use parking_lot::Mutex;

use super::bitmap::{Starts, bits_outside, read_starts, write_again};
use super::{METHOD, NAME};
use crate::config::BufferConfig;
use crate::error::{Error, PlaceError, Result};
use crate::method::WrongBits;
use crate::records::Home;
use crate::records::buffer::{Buffer, Parts};
use crate::records::format::{FileHeader, FileKey, Hints, Narrowing};
use crate::records::geometry::Geometry;
use crate::records::gone::Gone;
use crate::records::headers::{Headers, ONE_DAMAGED, Written, file_system, read_headers};
use crate::records::home::{Away, FileRef, Kind, lies_at};
use crate::records::memory::Pool;
use crate::records::packing::has_dictionary;
use crate::records::recent::Recent;

/// How often a header is read that somebody writes meanwhile.
const LOOKS_MAX: u32 = 3;

/// Who asks for a buffer: its place in the configuration.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Owner<'a> {
    pub(crate) config: &'a BufferConfig,
    pub(crate) path: &'a Path,
    pub(crate) spool: [u8; 16],
    pub(crate) set: SetId,
    /// Memory for its newest batches.
    pub(crate) recent_octets: usize,
    /// Where that comes from.
    pub(crate) pool: &'a Arc<Pool>,
    /// What is left of a file that somebody cut is to be read.
    pub(crate) may_be_cut: bool,
}

impl Owner<'_> {
    /// Whether this is the buffer that is meant.
    pub(super) fn check(&self, header: &FileHeader) -> Result<()> {
        if header.spool != self.spool {
            return Err(self.wrong(
                "it belongs to another spool; give this one a file of its own, or have its articles served from where they lie by a set of method \"attached\" (docs/buffers.md), or attach it",
            ));
        }
        if header.name != self.config.name {
            return Err(self.wrong(format!(
                "it is buffer {:?}; mend the paths in the configuration",
                header.name
            )));
        }
        Ok(())
    }

    /// Refuses what has no header of ours and seems to hold a file system.
    pub(super) fn no_file_system(&self, file: &dyn File) -> Result<()> {
        file_system(file).map_or(Ok(()), |found| {
            Err(self.wrong(format!(
                "a file system ({found}) seems to be there: nothing was written. Correct the path; if nobody needs what is there, overwrite its \
                 first and last mebibyte with zeros (`dd if=/dev/zero`), or all of it (`blkdiscard --zeroout`)"
            )))
        })
    }

    /// A device, or a file that is to become a buffer, has room for so many octets only.
    pub(super) fn too_short(&self, len: u64) -> Error {
        self.wrong(format!(
            "it has room for {len} octets, the configuration says {}; set `octets` to what there is",
            self.config.octets
        ))
    }

    /// What helps where it cannot be written, as this says.
    fn read_only(&self, why: &str) -> String {
        format!(
            "{why}. If that is meant, say `read_only = true` in the [[buffer]] {}; else make it writable, and start the server again",
            self.config.name
        )
    }

    /// Takes a buffer out of use that lies on a device which is read-only.
    fn suspend(&self, buffer: &Buffer) {
        let why = self.read_only(
            "it is a device that is read-only: nothing can be written to it, and what is in it is read",
        );
        tracing::error!(buffer = buffer.name, why, "the buffer is suspended");
        buffer.suspend(&why);
    }

    pub(super) fn wrong(&self, why: impl Into<String>) -> Error {
        Error::Buffer {
            name: self.config.name.clone(),
            path: self.path.to_path_buf(),
            why: why.into(),
        }
    }
}

/// The file of one buffer.
#[derive(Debug)]
pub(crate) struct CyclicFile {
    /// Where articles are read and written.
    file: Arc<dyn File>,
    /// The same file opened once more, for headers and bitmap.  The kernel tells of lost writes once for each open
    /// file: a checkpoint's sync must not take the message that is meant for a batch's.
    side: Arc<dyn File>,
    key: FileKey,
    /// The header it was opened with.
    opened: FileHeader,
    header: Mutex<Written>,
    /// As long as the file is at least, while nobody cuts it; zero of a device.
    len_min: AtomicU64,
    pub(super) starts: Mutex<Starts>,
    /// Held by who changes the bitmap.
    pub(super) bits: Mutex<()>,
    /// The file is longer than it has to be: it became smaller.
    pub(super) is_cut_due: AtomicBool,
    /// It was to become smaller and is not any more, which its header does not say yet.
    is_given_up: AtomicBool,
    /// Its header was made again, and is in memory only: not both copies of it have been written yet.
    is_header_due: AtomicBool,
    /// What a segment says of itself that was withdrawn, where it is looked at alone.
    gone: OnceLock<Gone>,
    /// It is a segment that is looked at alone: where a buffer has its bitmap a dictionary lies, or nothing.
    has_no_bitmap: AtomicBool,
}

/// What is wrong with the copies of a header.
#[derive(Debug, Clone, Copy)]
enum Wrong {
    One,
    Both,
    Foreign,
}

/// A buffer, and the file that is its home.
#[derive(Debug, Clone)]
pub(crate) struct Cyclic {
    pub(crate) buffer: Arc<Buffer>,
    pub(crate) file: Arc<CyclicFile>,
}

impl Cyclic {
    /// Opens a buffer whose newer header is `header`.
    pub(super) fn open(
        disk: &dyn Disk,
        owner: &Owner<'_>,
        read_only: bool,
        (mut header, newest_at): (FileHeader, u64),
        (complaint, is_rescued): (Option<String>, bool),
    ) -> Result<Self> {
        owner.check(&header)?;
        let mode = mode_for(read_only);
        let file = open_to(disk, owner, mode)?;
        let len = file.len()?;
        check_len(owner, &header, len)?;
        check_sizes(owner, &header)?;
        // Whoever gives the configuration its size back wants it to stay as large as it is.
        let is_given_up = owner.config.octets == header.octets && header.becomes().is_some();
        if is_given_up {
            header.narrowing = None;
        }
        let smaller = header
            .becomes()
            .and_then(|octets| header.geometry_at(octets));
        let was_larger = header.was_larger();
        let geometry = header.geometry();
        let geometry = geometry.ok_or_else(|| owner.wrong("sizes in the file header"))?;
        // More than the buffer has room for is overwritten.
        let room = usize::try_from(geometry.capacity()).unwrap_or(usize::MAX);
        let recent = Recent::new(owner.recent_octets.min(room), Arc::clone(owner.pool));
        let len_min = (!file.is_device()?).then(|| len.min(header.octets));
        let home = Arc::new(CyclicFile {
            file,
            len_min: AtomicU64::new(len_min.unwrap_or(0)),
            side: disk.open(owner.path, mode)?,
            key: FileKey::of(&header.uuid),
            starts: Mutex::new(Starts::from(header.hints.bitmap_end)),
            bits: Mutex::new(()),
            is_cut_due: AtomicBool::new(was_larger && len > header.octets),
            is_given_up: AtomicBool::new(is_given_up),
            is_header_due: AtomicBool::new(is_rescued),
            gone: OnceLock::new(),
            has_no_bitmap: AtomicBool::new(false),
            opened: header.clone(),
            header: Mutex::new(Written {
                header: header.clone(),
                newest_at,
            }),
        });
        let buffer = Buffer::new(Parts {
            id: BufferId(header.buffer),
            name: header.name,
            set: owner.set,
            home: Arc::clone(&home) as Arc<dyn Home>,
            geometry,
            closes_at: smaller.map(|smaller| smaller.data_end),
            // Where its header was made again its size is only known about.
            was_larger: was_larger || is_rescued && smaller.is_some(),
            key: home.key,
            is_rescued,
            complaint,
            read_only,
            recent,
            is_cached: owner.config.cached,
        });
        if !read_only && home.file.is_read_only()? {
            owner.suspend(&buffer);
        }
        Ok(Self {
            buffer: Arc::new(buffer),
            file: home,
        })
    }
}

impl CyclicFile {
    /// The file for headers and bitmap.
    pub(super) fn side(&self) -> &dyn File {
        self.side.as_ref()
    }

    /// Brings both copies of the header up to date, one after the other, so that one is sound at any moment.
    pub(super) fn write_both_headers(&self, hints: Hints) -> newsreel_host::Result<()> {
        self.write_both(&mut self.header.lock(), hints)
    }

    fn write_both(&self, written: &mut Written, hints: Hints) -> newsreel_host::Result<()> {
        written.write_both(self.side.as_ref(), hints)?;
        self.is_header_due.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Whether its header is still to be written, also where nothing is new in it.
    pub(super) fn is_header_due(&self) -> bool {
        self.is_header_due.load(Ordering::Relaxed)
    }

    /// Has both copies of the header tell of this size, behind what is to be written before; where articles end then.
    pub(super) fn resize(
        &self,
        octets: u64,
        narrowing: Option<Narrowing>,
        write_before: impl FnOnce(&dyn File, &FileHeader, &Geometry) -> newsreel_host::Result<()>,
    ) -> newsreel_host::Result<Option<u64>> {
        let mut written = self.header.lock();
        let resized = FileHeader {
            octets,
            narrowing,
            ..written.header.clone()
        };
        let Some(after) = resized.geometry() else {
            return Ok(None);
        };
        write_before(self.side(), &resized, &after)?;
        self.side.sync_all()?;
        written.header = resized;
        if self.len_min.load(Ordering::Acquire) > 0 {
            // Its room was made before, and a file that has become smaller is cut later.
            self.len_min.store(octets, Ordering::Release);
        }
        let hints = written.header.hints;
        self.write_both(&mut written, hints)?;
        Ok(Some(after.data_end))
    }

    /// Since when it becomes smaller, which its header says when it is written next.
    pub(super) fn know_narrowing(&self, narrowing: Narrowing) {
        self.header.lock().header.narrowing = Some(narrowing);
    }

    /// Whether the file is as long, and nobody is about to cut it.
    pub(super) fn has_room(&self, octets: u64) -> bool {
        let len = self.side.len();
        !self.is_cut_due.load(Ordering::Relaxed) && len.is_ok_and(|len| len >= octets)
    }

    /// Has the header say that it stays as large as it is, if a start found that: before anything comes behind what was to be its end.
    pub(super) fn note_given_up(&self) -> newsreel_host::Result<()> {
        match self.is_given_up.swap(false, Ordering::Relaxed) {
            true => self.write_both_headers(Hints::default()),
            false => Ok(()),
        }
    }

    /// Looks for what a segment says that was withdrawn of it; a buffer has nothing there, or, where it is or was larger, its own.
    pub(super) fn look_for_gone(&self) -> Result<()> {
        let (header, side) = (self.header(), self.side());
        if header.narrowing.is_none() && !side.is_device()? {
            let gone = Gone::read(side, header.octets, self.key);
            let gone = gone.unwrap_or_else(|_| Gone::unread(header.octets));
            self.gone.get_or_init(|| gone);
        }
        Ok(())
    }

    /// Looks whether this is a segment, which has no bitmap: it has a dictionary there, or its name says so (`is_named_so`), and its
    /// header of nothing in its cycle that the bitmap is right.  Nor is one heeded that is lost (`is_lost`), or whose header is.
    pub(super) fn look_for_bitmap(&self, is_named_so: bool, is_lost: bool) {
        let header = self.header();
        let has_none = header.geometry().is_some_and(|geometry| {
            let is_unsaid = header.hints.bitmap_end.offset() == geometry.data_start;
            is_lost || is_named_so && is_unsaid || has_dictionary(self.side(), &geometry)
        });
        self.has_no_bitmap.store(has_none, Ordering::Relaxed);
    }

    fn has_no_bitmap(&self) -> bool {
        self.has_no_bitmap.load(Ordering::Relaxed)
    }

    /// Whether articles were withdrawn whose bits are still to go.
    pub(super) fn has_withdrawn(&self) -> bool {
        !self.starts.lock().withdrawn().is_empty()
    }

    /// Its header as it was written last.
    pub(crate) fn header(&self) -> FileHeader {
        self.header.lock().header.clone()
    }

    /// What is wrong with the two copies as the file has them, and where the sound one is, if one is.
    fn look(&self) -> Result<Option<(Wrong, u64)>> {
        let is_ours = |header: &FileHeader| FileKey::of(&header.uuid) == self.key;
        Ok(match read_headers(self.side.as_ref())? {
            Headers::Sound(header, _, None) if is_ours(&header) => None,
            Headers::Sound(header, at, Some(_)) if is_ours(&header) => Some((Wrong::One, at)),
            // Any of the two is the first that is written.
            Headers::Blank | Headers::Lost(_) => Some((Wrong::Both, 0)),
            Headers::Sound(..) | Headers::Damaged(_) => Some((Wrong::Foreign, 0)),
        })
    }
}

impl Home for CyclicFile {
    fn kind(&self) -> Kind {
        Kind {
            number: METHOD,
            name: NAME,
            is_of_articles: true,
        }
    }

    fn file(&self, _: u32) -> newsreel_host::Result<FileRef<'_>> {
        Ok(FileRef::Lasting(self.file.as_ref()))
    }

    fn beside(&self, _: u32) -> newsreel_host::Result<FileRef<'_>> {
        Ok(FileRef::Lasting(self.side()))
    }

    fn path(&self) -> &Path {
        self.file.path()
    }

    fn look(&self) -> std::result::Result<(), Away> {
        let path = self.file.path();
        let shown = path.display();
        // Whether it is there is not told by a path that cannot be looked at.
        let why = if !self.file.is_in_place().unwrap_or(true) {
            format!(
                "{shown} was removed or renamed, or another file was put in its place: nothing more is written to it. What was there can be \
                 read while this server runs, and {}; put it back, and start the server again",
                lies_at(self.file.as_ref())
            )
        } else if let Some((len, octets)) = self.cut() {
            format!(
                "{shown} was cut: it has {len} octets, and had {octets}: nothing more is written to it. `truncate -s {octets} '{shown}'` gives \
                 it its size back, with what is left in it; then start the server again, and `newsreel store scrub` says what is lost"
            )
        } else {
            return Ok(());
        };
        Err(Away {
            error: newsreel_host::Error::NotFound {
                op: Op::Stat,
                path: path.to_path_buf(),
            },
            why,
        })
    }

    fn octets(&self) -> u64 {
        self.header.lock().header.octets
    }

    fn narrowing(&self) -> Option<Narrowing> {
        let header = &self.header.lock().header;
        header.narrowing.filter(|_| header.becomes().is_some())
    }

    fn article_octets_max(&self, capacity: u64) -> u64 {
        super::article_octets_max(capacity)
    }

    fn is_endless(&self) -> bool {
        false
    }

    fn oldest_cycle(&self) -> u32 {
        0
    }

    fn make(&self, cycle: u32, _: UnixTime) -> std::result::Result<u32, PlaceError> {
        Ok(cycle)
    }

    fn sync(&self, _: RangeInclusive<u32>) -> newsreel_host::Result<()> {
        self.file.sync_data()
    }

    fn opened(&self) -> Hints {
        self.opened.hints
    }

    fn written(&self) -> Hints {
        self.header.lock().header.hints
    }

    fn know(&self, hints: Hints) {
        self.header.lock().header.hints = hints;
    }

    fn write_with_batch(&self, hints: Hints) -> newsreel_host::Result<()> {
        self.header.lock().write(self.file.as_ref(), hints)
    }

    fn placed(&self, starts: &mut Vec<Position>) {
        self.starts.lock().append(starts);
    }

    fn go_on(&self, next: Position) {
        if self.opened.hints.bitmap_end > next {
            self.starts.lock().restart(next);
        }
    }

    fn floor_by_now(&self) -> Position {
        // While both copies are written one after the other, neither may look sound.
        for _ in 0..LOOKS_MAX {
            if let Ok(Headers::Sound(header, ..)) = read_headers(self.file.as_ref()) {
                let is_it = FileKey::of(&header.uuid) == self.key;
                return if is_it {
                    header.hints.reserved.one_cycle_before()
                } else {
                    Position::ZERO
                };
            }
        }
        Position::ZERO
    }

    fn notes_damaged_at(&self) -> Option<u64> {
        self.gone.get()?.damaged_at
    }

    fn bits(
        &self,
        geometry: &Geometry,
        stretch: Range<Position>,
    ) -> newsreel_host::Result<Option<Vec<Position>>> {
        let known = self.written().bitmap_end;
        let (low, high) = (stretch.start.offset(), stretch.end.offset());
        let is_in_one = stretch.start.cycle() == stretch.end.cycle() && low < high;
        if !is_in_one || stretch.start >= known || self.has_no_bitmap() {
            return Ok(None);
        }
        let high = high.min(geometry.bitmap_blocks() * geometry.block);
        let high = match known.cycle() == stretch.start.cycle() {
            true => high.min(known.offset()),
            false => high,
        };
        let bits = read_starts(self.side.as_ref(), geometry, low, high)?;
        let at = |offset: &u64| Position::checked(stretch.start.cycle(), *offset);
        Ok(Some(bits.iter().filter_map(at).collect()))
    }

    fn wrong_bits(
        &self,
        geometry: &Geometry,
        stretch: Range<Position>,
        starts: &[Position],
    ) -> newsreel_host::Result<WrongBits> {
        if let Some(gone) = self.gone.get().filter(|gone| !gone.offsets.is_empty()) {
            let is_gone = |start: &&Position| gone.offsets.contains(&start.offset());
            let missing = starts.iter().filter(is_gone).copied().collect();
            return Ok(WrongBits {
                missing,
                extra: Vec::new(),
            });
        }
        let _one = self.bits.lock();
        // Behind its end the bitmap is out of date.
        let stretch = stretch.start..stretch.end.min(self.written().bitmap_end);
        if stretch.is_empty() || self.has_no_bitmap() {
            return Ok(WrongBits::default());
        }
        let (mut missing, mut extra) = (Vec::new(), BTreeSet::new());
        for part in within_cycles(geometry, stretch) {
            let high = part.end.offset();
            let high = high.min(geometry.bitmap_blocks() * geometry.block);
            let starts = starts.iter().filter(|start| part.contains(start));
            let Some(bits) = self.bits(geometry, part.clone())? else {
                continue;
            };
            let mut bits: BTreeSet<Position> = bits.into_iter().collect();
            for start in starts {
                if !bits.remove(start) && start.offset() < high {
                    missing.push(*start);
                }
            }
            extra.append(&mut bits);
        }
        if !extra.is_empty() {
            for start in self.starts.lock().withdrawn() {
                extra.remove(start);
            }
        }
        Ok(WrongBits {
            missing,
            extra: extra.into_iter().collect(),
        })
    }

    fn mend_bits(
        &self,
        geometry: &Geometry,
        wrong: &WrongBits,
        is_live: &dyn Fn(Position) -> bool,
    ) -> newsreel_host::Result<()> {
        // The floor is above an article before another one has a bit in its place, which it gets under this lock.
        let _one = self.bits.lock();
        let file = self.side.as_ref();
        let is_live = |at: &&Position| is_live(**at);
        let (missing, extra) = (wrong.missing.iter(), wrong.extra.iter());
        let (missing, extra) = (missing.filter(is_live), extra.filter(is_live));
        write_again(file, geometry, missing.map(|at| at.offset()), true)?;
        write_again(file, geometry, extra.map(|at| at.offset()), false)?;
        file.sync_data()
    }

    fn mend_header(&self, may_write: bool) -> Result<Option<String>> {
        let found = self.mend_copies(may_write)?;
        // What is left as it is is found again.
        let is_left = found.is_some() && self.mend_copies(may_write)?.is_some();
        if is_left || self.has_no_bitmap() {
            return Ok(found);
        }
        Ok(match (found, self.mend_outside(may_write)?) {
            (Some(found), Some(outside)) => Some(format!("{found}; {outside}")),
            (found, outside) => found.or(outside),
        })
    }
}

impl CyclicFile {
    /// Where somebody cut the file: how long it is, and how long it should be.
    fn cut(&self) -> Option<(u64, u64)> {
        let octets = self.len_min.load(Ordering::Acquire);
        let len = (octets > 0).then(|| self.file.len())?.ok()?;
        (len < octets).then_some((len, octets))
    }

    /// Clears the bits that are set where no article can begin: where headers and bitmap lie, and behind the end.
    fn mend_outside(&self, may_write: bool) -> Result<Option<String>> {
        let header = self.header();
        let Some(geometry) = header.geometry() else {
            return Ok(None);
        };
        let _one = self.bits.lock();
        let file = self.side();
        let wrong = bits_outside(file, &geometry, may_write)?;
        if wrong == 0 {
            return Ok(None);
        }
        let what = format!("its bitmap has bits where no article can begin: {wrong}");
        if !may_write {
            return Ok(Some(format!("{what}; nothing was written")));
        }
        file.sync_data()?;
        Ok(Some(format!("{what}; they were cleared")))
    }

    /// Looks whether both copies of the header are as they were written, and writes them again where they are not.
    fn mend_copies(&self, may_write: bool) -> Result<Option<String>> {
        // Who writes holds this; who only looks may see half of what another one writes.
        let mut written = self.header.lock();
        let mut found = self.look()?;
        for _ in 1..LOOKS_MAX {
            if found.is_some() && !may_write {
                found = self.look()?;
            }
        }
        let Some((wrong, sound_at)) = found else {
            return Ok(None);
        };
        let what = match wrong {
            Wrong::One => ONE_DAMAGED,
            Wrong::Both => "both copies of its header are damaged",
            Wrong::Foreign => {
                let why = "its header is that of another buffer: somebody has written over it; it is left as it is";
                return Ok(Some(why.to_owned()));
            }
        };
        if !may_write {
            return Ok(Some(format!("{what}; nothing was written")));
        }
        // So the damaged copy is written first, and one is sound at any moment.
        written.newest_at = sound_at;
        let hints = written.header.hints;
        self.write_both(&mut written, hints)?;
        Ok(Some(format!("{what}; it was written again")))
    }
}

/// Opens a buffer's file, and says what helps where it may only be read.
fn open_to(disk: &dyn Disk, owner: &Owner<'_>, mode: OpenMode) -> Result<Arc<dyn File>> {
    disk.open(owner.path, mode).map_err(|error| match mode {
        OpenMode::ReadWrite if error.is_unwritable() => {
            owner.wrong(owner.read_only(&error.to_string()))
        }
        _ => error.into(),
    })
}

/// How a file is opened that is only read, or not.
const fn mode_for(read_only: bool) -> OpenMode {
    match read_only {
        true => OpenMode::Read,
        false => OpenMode::ReadWrite,
    }
}

/// Whether the file is as long as its header says.
fn check_len(owner: &Owner<'_>, header: &FileHeader, len: u64) -> Result<()> {
    if len >= header.octets || owner.may_be_cut {
        return Ok(());
    }
    let (octets, path) = (header.octets, owner.path.display());
    Err(owner.wrong(format!(
        "it has {len} octets, its header says {octets}; it was cut: `truncate -s {octets} '{path}'` gives it its size back, with \
         what is left in it (what was cut off is lost, and told by `newsreel store scrub`); or put a copy there"
    )))
}

/// Whether the sizes in the file are those of the configuration.
fn check_sizes(owner: &Owner<'_>, header: &FileHeader) -> Result<()> {
    let (octets, block) = (header.octets, header.block);
    let (octets_said, block_said) = (owner.config.octets, owner.config.block());
    let octets = match header.becomes() {
        Some(smaller) if smaller == octets_said => smaller,
        _ => octets,
    };
    let differs = |what: &str, key: &str, there: u64, said: u64| {
        (there != said).then(|| {
            format!("it has {there} {what}, the configuration says {said}; set `{key}` to {there}")
        })
    };
    let wrong: Vec<String> = [
        differs("octets", "octets", octets, octets_said),
        differs("octets in a block", "block_octets", block, block_said),
    ]
    .into_iter()
    .flatten()
    .collect();
    if wrong.is_empty() {
        return Ok(());
    }
    let mut why = wrong.join("; ");
    if octets != octets_said {
        let name = &owner.config.name;
        let so = if octets < octets_said {
            "larger"
        } else {
            "smaller"
        };
        why.push_str(&format!(
            ", or make it {so}: `newsreel store resize {name}`"
        ));
    }
    Err(Error::Sizes {
        name: owner.config.name.clone(),
        path: owner.path.to_path_buf(),
        why,
    })
}

/// A stretch, or, where the end of a cycle lies in it, what is in front of that and what is behind.
fn within_cycles(geometry: &Geometry, stretch: Range<Position>) -> Vec<Range<Position>> {
    let (first, last) = (stretch.start.cycle(), stretch.end.cycle());
    if last != first + 1 {
        return vec![stretch];
    }
    let before = Position::checked(first, geometry.data_end).map(|end| stretch.start..end);
    let behind = Position::checked(last, geometry.data_start).map(|start| start..stretch.end);
    before.into_iter().chain(behind).collect()
}
