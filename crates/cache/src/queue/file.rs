//! The queue's file, a redb database: made whole or not at all, and opened again where the disk failed.
//!
//! redb does nothing more with a file once reading or writing it has failed, be it that the disk was full for a moment.  The next one who
//! wants something of the queue has it opened again here, as a restart would: what was taken is there, and nothing else.  It is not
//! opened again where a sync failed: what reads give then may never have reached the disk, and more would be built on it.
//! A file that is empty or damaged is refused and stays as it is.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use newsreel_host::{Disk, ErrorKind, OpenMode};
use parking_lot::Mutex;
use redb::{Database, StorageBackend, WriteTransaction};

use super::{NEXT, POSTS, QueueError, Result, TEXTS};
use crate::keep::OnDisk;

/// What the database has in memory, octets.
const MEMORY_OCTETS: usize = 1 << 20;

pub(super) type Fault = Box<redb::Error>;

pub(super) fn fault(error: impl Into<redb::Error>) -> Fault {
    Box::new(error.into())
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

fn database(
    disk: &dyn Disk,
    (path, mode): (&Path, OpenMode),
    has_lost: &Arc<AtomicBool>,
) -> std::result::Result<Database, String> {
    let file = disk.open(path, mode).map_err(|error| error.to_string())?;
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
        Ok(opened) => opened.map_err(|fault: Fault| fault.to_string()),
        Err(_) => Err("it is damaged".to_owned()),
    }
}

/// Makes an empty queue: under its name there is never a file that is not whole.
fn make(disk: &dyn Disk, path: &Path) -> std::result::Result<(), String> {
    let made = path.with_extension("new");
    match disk.remove(&made) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.to_string()),
        _ => {}
    }
    drop(database(
        disk,
        (&made, OpenMode::CreateNew),
        &Arc::default(),
    )?);
    let renamed = disk.rename(&made, path);
    renamed.map_err(|error| error.to_string())
}

fn opened(
    disk: &dyn Disk,
    path: &Path,
    has_lost: &Arc<AtomicBool>,
) -> std::result::Result<Database, String> {
    let file = disk.open(path, OpenMode::ReadWrite);
    let octets = file.and_then(|file| file.len());
    if octets.map_err(|error| error.to_string())? == 0 {
        return Err(
            "it is empty (0 octets), which this server never leaves behind: posts may be lost, by a power cut or a copy that broke off"
                .to_owned(),
        );
    }
    database(disk, (path, OpenMode::ReadWrite), has_lost)
}

/// Whether what failed is the disk, and not what lies on it.
const fn is_of_disk(fault: &Fault) -> bool {
    matches!(**fault, redb::Error::Io(_) | redb::Error::PreviousIo)
}

impl QueueFile {
    /// Opens it, or makes it where there is none.
    pub(super) fn open(disk: &Arc<dyn Disk>, path: PathBuf) -> Result<Self> {
        let has_lost = Arc::default();
        let open = || {
            let is_there = disk.exists(&path).map_err(|error| error.to_string())?;
            if !is_there {
                make(disk.as_ref(), &path)?;
            }
            let database = opened(disk.as_ref(), &path, &has_lost)?;
            let folder = path.parent().unwrap_or(Path::new("."));
            disk.sync_dir(folder).map_err(|error| error.to_string())?;
            Ok(database)
        };
        match open() {
            Ok(database) => Ok(Self {
                disk: Arc::clone(disk),
                path,
                database: Mutex::new(Some(database)),
                has_lost,
            }),
            Err(why) => Err(QueueError::File { path, why }),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn wrong(&self, why: impl Into<String>) -> QueueError {
        QueueError::File {
            path: self.path.clone(),
            why: why.into(),
        }
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
                let again = opened(self.disk.as_ref(), &self.path, &self.has_lost);
                let again = again.map_err(|why| self.wrong(why))?;
                tracing::info!(target: "newsreel::cache", path = %self.path.display(), "the posts that wait can be read and written again");
                held.insert(again)
            }
        };
        let why = match catch_unwind(AssertUnwindSafe(|| work(database))) {
            Ok(Ok(done)) => return Ok(done),
            Ok(Err(fault)) => {
                if is_of_disk(&fault) && !self.has_lost.load(Ordering::Acquire) {
                    *held = None;
                }
                fault.to_string()
            }
            Err(_) => "it is damaged".to_owned(),
        };
        drop(held);
        Err(self.wrong(why))
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
