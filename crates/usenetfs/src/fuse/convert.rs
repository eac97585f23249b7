//! Between what the kernel speaks and what the view speaks: attributes, times, devices, numbers of errors.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{FileAttr, FileType, INodeNo, TimeOrNow};
use newsreel_host::node::{Errno, Stamp, Stat, TimeChange};

/// A number of an error.
pub(super) fn number(errno: Errno) -> fuser::Errno {
    fuser::Errno::from_i32(errno.raw_os_error())
}

/// All about an inode; `number` is its own, or the node's where the two differ.
pub(super) fn attributes(number: u64, stat: &Stat) -> FileAttr {
    FileAttr {
        ino: INodeNo(number),
        size: stat.len,
        blocks: stat.blocks,
        atime: moment(stat.accessed),
        mtime: moment(stat.modified),
        ctime: moment(stat.changed),
        crtime: UNIX_EPOCH,
        kind: kind(stat.mode),
        perm: u16::try_from(stat.mode & 0o7777).unwrap_or(0),
        nlink: stat.links,
        uid: stat.uid,
        gid: stat.gid,
        rdev: packed(stat.special),
        blksize: stat.block_bytes,
        flags: 0,
    }
}

/// What says that a name is not there, for as long as it comes with.
pub(super) fn nothing() -> FileAttr {
    FileAttr {
        ino: INodeNo(0),
        size: 0,
        blocks: 0,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind: FileType::RegularFile,
        perm: 0,
        nlink: 0,
        uid: 0,
        gid: 0,
        rdev: 0,
        blksize: 0,
        flags: 0,
    }
}

/// What something is, by its mode.
pub(super) const fn kind(mode: u32) -> FileType {
    match mode & 0o170_000 {
        0o040_000 => FileType::Directory,
        0o120_000 => FileType::Symlink,
        0o010_000 => FileType::NamedPipe,
        0o020_000 => FileType::CharDevice,
        0o060_000 => FileType::BlockDevice,
        0o140_000 => FileType::Socket,
        _ => FileType::RegularFile,
    }
}

fn moment(stamp: Stamp) -> SystemTime {
    let nanos = Duration::from_nanos(stamp.nanos.into());
    let whole = Duration::from_secs(stamp.secs.unsigned_abs());
    let at = if stamp.secs < 0 {
        UNIX_EPOCH.checked_sub(whole)
    } else {
        UNIX_EPOCH.checked_add(whole)
    };
    at.and_then(|at| at.checked_add(nanos))
        .unwrap_or(UNIX_EPOCH)
}

fn stamp(moment: SystemTime) -> Stamp {
    match moment.duration_since(UNIX_EPOCH) {
        Ok(since) => Stamp {
            secs: i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
            nanos: since.subsec_nanos(),
        },
        Err(before) => {
            let before = before.duration();
            let secs = i64::try_from(before.as_secs()).unwrap_or(i64::MAX);
            match before.subsec_nanos() {
                0 => Stamp {
                    secs: -secs,
                    nanos: 0,
                },
                nanos => Stamp {
                    secs: -secs - 1,
                    nanos: 1_000_000_000 - nanos,
                },
            }
        }
    }
}

/// What becomes of a time.
pub(super) fn time_change(time: Option<TimeOrNow>) -> TimeChange {
    match time {
        None => TimeChange::Keep,
        Some(TimeOrNow::Now) => TimeChange::Now,
        Some(TimeOrNow::SpecificTime(moment)) => TimeChange::To(stamp(moment)),
    }
}

/// A device as the kernel packs it into 32 bits.
const fn packed((major, minor): (u32, u32)) -> u32 {
    (minor & 0xff) | ((major & 0xfff) << 8) | ((minor & 0xf_ff00) << 12)
}

/// The same unpacked.
pub(super) const fn device(packed: u32) -> (u32, u32) {
    let minor = (packed & 0xff) | ((packed >> 12) & 0xf_ff00);
    ((packed >> 8) & 0xfff, minor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_go_there_and_back() {
        for (secs, nanos) in [
            (0, 0),
            (5, 7),
            (-1, 0),
            (-1, 999_999_999),
            (-5, 1),
            (1 << 33, 1),
        ] {
            let at = Stamp { secs, nanos };
            assert_eq!(stamp(moment(at)), at);
        }
    }

    #[test]
    fn devices_go_there_and_back() {
        for (major, minor) in [(0, 0), (8, 1), (259, 70_000), (0xfff, 0xf_ffff)] {
            assert_eq!(device(packed((major, minor))), (major, minor));
        }
        assert_eq!(packed((8, 1)), 0x801);
    }
}
