//! The queue's file, a redb database: made whole or not at all, and opened again where the disk failed.
//!
//! redb does nothing more with a file once reading or writing it has failed, be it that the disk was full for a moment.  The next one who
//! wants something of the queue has it opened again here, as a restart would: what was taken is there.  Where a sync failed, what
//! reads give may never have reached the disk, and nothing may be built on it: all of it is written to another file first, which takes
//! the place of that one when it is on disk.
//! A file that is empty or damaged is refused and stays as it is.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use newsreel_host::{Disk, Error, ErrorKind, OpenMode};
use parking_lot::Mutex;
use redb::{Database, StorageBackend, WriteTransaction};

use super::{NEXT, POSTS, QueueError, Result, TEXTS};
use crate::keep::{OnDisk, is_fault_of_disk, is_of_disk};

/// What the database has in memory, octets.
const MEMORY_OCTETS: usize = 1 << 20;

pub(super) type Fault = Box<redb::Error>;

pub(super) fn fault(error: impl Into<redb::Error>) -> Fault {
    Box::new(error.into())
}

/// Why the file cannot be used.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The disk is full or fails; what it said.
    Disk(String),
    /// What lies there is not what should.
    Content(String),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        match is_of_disk(&error) {
            true => Self::Disk(error.to_string()),
            false => Self::Content(error.to_string()),
        }
    }
}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Self {
        match is_fault_of_disk(&fault) {
            true => Self::Disk(fault.to_string()),
            false => Self::Content(fault.to_string()),
        }
    }
}

/// What redb panics at.
fn damaged() -> Trouble {
    Trouble::Content("it is damaged".to_owned())
}

/// A file of which it is known whether a sync failed.
#[derive(Debug)]
struct Medium {
    file: OnDisk,
    has_lost: Arc<AtomicBool>,
}

impl StorageBackend for Medium {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync_data(&self) -> io::Result<()> {
        let synced = self.file.sync_data();
        if synced.is_err() {
            self.has_lost.store(true, Ordering::Release);
        }
        synced
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.file.write(offset, data)
    }
}

/// The file.
pub(super) struct QueueFile {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    /// None: the disk failed, and it is opened again before anything else is done with it.
    database: Mutex<Option<Database>>,
    /// A sync of it failed.
    has_lost: Arc<AtomicBool>,
}

/// What is said of it.
fn told(path: PathBuf, trouble: Trouble) -> QueueError {
    match trouble {
        Trouble::Disk(why) => QueueError::Disk { path, why },
        Trouble::Content(why) => QueueError::File { path, why },
    }
}

fn database(
    disk: &dyn Disk,
    (path, mode): (&Path, OpenMode),
    has_lost: &Arc<AtomicBool>,
) -> std::result::Result<Database, Trouble> {
    let file = disk.open(path, mode)?;
    let medium = Medium {
        file: OnDisk(file),
        has_lost: Arc::clone(has_lost),
    };
    let opened = || {
        let mut builder = Database::builder();
        builder.set_cache_size(MEMORY_OCTETS);
        let database = builder.create_with_backend(medium).map_err(fault)?;
        let tables = database.begin_write().map_err(fault)?;
        tables.open_table(POSTS).map_err(fault)?;
        tables.open_table(TEXTS).map_err(fault)?;
        tables.open_table(NEXT).map_err(fault)?;
        tables.commit().map_err(fault)?;
        Ok(database)
    };
    match catch_unwind(AssertUnwindSafe(opened)) {
        Ok(opened) => opened.map_err(|fault: Fault| fault.into()),
        Err(_) => Err(damaged()),
    }
}

/// Makes the file, or makes it anew: under its name there is never one that is not whole.
fn make(
    disk: &dyn Disk,
    path: &Path,
    fill: impl FnOnce(&Path) -> std::result::Result<(), Trouble>,
) -> std::result::Result<(), Trouble> {
    let made = path.with_extension("new");
    match disk.remove(&made) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    fill(&made)?;
    Ok(disk.rename(&made, path)?)
}

/// Makes a file with all that is in another.
fn copy(disk: &dyn Disk, from: &Path, to: &Path) -> newsreel_host::Result<()> {
    let from = disk.open(from, OpenMode::ReadWrite)?;
    let to = disk.open(to, OpenMode::CreateNew)?;
    let (mut at, mut left) = (0, from.len()?);
    let mut piece = vec![0; MEMORY_OCTETS];
    while left > 0 {
        piece.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        from.read_exact_at(&mut piece, at)?;
        to.write_at(&piece, at)?;
        at += piece.len() as u64;
        left -= piece.len() as u64;
    }
    to.sync_all()
}

fn opened(
    disk: &dyn Disk,
    path: &Path,
    has_lost: &Arc<AtomicBool>,
) -> std::result::Result<Database, Trouble> {
    if disk.open(path, OpenMode::ReadWrite)?.len()? == 0 {
        return Err(Trouble::Content(
            "it is empty (0 octets), which this server never leaves behind: posts may be lost, by a power cut or a copy that broke off"
                .to_owned(),
        ));
    }
    // Whoever made it may have been killed before its name was on disk.
    disk.sync_dir(path.parent().unwrap_or(Path::new(".")))?;
    database(disk, (path, OpenMode::ReadWrite), has_lost)
}

impl QueueFile {
    /// Opens it, or makes it where there is none.
    pub(super) fn open(disk: &Arc<dyn Disk>, path: PathBuf) -> Result<Self> {
        let has_lost = Arc::default();
        let open = || {
            if !disk.exists(&path)? {
                make(disk.as_ref(), &path, |made| {
                    let made = (made, OpenMode::CreateNew);
                    database(disk.as_ref(), made, &Arc::default()).map(drop)
                })?;
            }
            opened(disk.as_ref(), &path, &has_lost)
        };
        match open() {
            Ok(database) => Ok(Self {
                disk: Arc::clone(disk),
                path,
                database: Mutex::new(Some(database)),
                has_lost,
            }),
            Err(trouble) => Err(told(path, trouble)),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What is said of a post that cannot be read.
    pub(super) fn damaged(&self, number: u64) -> QueueError {
        let why = format!("post {number} is damaged");
        told(self.path.clone(), Trouble::Content(why))
    }

    /// Opens it again.
    fn again(&self) -> std::result::Result<Database, Trouble> {
        let disk = self.disk.as_ref();
        if self.has_lost.load(Ordering::Acquire) {
            make(disk, &self.path, |made| Ok(copy(disk, &self.path, made)?))?;
            self.has_lost.store(false, Ordering::Release);
        }
        opened(disk, &self.path, &self.has_lost)
    }

    /// Does something with the database.
    pub(super) fn guarded<T>(
        &self,
        work: impl FnOnce(&Database) -> std::result::Result<T, Fault>,
    ) -> Result<T> {
        let mut held = self.database.lock();
        let database = match &*held {
            Some(database) => database,
            None => {
                let again = self.again();
                let again = again.map_err(|trouble| told(self.path.clone(), trouble))?;
                tracing::info!(target: "newsreel::cache", path = %self.path.display(), "the posts that wait can be read and written again");
                held.insert(again)
            }
        };
        let trouble = match catch_unwind(AssertUnwindSafe(|| work(database))) {
            Ok(Ok(done)) => return Ok(done),
            Ok(Err(fault)) => fault.into(),
            Err(_) => damaged(),
        };
        if matches!(trouble, Trouble::Disk(_)) {
            *held = None;
        }
        drop(held);
        Err(told(self.path.clone(), trouble))
    }

    /// Changes something; on disk when this returns.
    pub(super) fn change(
        &self,
        changing: impl FnOnce(&WriteTransaction) -> std::result::Result<(), Fault>,
    ) -> Result<()> {
        self.guarded(|database| {
            let writing = database.begin_write().map_err(fault)?;
            changing(&writing)?;
            writing.commit().map_err(fault)
        })
    }
}
