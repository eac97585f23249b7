//! The next segment, made ready before it is needed, by a thread of the journal's own.
//!
//! A prepared segment is written in full once (or is a retired one under a new name and id), has a header and a
//! durable name, so that the commit thread only overwrites: no allocation, no directory sync.  When the thread is
//! late or failed, the commit thread waits for it or does the work itself.  A segment's old frames never count:
//! every frame carries its segment's id, and ids are not reused.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use newsreel_host::{ErrorKind, File, OpenMode};
use newsreel_wire::Sequence;
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::error::{Error, Result};
use crate::format::SegmentHeader;
use crate::shared::Shared;
use crate::table::path_of;

/// How long the thread waits before it tries again what failed.
const RETRY_AFTER: Duration = Duration::from_secs(2);
/// Retired files kept for recycling; more are removed.
const RECYCLABLE_MAX: usize = 1;

/// A segment ready to be begun.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) id: u64,
    pub(crate) path: PathBuf,
    pub(crate) file: Arc<dyn File>,
}

#[derive(Debug, Default)]
struct State {
    wanted: Option<u64>,
    ready: Option<Prepared>,
    /// Someone is preparing, without the lock.
    busy: bool,
    /// Why the last preparation failed, if it did.
    failure: Option<String>,
    /// Retired files, oldest first: taken and removed in this order, so that what is left is the log's end.
    retired: VecDeque<PathBuf>,
    stop: bool,
}

/// What the commit thread and the preparing thread share.
#[derive(Debug)]
pub(crate) struct Preparer {
    shared: Arc<Shared>,
    segment_octets: u64,
    state: Mutex<State>,
    changed: Condvar,
    /// Room left in the segment being written.
    here: AtomicU64,
}

/// Owns the thread; it ends and is joined when this is dropped.
#[derive(Debug)]
pub(crate) struct PreparerThread {
    preparer: Arc<Preparer>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for PreparerThread {
    fn drop(&mut self) {
        self.preparer.state.lock().stop = true;
        self.preparer.changed.notify_all();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread that prepares log segments panicked");
        }
    }
}

impl PreparerThread {
    pub(crate) fn start(preparer: &Arc<Preparer>) -> Result<Self> {
        let own = Arc::clone(preparer);
        let thread = std::thread::Builder::new()
            .name("log-prepare".to_owned())
            .spawn(move || own.run())
            .map_err(|source| Error::Thread { source })?;
        Ok(Self {
            preparer: Arc::clone(preparer),
            thread: Some(thread),
        })
    }
}

impl Preparer {
    pub(crate) fn new(shared: Arc<Shared>, segment_octets: u64) -> Self {
        Self {
            shared,
            segment_octets,
            state: Mutex::default(),
            changed: Condvar::new(),
            here: AtomicU64::new(0),
        }
    }

    /// So much room is left in the segment being written.
    pub(crate) fn set_here(&self, octets: u64) {
        self.here.store(octets, Ordering::Relaxed);
    }

    /// Why there may be no room for so many octets of frames; `None` when there is, or when the next segment is on
    /// its way.
    pub(crate) fn shortage(&self, octets: u64) -> Option<String> {
        let state = self.state.lock();
        let failure = state.failure.as_ref()?;
        (self.here.load(Ordering::Relaxed) < octets).then(|| failure.clone())
    }

    pub(crate) const fn segment_octets(&self) -> u64 {
        self.segment_octets
    }

    /// Asks for segment `id` to be made ready.
    pub(crate) fn request(&self, id: u64) {
        self.state.lock().wanted = Some(id);
        self.changed.notify_all();
    }

    /// Whether the next segment is there, so that it can be begun whatever the disk's room.
    pub(crate) fn is_ready(&self) -> bool {
        self.state.lock().ready.is_some()
    }

    /// Files no longer needed, oldest first.
    pub(crate) fn give_back(&self, paths: impl IntoIterator<Item = PathBuf>) {
        self.state.lock().retired.extend(paths);
        self.changed.notify_all();
    }

    /// Takes segment `id`: the prepared one, or one made now.
    pub(crate) fn take(&self, id: u64) -> Result<Prepared> {
        let mut state = self.state.lock();
        while state.busy {
            self.changed.wait(&mut state);
        }
        if let Some(ready) = state.ready.take_if(|ready| ready.id == id) {
            state.wanted = None;
            return Ok(ready);
        }
        self.prepare(&mut state, id)
    }

    fn run(&self) {
        let mut state = self.state.lock();
        loop {
            let wanted = state
                .wanted
                .filter(|_| state.ready.is_none() && !state.busy);
            let spare_max = if state.stop { 0 } else { RECYCLABLE_MAX };
            if let Some(id) = wanted.filter(|_| !state.stop) {
                match self.prepare(&mut state, id) {
                    Ok(prepared) => state.ready = Some(prepared),
                    Err(error) => {
                        tracing::warn!(%error, "the next log segment could not be prepared");
                        self.changed.wait_for(&mut state, RETRY_AFTER);
                    }
                }
            } else if state.retired.len() > spare_max {
                if let Some(path) = state.retired.pop_front() {
                    MutexGuard::unlocked(&mut state, || self.remove(&path));
                }
            } else if state.stop {
                return;
            } else {
                self.changed.wait(&mut state);
            }
        }
    }

    /// Prepares without the lock; nobody else prepares meanwhile.
    fn prepare(&self, state: &mut MutexGuard<'_, State>, id: u64) -> Result<Prepared> {
        let recycled = state.retired.pop_front();
        state.busy = true;
        let made = MutexGuard::unlocked(state, || self.make(id, recycled.as_deref()));
        state.busy = false;
        state.failure = made.as_ref().err().map(ToString::to_string);
        if made.is_ok() && state.wanted == Some(id) {
            state.wanted = None;
        }
        self.changed.notify_all();
        made
    }

    fn make(&self, id: u64, recycled: Option<&Path>) -> Result<Prepared> {
        let path = path_of(&self.shared.dir, id);
        let reused = recycled.and_then(|old| self.reuse(old, &path));
        let file = match reused {
            Some(file) => file,
            None => self.create(&path)?,
        };
        let header = SegmentHeader {
            spool: self.shared.spool,
            segment: id,
            first: Sequence::ZERO,
            follows: Sequence::ZERO,
            epoch: 0,
        };
        file.write_at(&header.encode(), 0)?;
        file.sync_all()?;
        self.shared.disk.sync_dir(&self.shared.dir)?;
        Ok(Prepared { id, path, file })
    }

    /// A retired segment under its new name; `None` when it does not fit or the disk says no.
    fn reuse(&self, old: &Path, path: &Path) -> Option<Arc<dyn File>> {
        let disk = &self.shared.disk;
        let renamed = disk
            .rename(old, path)
            .and_then(|()| disk.open(path, OpenMode::ReadWrite));
        let file = match renamed {
            Ok(file) => file,
            Err(error) => {
                tracing::warn!(%error, "a retired log segment cannot be recycled");
                return None;
            }
        };
        file.len()
            .is_ok_and(|len| len == self.segment_octets)
            .then_some(file)
    }

    /// A new segment, every octet written; a half-made one is removed.
    fn create(&self, path: &Path) -> Result<Arc<dyn File>> {
        let disk = &self.shared.disk;
        let file = disk.open(path, OpenMode::CreateOrOpen)?;
        let filled = file
            .set_len(0)
            .and_then(|()| file.zero_fill(0, self.segment_octets));
        if let Err(error) = filled {
            self.remove(path);
            return Err(error.into());
        }
        Ok(file)
    }

    fn remove(&self, path: &Path) {
        match self.shared.disk.remove(path) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => tracing::warn!(%error, "an old log segment cannot be removed"),
        }
    }
}
