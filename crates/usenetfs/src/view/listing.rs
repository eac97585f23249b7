//! Listings of the view: the layout's for managed directories, the file system's own for others; `.` and `..` are set
//! right in both.

use std::ffi::OsStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

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
    state: Mutex<State>,
}

impl Stream {
    /// Whether this is a listing of that directory that goes on from a place in it.
    pub(super) fn is_being_read(&self, node: u64) -> bool {
        self.node == node && self.is_begun.load(Ordering::Relaxed)
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
        Ok(self.streams.put(Stream {
            node,
            state: Mutex::new(State::of(&first)?),
            first: Arc::clone(&first.dir),
            is_begun: AtomicBool::new(false),
        }))
    }

    /// Closes a listing.
    pub fn release_folder(&self, stream: u64) {
        self.streams.release(stream);
    }

    /// Hands the entries behind the place `from` to `take` until it refuses one, or there are no more.
    pub fn list(
        &self,
        stream: u64,
        from: u64,
        mut take: impl FnMut(&Item<'_>) -> Outcome<bool>,
    ) -> Outcome<()> {
        self.counters.count(Op::List);
        self.each(stream, from, &mut |dir, item| {
            if item.kind_bits == FOLDER && !item.is_dots() {
                // What is mounted there is not shown; what has gone meanwhile need not be.
                if self.pin_in(dir, item.name).err() == Some(Errno::XDEV) {
                    return Ok(true);
                }
            }
            take(item)
        })
    }

    /// The same with each entry's node, which counts as a lookup unless the entry is refused.
    pub fn list_plus(
        &self,
        stream: u64,
        from: u64,
        mut take: impl FnMut(&Item<'_>, &Entry) -> Outcome<bool>,
    ) -> Outcome<()> {
        self.counters.count(Op::ListPlus);
        self.each(stream, from, &mut |dir, item| {
            if item.is_dots() {
                let stat = self.told(Stat::of(dir.folder())?);
                let stat = Stat {
                    inode: item.inode,
                    ..stat
                };
                let entry = Entry {
                    node: item.inode,
                    generation: 0,
                    stat,
                };
                return take(item, &entry);
            }
            let entry = match self.find_in(dir, item.name) {
                Err(Errno::NOENT | Errno::XDEV) => return Ok(true),
                other => other?,
            };
            let is_taken = take(item, &entry)?;
            if !is_taken {
                self.forget(entry.node, 1);
            }
            Ok(is_taken)
        })
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
        let dir = now.as_ref().map_or(&*stream.first, |dir| dir);
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
        listed
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
                    0 => self.kind_bits(dir, &found.name)?,
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
                Kind::File => Ok(FILE),
                Kind::Folder => Ok(FOLDER),
                Kind::Link => Ok(LINK),
                Kind::Other => self.kind_bits(dir, &entry.name),
            };
            let taken = kind_bits.and_then(|kind_bits| {
                take(&Item {
                    name: &entry.name,
                    inode: entry.inode,
                    kind_bits,
                    after: after.raw(),
                })
            });
            taken.unwrap_or_else(|errno| {
                failed = Some(errno);
                false
            })
        });
        filled.map_err(|error| errno(&error))?;
        failed.map_or(Ok(()), Err)
    }

    /// What an entry is whose directory does not say; a file, if it is gone.
    fn kind_bits(&self, dir: &Dir, name: &OsStr) -> Outcome<u32> {
        match self.pin_in(dir, name).and_then(Stat::of) {
            Ok(stat) => Ok(stat.kind_bits()),
            Err(Errno::NOENT | Errno::XDEV) => Ok(FILE),
            Err(errno) => Err(errno),
        }
    }
}
