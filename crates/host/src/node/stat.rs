//! All that the kernel tells about an inode, and about the room of a file system.

use std::ffi::OsStr;
use std::os::fd::AsFd;

use rustix::fs::{
    AtFlags, Statx, StatxAttributes, StatxFlags, StatxTimestamp, Timespec, Timestamps, UTIME_NOW,
    UTIME_OMIT,
};
use rustix::io::Errno;

use super::{Handle, Outcome};

/// The bits of a mode that say what it is (`S_IFMT`).
const KIND_BITS: u32 = 0o170_000;

/// A moment as inodes know it; before 1970 the seconds are negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Stamp {
    /// Seconds since 1970.
    pub secs: i64,
    /// Nanoseconds of the started second.
    pub nanos: u32,
}

/// All about an inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Its number.
    pub inode: u64,
    /// The device it lies on, major and minor.
    pub device: (u32, u32),
    /// Kind and permissions.
    pub mode: u32,
    /// How many names it has.
    pub links: u32,
    /// The owner.
    pub uid: u32,
    /// The group.
    pub gid: u32,
    /// The device it is, major and minor.
    pub special: (u32, u32),
    /// Length in octets.
    pub len: u64,
    /// Blocks of 512 octets.
    pub blocks: u64,
    /// The best size of a transfer.
    pub block_bytes: u32,
    /// Last read.
    pub accessed: Stamp,
    /// Last written.
    pub modified: Stamp,
    /// Last changed in any way.
    pub changed: Stamp,
}

impl Stat {
    /// Asks about what a descriptor refers to.
    pub fn of(fd: impl AsFd) -> Outcome<Self> {
        let flags = AtFlags::EMPTY_PATH | AtFlags::SYMLINK_NOFOLLOW;
        let found = rustix::fs::statx(fd, "", flags, StatxFlags::BASIC_STATS)?;
        Ok(Self::from(found))
    }

    /// Asks about the entry `name` of a directory.  What is mounted there is not looked at: `EXDEV`.
    fn at(folder: impl AsFd, name: &OsStr) -> Outcome<Self> {
        let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
        let found = rustix::fs::statx(folder, name, flags, StatxFlags::BASIC_STATS)?;
        if found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT) {
            return Err(Errno::XDEV);
        }
        Ok(Self::from(found))
    }

    /// What it is, without its permissions.
    #[must_use]
    pub const fn kind_bits(&self) -> u32 {
        self.mode & KIND_BITS
    }

    /// Whether it is a directory.
    #[must_use]
    pub const fn is_folder(&self) -> bool {
        self.kind_bits() == 0o040_000
    }
}

impl From<Statx> for Stat {
    fn from(found: Statx) -> Self {
        Self {
            inode: found.stx_ino,
            device: (found.stx_dev_major, found.stx_dev_minor),
            mode: u32::from(found.stx_mode),
            links: found.stx_nlink,
            uid: found.stx_uid,
            gid: found.stx_gid,
            special: (found.stx_rdev_major, found.stx_rdev_minor),
            len: found.stx_size,
            blocks: found.stx_blocks,
            block_bytes: found.stx_blksize,
            accessed: Stamp::from(found.stx_atime),
            modified: Stamp::from(found.stx_mtime),
            changed: Stamp::from(found.stx_ctime),
        }
    }
}

/// All about the entry `name` of a directory, and its handle: with two calls and without a descriptor of it.  Both are of one
/// inode only if nobody gives the name to another one between the two calls.
pub fn look_at(folder: impl AsFd, name: &OsStr) -> Outcome<(Stat, Handle)> {
    let folder = folder.as_fd();
    Ok((Stat::at(folder, name)?, Handle::at(folder, name)?))
}

impl From<StatxTimestamp> for Stamp {
    fn from(stamp: StatxTimestamp) -> Self {
        Self {
            secs: stamp.tv_sec,
            nanos: stamp.tv_nsec,
        }
    }
}

/// What becomes of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimeChange {
    /// It stays.
    #[default]
    Keep,
    /// It becomes this moment, by the kernel's clock.
    Now,
    /// It becomes that.
    To(Stamp),
}

impl TimeChange {
    fn spec(self) -> Timespec {
        let (tv_sec, tv_nsec) = match self {
            Self::Keep => (0, UTIME_OMIT),
            Self::Now => (0, UTIME_NOW),
            Self::To(stamp) => (stamp.secs, i64::from(stamp.nanos)),
        };
        Timespec { tv_sec, tv_nsec }
    }
}

/// Changes the times of what a descriptor refers to.
pub fn set_times(fd: impl AsFd, accessed: TimeChange, modified: TimeChange) -> Outcome<()> {
    let stamps = Timestamps {
        last_access: accessed.spec(),
        last_modification: modified.spec(),
    };
    rustix::fs::utimensat(fd, "", &stamps, AtFlags::EMPTY_PATH)
}

/// The room of a file system (`statfs`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// Fragments in all.
    pub blocks: u64,
    /// Free ones.
    pub free: u64,
    /// Free ones for ordinary users.
    pub available: u64,
    /// Inodes in all.
    pub inodes: u64,
    /// Free ones.
    pub inodes_free: u64,
    /// Octets of a block.
    pub block_bytes: u64,
    /// Octets of a fragment.
    pub fragment_bytes: u64,
    /// The longest name.
    pub name_bytes_max: u64,
}

impl Room {
    /// Of the file system that a descriptor lies on.
    pub fn of(fd: impl AsFd) -> Outcome<Self> {
        let room = rustix::fs::fstatvfs(fd)?;
        Ok(Self {
            blocks: room.f_blocks,
            free: room.f_bfree,
            available: room.f_bavail,
            inodes: room.f_files,
            inodes_free: room.f_ffree,
            block_bytes: room.f_bsize,
            fragment_bytes: room.f_frsize,
            name_bytes_max: room.f_namemax,
        })
    }
}
