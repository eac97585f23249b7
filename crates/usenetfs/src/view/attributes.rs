//! Attributes: asked for and changed; and what the set-uid bit of a directory does.

use newsreel_host::folder::Facts;
use newsreel_host::node::{Errno, Outcome, Pin, Stat, TimeChange, real_path, set_times};
use newsreel_layout::{Error, Managed, Mark, SET_UID};

use super::View;
use crate::counters::Op;
use crate::folders::errno;
use crate::notices::BitKept;

/// `O_WRONLY`.
const WRITE_ONLY: i32 = 1;

/// What of a node is to be changed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Changes {
    /// Permissions, with set-uid, set-gid and sticky bits.
    pub mode: Option<u32>,
    /// The owner.
    pub uid: Option<u32>,
    /// The group.
    pub gid: Option<u32>,
    /// Length in octets.
    pub len: Option<u64>,
    /// Time of the last reading.
    pub accessed: TimeChange,
    /// Time of the last writing.
    pub modified: TimeChange,
    /// The open file through which it is asked for.
    pub file: Option<u64>,
}

impl View {
    /// All about a node.
    pub fn attributes(&self, node: u64, file: Option<u64>) -> Outcome<Stat> {
        self.counters.count(Op::GetAttr);
        let stat = match file.and_then(|file| self.files.get(file).ok()) {
            Some(file) => Stat::of(&*file)?,
            None => self.stat_of(node)?,
        };
        Ok(self.told(stat))
    }

    /// Asks about a node; of a directory that is open already, which the kernel asks about after every change in it, with
    /// one call.
    fn stat_of(&self, node: u64) -> Outcome<Stat> {
        match self.folders.kept(node) {
            Some(dir) => Stat::of(dir.folder()),
            None => Stat::of(&*self.pin(node)?),
        }
    }

    /// Changes a node's attributes, and says all about it.
    pub fn change(&self, node: u64, changes: &Changes) -> Outcome<Stat> {
        self.counters.count(Op::SetAttr);
        let pin = self.pin(node)?;
        let before = Stat::of(&*pin)?;
        if changes.uid.is_some() || changes.gid.is_some() {
            let (uid, gid) = (changes.uid, changes.gid);
            let set = || pin.set_owner(uid, gid);
            if before.is_folder() {
                let change = |facts: &mut Facts| {
                    facts.uid = uid.unwrap_or(facts.uid);
                    facts.gid = gid.unwrap_or(facts.gid);
                };
                let dir = self.dir(node)?;
                with_buckets(dir.managed(), change, set)?;
            } else {
                set()?;
            }
        }
        if let Some(mode) = changes.mode {
            if before.is_folder() {
                self.set_folder_mode(node, &pin, mode)?;
            } else {
                pin.set_mode(mode)?;
            }
        }
        if let Some(len) = changes.len {
            self.set_len(node, len, changes.file)?;
        }
        if (changes.accessed, changes.modified) != (TimeChange::Keep, TimeChange::Keep) {
            set_times(&*pin, changes.accessed, changes.modified)?;
            if changes.modified != TimeChange::Keep {
                self.changes.settle(node);
            }
        }
        Ok(self.told(Stat::of(&*pin)?))
    }

    fn set_len(&self, node: u64, len: u64, file: Option<u64>) -> Outcome<()> {
        if let Some(file) = file.and_then(|file| self.files.get(file).ok()) {
            return file.set_len(len);
        }
        self.open_file(node, WRITE_ONLY)?.set_len(len)
    }

    /// The set-uid bit turns management of an empty directory on and off.  That of another one cannot change: the other
    /// bits do, and it stays.
    fn set_folder_mode(&self, node: u64, pin: &Pin, mode: u32) -> Outcome<()> {
        let dir = self.dir(node)?;
        let wants_bit = mode & SET_UID != 0;
        let has_bit = Stat::of(pin)?.mode & SET_UID != 0;
        let mark = match dir.managed() {
            _ if dir.is_under_way() => return pin.set_mode(kept(mode, has_bit)),
            Some(managed) if !wants_bit => Some(Mark::clear(managed)),
            None if wants_bit => Some(Mark::set(dir.folder(), self.settings.algorithm)),
            _ => None,
        };
        let mode = match mark {
            None => mode,
            Some(Ok(())) => {
                self.folders.drop(node);
                self.changes.settle(node);
                mode
            }
            Some(Err(Error::NotEmpty { .. })) if self.settings.is_strict => {
                return Err(Errno::BUSY);
            }
            Some(Err(Error::NotEmpty { .. })) => {
                self.counters.count(Op::BitKept);
                self.notices.tell(BitKept {
                    directory: real_path(dir.folder())
                        .unwrap_or_else(|_| dir.folder().path().into()),
                    inode: node,
                    is_managed: !wants_bit,
                });
                kept(mode, !wants_bit)
            }
            Some(Err(error)) => return Err(errno(&error)),
        };
        let managed = dir.managed().filter(|_| mode & SET_UID != 0);
        let change = |facts: &mut Facts| facts.mode = mode & 0o7777;
        with_buckets(managed, change, || pin.set_mode(mode))
    }
}

const fn kept(mode: u32, has_bit: bool) -> u32 {
    let rest = mode & !SET_UID;
    if has_bit { rest | SET_UID } else { rest }
}

/// Changes a directory's owner or mode after those of its buckets, which have the same: an error means that nothing changed.
fn with_buckets(
    managed: Option<&Managed>,
    change: impl FnOnce(&mut Facts),
    set: impl FnOnce() -> Outcome<()>,
) -> Outcome<()> {
    let Some(managed) = managed else {
        return set();
    };
    let failed = |error| errno(&error);
    managed.adopt_buckets(change).map_err(failed)?;
    let done = set();
    if done.is_err() {
        // As they were.
        managed.adopt_buckets(|_| {}).map_err(failed)?;
    }
    done
}
