//! The names of segments: their cycle in eight digits, in the directory of their set.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use newsreel_host::{Disk, ErrorKind, set_aside};
use newsreel_wire::CYCLE_MAX;

use crate::error::Result;

/// What a segment's file is called behind its number.
const SUFFIX: &str = ".seg";
/// ... while it is made.
pub(super) const UNFINISHED: &str = ".unfinished";

/// Whether a file is named as a segment is.
pub(crate) fn is_name_of_one(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str);
    name.and_then(cycle_of).is_some()
}

/// The number in a segment's name.
pub(super) fn cycle_of(name: &str) -> Option<u32> {
    let digits = name.strip_suffix(SUFFIX)?;
    let is_number = digits.len() == 8 && digits.bytes().all(|octet| octet.is_ascii_digit());
    let cycle = digits.parse().ok().filter(|_| is_number)?;
    (1..=CYCLE_MAX).contains(&cycle).then_some(cycle)
}

/// The cycles whose files are in a directory, which need not be there; what was not finished is removed by who writes.
pub(super) fn list(disk: &dyn Disk, dir: &Path, read_only: bool) -> Result<Vec<u32>> {
    let entries = match disk.list(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        entries => entries?,
    };
    let mut cycles = Vec::new();
    for entry in entries {
        if let Some(cycle) = cycle_of(&entry.name) {
            if !entry.is_dir {
                cycles.push(cycle);
            } else if !read_only {
                let aside = set_aside(disk, &dir.join(&entry.name))?;
                tracing::error!(path = %aside.display(), "a directory stood in the place of a segment");
            }
        } else if entry.name.ends_with(UNFINISHED) && !read_only {
            disk.remove(&dir.join(&entry.name))?;
        }
    }
    cycles.sort_unstable();
    Ok(cycles)
}

/// The path of a segment.
pub(super) fn path_of(dir: &Path, cycle: u32) -> PathBuf {
    dir.join(format!("{cycle:08}{SUFFIX}"))
}

/// The segments in a directory, oldest first; nothing there is touched.
pub(crate) fn files_in(disk: &dyn Disk, dir: &Path) -> Result<Vec<PathBuf>> {
    let cycles = list(disk, dir, true)?;
    Ok(cycles.iter().map(|cycle| path_of(dir, *cycle)).collect())
}
