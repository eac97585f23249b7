//! What is mounted where, and taking it off again.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};

use crate::disk::{failed, read_table, retry};
use crate::error::{Error, ErrorKind, Op, Result};

/// As much of the table of mounts is read: a hundred thousand of them.
const TABLE_BYTES_MAX: u64 = 16 << 20;

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountPoint {
    /// Where.
    pub at: PathBuf,
    /// Its type, with the part behind the point: `fuse.newsreel`.
    pub kind: String,
    /// What is mounted.
    pub source: PathBuf,
    /// The device that it is, as `major:minor`.
    pub device: String,
    /// What may be done with it.
    pub access: Access,
}

/// Everything that is mounted, as this process sees it; what lies on top comes last.
pub fn mount_points() -> Result<Vec<MountPoint>> {
    let table = read_table(Path::new("/proc/self/mountinfo"), TABLE_BYTES_MAX)?;
    Ok(mounts_in(&table))
}

/// What a table of mounts says, as the kernel writes it (mountinfo of proc(5)); lines that say nothing are passed over.
#[must_use]
pub fn mounts_in(table: &[u8]) -> Vec<MountPoint> {
    let lines = table.split(|octet| *octet == b'\n');
    lines.filter_map(parse).collect()
}

/// Takes off what is mounted at `at`; `lazily` also when it is in use: it is gone for others at once, and ends with its
/// last user.
pub fn unmount(at: &Path, lazily: bool) -> Result<()> {
    let mut flags = UnmountFlags::NOFOLLOW;
    flags.set(UnmountFlags::DETACH, lazily);
    rustix::mount::unmount(at, flags).map_err(failed(Op::Remove, at))
}

/// What may be done with what is mounted, beside reading it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Access {
    /// Nothing can be changed.
    pub read_only: bool,
    /// Devices can be used.
    pub devices: bool,
    /// Set-uid programs run as their owner.
    pub set_uid: bool,
    /// No program can be run.
    pub no_exec: bool,
    /// Reading a file leaves its time alone.
    pub no_atime: bool,
}

/// Lets other things than before be done with what is mounted at `at`, while it is in use.
pub fn remount(at: &Path, access: Access) -> io::Result<()> {
    let flags = [
        (access.read_only, MountFlags::RDONLY),
        (!access.devices, MountFlags::NODEV),
        (!access.set_uid, MountFlags::NOSUID),
        (access.no_exec, MountFlags::NOEXEC),
        (access.no_atime, MountFlags::NOATIME),
    ];
    let set = flags.into_iter().filter(|(is_set, _)| *is_set);
    let flags = set.map(|(_, flag)| flag).collect();
    Ok(rustix::mount::mount_remount(at, flags, "")?)
}

/// One mount, told from any other that comes to its place: the kernel's number for it, and its device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MountId {
    number: u64,
    device: (u32, u32),
}

impl MountId {
    /// What is mounted at a place, on top.  Whoever serves it is not asked.
    pub fn at(at: &Path) -> Result<Self> {
        Ok(Self::open(at)?.1)
    }

    fn open(at: &Path) -> Result<(OwnedFd, Self)> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd =
            retry(|| rustix::fs::open(at, flags, Mode::empty())).map_err(failed(Op::Open, at))?;
        let how = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let found = retry(|| rustix::fs::statx(&fd, "", how, StatxFlags::MNT_ID))
            .map_err(failed(Op::Stat, at))?;
        let id = Self {
            number: found.stx_mnt_id,
            device: (found.stx_dev_major, found.stx_dev_minor),
        };
        Ok((fd, id))
    }

    /// Takes it off if it is (still) what lies at `at`, also when it is in use, and says whether it was: nothing else is ever
    /// taken off by root; who is not root has to do it by its path, through `fusermount3`, right after looking.
    pub fn unmount(self, at: &Path) -> Result<bool> {
        let (fd, found) = match Self::open(at) {
            // What it lay in has another name by now, or is closed to us.
            Err(error)
                if error.kind() == ErrorKind::NotFound
                    || error.is_below_a_file()
                    || error.is_denied() =>
            {
                return Ok(false);
            }
            found => found?,
        };
        if found != self {
            return Ok(false);
        }
        // The link leads to this mount and no other, whatever is mounted over it by now.
        let link = format!("/proc/self/fd/{}", fd.as_raw_fd());
        match rustix::mount::unmount(link.as_str(), UnmountFlags::DETACH) {
            Err(Errno::PERM) => {
                drop(fd);
                unmount_by_helper(at, true)
                    .map_err(|source| Error::from_io(Op::Remove, at, source))?;
            }
            other => other.map_err(failed(Op::Remove, at))?,
        }
        Ok(true)
    }
}

/// Takes off what a user who is not root has mounted with FUSE at `at`.
pub fn unmount_by_helper(at: &Path, lazily: bool) -> io::Result<()> {
    let mut helper = Command::new("fusermount3");
    let helper = helper.arg("-u").args(lazily.then_some("-z"));
    let output = helper.arg("--").arg(at).output().map_err(|error| {
        io::Error::new(error.kind(), format!("cannot run fusermount3: {error}"))
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(said.trim_end().to_owned()))
}

/// A path as the table of mounts has it.  If it cannot be looked at (its server may be dead), what it lies in is looked
/// at; if that cannot be either, it is as it was given, made absolute.
#[must_use]
pub fn canonical(path: &Path) -> PathBuf {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is where paths are looked at"
    )]
    let look = |path: &Path| std::fs::canonicalize(path).ok();
    look(path).unwrap_or_else(|| {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        let above = absolute.parent().and_then(look);
        match (above, absolute.file_name()) {
            (Some(above), Some(name)) => above.join(name),
            _ => absolute,
        }
    })
}

/// A line as of proc(5): what stands behind the lone dash is found by it.  Paths are octets, not always UTF-8.
fn parse(line: &[u8]) -> Option<MountPoint> {
    let mut fields = line.split(|octet| *octet == b' ');
    let device = String::from_utf8_lossy(fields.nth(2)?).into_owned();
    let at = unescaped(fields.nth(1)?);
    let options = fields.next()?;
    fields.find(|field| field == b"-")?;
    let kind = String::from_utf8_lossy(fields.next()?).into_owned();
    let source = unescaped(fields.next()?);
    let of_system = fields.next().unwrap_or_default();
    let has =
        |list: &[u8], wanted: &[u8]| list.split(|octet| *octet == b',').any(|it| it == wanted);
    Some(MountPoint {
        at,
        kind,
        source,
        device,
        access: Access {
            read_only: has(options, b"ro") || has(of_system, b"ro"),
            devices: !has(options, b"nodev"),
            set_uid: !has(options, b"nosuid"),
            no_exec: has(options, b"noexec"),
            no_atime: has(options, b"noatime"),
        },
    })
}

/// Blanks and the like stand there as a backslash and three octal digits.
fn unescaped(field: &[u8]) -> PathBuf {
    let mut octets = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, behind)) = rest.split_first() {
        let digits = behind.get(..3).filter(|_| first == b'\\');
        let value = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        octets.push(value.unwrap_or(first));
        rest = match value {
            Some(_) => behind.get(3..).unwrap_or_default(),
            None => behind,
        };
    }
    PathBuf::from(OsString::from_vec(octets))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_mountinfo() {
        let line = b"36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 - fuse.newsreel /var/spool\\134 rw,errors=continue";
        let expected = MountPoint {
            at: PathBuf::from("/mnt 2"),
            kind: "fuse.newsreel".to_owned(),
            source: PathBuf::from("/var/spool\\"),
            device: "98:0".to_owned(),
            access: Access {
                devices: true,
                set_uid: true,
                no_atime: true,
                ..Access::default()
            },
        };
        let other = b"1 0 8:1 / /b ro,nosuid,noexec - ext4 /c rw";
        let access = Access {
            read_only: true,
            devices: true,
            no_exec: true,
            ..Access::default()
        };
        assert_eq!(parse(other).map(|mount| mount.access), Some(access));
        assert_eq!(parse(line), Some(expected));
        assert_eq!(parse(b"36 35 98:0 / /mnt rw"), None);
        assert_eq!(unescaped(b"a\\04"), PathBuf::from("a\\04"));
    }

    #[test]
    fn a_path_in_another_character_set_hides_no_other() {
        let table = b"1 0 8:1 / /mnt/b\xfccher rw - ext4 /dev/b\xfc rw\n2 1 8:2 / /b rw - fuse.newsreel /c rw\n";
        let found = mounts_in(table);
        let at = |octets: &[u8]| PathBuf::from(OsString::from_vec(octets.to_vec()));
        let found: Vec<_> = found.into_iter().map(|mount| mount.at).collect();
        assert_eq!(found, [at(b"/mnt/b\xfccher"), at(b"/b")]);
    }

    #[test]
    fn the_root_is_mounted() {
        let all = mount_points().unwrap();
        assert!(all.iter().any(|mount| mount.at == Path::new("/")));
    }
}
