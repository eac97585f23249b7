//! Facts about a name and about the file system it lies on.

use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, StatxAttributes, StatxFlags};
use rustix::io::Errno;

/// A directory whose names are hashed (`EXT4_INDEX_FL`).
const INDEX_FLAG: u32 = 0x1000;

/// What a name names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// An ordinary file.
    File,
    /// A directory.
    Folder,
    /// A symbolic link.
    Link,
    /// A device, a pipe or a socket.
    Other,
}

impl Kind {
    /// `None` where the file system does not say.
    pub(super) const fn of(kind: FileType) -> Option<Self> {
        match kind {
            FileType::RegularFile => Some(Self::File),
            FileType::Directory => Some(Self::Folder),
            FileType::Symlink => Some(Self::Link),
            FileType::Unknown => None,
            _ => Some(Self::Other),
        }
    }
}

/// Facts about one name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// What it is.
    pub kind: Kind,
    /// Permissions with set-uid, set-gid and sticky bits.
    pub mode: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The device it lies on, major and minor.
    pub device: (u32, u32),
    /// The inode's number.
    pub inode: u64,
    /// How many names it has.
    pub links: u32,
    /// Length in octets; of a directory as the file system counts it.
    pub len: u64,
    /// Whether something is mounted there.
    pub is_mount_point: bool,
}

impl Facts {
    pub(super) fn of(folder: impl AsFd, at: &Path) -> rustix::io::Result<Self> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH;
        let found = rustix::fs::statx(folder, at, flags, StatxFlags::BASIC_STATS)?;
        let mode = u32::from(found.stx_mode);
        Ok(Self {
            kind: Kind::of(FileType::from_raw_mode(mode)).unwrap_or(Kind::Other),
            mode: mode & 0o7777,
            uid: found.stx_uid,
            gid: found.stx_gid,
            device: (found.stx_dev_major, found.stx_dev_minor),
            inode: found.stx_ino,
            links: found.stx_nlink,
            len: found.stx_size,
            is_mount_point: found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT),
        })
    }

    /// Whether both are names of the same thing.
    #[must_use]
    pub fn is_same_as(&self, other: &Self) -> bool {
        self.device == other.device && self.inode == other.inode
    }
}

/// What kind of file system it is, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileSystemKind {
    /// ext2, ext3 or ext4: one magic for all.
    Ext,
    /// XFS.
    Xfs,
    /// btrfs.
    Btrfs,
    /// Memory.
    Tmpfs,
    /// Anything behind FUSE.
    Fuse,
    /// Anything else, with its magic.
    Other(u64),
}

/// A file system: its kind and the room in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSystem {
    /// Its kind.
    pub kind: FileSystemKind,
    /// Octets left for an ordinary user.
    pub free_bytes: u64,
    /// Inodes left for an ordinary user; `None` where they are not counted.
    pub free_inodes: Option<u64>,
    /// Octets of one block.
    pub block_bytes: u64,
    /// It tells no size, nor what is free: it is as large as memory (ramfs).
    pub has_no_limit: bool,
}

impl FileSystem {
    pub(super) fn of(fd: impl AsFd) -> rustix::io::Result<Self> {
        let magic = u64::try_from(rustix::fs::fstatfs(&fd)?.f_type).unwrap_or(0);
        let room = rustix::fs::fstatvfs(&fd)?;
        let kind = match magic {
            0xEF53 => FileSystemKind::Ext,
            0x5846_5342 => FileSystemKind::Xfs,
            0x9123_683E => FileSystemKind::Btrfs,
            0x0102_1994 => FileSystemKind::Tmpfs,
            0x6573_5546 => FileSystemKind::Fuse,
            other => FileSystemKind::Other(other),
        };
        Ok(Self {
            kind,
            free_bytes: room.f_bavail.saturating_mul(room.f_frsize),
            // A file system that makes inodes as it needs them counts none.
            free_inodes: (room.f_files > 0).then_some(room.f_favail),
            block_bytes: room.f_frsize,
            has_no_limit: room.f_blocks == 0,
        })
    }
}

/// Whether an ext directory of more than one block is hashed; the others do not say.
pub(super) fn is_indexed(fd: impl AsFd) -> rustix::io::Result<Option<bool>> {
    let fd = fd.as_fd();
    if FileSystem::of(fd)?.kind != FileSystemKind::Ext {
        return Ok(None);
    }
    match rustix::fs::ioctl_getflags(fd) {
        Ok(flags) => Ok(Some(flags.bits() & INDEX_FLAG != 0)),
        Err(Errno::NOTTY | Errno::OPNOTSUPP) => Ok(None),
        Err(errno) => Err(errno),
    }
}
