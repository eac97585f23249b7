//! What is mounted where, and taking it off again.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use rustix::mount::UnmountFlags;

use crate::disk::{failed, read_text};
use crate::error::{Op, Result};

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
}

/// Everything that is mounted, as this process sees it; what lies on top comes last.
pub fn mount_points() -> Result<Vec<MountPoint>> {
    let text = read_text(Path::new("/proc/self/mountinfo"), TABLE_BYTES_MAX)?;
    Ok(text.lines().filter_map(parse).collect())
}

/// Takes off what is mounted at `at`; `lazily` also when it is in use: it is gone for others at once, and ends with its
/// last user.
pub fn unmount(at: &Path, lazily: bool) -> Result<()> {
    let mut flags = UnmountFlags::NOFOLLOW;
    flags.set(UnmountFlags::DETACH, lazily);
    rustix::mount::unmount(at, flags).map_err(failed(Op::Remove, at))
}

/// A path as the table of mounts has it; as it was given, made absolute, if it cannot be looked at (its server may be
/// dead).
#[must_use]
pub fn canonical(path: &Path) -> PathBuf {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is where paths are looked at"
    )]
    let found = std::fs::canonicalize(path);
    found.unwrap_or_else(|_| std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf()))
}

/// A line as of proc(5): what stands behind the lone dash is found by it.
fn parse(line: &str) -> Option<MountPoint> {
    let (front, back) = line.split_once(" - ")?;
    let mut back = back.split(' ');
    Some(MountPoint {
        at: unescaped(front.split(' ').nth(4)?),
        kind: back.next()?.to_owned(),
        source: unescaped(back.next()?),
    })
}

/// Blanks and the like stand there as a backslash and three octal digits.
fn unescaped(text: &str) -> PathBuf {
    let mut octets = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let digits = behind.get(..3).filter(|_| first == b'\\');
        let value = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        octets.push(value.unwrap_or(first));
        rest = if value.is_some() {
            &behind[3..]
        } else {
            behind
        };
    }
    PathBuf::from(OsString::from_vec(octets))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_mountinfo() {
        let line = "36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 - fuse.newsreel /var/spool\\134 rw,errors=continue";
        let expected = MountPoint {
            at: PathBuf::from("/mnt 2"),
            kind: "fuse.newsreel".to_owned(),
            source: PathBuf::from("/var/spool\\"),
        };
        assert_eq!(parse(line), Some(expected));
        assert_eq!(parse("36 35 98:0 / /mnt rw"), None);
        assert_eq!(unescaped("a\\04"), PathBuf::from("a\\04"));
    }

    #[test]
    fn the_root_is_mounted() {
        let all = mount_points().unwrap();
        assert!(all.iter().any(|mount| mount.at == Path::new("/")));
    }
}
