//! What `..` is in the view: never a bucket.

use std::os::fd::OwnedFd;
use std::path::Path;

use newsreel_host::Folder;
use newsreel_host::node::{Errno, Outcome, Stat, inode_above, open_bucket};
use newsreel_layout::{Mark, OTHERS};

use super::{ATTEMPTS, Entry, View};
use crate::folders::{Dir, errno};

/// A real directory on the way up.
struct Level {
    folder: Folder,
    stat: Stat,
}

impl View {
    /// The directory in which a directory lies, as a node.
    pub(super) fn parent_of(&self, dir: &Dir) -> Outcome<Entry> {
        if self.is_top(&Stat::of(dir.folder())?) {
            return self.entry(dir.folder());
        }
        self.entry(&self.level_above(dir.folder())?.folder)
    }

    /// The inode of the directory in which a directory lies.
    pub(super) fn parent_inode(&self, dir: &Dir) -> Outcome<u64> {
        let stat = Stat::of(dir.folder())?;
        if self.is_top(&stat) {
            return Ok(stat.inode);
        }
        Ok(self.level_above(dir.folder())?.stat.inode)
    }

    fn is_top(&self, stat: &Stat) -> bool {
        stat.inode == self.top_inode
    }

    /// One up, leaving out the bucket, and the directory of buckets.  While a directory is converted it is told to be the one above of all
    /// that lies near below it: what of that is a bucket is not known then, and nobody is made to wait.
    fn level_above(&self, folder: &Folder) -> Outcome<Level> {
        let mut above = Err(Errno::NOENT);
        for _ in 0..ATTEMPTS {
            let turn = self.gate.turn();
            above = match turn.closed {
                None => self.level_now(folder),
                Some(closed) => match self.near_above(folder, closed) {
                    Ok(None) => self.level_now(folder),
                    Ok(Some(near)) => Ok(near),
                    Err(errno) => Err(errno),
                },
            };
            // What was moved while it was looked at may have been anywhere.
            let is_moved = matches!(above, Err(Errno::NOENT)) && turn.closed.is_some();
            if self.gate.turn() == turn && !is_moved {
                break;
            }
        }
        above
    }

    /// That directory, if this one may be an entry of it: in a bucket of two levels in the staging directory at most.
    fn near_above(&self, folder: &Folder, node: u64) -> Outcome<Option<Level>> {
        let mut above = self.up(folder)?;
        for _ in 0..4 {
            if self.node_of(&above.stat) == node {
                return Ok(Some(above));
            }
            if self.is_top(&above.stat) {
                break;
            }
            above = self.up(&above.folder)?;
        }
        Ok(None)
    }

    fn level_now(&self, folder: &Folder) -> Outcome<Level> {
        let first = self.up(folder)?;
        if self.is_top(&first.stat) {
            return Ok(first);
        }
        let second = self.up(&first.folder)?;
        if is_managed(&second.folder)? {
            return Ok(second);
        }
        if self.is_top(&second.stat) {
            return Ok(first);
        }
        let third = self.up(&second.folder)?;
        // Below a bucket of one level the second is that bucket, and the first an entry of the view.
        if is_managed(&third.folder)? && !is_bucket_of(&third.folder, &second.stat)? {
            return Ok(third);
        }
        Ok(first)
    }

    /// One up.  Something may be mounted over the top since it was opened, this mount above all: that is not gone into.
    fn up(&self, folder: &Folder) -> Outcome<Level> {
        match open_bucket(folder, Path::new("..")) {
            Err(Errno::XDEV) if inode_above(folder)? == self.top_inode => {
                let top = self.top.open_folder(Path::new("."));
                let folder = top.map_err(|error| Errno::from(&error))?;
                let stat = Stat::of(&folder)?;
                Ok(Level { folder, stat })
            }
            other => level(other?),
        }
    }
}

fn level(fd: OwnedFd) -> Outcome<Level> {
    let stat = Stat::of(&fd)?;
    let path = Path::new("above").to_path_buf();
    Ok(Level {
        folder: Folder::of_descriptor(fd, path),
        stat,
    })
}

fn is_managed(folder: &Folder) -> Outcome<bool> {
    let mark = Mark::read(folder).map_err(|error| errno(&error))?;
    Ok(matches!(mark, Mark::Managed(_)))
}

/// Whether a directory right below a managed one is a bucket: with two levels only `aaa` is.
fn is_bucket_of(managed: &Folder, stat: &Stat) -> Outcome<bool> {
    let Mark::Managed(algorithm) = Mark::read(managed).map_err(|error| errno(&error))? else {
        return Ok(false);
    };
    if !algorithm.has_two_levels() {
        return Ok(true);
    }
    let others = open_bucket(managed, Path::new(OTHERS)).and_then(Stat::of);
    Ok(others.is_ok_and(|others| others.inode == stat.inode))
}
