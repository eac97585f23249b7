//! File handles: a few octets that lead back to an inode without a descriptor being kept open for it.
//!
//! The only unsafe code of the project: no crate that is safe wraps these two calls (`name_to_handle_at(2)`).

use std::ffi::{CStr, CString, OsStr};
use std::fmt;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::Outcome;

/// The longest handle there is (`MAX_HANDLE_SZ`).
const OCTETS_MAX: usize = 128;

/// A handle as the kernel reads and writes it (`struct file_handle`).
#[repr(C)]
#[derive(Clone, Copy)]
struct Raw {
    len: u32,
    kind: i32,
    octets: [u8; OCTETS_MAX],
}

/// A handle of an inode: the same for all its names, and never another inode's on this file system.
#[derive(Clone, Copy)]
pub struct Handle(Raw);

/// The file system in which handles are opened.
#[derive(Debug)]
pub struct HandleRoot(OwnedFd);

impl Handle {
    /// A handle that was taken apart.
    #[must_use]
    pub fn new(kind: i32, octets: &[u8]) -> Option<Self> {
        let mut raw = Raw {
            len: u32::try_from(octets.len()).ok()?,
            kind,
            octets: [0; OCTETS_MAX],
        };
        raw.octets.get_mut(..octets.len())?.copy_from_slice(octets);
        Some(Self(raw))
    }

    /// The handle of what a descriptor refers to.
    pub fn of(fd: impl AsFd) -> Outcome<Self> {
        Self::ask(fd.as_fd(), c"", libc::AT_EMPTY_PATH)
    }

    /// The handle of the entry `name` of a directory, of a link itself.
    pub(super) fn at(folder: impl AsFd, name: &OsStr) -> Outcome<Self> {
        let name = CString::new(name.as_bytes()).map_err(|_| Errno::INVAL)?;
        Self::ask(folder.as_fd(), &name, 0)
    }

    fn ask(fd: BorrowedFd<'_>, name: &CStr, flags: libc::c_int) -> Outcome<Self> {
        let mut raw = Raw {
            len: OCTETS_MAX as u32,
            kind: 0,
            octets: [0; OCTETS_MAX],
        };
        let mut mount_id: libc::c_int = 0;
        // SAFETY: the name ends with NUL, `raw` has room for as many octets as its length says, and both outlive the
        // call, which writes nothing else.
        #[expect(unsafe_code, reason = "no safe crate wraps name_to_handle_at")]
        let result = unsafe {
            libc::syscall(
                libc::SYS_name_to_handle_at,
                fd.as_raw_fd(),
                name.as_ptr(),
                &raw mut raw,
                &raw mut mount_id,
                flags,
            )
        };
        if result < 0 {
            Err(last())
        } else {
            Ok(Self(raw))
        }
    }

    /// Its kind, which only the file system understands.
    #[must_use]
    pub const fn kind(&self) -> i32 {
        self.0.kind
    }

    /// Its octets.
    #[must_use]
    pub fn octets(&self) -> &[u8] {
        let len = usize::try_from(self.0.len).unwrap_or(OCTETS_MAX);
        &self.0.octets[..len.min(OCTETS_MAX)]
    }
}

impl PartialEq for Handle {
    fn eq(&self, other: &Self) -> bool {
        (self.kind(), self.octets()) == (other.kind(), other.octets())
    }
}

impl Eq for Handle {}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Handle({}, {:02x?})", self.kind(), self.octets())
    }
}

impl HandleRoot {
    /// Handles of the file system that `folder` lies on.
    pub fn of(folder: impl AsFd) -> Outcome<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::openat(folder, ".", flags, Mode::empty()).map(Self)
    }

    /// Opens what a handle stands for; `ESTALE` when that is no more.
    pub fn open(&self, handle: &Handle, flags: OFlags) -> Outcome<OwnedFd> {
        let mut raw = handle.0;
        let flags = (flags | OFlags::CLOEXEC).bits();
        // SAFETY: `raw` has as many octets as its length says and outlives the call.
        #[expect(unsafe_code, reason = "no safe crate wraps open_by_handle_at")]
        let result = unsafe {
            libc::syscall(
                libc::SYS_open_by_handle_at,
                self.0.as_raw_fd(),
                &raw mut raw,
                flags,
            )
        };
        let Ok(fd) = i32::try_from(result) else {
            return Err(Errno::IO);
        };
        if fd < 0 {
            return Err(last());
        }
        // SAFETY: the kernel has just opened it, and nobody else knows of it.
        #[expect(unsafe_code, reason = "a raw call returns a raw descriptor")]
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}

/// The number of the call that has just failed.
fn last() -> Errno {
    let code = std::io::Error::last_os_error().raw_os_error();
    code.map_or(Errno::IO, Errno::from_raw_os_error)
}
