//! A pinned inode: a descriptor that only names it (`O_PATH`), so that nothing can be exchanged between two calls.
//!
//! What Linux does not do on such a descriptor itself goes through `/proc/self/fd`, which must be mounted.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Gid, Mode, OFlags, ResolveFlags, Uid, XattrFlags};
use rustix::io::Errno;

use super::names::own;
use super::{Handle, HandleRoot, OpenFile, Outcome};
use crate::disk::retry;

/// The longest value of an extended attribute (`XATTR_SIZE_MAX`), and of their list.
const ATTRIBUTE_BYTES_MAX: usize = 65_536;

/// A pinned inode.
#[derive(Debug)]
pub struct Pin(OwnedFd);

impl Pin {
    /// Pins the entry `name` of a directory.  What is mounted there is not entered: `EXDEV`.
    pub fn at(folder: impl AsFd, name: &OsStr) -> Outcome<Self> {
        let folder = folder.as_fd();
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS;
        retry(|| rustix::fs::openat2(folder, name, flags, Mode::empty(), resolve)).map(Self)
    }

    /// Pins the directory at a path, wherever that leads.
    pub fn of_folder(path: &Path) -> Outcome<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        retry(|| rustix::fs::open(path, flags, Mode::empty())).map(Self)
    }

    /// Pins what a handle stands for.
    pub fn by_handle(root: &HandleRoot, handle: &Handle) -> Outcome<Self> {
        root.open(handle, OFlags::PATH | OFlags::NOFOLLOW).map(Self)
    }

    /// Pins what is open, whether or not it has a name.
    pub fn of_file(file: &OpenFile) -> Outcome<Self> {
        let path = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
        rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map(Self)
    }

    /// The text of a symbolic link.
    pub fn read_link(&self) -> Outcome<Vec<u8>> {
        rustix::fs::readlinkat(&self.0, "", Vec::new()).map(std::ffi::CString::into_bytes)
    }

    /// Its way through `/proc`; what is there is the inode itself, even if that is a link.
    pub(super) fn proc_path(&self) -> String {
        format!("/proc/self/fd/{}", self.0.as_raw_fd())
    }

    /// Changes its permissions.
    pub fn set_mode(&self, mode: u32) -> Outcome<()> {
        let path = self.proc_path();
        rustix::fs::chmod(path, Mode::from_raw_mode(mode & 0o7777))
    }

    /// Changes its owner, its group or both.
    pub fn set_owner(&self, uid: Option<u32>, gid: Option<u32>) -> Outcome<()> {
        let (uid, gid) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
        rustix::fs::chownat(&self.0, "", uid, gid, AtFlags::EMPTY_PATH)
    }

    /// How long one of its extended attributes is.
    pub fn attribute_len(&self, name: &OsStr) -> Outcome<usize> {
        rustix::fs::getxattr_query(self.proc_path(), name)
    }

    /// One of its extended attributes.
    pub fn attribute(&self, name: &OsStr) -> Outcome<Vec<u8>> {
        let mut buf = vec![0; ATTRIBUTE_BYTES_MAX];
        let len = rustix::fs::getxattr(self.proc_path(), name, &mut *buf)?;
        buf.truncate(len);
        Ok(buf)
    }

    /// Sets one of its extended attributes; `flags` as of `setxattr(2)`.
    pub fn set_attribute(&self, name: &OsStr, value: &[u8], flags: u32) -> Outcome<()> {
        let flags = XattrFlags::from_bits(flags).ok_or(Errno::INVAL)?;
        rustix::fs::setxattr(self.proc_path(), name, value, flags)
    }

    /// Removes one of its extended attributes.
    pub fn remove_attribute(&self, name: &OsStr) -> Outcome<()> {
        rustix::fs::removexattr(self.proc_path(), name)
    }

    /// The names of its extended attributes, each with a NUL behind it.
    pub fn attributes(&self) -> Outcome<Vec<u8>> {
        let mut buf = vec![0; ATTRIBUTE_BYTES_MAX];
        let len = rustix::fs::listxattr(self.proc_path(), &mut *buf)?;
        buf.truncate(len);
        Ok(buf)
    }

    /// Opens a file; `flags` as of `open(2)`.
    pub fn open_file(&self, flags: i32) -> Outcome<OpenFile> {
        let fd = rustix::fs::open(self.proc_path(), own(flags), Mode::empty())?;
        Ok(OpenFile::new(fd))
    }

    /// Opens a directory for reading and for reaching what is in it.
    pub fn open_folder(&self) -> Outcome<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::openat(&self.0, ".", flags, Mode::empty())
    }
}

/// Where something open is by the kernel's account, for people: it may be called otherwise a moment later.
pub fn real_path(fd: impl AsFd) -> Outcome<PathBuf> {
    let link = format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd());
    let path = rustix::fs::readlink(link, Vec::new())?;
    Ok(PathBuf::from(OsString::from_vec(path.into_bytes())))
}

impl AsFd for Pin {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
