//! What `..` is in the view: never a bucket.

use std::os::fd::OwnedFd;
use std::path::Path;

use newsreel_host::Folder;
use newsreel_host::node::{Errno, Outcome, Stat, inode_above, open_bucket};
use newsreel_layout::{Mark, OTHERS};

use super::{Entry, View};
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

    /// One up, leaving out the bucket, and the directory of buckets; from a directory that is being converted, as soon as that
    /// has ended.
    fn level_above(&self, folder: &Folder) -> Outcome<Level> {
        loop {
            let turn = self.gate.turn();
            if let Some(closed) = turn.closed
                // What is moved while it is looked at may be there.
                && self.is_near(folder, closed).unwrap_or(true)
            {
                self.gate.wait_for_next(turn);
                continue;
            }
            let above = self.level_now(folder);
            if self.gate.turn() == turn {
                return above;
            }
        }
    }

    /// Whether a directory may lie in that one: in a bucket of two levels in the staging directory at most.
    fn is_near(&self, folder: &Folder, node: u64) -> Outcome<bool> {
        let mut above = self.up(folder)?;
        for _ in 0..4 {
            if self.node_of(&above.stat) == node {
                return Ok(true);
            }
            if self.is_top(&above.stat) {
                break;
            }
            above = self.up(&above.folder)?;
        }
        Ok(false)
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
