//! The file system itself: nodes, names, files and listings of the view over a real directory.
//!
//! A node is the number of its real inode, so all names of a file are one node and nothing here has to follow renames;
//! only the root is always [`ROOT`].  Nothing is known of FUSE.  Whether somebody may do what is asked was decided by
//! the kernel before; what is made belongs to the caller.

mod attributes;
mod converting;
mod extended;
mod files;
mod listing;
mod names;
mod parents;
mod status;

use std::ffi::OsStr;
use std::ops::Deref;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::Receiver;

use newsreel_host::folder::FolderLock;
use newsreel_host::node::{
    Errno, Handle, HandleRoot, OpenFile, Outcome, Pin, Room, Stamp, Stat, TimeChange, look_at,
    set_times,
};
use newsreel_host::{Clock, Folder};
use newsreel_layout::{Algorithm, SET_UID};
use parking_lot::Mutex;

use crate::changes::ChangeTable;
use crate::counters::{Counters, Op};
use crate::error::{Error, Result};
use crate::folders::{Dir, Folders, Place, parsed};
use crate::gate::{Gate, Inside};
use crate::graves::Graves;
use crate::naming::Naming;
use crate::nodes::{Nodes, generation};
use crate::notices::{BitKept, Notices};
use crate::open::Open;
use crate::orders::Told;
use crate::reach::Reach;

pub use attributes::Changes;
pub(crate) use extended::is_order;
pub use listing::Item;
use listing::Stream;
pub use status::STATUS_ATTRIBUTE;

/// The node of the directory that is mounted.
pub const ROOT: u64 = 1;

/// So often a name is looked for again whose bucket went away meanwhile.
const ATTEMPTS: u32 = 100;

/// How a view behaves.
#[derive(Debug, Clone, Copy, Default)]
pub struct Settings {
    /// How directories are managed whose set-uid bit is set through the view.
    pub algorithm: Algorithm,
    /// Whether directories made in managed ones are managed.
    pub inherits: bool,
    /// Whether it is an error to change the set-uid bit of a directory that is not empty.
    pub is_strict: bool,
    /// Whether others change the real directory meanwhile.
    pub is_shared: bool,
    /// Whether files are reached by their names even where their handles may be opened: as for an ordinary user.
    pub is_by_name: bool,
}

/// A node as it is now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Its number, to ask for it again.
    pub node: u64,
    /// What tells it from another inode that had the number before.
    pub generation: u64,
    /// All about it.
    pub stat: Stat,
}

impl Entry {
    /// Whether it is known beside its name, its kind and its inode's number.
    pub(crate) const fn is_reached(&self) -> bool {
        self.node == ROOT || self.node == self.stat.inode
    }
}

/// A view.
#[derive(Debug)]
pub struct View {
    top: Folder,
    reach: Reach,
    /// The real inode of [`ROOT`], and its device.
    top_inode: u64,
    device: (u32, u32),
    settings: Settings,
    clock: Arc<dyn Clock>,
    nodes: Nodes,
    graves: Graves,
    folders: Folders,
    gate: Gate,
    /// Held by the conversion that is carried out, and from the end of the mount on.
    ordering: Mutex<()>,
    naming: Naming,
    changes: ChangeTable,
    files: Open<OpenFile>,
    streams: Open<Stream>,
    /// How many names all listings have in memory.
    names_held: Arc<AtomicUsize>,
    counters: Counters,
    notices: Notices,
    told: Told,
    _lock: FolderLock,
}

/// A directory in which something is done: it is not converted meanwhile.
#[derive(Debug)]
struct InUse<'v> {
    dir: Arc<Dir>,
    _inside: Inside<'v>,
}

impl Deref for InUse<'_> {
    type Target = Dir;

    fn deref(&self) -> &Dir {
        &self.dir
    }
}

impl View {
    /// A view of the directory `lower`, which is locked for as long as it lives: alone, or with others of its kind.
    pub fn new(lower: Folder, settings: Settings, clock: Arc<dyn Clock>) -> Result<Self> {
        let lock = if settings.is_shared {
            lower.lock_shared()
        } else {
            lower.lock()
        };
        let lock = lock.map_err(|error| match error {
            newsreel_host::Error::Locked { path, pid } => Error::InUse { path, pid },
            error => error.into(),
        })?;
        let asked = || Ok::<_, Errno>((Handle::of(&lower)?, Stat::of(&lower)?));
        let no_handles = |errno: Errno| Error::NoHandles {
            path: lower.path().to_path_buf(),
            source: errno.into(),
        };
        let (handle, stat) = asked().map_err(no_handles)?;
        let handles = HandleRoot::of(&lower).map_err(no_handles)?;
        let reach = match Pin::by_handle(&handles, &handle) {
            Err(Errno::PERM) => Reach::Names(Mutex::default()),
            _ if settings.is_by_name => Reach::Names(Mutex::default()),
            other => other.map(|_| Reach::Handles(handles)).map_err(no_handles)?,
        };
        Ok(Self {
            reach,
            top_inode: stat.inode,
            device: stat.device,
            settings,
            clock,
            nodes: Nodes::default(),
            graves: Graves::default(),
            folders: Folders::new(settings.is_shared),
            gate: Gate::default(),
            ordering: Mutex::default(),
            naming: Naming::default(),
            changes: ChangeTable::default(),
            files: Open::default(),
            streams: Open::default(),
            names_held: Arc::default(),
            counters: Counters::default(),
            notices: Notices::default(),
            told: Told::default(),
            top: lower,
            _lock: lock,
        })
    }

    /// What was asked for so far.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// What it does otherwise than it is asked to, from now on until it ends; for one listener.
    #[must_use]
    pub fn notices(&self) -> Receiver<BitKept> {
        self.notices.listen()
    }

    /// Whether it was made by root, so that files are reached by handles and everybody can be let in.
    #[must_use]
    pub const fn is_for_everybody(&self) -> bool {
        !self.reach.is_by_name()
    }

    /// How it behaves.
    #[must_use]
    pub const fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Finds a name in a directory; counts as one lookup of its node.
    pub fn lookup(&self, parent: u64, name: &OsStr) -> Outcome<Entry> {
        self.counters.count(Op::Lookup);
        let found = match name.as_encoded_bytes() {
            // Asked for by a server of NFS that has only a handle; of files, too.
            b"." => self.pin(parent).and_then(|pin| self.entry(&*pin)),
            b".." => self.dir(parent).and_then(|dir| self.parent_of(&dir)),
            _ => self.dir(parent).and_then(|dir| self.find_in(&dir, name)),
        };
        if found == Err(Errno::NOENT) {
            self.counters.count(Op::Missing);
        }
        found
    }

    /// The kernel takes back so many lookups of a node; says whether it knows the node no longer.
    pub fn forget(&self, node: u64, lookups: u64) -> bool {
        self.counters.count(Op::Forget);
        if node == ROOT {
            return false;
        }
        if self.changes.changed(node).is_some() {
            // Said before the way to the node is lost.  That it cannot be said is nothing the kernel could be told.
            let _ = self.write_time(node);
        }
        let is_forgotten = self.nodes.forget(node, lookups);
        if is_forgotten {
            self.graves.release(node);
            self.reach.forget(node);
            self.folders.drop(node);
        }
        is_forgotten
    }

    /// The room of the file system below.
    pub fn room(&self) -> Outcome<Room> {
        self.counters.count(Op::StatFs);
        Room::of(&self.top)
    }

    /// Writes what is known in memory only; for the end.
    pub fn settle(&self) {
        for node in self.changes.overdue(true) {
            let _ = self.write_time(node);
        }
    }

    /// An inode that was reached, as a node that the kernel will know of.
    fn entry(&self, reached: impl AsFd) -> Outcome<Entry> {
        let reached = reached.as_fd();
        self.entry_of(Stat::of(reached)?, || Handle::of(reached))
    }

    /// The same of an inode of which all is known.
    fn entry_of(&self, stat: Stat, handle: impl FnOnce() -> Outcome<Handle>) -> Outcome<Entry> {
        let stat = self.told(stat);
        if stat.device != self.device {
            return Err(Errno::XDEV);
        }
        let handle = handle()?;
        let entry = Entry {
            node: self.node_of(&stat),
            generation: generation(&handle),
            stat,
        };
        if entry.node == ROOT && stat.inode != self.top_inode {
            // An inode that has the root's number: no file system gives it to an entry.
            return Err(Errno::IO);
        }
        if entry.node != ROOT && self.nodes.remember(entry.node, &handle) {
            // Nothing that was known of the number is true of the inode that has it now.
            self.folders.drop(entry.node);
            self.changes.drop(entry.node);
            self.told.drop(entry.node);
        }
        Ok(entry)
    }

    /// The number of an inode's node.
    const fn node_of(&self, stat: &Stat) -> u64 {
        if stat.inode == self.top_inode {
            ROOT
        } else {
            stat.inode
        }
    }

    /// What is told of an inode: a managed directory has one name, and changes whenever one of its buckets does.
    fn told(&self, mut stat: Stat) -> Stat {
        if stat.is_folder() && stat.mode & SET_UID != 0 {
            // One that was removed has none.
            stat.links = stat.links.min(1);
            if let Some(changed) = self.changes.changed(self.node_of(&stat)) {
                stat.modified = stat.modified.max(changed);
                stat.changed = stat.changed.max(changed);
            }
        }
        stat
    }

    /// The same of one that was reached by a name.
    fn entry_at(&self, dir: &Dir, name: &OsStr, reached: impl AsFd) -> Outcome<Entry> {
        let entry = self.entry(reached)?;
        self.reach.seen(entry.node, dir, name);
        Ok(entry)
    }

    /// Reaches a node.
    fn pin(&self, node: u64) -> Outcome<Arc<Pin>> {
        if node == ROOT {
            return Pin::at(&self.top, OsStr::new(".")).map(Arc::new);
        }
        let reached = self
            .reach
            .pin(node, &self.nodes, &self.graves, |parent, name| {
                let dir = self.dir(parent)?;
                self.pin_in(&dir, name)
            });
        match reached {
            // Whatever became of its names: who has it open may do with its descriptor what they may natively.
            Err(Errno::STALE) => match self.files.on(node) {
                Some(file) => Pin::of_file(&file).map(Arc::new),
                None => Err(Errno::STALE),
            },
            reached => reached,
        }
    }

    /// Opens the file of a node; `flags` as of `open(2)`.
    fn open_file(&self, node: u64, flags: i32) -> Outcome<OpenFile> {
        self.reach.open(node, &self.nodes, flags, || self.pin(node))
    }

    /// Goes into a node that is a directory; while it is being converted that waits.
    fn dir(&self, node: u64) -> Outcome<InUse<'_>> {
        let inside = self.gate.enter(node);
        Ok(InUse {
            dir: self.open_dir(node)?,
            _inside: inside,
        })
    }

    /// Reaches a node that is a directory, for what is done with itself only.
    fn open_dir(&self, node: u64) -> Outcome<Arc<Dir>> {
        self.folders.get(node, || {
            let fd = self.pin(node)?.open_folder()?;
            let path = if node == ROOT {
                self.top.path().to_path_buf()
            } else {
                PathBuf::from(format!("inode {node}"))
            };
            Ok(Folder::of_descriptor(fd, path))
        })
    }

    /// Finds an entry of a directory: by its name alone where nobody can exchange it meanwhile, which takes half the
    /// calls.
    fn find_in(&self, dir: &Dir, name: &OsStr) -> Outcome<Entry> {
        if !self.settings.is_shared {
            let look = || self.at(dir, name, |place| look_at(place, name));
            if let Some(seen) = self.naming.unless_changed(look) {
                let (stat, handle) = seen?;
                let entry = self.entry_of(stat, || Ok(handle))?;
                self.reach.seen(entry.node, dir, name);
                return Ok(entry);
            }
        }
        self.entry_at(dir, name, self.pin_in(dir, name)?)
    }

    /// Reaches an entry of a directory.
    fn pin_in(&self, dir: &Dir, name: &OsStr) -> Outcome<Pin> {
        self.at(dir, name, |place| Pin::at(place, name))
    }

    /// Does something with an existing entry, given the real directory that it lies in.
    fn at<T>(
        &self,
        dir: &Dir,
        name: &OsStr,
        mut act: impl FnMut(&Place<'_>) -> Outcome<T>,
    ) -> Outcome<T> {
        parsed(name)?;
        for _ in 0..ATTEMPTS {
            let place = dir.place(name)?;
            match act(&place) {
                Err(Errno::NOENT) if dir.is_gone(&place) => {}
                other => return other,
            }
        }
        Err(Errno::NOENT)
    }

    /// Something changed among the entries of a directory that lie in this place.
    fn touched(&self, dir: &Dir, place: &Place<'_>) {
        let Some(bucket) = place.bucket() else {
            return;
        };
        let wall = self.clock.now();
        let at = Stamp {
            secs: i64::try_from(wall.secs).unwrap_or(i64::MAX),
            nanos: wall.nanos,
        };
        if self
            .changes
            .note(dir.node, bucket, at, self.clock.monotonic())
        {
            self.write_time_of(dir);
        }
        for node in self.changes.overdue(false) {
            if self.write_time(node).is_err() {
                self.changes.settle(node);
            }
        }
    }

    fn write_time(&self, node: u64) -> Outcome<()> {
        let dir = self.open_dir(node)?;
        self.write_time_of(&dir);
        Ok(())
    }

    /// Writes the last change to the directory.  If that fails, its time is only older than it should be.
    fn write_time_of(&self, dir: &Dir) {
        if let Some(at) = self.changes.settle(dir.node) {
            let _ = set_times(dir.folder(), TimeChange::Keep, TimeChange::To(at));
        }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        self.settle();
    }
}
