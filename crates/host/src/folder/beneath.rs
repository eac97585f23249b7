//! Where a name some levels below a directory lies: reached through no link, so that it is nowhere else.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// The directory that a name lies in.
pub(super) enum Above<'a> {
    /// The one that was given.
    Given(BorrowedFd<'a>),
    /// One below it.
    Below(OwnedFd),
}

impl AsFd for Above<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Given(fd) => *fd,
            Self::Below(fd) => fd.as_fd(),
        }
    }
}

/// Opens the directory in which `at` lies, seen from `folder`, and says its name there.  What is to be a directory on
/// the way and is a link is an error (`ENOTDIR`), and so is a way out of the directory (`EXDEV`).
pub(super) fn lying<'a>(
    folder: BorrowedFd<'a>,
    at: &'a Path,
) -> rustix::io::Result<(Above<'a>, &'a Path)> {
    let mut parts = at.components();
    let Some(name) = parts.next_back() else {
        return Ok((Above::Given(folder), at));
    };
    let above = parts.as_path();
    if above.as_os_str().is_empty() {
        return Ok((Above::Given(folder), at));
    }
    if at.file_name().is_none() {
        return Err(Errno::INVAL);
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    let above =
        rustix::fs::openat2(folder, above, flags, Mode::empty(), resolve).map_err(|errno| {
            match errno {
                Errno::LOOP => Errno::NOTDIR,
                other => other,
            }
        })?;
    Ok((Above::Below(above), Path::new(name.as_os_str())))
}
