//! Making, naming and removing entries of an open directory.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, ResolveFlags};
use rustix::io::Errno;

use super::{OpenFile, Outcome, Pin};
use crate::disk::retry;

/// Flags of `open(2)` that reach the file below; the others are its front's to keep.
const OWN_FLAGS: OFlags = OFlags::RWMODE
    .union(OFlags::SYNC)
    .union(OFlags::DSYNC)
    .union(OFlags::NOATIME);

/// The flags of an open for a file below.
pub(super) fn own(flags: i32) -> OFlags {
    OFlags::from_bits_retain(flags.cast_unsigned()).intersection(OWN_FLAGS) | OFlags::CLOEXEC
}

/// Whether what is written through a file with these flags, as of `open(2)`, goes to its end.
#[must_use]
pub const fn appends(flags: i32) -> bool {
    OFlags::from_bits_retain(flags.cast_unsigned()).contains(OFlags::APPEND)
}

/// Whether a file has none of the flags that its user may well take back later (`F_SETFL`): a file that the kernel opens
/// below for them would keep these.
#[must_use]
pub const fn keeps_flags(flags: i32) -> bool {
    let changeable = OFlags::APPEND.union(OFlags::DIRECT);
    !OFlags::from_bits_retain(flags.cast_unsigned()).intersects(changeable)
}

/// How to rename, as of `renameat2(2)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Renaming {
    /// What has the new name stays, and that is an error.
    pub no_replace: bool,
    /// The two change places.
    pub exchange: bool,
}

/// Opens a directory some levels below: through no link and into nothing that is mounted there.
pub fn open_bucket(folder: impl AsFd, at: &Path) -> Outcome<OwnedFd> {
    let folder = folder.as_fd();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS;
    retry(|| rustix::fs::openat2(folder, at, flags, Mode::empty(), resolve))
}

/// The inode of the directory in which a directory lies, by its own entry for that: also where something is mounted over it,
/// which going up would lead into.
pub fn inode_above(folder: impl AsFd) -> Outcome<u64> {
    let mut entries = rustix::fs::Dir::read_from(folder)?;
    while let Some(entry) = entries.read() {
        let entry = entry?;
        if entry.file_name().to_bytes() == b".." {
            return Ok(entry.ino());
        }
    }
    Err(Errno::NOENT)
}

/// Makes a file that was not there, and opens it; `flags` as of `open(2)`.
pub fn create_file(folder: impl AsFd, name: &OsStr, flags: i32, mode: u32) -> Outcome<OpenFile> {
    let folder = folder.as_fd();
    let own = own(flags) | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
    let mode = Mode::from_raw_mode(mode & 0o7777);
    let fd = retry(|| rustix::fs::openat(folder, name, own, mode))?;
    Ok(OpenFile::new(fd))
}

/// Makes a directory.
pub fn make_folder(folder: impl AsFd, name: &OsStr, mode: u32) -> Outcome<()> {
    rustix::fs::mkdirat(folder, name, Mode::from_raw_mode(mode & 0o7777))
}

/// Makes a file, a pipe, a socket or a device, by the bits of its mode.
pub fn make_node(
    folder: impl AsFd,
    name: &OsStr,
    mode: u32,
    (major, minor): (u32, u32),
) -> Outcome<()> {
    let kind = FileType::from_raw_mode(mode);
    let device = rustix::fs::makedev(major, minor);
    rustix::fs::mknodat(
        folder,
        name,
        kind,
        Mode::from_raw_mode(mode & 0o7777),
        device,
    )
}

/// Makes a symbolic link with that text.
pub fn make_symlink(folder: impl AsFd, name: &OsStr, text: &OsStr) -> Outcome<()> {
    rustix::fs::symlinkat(text, folder, name)
}

/// Gives an inode one more name.
pub fn link(pin: &Pin, folder: impl AsFd, name: &OsStr) -> Outcome<()> {
    let folder = folder.as_fd();
    match rustix::fs::linkat(pin, "", folder, name, AtFlags::EMPTY_PATH) {
        // Without the power to go anywhere this is how it is said.
        Err(Errno::NOENT) => {
            let flags = AtFlags::SYMLINK_FOLLOW;
            rustix::fs::linkat(rustix::fs::CWD, pin.proc_path(), folder, name, flags)
        }
        other => other,
    }
}

/// Removes a name that is no directory's.
pub fn remove(folder: impl AsFd, name: &OsStr) -> Outcome<()> {
    rustix::fs::unlinkat(folder, name, AtFlags::empty())
}

/// Removes an empty directory.
pub fn remove_folder(folder: impl AsFd, name: &OsStr) -> Outcome<()> {
    rustix::fs::unlinkat(folder, name, AtFlags::REMOVEDIR)
}

/// Gives an entry another name, here or there.
pub fn rename(
    from: impl AsFd,
    name: &OsStr,
    to: impl AsFd,
    new_name: &OsStr,
    how: Renaming,
) -> Outcome<()> {
    let mut flags = RenameFlags::empty();
    flags.set(RenameFlags::NOREPLACE, how.no_replace);
    flags.set(RenameFlags::EXCHANGE, how.exchange);
    if how.no_replace && how.exchange {
        return Err(Errno::INVAL);
    }
    rustix::fs::renameat_with(from, name, to, new_name, flags)
}
