//! Listings of the view: the layout's for managed directories, the file system's own for others; `.` and `..` are set
//! right in both.

use std::ffi::OsStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use newsreel_host::folder::Kind;
use newsreel_host::node::{Errno, FolderStream, Outcome, Stat};
use newsreel_layout::{Algorithm, Cookie, Listing, Managed};
use parking_lot::Mutex;

use super::{Entry, View};
use crate::counters::Op;
use crate::folders::{Dir, errno};

const FOLDER: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;

/// What makes a number that no node has out of that of an inode.
const UNREACHED: u64 = 1 << 63;

/// One entry of a listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item<'a> {
    /// Its name.
    pub name: &'a OsStr,
    /// The number of its inode.
    pub inode: u64,
    /// What it is, as the bits of a mode.
    pub kind_bits: u32,
    /// The place behind it, to go on from.
    pub after: u64,
}

impl Item<'_> {
    /// Whether it is `.` or `..`.
    #[must_use]
    pub fn is_dots(&self) -> bool {
        [OsStr::new("."), OsStr::new("..")].contains(&self.name)
    }
}

/// An open listing.
#[derive(Debug)]
pub(crate) struct Stream {
    node: u64,
    /// What it was opened on, for when the directory is removed meanwhile.
    first: Arc<Dir>,
    /// Whether something of it was told and its end was not.
    is_begun: AtomicBool,
    held: Held,
    state: Mutex<State>,
}

impl Stream {
    /// Whether this is a listing of that directory that goes on from a place in it.
    pub(super) fn is_being_read(&self, node: u64) -> bool {
        self.node == node && self.is_begun.load(Ordering::Relaxed)
    }
}

/// So many names may all listings together have in memory, some 100 octets each, beside those of the one that is read last: with
/// more, the others read theirs again when they go on.
const NAMES_HELD_MAX: usize = 1 << 20;

/// How many names a listing has in memory, counted among those of all.
#[derive(Debug)]
struct Held {
    own: AtomicUsize,
    all: Arc<AtomicUsize>,
}

impl Held {
    fn new(all: &Arc<AtomicUsize>) -> Self {
        Self {
            own: AtomicUsize::new(0),
            all: Arc::clone(all),
        }
    }

    /// Says how many all have then.
    fn set(&self, own: usize) -> usize {
        let before = self.own.swap(own, Ordering::Relaxed);
        let all = self.all.fetch_add(own, Ordering::Relaxed) + own;
        self.all.fetch_sub(before, Ordering::Relaxed);
        all.saturating_sub(before)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[derive(Debug)]
enum State {
    Flat(FolderStream),
    Managed(Algorithm, Listing),
}

impl State {
    fn of(dir: &Dir) -> Outcome<Self> {
        Ok(match dir.managed() {
            Some(managed) => Self::Managed(managed.algorithm(), Listing::default()),
            None => Self::Flat(FolderStream::of(dir.folder())?),
        })
    }

    /// How many names it has in memory.
    fn held(&self) -> usize {
        match self {
            Self::Flat(_) => 0,
            Self::Managed(_, listing) => listing.held(),
        }
    }

    /// Whether it is for a directory as this one is now.
    fn fits(&self, dir: &Dir) -> bool {
        match (self, dir.managed()) {
            (Self::Flat(_), None) => true,
            (Self::Managed(algorithm, _), Some(managed)) => *algorithm == managed.algorithm(),
            _ => false,
        }
    }
}

/// Takes an entry, or refuses it because there is no more room.
type Take<'a> = dyn FnMut(&Item<'_>) -> Outcome<bool> + 'a;

impl View {
    /// Opens a directory to list it.
    pub fn open_folder(&self, node: u64) -> Outcome<u64> {
        self.counters.count(Op::OpenFolder);
        let first = self.dir(node)?;
        if first.is_under_way() {
            return Err(Errno::BUSY);
        }
        Ok(self.streams.put(
            node,
            Stream {
                node,
                state: Mutex::new(State::of(&first)?),
                first: Arc::clone(&first.dir),
                is_begun: AtomicBool::new(false),
                held: Held::new(&self.names_held),
            },
        ))
    }

    /// Closes a listing.
    pub fn release_folder(&self, stream: u64) {
        self.streams.release(stream);
    }

    /// Hands the entries behind the place `from` to `take` until it refuses one, or there are no more.  An error is told when
    /// nothing comes before it; else whoever goes on where it ended meets it first.
    pub fn list(
        &self,
        stream: u64,
        from: u64,
        mut take: impl FnMut(&Item<'_>) -> Outcome<bool>,
    ) -> Outcome<()> {
        self.counters.count(Op::List);
        let mut is_told = false;
        let listed = self.each(stream, from, &mut |dir, item| {
            if item.kind_bits == FOLDER && !item.is_dots() {
                // What is mounted there is not shown; what has gone meanwhile need not be.
                if self.pin_in(dir, item.name).err() == Some(Errno::XDEV) {
                    return Ok(true);
                }
            }
            let is_taken = take(item)?;
            is_told |= is_taken;
            Ok(is_taken)
        });
        listed.or_else(|errno| if is_told { Ok(()) } else { Err(errno) })
    }

    /// The same with each entry's node, which counts as a lookup unless the entry is refused.  One that cannot be reached has
    /// a node that there is not: whoever wants it looks it up, and learns why.
    pub fn list_plus(
        &self,
        stream: u64,
        from: u64,
        mut take: impl FnMut(&Item<'_>, &Entry) -> Outcome<bool>,
    ) -> Outcome<()> {
        self.counters.count(Op::ListPlus);
        let mut is_told = false;
        let listed = self.each(stream, from, &mut |dir, item| {
            let (entry, is_counted) = if item.is_dots() {
                (unreached(dir, item, item.inode)?, false)
            } else {
                match self.find_in(dir, item.name) {
                    Ok(entry) => (entry, true),
                    Err(Errno::NOENT | Errno::XDEV) => return Ok(true),
                    Err(_) => (unreached(dir, item, item.inode ^ UNREACHED)?, false),
                }
            };
            let is_taken = take(item, &entry)?;
            if is_counted && !is_taken {
                self.forget(entry.node, 1);
            }
            is_told |= is_taken;
            Ok(is_taken)
        });
        listed.or_else(|errno| if is_told { Ok(()) } else { Err(errno) })
    }

    fn each(
        &self,
        stream: u64,
        from: u64,
        take: &mut dyn FnMut(&Dir, &Item<'_>) -> Outcome<bool>,
    ) -> Outcome<()> {
        let stream = self.streams.get(stream)?;
        // The bit may have been set or taken off since the directory was opened.
        let now = self.dir(stream.node);
        let dir = match &now {
            Ok(dir) => &**dir,
            // It was removed meanwhile.
            Err(Errno::NOENT | Errno::STALE) => &*stream.first,
            Err(errno) => return Err(*errno),
        };
        if dir.is_under_way() {
            return Err(Errno::BUSY);
        }
        let mut state = stream.state.lock();
        if !state.fits(dir) {
            *state = State::of(dir)?;
        }
        let mut is_begun = false;
        let mut take = |item: &Item<'_>| {
            is_begun = true;
            take(dir, item)
        };
        let listed = match (&mut *state, dir.managed()) {
            (State::Managed(_, listing), Some(managed)) => {
                self.managed(dir, managed, listing, from, &mut take)
            }
            (State::Flat(entries), _) => self.flat(dir, entries, from, &mut take),
            (State::Managed(..), None) => Err(Errno::IO),
        };
        stream.is_begun.store(is_begun, Ordering::Relaxed);
        if stream.held.set(state.held()) > NAMES_HELD_MAX {
            self.let_others_go();
        }
        listed
    }

    /// Has every other listing forget the names it has in memory.
    fn let_others_go(&self) {
        self.streams.each(|other| {
            // One that is being read goes on with what it has, as the one does on whose account this is.
            if let Some(mut state) = other.state.try_lock()
                && let State::Managed(_, listing) = &mut *state
            {
                listing.let_go();
                other.held.set(0);
            }
        });
    }

    fn flat(
        &self,
        dir: &Dir,
        entries: &mut FolderStream,
        from: u64,
        take: &mut Take<'_>,
    ) -> Outcome<()> {
        entries.fill(from, |found| {
            let is_above = found.name == "..";
            take(&Item {
                name: &found.name,
                inode: if is_above {
                    self.parent_inode(dir)?
                } else {
                    found.inode
                },
                kind_bits: match found.kind_bits {
                    0 => self.kind_bits(dir, &found.name),
                    known => known,
                },
                after: found.after,
            })
        })
    }

    fn managed(
        &self,
        dir: &Dir,
        managed: &Managed,
        listing: &mut Listing,
        from: u64,
        take: &mut Take<'_>,
    ) -> Outcome<()> {
        let mut from = Cookie::from_raw(from);
        for (name, place) in [(".", Cookie::DOT), ("..", Cookie::DOT_DOT)] {
            if from >= place {
                continue;
            }
            let inode = match name {
                "." => Stat::of(dir.folder())?.inode,
                _ => self.parent_inode(dir)?,
            };
            let dots = Item {
                name: OsStr::new(name),
                inode,
                kind_bits: FOLDER,
                after: place.raw(),
            };
            if !take(&dots)? {
                return Ok(());
            }
            from = place;
        }
        let mut failed = None;
        let filled = listing.fill(managed, from, |entry, after| {
            let kind_bits = match entry.kind {
                Kind::File => FILE,
                Kind::Folder => FOLDER,
                Kind::Link => LINK,
                Kind::Other => self.kind_bits(dir, &entry.name),
            };
            let taken = take(&Item {
                name: &entry.name,
                inode: entry.inode,
                kind_bits,
                after: after.raw(),
            });
            taken.unwrap_or_else(|errno| {
                failed = Some(errno);
                false
            })
        });
        filled.map_err(|error| errno(&error))?;
        failed.map_or(Ok(()), Err)
    }

    /// What an entry is whose directory does not say; a file, if it cannot be reached.
    fn kind_bits(&self, dir: &Dir, name: &OsStr) -> u32 {
        let stat = self.pin_in(dir, name).and_then(Stat::of);
        stat.map_or(FILE, |stat| stat.kind_bits())
    }
}

/// What is told of an entry beside its directory's own: its inode and its kind.
fn unreached(dir: &Dir, item: &Item<'_>, node: u64) -> Outcome<Entry> {
    let stat = Stat::of(dir.folder())?;
    Ok(Entry {
        node,
        generation: 0,
        stat: Stat {
            inode: item.inode,
            mode: item.kind_bits | stat.mode & 0o777,
            ..stat
        },
    })
}
