//! Making, linking, renaming and removing names of the view.

use std::ffi::OsStr;
use std::os::fd::AsFd;

use newsreel_host::caller::obey_quotas;
use newsreel_host::node::{
    Errno, Outcome, Pin, Renaming, Stat, create_file, link, make_folder, make_node, make_symlink,
    open_bucket, remove, remove_folder, rename,
};
use newsreel_host::{Caller, Folder};
use newsreel_layout::{Bucket, Mark, Opened};

use super::{ATTEMPTS, Entry, View};
use crate::counters::Op;
use crate::folders::{Dir, Place, errno, parsed};

/// `O_EXCL`.
const EXCLUSIVE: i32 = 0o200;

impl View {
    /// Makes a file and opens it; the number to reach the open file by comes with it.
    pub fn create(
        &self,
        parent: u64,
        name: &OsStr,
        mode: u32,
        flags: i32,
        caller: Caller,
    ) -> Outcome<(Entry, u64)> {
        self.counters.count(Op::Create);
        let dir = self.dir(parent)?;
        let made = self.making(&dir, name, |place| {
            let file = caller.act(|| create_file(place, name, flags, mode))?;
            let entry = or_unmade(self.entry_at(&dir, name, &file), place, name)?;
            Ok((entry, file))
        });
        let (entry, file) = match made {
            // Somebody else made it meanwhile: the kernel looks it up again, and asks whether it may be opened.
            Err(Errno::EXIST) if flags & EXCLUSIVE == 0 => return Err(Errno::STALE),
            other => other?,
        };
        Ok((entry, self.files.put(entry.node, file)))
    }

    /// Makes a file, a pipe, a socket or a device.
    pub fn make_node(
        &self,
        parent: u64,
        name: &OsStr,
        mode: u32,
        device: (u32, u32),
        caller: Caller,
    ) -> Outcome<Entry> {
        self.counters.count(Op::MakeNode);
        let dir = self.dir(parent)?;
        self.making(&dir, name, |place| {
            caller.act(|| make_node(place, name, mode, device))?;
            let reached = Pin::at(place, name).and_then(|pin| self.entry_at(&dir, name, pin));
            or_unmade(reached, place, name)
        })
    }

    /// Makes a directory; in a managed one it is managed only if the settings say so.
    pub fn make_folder(
        &self,
        parent: u64,
        name: &OsStr,
        mode: u32,
        caller: Caller,
    ) -> Outcome<Entry> {
        self.counters.count(Op::MakeFolder);
        let dir = self.dir(parent)?;
        let inherited = dir.managed().filter(|_| self.settings.inherits);
        self.making(&dir, name, |place| {
            caller.act(|| make_folder(place, name, mode))?;
            let marked = || {
                let pin = Pin::at(place, name)?;
                if let Some(above) = inherited {
                    let made = Folder::of_descriptor(pin.open_folder()?, name.into());
                    Mark::set(&made, above.algorithm()).map_err(|error| errno(&error))?;
                }
                self.entry_at(&dir, name, pin)
            };
            marked().inspect_err(|_| {
                let _ = remove_folder(place, name);
            })
        })
    }

    /// Makes a symbolic link; its text is kept as it is.
    pub fn make_symlink(
        &self,
        parent: u64,
        name: &OsStr,
        text: &OsStr,
        caller: Caller,
    ) -> Outcome<Entry> {
        self.counters.count(Op::Symlink);
        let dir = self.dir(parent)?;
        self.making(&dir, name, |place| {
            caller.act(|| make_symlink(place, name, text))?;
            let reached = Pin::at(place, name).and_then(|pin| self.entry_at(&dir, name, pin));
            or_unmade(reached, place, name)
        })
    }

    /// Gives a node one more name, in any directory.
    pub fn link(&self, node: u64, parent: u64, name: &OsStr) -> Outcome<Entry> {
        self.counters.count(Op::Link);
        let (pin, dir) = (self.pin(node)?, self.dir(parent)?);
        self.making(&dir, name, |place| {
            link(&pin, place, name)?;
            or_unmade(self.entry_at(&dir, name, &*pin), place, name)
        })
    }

    /// Removes a name that is no directory's.
    pub fn unlink(&self, parent: u64, name: &OsStr) -> Outcome<()> {
        self.counters.count(Op::Unlink);
        let dir = self.dir(parent)?;
        let _change = self.naming.change();
        self.at(&dir, name, |place| {
            let victim = Victim::of(place, name)?;
            remove(place, name)?;
            self.bury(victim);
            self.left(&dir, place);
            Ok(())
        })
    }

    /// Removes a directory in whose view nothing is.
    pub fn remove_folder(&self, parent: u64, name: &OsStr) -> Outcome<()> {
        self.counters.count(Op::RemoveFolder);
        let dir = self.dir(parent)?;
        let _change = self.naming.change();
        self.at(&dir, name, |place| {
            let victim = Victim::of(place, name)?;
            empty(place, name)?;
            remove_folder(place, name)?;
            self.told.drop(victim.inode);
            self.bury(victim);
            self.left(&dir, place);
            Ok(())
        })
    }

    /// Gives an entry another name, here or in another directory.
    pub fn rename(
        &self,
        parent: u64,
        name: &OsStr,
        new_parent: u64,
        new_name: &OsStr,
        how: Renaming,
    ) -> Outcome<()> {
        self.counters.count(Op::Rename);
        let (from, to) = (self.dir(parent)?, self.dir(new_parent)?);
        let _change = self.naming.change();
        self.at(&from, name, |old| {
            // Looked for first, so that no bucket is made for what is not there.
            Pin::at(old, name)?;
            self.making(&to, new_name, |new| {
                let victim = match how == Renaming::default() {
                    true => match Victim::of(new, new_name) {
                        Err(Errno::NOENT) => None,
                        found => Some(found?),
                    },
                    false => None,
                };
                let mut renamed = rename(old, name, new, new_name, how);
                let in_the_way = matches!(renamed, Err(Errno::NOTEMPTY | Errno::EXIST));
                if in_the_way && victim.is_some() && self.is_folder(old, name) {
                    // What is there may be a managed directory that only seems to hold something.
                    empty(new, new_name)?;
                    renamed = rename(old, name, new, new_name, how);
                }
                renamed?;
                victim.into_iter().for_each(|victim| self.bury(victim));
                self.moved(&to, new, new_name);
                if how.exchange {
                    self.moved(&from, old, name);
                }
                Ok(())
            })?;
            self.left(&from, old);
            Ok(())
        })
    }

    /// Something has another name now.
    fn moved(&self, dir: &Dir, place: &Place<'_>, name: &OsStr) {
        if !self.reach.is_by_name() {
            return;
        }
        if let Ok(stat) = Pin::at(place, name).and_then(Stat::of)
            && self.nodes.knows(stat.inode)
        {
            self.reach.seen(stat.inode, dir, name);
        }
    }

    /// Something lost a name: if that was its last one, its number stays its own for as long as the kernel knows it.
    fn bury(&self, victim: Victim) {
        let Victim { pin, inode, links } = victim;
        // Where nobody else makes or removes names, what had one name before has none now.
        let is_gone = match links {
            1 if !self.settings.is_shared => true,
            _ => Stat::of(&pin).is_ok_and(|stat| stat.links == 0),
        };
        if !is_gone {
            return;
        }
        self.folders.drop(inode);
        self.changes.drop(inode);
        if self.nodes.knows(inode) {
            self.graves.hold(inode, pin);
        }
    }

    fn is_folder(&self, place: impl AsFd, name: &OsStr) -> bool {
        let stat = Pin::at(place, name).and_then(Stat::of);
        stat.is_ok_and(|stat| stat.is_folder())
    }

    /// Does something that makes a name, in a bucket that is made when it is missing.
    fn making<T>(
        &self,
        dir: &Dir,
        name: &OsStr,
        mut make: impl FnMut(&Place<'_>) -> Outcome<T>,
    ) -> Outcome<T> {
        // A bucket is made before anything is done as the caller.
        obey_quotas()?;
        let _change = self.naming.change();
        self.graves
            .make_room(|| self.making_once(dir, name, &mut make))
    }

    fn making_once<T>(
        &self,
        dir: &Dir,
        name: &OsStr,
        make: &mut impl FnMut(&Place<'_>) -> Outcome<T>,
    ) -> Outcome<T> {
        let parsed = parsed(name)?;
        let mut is_new = false;
        for _ in 0..ATTEMPTS {
            match dir.place(name) {
                Ok(place) => match make(&place) {
                    Err(Errno::NOENT) if dir.is_gone(&place) => {}
                    Err(errno) => {
                        if is_new {
                            self.tidy(dir, &place);
                        }
                        return Err(errno);
                    }
                    Ok(made) => {
                        self.touched(dir, &place);
                        return Ok(made);
                    }
                },
                Err(Errno::NOENT) => {}
                Err(errno) => return Err(errno),
            }
            let Some(managed) = dir.managed() else {
                return Err(Errno::NOENT);
            };
            let bucket = managed.algorithm().bucket(parsed);
            managed.make_bucket(bucket).map_err(|error| errno(&error))?;
            is_new = true;
        }
        Err(Errno::NOENT)
    }

    /// A name went from a place; its bucket goes too when it is empty and not needed again.
    fn left(&self, dir: &Dir, place: &Place<'_>) {
        self.touched(dir, place);
        self.tidy(dir, place);
    }

    /// Removes a bucket that may have become empty, if it is not needed again.
    fn tidy(&self, dir: &Dir, place: &Place<'_>) {
        let (Some(managed), Some(bucket)) = (dir.managed(), place.bucket()) else {
            return;
        };
        let algorithm = managed.algorithm();
        if bucket == Bucket::OTHERS || !algorithm.drops_empty_buckets() {
            return;
        }
        let path = algorithm.bucket_path(bucket);
        // One that is not empty stays, and an empty one means nothing.
        if remove_folder(managed.folder(), path.as_os_str()).is_ok() {
            dir.leave(bucket);
            self.counters.count(Op::BucketRemoved);
        }
    }
}

/// What was made goes again when it cannot be told of: an error means that nothing was made.
fn or_unmade<T>(told: Outcome<T>, place: &Place<'_>, name: &OsStr) -> Outcome<T> {
    told.inspect_err(|_| {
        let _ = remove(place, name);
    })
}

/// What is about to lose a name.
struct Victim {
    pin: Pin,
    inode: u64,
    links: u32,
}

impl Victim {
    fn of(place: impl AsFd, name: &OsStr) -> Outcome<Self> {
        let pin = Pin::at(place, name)?;
        let Stat { inode, links, .. } = Stat::of(&pin)?;
        Ok(Self { pin, inode, links })
    }
}

/// Takes the empty buckets out of a directory, so that it can be removed.
fn empty(place: impl AsFd, name: &OsStr) -> Outcome<()> {
    let place = place.as_fd();
    let pin = Pin::at(place, name)?;
    let stat = Stat::of(&pin)?;
    if !stat.is_folder() {
        return Err(Errno::NOTDIR);
    }
    let fd = open_bucket(place, name.as_ref())?;
    match Opened::new(Folder::of_descriptor(fd, name.into())).map_err(|error| errno(&error))? {
        Opened::Flat(_) => {}
        Opened::UnderWay(..) => return Err(Errno::BUSY),
        Opened::Managed(managed) => {
            if !managed.remove_buckets().map_err(|error| errno(&error))? {
                return Err(Errno::NOTEMPTY);
            }
        }
    }
    Ok(())
}
