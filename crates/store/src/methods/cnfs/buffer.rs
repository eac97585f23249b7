//! One open buffer: its file, and the marks that the sequencer, readers and tools share.
//!
//! The floor rises before anything in the region below it is touched and never falls.  A buffer that failed once
//! takes nothing more until it is opened again.  A buffer that is opened beside a server to look at it looks for the
//! server's floor in the header before it calls anything damaged.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};

use newsreel_host::{Disk, File, OpenMode};
use newsreel_wire::{BufferId, Position, SetId};
use parking_lot::Mutex;

use super::bitmap::Starts;
use super::format::{FileHeader, FileKey, Hints, SECOND_HEADER};
use super::geometry::{Geometry, PAGE_LEN};
use super::memory::Pool;
use super::recent::Recent;
use crate::config::BufferConfig;
use crate::error::{Error, Result};

/// How often a header is read that somebody writes meanwhile.
const LOOKS_MAX: u32 = 3;

/// A buffer as everyone may see it.
#[derive(Debug)]
pub(super) struct Buffer {
    pub(super) id: BufferId,
    pub(super) name: String,
    pub(super) set: SetId,
    /// Where articles are read and written.
    pub(super) file: Arc<dyn File>,
    /// The same file opened once more, for headers and bitmap.  The kernel tells of lost writes once for each open
    /// file: a checkpoint's sync must not take the message that is meant for a batch's.
    side: Arc<dyn File>,
    pub(super) geometry: Geometry,
    pub(super) key: FileKey,
    /// The header it was opened with.
    pub(super) opened: FileHeader,
    /// Its header was made again, and says nothing of where it stood.
    pub(super) is_rescued: bool,
    /// What was wrong when it was opened, if anything.
    complaint: Mutex<Option<String>>,
    pub(super) read_only: bool,
    /// Positions below are gone.
    floor: AtomicU64,
    /// Behind the last record that was placed.
    pub(super) end: AtomicU64,
    /// When that arrived, seconds since 1970.
    pub(super) arrival: AtomicU64,
    /// Behind the last batch that was written.
    pub(super) written: AtomicU64,
    /// Behind the last batch that is surely on the medium.
    pub(super) synced: AtomicU64,
    /// Up to here it may be written.
    pub(super) reserved: AtomicU64,
    suspended: AtomicBool,
    why_suspended: Mutex<String>,
    header: Mutex<Written>,
    pub(super) starts: Mutex<Starts>,
    /// The newest batches, for readers.
    pub(super) recent: Recent,
    /// Batches are written through the page cache.
    pub(super) is_cached: bool,
}

/// The header as it was written last.
#[derive(Debug)]
struct Written {
    header: FileHeader,
    /// Which copy has it; the other one is written next.
    newest_at: u64,
}

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
}

impl Owner<'_> {
    pub(super) fn wrong(&self, why: impl Into<String>) -> Error {
        Error::Buffer {
            name: self.config.name.clone(),
            path: self.path.to_path_buf(),
            why: why.into(),
        }
    }
}

/// What was found in place of a buffer's headers.
#[derive(Debug)]
pub(super) enum Headers {
    /// The newer sound header, where it lies, and what is wrong with the other copy.
    Sound(Box<FileHeader>, u64, Option<String>),
    /// Zeros: nobody has used this file.
    Blank,
    /// Something that is no buffer, or no longer, or of a later version.
    Damaged(String),
    /// Neither copy is as it was written.
    Lost(String),
}

/// Reads both copies of the header and takes the newer sound one.
pub(super) fn read_headers(file: &dyn File) -> Result<Headers> {
    let mut pages = vec![0; 2 * PAGE_LEN];
    let got = file.read_at(&mut pages, 0)?;
    pages.truncate(got);
    if pages.iter().all(|octet| *octet == 0) {
        return Ok(Headers::Blank);
    }
    let (first, second) = pages.split_at(pages.len().min(PAGE_LEN));
    Ok(
        match (FileHeader::decode(first), FileHeader::decode(second)) {
            (Ok(first), Ok(second)) => {
                if (first.uuid, first.spool) != (second.uuid, second.spool) {
                    let why =
                        "its two headers belong to different buffers; put the right file there";
                    return Ok(Headers::Damaged(why.to_owned()));
                }
                if second.generation > first.generation {
                    Headers::Sound(Box::new(second), SECOND_HEADER, None)
                } else {
                    Headers::Sound(Box::new(first), 0, None)
                }
            }
            (Ok(header), Err(why)) => Headers::Sound(Box::new(header), 0, Some(one_damaged(why))),
            (Err(why), Ok(header)) => {
                Headers::Sound(Box::new(header), SECOND_HEADER, Some(one_damaged(why)))
            }
            (Err(why), Err(other)) => {
                let is_whole = FileHeader::is_whole(first) || FileHeader::is_whole(second);
                let why = format!("neither copy of its header can be used ({why}; {other})");
                if is_whole {
                    Headers::Damaged(left_as_it_is(&why))
                } else {
                    Headers::Lost(why)
                }
            }
        },
    )
}

/// What to do about a file whose headers cannot be used.
pub(super) fn left_as_it_is(why: &str) -> String {
    format!(
        "{why}; it is left as it is: if it was a buffer, take it out of the configuration or restore its first 8192 octets \
         from a copy"
    )
}

fn one_damaged(why: &str) -> String {
    format!(
        "one copy of its header is damaged ({why}); the other is used, and both are written at the next checkpoint"
    )
}

/// Whether the sizes in the file are those of the configuration.
fn check_sizes(owner: &Owner<'_>, header: &FileHeader) -> Result<()> {
    let (octets, block) = (header.octets, header.block);
    let (octets_said, block_said) = (owner.config.octets, owner.config.block());
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
    if !wrong.is_empty() {
        return Err(owner.wrong(wrong.join("; ")));
    }
    Ok(())
}

impl Buffer {
    /// Opens a buffer whose newer header is `header`.
    pub(super) fn open(
        disk: &dyn Disk,
        owner: &Owner<'_>,
        read_only: bool,
        (header, newest_at): (FileHeader, u64),
        complaint: Option<String>,
    ) -> Result<Self> {
        if header.spool != owner.spool {
            return Err(owner.wrong(
                "it belongs to another spool; give this one a file of its own, or attach it",
            ));
        }
        if header.name != owner.config.name {
            return Err(owner.wrong(format!(
                "it is buffer {:?}; mend the paths in the configuration",
                header.name
            )));
        }
        let mode = if read_only {
            OpenMode::Read
        } else {
            OpenMode::ReadWrite
        };
        let file = disk.open(owner.path, mode)?;
        let len = file.len()?;
        if len < header.octets {
            return Err(owner.wrong(format!(
                "it has {len} octets, its header says {}; it was cut: restore it, or take it out of the configuration",
                header.octets
            )));
        }
        check_sizes(owner, &header)?;
        let Some(geometry) = header.geometry() else {
            return Err(owner.wrong("sizes in the file header"));
        };
        Ok(Self {
            id: BufferId(header.buffer),
            name: header.name.clone(),
            set: owner.set,
            file,
            side: disk.open(owner.path, mode)?,
            geometry,
            key: FileKey::of(&header.uuid),
            is_rescued: false,
            complaint: Mutex::new(complaint),
            read_only,
            floor: AtomicU64::new(header.hints.reserved.one_cycle_before().0),
            end: AtomicU64::new(header.hints.end.0),
            arrival: AtomicU64::new(header.hints.arrival.0),
            written: AtomicU64::new(header.hints.end.0),
            synced: AtomicU64::new(header.hints.end.0),
            reserved: AtomicU64::new(header.hints.reserved.0),
            suspended: AtomicBool::new(false),
            why_suspended: Mutex::default(),
            starts: Mutex::new(Starts::from(header.hints.bitmap_end)),
            recent: Recent::new(owner.recent_octets, Arc::clone(owner.pool)),
            is_cached: owner.config.cached,
            opened: header.clone(),
            header: Mutex::new(Written { header, newest_at }),
        })
    }

    /// Positions below this are gone.
    pub(super) fn floor(&self) -> Position {
        Position(self.floor.load(Ordering::SeqCst))
    }

    /// Whether a record that does not look sound should: then it is damaged.  Who only looks beside a server keeps the
    /// floor of when it looked first, as views and log do; what the server overwrites since is told by the header, which
    /// it writes before.
    pub(super) fn should_be_sound(&self, position: Position) -> bool {
        fence(Ordering::SeqCst);
        position >= self.floor() && !(self.read_only && position < self.floor_by_now())
    }

    /// The floor of the header as it is in the file.
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

    /// Everything below `floor` is gone from now on; it never comes back.
    pub(super) fn raise_floor(&self, floor: Position) {
        self.floor.fetch_max(floor.0, Ordering::SeqCst);
    }

    /// The floor as the log has it, which may lie below the hint of the header when the log is older.
    pub(super) fn reset_floor(&self, floor: Position) {
        self.floor.store(floor.0, Ordering::SeqCst);
    }

    /// Whether it takes articles.
    pub(super) fn is_usable(&self) -> bool {
        !self.read_only && !self.suspended.load(Ordering::Relaxed)
    }

    /// Takes it out of use; what is in it can still be read.
    pub(super) fn suspend(&self, why: &str) {
        let mut told = self.why_suspended.lock();
        if !self.suspended.swap(true, Ordering::Relaxed) {
            why.clone_into(&mut told);
        }
    }

    /// A write to it that failed suspends it.
    pub(super) fn unless_failed(&self, result: newsreel_host::Result<()>) -> Result<()> {
        result.map_err(|error| {
            self.suspend(&error.to_string());
            error.into()
        })
    }

    /// Why it takes nothing, if so.
    pub(super) fn suspension(&self) -> Option<String> {
        let is_suspended = self.suspended.load(Ordering::Relaxed);
        is_suspended.then(|| self.why_suspended.lock().clone())
    }

    /// Notes what people should know of it.
    pub(super) fn complain(&self, why: String) {
        *self.complaint.lock() = Some(why);
    }

    /// What was wrong when it was opened, if anything.
    pub(super) fn complaint(&self) -> Option<String> {
        self.complaint.lock().clone()
    }

    /// An error that says it is suspended.
    pub(super) fn suspended_error(&self) -> Option<Error> {
        Some(Error::Suspended {
            name: self.name.clone(),
            why: self.suspension()?,
        })
    }

    /// The file for headers and bitmap.
    pub(super) fn side(&self) -> &dyn File {
        self.side.as_ref()
    }

    /// The newest hints written to its header.
    pub(super) fn written_hints(&self) -> Hints {
        self.header.lock().header.hints
    }

    /// Its true end was found: so the header says from its next writing on.
    pub(super) fn know(&self, hints: Hints) {
        self.header.lock().header.hints = hints;
    }

    /// Writes the older copy of the header, beside a batch and synced with it: so the header is never far behind, and
    /// a log that is too old is noticed.
    pub(super) fn write_header_with_batch(&self, hints: Hints) -> newsreel_host::Result<()> {
        self.header.lock().write(self.file.as_ref(), hints)
    }

    /// Brings both copies up to date, one after the other, so that one is sound at any moment.
    pub(super) fn write_both_headers(&self, hints: Hints) -> newsreel_host::Result<()> {
        let mut written = self.header.lock();
        // What a batch wrote last must be safe before the other copy is touched.
        self.side.sync_data()?;
        for _ in 0..2 {
            written.write(self.side.as_ref(), hints)?;
            self.side.sync_data()?;
        }
        Ok(())
    }
}

impl Written {
    fn write(&mut self, file: &dyn File, hints: Hints) -> newsreel_host::Result<()> {
        let next = FileHeader {
            generation: self.header.generation + 1,
            hints: self.header.hints.merge(hints),
            ..self.header.clone()
        };
        let at = SECOND_HEADER - self.newest_at;
        file.write_at(&next.encode(), at)?;
        (self.header, self.newest_at) = (next, at);
        Ok(())
    }
}
