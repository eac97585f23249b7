//! An open directory of a real file system: what lies in it is reached relative to it, so that no long path is ever
//! joined and nobody can exchange the directory in between.  A name some levels below is reached through no symbolic
//! link: whoever may write in the directory leads nobody out of it.
//!
//! Beside [`crate::Disk`], which knows only the spool's own files, this is for directories whose contents belong to
//! others: any name, links, modes, owners, extended attributes.  A folder opened with [`Folder::open_with_faults`]
//! asks a faulty disk's script before every operation, and so does every folder opened through it.

mod beneath;
mod entries;
mod facts;
mod locks;
#[cfg(test)]
mod tests;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, XattrFlags};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};

pub use entries::{Entries, Entry};
pub use facts::{Facts, FileSystem, FileSystemKind, Kind};
pub use locks::FolderLock;

use self::beneath::lying;
use crate::disk::{FaultyDisk, failed, retry};
use crate::error::{Error, ErrorKind, Op, Result};

/// The longest extended attribute that is read.
const ATTRIBUTE_BYTES_MAX: usize = 4096;

/// An open directory.
#[derive(Debug)]
pub struct Folder {
    fd: OwnedFd,
    path: PathBuf,
    faults: Option<FaultyDisk>,
}

const OPEN_FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

impl Folder {
    /// Opens the directory at `path`.
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_asking(path, None)
    }

    /// Opens the directory at `path`; every operation on it and below it goes through the script of `faults`.
    pub fn open_with_faults(path: &Path, faults: &FaultyDisk) -> Result<Self> {
        Self::open_asking(path, Some(faults.clone()))
    }

    fn open_asking(path: &Path, faults: Option<FaultyDisk>) -> Result<Self> {
        let fd = retry(|| rustix::fs::open(path, OPEN_FOLDER, Mode::empty()))
            .map_err(failed(Op::Open, path))?;
        Ok(Self {
            fd,
            path: path.to_path_buf(),
            faults,
        })
    }

    /// A directory that is open already; `path` is for messages.
    #[must_use]
    pub const fn of_descriptor(fd: OwnedFd, path: PathBuf) -> Self {
        Self {
            fd,
            path,
            faults: None,
        }
    }

    /// Where it was opened, for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Asks the script, then calls; errors name `at`, seen from this folder.
    fn run<T>(&self, op: Op, at: &Path, call: impl FnMut() -> rustix::io::Result<T>) -> Result<T> {
        if let Some(faults) = &self.faults {
            faults.strike(op, &self.joined(at))?;
        }
        retry(call).map_err(|errno| Error::from_io(op, &self.joined(at), errno.into()))
    }

    fn joined(&self, at: &Path) -> PathBuf {
        if at.as_os_str().is_empty() {
            self.path.clone()
        } else {
            self.path.join(at)
        }
    }

    /// The same for what lies at `at`, which is given as the directory it lies in and its name there.
    fn run_at<T>(
        &self,
        op: Op,
        at: &Path,
        mut call: impl FnMut(BorrowedFd<'_>, &Path) -> rustix::io::Result<T>,
    ) -> Result<T> {
        self.run(op, at, || {
            let (above, name) = lying(self.fd.as_fd(), at)?;
            call(above.as_fd(), name)
        })
    }

    /// Opens the directory `at`, which must not be a symbolic link.
    pub fn open_folder(&self, at: &Path) -> Result<Self> {
        let flags = OPEN_FOLDER.union(OFlags::NOFOLLOW);
        let fd = self.run_at(Op::Stat, at, |above, name| {
            rustix::fs::openat(above, name, flags, Mode::empty())
        })?;
        Ok(Self {
            fd,
            path: self.joined(at),
            faults: self.faults.clone(),
        })
    }

    /// Makes the directory `at`; the process's mask applies to `mode`.
    pub fn make_folder(&self, at: &Path, mode: u32) -> Result<()> {
        let mode = Mode::from_raw_mode(mode);
        self.run_at(Op::CreateDir, at, |above, name| {
            rustix::fs::mkdirat(above, name, mode)
        })
    }

    /// Removes the directory `at` and says whether it could be: one that is not empty stays.
    pub fn remove_folder(&self, at: &Path) -> Result<bool> {
        self.run_at(Op::Remove, at, |above, name| {
            match rustix::fs::unlinkat(above, name, AtFlags::REMOVEDIR) {
                Err(Errno::NOTEMPTY | Errno::EXIST) => Ok(false),
                other => other.map(|()| true),
            }
        })
    }

    /// Removes the name `at`, which is no directory.
    pub fn remove(&self, at: &Path) -> Result<()> {
        self.run_at(Op::Remove, at, |above, name| {
            rustix::fs::unlinkat(above, name, AtFlags::empty())
        })
    }

    /// Gives `from` the name `to` in `folder`; whatever has that name already stays, and that is an error.
    pub fn rename_new(&self, from: &Path, folder: &Self, to: &Path) -> Result<()> {
        let (other, new_name) = retry(|| lying(folder.as_fd(), to))
            .map_err(|errno| Error::from_io(Op::Rename, &folder.joined(to), errno.into()))?;
        self.run_at(Op::Rename, from, |above, name| {
            rustix::fs::renameat_with(above, name, &other, new_name, RenameFlags::NOREPLACE)
        })
        .map_err(|e| match e.kind() {
            // Which of the two was missing or in the way only the caller can know; the target says more.
            ErrorKind::Exists => Error::Exists {
                op: Op::Rename,
                path: folder.joined(to),
            },
            _ => e,
        })
    }

    /// Where the symbolic link `at` points.
    pub fn read_link(&self, at: &Path) -> Result<Vec<u8>> {
        let target = self.run_at(Op::Read, at, |above, name| {
            rustix::fs::readlinkat(above, name, Vec::new())
        })?;
        Ok(target.into_bytes())
    }

    /// What is in it, in the file system's order, without `.` and `..`.
    pub fn entries(&self) -> Result<Entries<'_>> {
        let stream = self.run(Op::List, Path::new(""), || {
            rustix::fs::Dir::read_from(&self.fd)
        })?;
        Ok(Entries::new(self, stream))
    }

    /// Facts about itself.
    pub fn facts(&self) -> Result<Facts> {
        self.run(Op::Stat, Path::new(""), || {
            Facts::of(&self.fd, Path::new(""))
        })
    }

    /// Facts about `at`; a symbolic link is not followed.
    pub fn facts_of(&self, at: &Path) -> Result<Facts> {
        self.run_at(Op::Stat, at, |above, name| Facts::of(above, name))
    }

    /// Changes its own mode.
    pub fn set_mode(&self, mode: u32) -> Result<()> {
        self.run(Op::SetAttribute, Path::new(""), || {
            rustix::fs::fchmod(&self.fd, Mode::from_raw_mode(mode))
        })
    }

    /// Changes its own owner and group.
    pub fn set_owner(&self, uid: u32, gid: u32) -> Result<()> {
        let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
        self.run(Op::SetAttribute, Path::new(""), || {
            rustix::fs::fchown(&self.fd, Some(uid), Some(gid))
        })
    }

    /// Its own extended attribute `name`, if it has one; file systems that keep none say so by `None` too.
    pub fn attribute(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let mut buf = vec![0; ATTRIBUTE_BYTES_MAX];
        let len = self.run(Op::Stat, Path::new(""), || {
            match rustix::fs::fgetxattr(&self.fd, name, &mut *buf) {
                Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(None),
                other => other.map(Some),
            }
        })?;
        Ok(len.map(|len| {
            buf.truncate(len);
            buf
        }))
    }

    /// Sets its own extended attribute `name`.
    pub fn set_attribute(&self, name: &str, value: &[u8]) -> Result<()> {
        self.run(Op::SetAttribute, Path::new(""), || {
            rustix::fs::fsetxattr(&self.fd, name, value, XattrFlags::empty())
        })
    }

    /// Removes its own extended attribute `name`; it is well when there is none.
    pub fn remove_attribute(&self, name: &str) -> Result<()> {
        self.run(
            Op::SetAttribute,
            Path::new(""),
            || match rustix::fs::fremovexattr(&self.fd, name) {
                Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(()),
                other => other,
            },
        )
    }

    /// Makes its names, mode, owner and attributes durable.
    pub fn sync(&self) -> Result<()> {
        self.run(Op::SyncDir, Path::new(""), || rustix::fs::fsync(&self.fd))
    }

    /// Makes all of its file system durable: cheaper than many directories one by one.
    pub fn sync_file_system(&self) -> Result<()> {
        self.run(Op::SyncDir, Path::new(""), || rustix::fs::syncfs(&self.fd))
    }

    /// The file system it lies on.
    pub fn file_system(&self) -> Result<FileSystem> {
        self.run(Op::Stat, Path::new(""), || FileSystem::of(&self.fd))
    }

    /// Whether the file system finds a name in it without reading all others: `None` where it does not say.
    pub fn is_indexed(&self) -> Result<Option<bool>> {
        self.run(Op::Stat, Path::new(""), || facts::is_indexed(&self.fd))
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
