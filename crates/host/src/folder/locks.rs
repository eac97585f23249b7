//! Locks of a directory: taken, and whose they are.
//!
//! Whoever may read a directory may lock it.  A lock keeps out whoever asks for it, so what only looks whether somebody works on a
//! directory counts the locks of those who may: root, this process's user, and the directory's owner.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use super::{Facts, Folder, OPEN_FOLDER};
use crate::disk::{failed, read_table, retry};
use crate::error::{Error, ErrorKind, Op, Result};
use crate::process;

/// So often a lock is tried that somebody else may only look at.
const LOOKS: u32 = 5;

/// So long lies between two tries.
const LOOKS_EVERY: Duration = Duration::from_millis(20);

/// As much of the table of locks is read.
const TABLE_BYTES_MAX: u64 = 16 << 20;

/// A lock on a folder, held until it is dropped or the process ends.
#[derive(Debug)]
pub struct FolderLock {
    // The lock belongs to this descriptor.
    pub(super) fd: OwnedFd,
}

impl Drop for FolderLock {
    /// A program that is just being started has the descriptor, too, until its own code is loaded: the lock must not wait for that.
    fn drop(&mut self) {
        let _ = retry(|| rustix::fs::flock(&self.fd, FlockOperation::Unlock));
    }
}

/// Who took a lock, as the kernel's table has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Holder {
    pid: u32,
    is_alone: bool,
}

impl Folder {
    /// Takes the exclusive lock of this directory, or says that it is locked.
    pub fn lock(&self) -> Result<FolderLock> {
        self.lock_by(FlockOperation::NonBlockingLockExclusive)
    }

    /// Takes a lock that others may hold too, but nobody who holds the exclusive one.
    pub fn lock_shared(&self) -> Result<FolderLock> {
        self.lock_by(FlockOperation::NonBlockingLockShared)
    }

    /// Whether somebody who may has locked it: alone, if `is_shared`, else at all.
    pub fn is_in_use(&self, is_shared: bool) -> Result<bool> {
        Ok(self.used_by(is_shared)?.is_some())
    }

    /// The same, and which process that is, where it is known.
    pub fn used_by(&self, is_shared: bool) -> Result<Option<Option<u32>>> {
        let lock = match is_shared {
            true => self.lock_shared(),
            false => self.lock(),
        };
        match lock {
            Err(error) if error.kind() == ErrorKind::Locked => {}
            // Where there are no locks (NFS) nobody has one.
            _ => return Ok(None),
        }
        let facts = self.facts()?;
        let holders = holders(&facts)?;
        // Where the table says nothing (another container, btrfs) it may be anybody's.
        if holders.is_empty() {
            return Ok(Some(None));
        }
        let mut in_the_way = holders
            .iter()
            .filter(|holder| holder.is_alone || !is_shared);
        let found = in_the_way.find(|holder| counts(holder.pid, facts.uid));
        Ok(found.map(|holder| Some(holder.pid)))
    }

    fn lock_by(&self, operation: FlockOperation) -> Result<FolderLock> {
        let fd = self.run(Op::Lock, Path::new(""), || {
            rustix::fs::openat(&self.fd, ".", OPEN_FOLDER, Mode::empty())
        })?;
        for _ in 0..LOOKS {
            match retry(|| rustix::fs::flock(&fd, operation)) {
                Ok(()) => return Ok(FolderLock { fd }),
                Err(Errno::WOULDBLOCK) => thread::sleep(LOOKS_EVERY),
                Err(errno) => return Err(failed(Op::Lock, &self.path)(errno)),
            }
        }
        let holders = self.facts().and_then(|facts| holders(&facts));
        Err(Error::Locked {
            path: self.path.clone(),
            pid: holders.ok().and_then(|holders| Some(holders.first()?.pid)),
        })
    }
}

/// Whether a process is root's, this user's or the owner's; of one that has ended somebody else has the lock.
fn counts(pid: u32, owner: u32) -> bool {
    let found = process::owner_of(pid);
    found.map_or_else(
        || {
            let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
            pid.is_some_and(|pid| test_kill_process(pid) == Err(Errno::PERM))
        },
        |uid| [0, process::own_uid(), owner].contains(&uid),
    )
}

fn holders(folder: &Facts) -> Result<Vec<Holder>> {
    let table = read_table(&PathBuf::from("/proc/locks"), TABLE_BYTES_MAX)?;
    Ok(holders_in(&String::from_utf8_lossy(&table), folder))
}

/// Who holds a lock of flock(2) on an inode, by the table of locks (proc(5)); who waits for one holds none.
fn holders_in(table: &str, folder: &Facts) -> Vec<Holder> {
    let (major, minor) = folder.device;
    let inode = format!("{major:02x}:{minor:02x}:{}", folder.inode);
    let lines = table.lines().map(|line| line.split_whitespace());
    let held = lines.filter_map(|mut words| {
        (words.nth(1)? == "FLOCK").then_some(())?;
        let is_alone = words.nth(1)? == "WRITE";
        let pid = words.next()?.parse().ok()?;
        (words.next()? == inode).then_some(Holder { pid, is_alone })
    });
    held.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_locks_is_understood() {
        let dir = tempfile::tempdir().unwrap();
        let facts = Folder::open(dir.path()).unwrap().facts().unwrap();
        let facts = Facts {
            device: (254, 0),
            inode: 17,
            ..facts
        };
        let table = "1: POSIX  ADVISORY  WRITE 4 fe:00:17 0 EOF\n\
                     2: FLOCK  ADVISORY  READ 5 fe:00:17 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 6 fe:00:17 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 7 fe:00:18 0 EOF\n\
                     4: FLOCK  ADVISORY  WRITE 8 fe:00:17 0 EOF\n";
        let found = holders_in(table, &facts);
        let found: Vec<_> = found.iter().map(|held| (held.pid, held.is_alone)).collect();
        assert_eq!(found, [(5, false), (8, true)]);
    }

    #[test]
    fn whose_locks_count() {
        let own = process::own_uid();
        assert!(counts(process::own_pid(), own + 1));
        assert!(counts(1, own));
        assert!(!counts(u32::MAX >> 1, own));
    }

    #[test]
    fn who_holds_a_lock_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let open = || Folder::open(dir.path()).unwrap();
        let lock = open().lock_shared().unwrap();
        assert!(open().is_in_use(false).unwrap() && !open().is_in_use(true).unwrap());
        let holder = open().used_by(false).unwrap().unwrap();
        assert!(
            holder.is_none_or(|pid| pid == process::own_pid()),
            "{holder:?}"
        );
        let error = open().lock().unwrap_err().to_string();
        let told = format!("process {}", process::own_pid());
        // Where the table has the device of the directory, which btrfs gives another number.
        assert!(
            error.contains(&told) || error.contains("is locked;"),
            "{error}"
        );
        drop(lock);
        assert!(!open().is_in_use(false).unwrap());
    }
}
