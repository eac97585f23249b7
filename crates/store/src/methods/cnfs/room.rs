//! Room for buffers that are to be made or to become larger, and what else stands in their way: known of all of them before anything is
//! written for the first.
//!
//! What one is promised the next does not find free.  Reads only; who then writes looks again.

use std::collections::BTreeMap;
use std::path::Path;

use newsreel_host::{Disk, ErrorKind, File, OpenMode, said_octets};
use newsreel_wire::BufferId;

use super::create::{check_blank, new_header, parent, unfinished};
use super::file::Owner;
use crate::error::{Error, Result};

/// What was promised of the room of each file system.
#[derive(Debug, Default)]
pub(crate) struct Room {
    promised: BTreeMap<u64, u64>,
}

impl Room {
    /// Promises so many octets where this directory lies, or will; `back` come free before.  `Some`: fewer are free.
    fn take(
        &mut self,
        disk: &dyn Disk,
        dir: &Path,
        (octets, back): (u64, u64),
    ) -> Result<Option<u64>> {
        let dir = there(disk, dir)?;
        let promised = self.promised.entry(disk.file_system(dir)?).or_default();
        let free = disk.free_bytes(dir)?.saturating_add(back);
        let free = free.saturating_sub(*promised);
        if free < octets {
            return Ok(Some(free));
        }
        *promised += octets.saturating_sub(back);
        Ok(None)
    }
}

/// The directory itself, or the nearest above it that is there.
pub(super) fn there<'p>(disk: &dyn Disk, dir: &'p Path) -> Result<&'p Path> {
    let mut dir = dir;
    while !disk.exists(dir)? {
        dir = dir.parent().unwrap_or_else(|| Path::new("/"));
    }
    Ok(dir)
}

/// Whether there is room for a buffer's new file.
pub(super) fn for_new_file(disk: &dyn Disk, owner: &Owner<'_>, room: &mut Room) -> Result<()> {
    new_header(owner, BufferId(0))?;
    if owner.config.sparse {
        return Ok(());
    }
    // What a kill left is removed first.
    let begun = match disk.open(&unfinished(owner.path), OpenMode::Read) {
        Ok(file) => file.len()?,
        Err(error) if error.kind() == ErrorKind::NotFound => 0,
        Err(error) => return Err(error.into()),
    };
    let (dir, octets) = (parent(owner.path), owner.config.octets);
    match room.take(disk, dir, (octets, begun))? {
        None => Ok(()),
        Some(free) => Err(lack(owner, (octets, ""), dir, free)),
    }
}

/// Whether a device or file that is there can be made into a buffer.
pub(super) fn in_place(disk: &dyn Disk, owner: &Owner<'_>) -> Result<()> {
    new_header(owner, BufferId(0))?;
    check_blank(disk.open(owner.path, OpenMode::Read)?.as_ref(), owner)
}

/// Whether there is room behind the end of a buffer that is to become larger.
pub(super) fn behind(
    disk: &dyn Disk,
    file: &dyn File,
    owner: &Owner<'_>,
    room: &mut Room,
) -> Result<()> {
    let (octets, len) = (owner.config.octets, file.len()?);
    if octets <= len {
        return Ok(());
    }
    if file.is_device()? {
        return Err(owner.too_short(len));
    }
    if owner.config.sparse {
        return Ok(());
    }
    let (dir, more) = (parent(owner.path), octets - len);
    match room.take(disk, dir, (more, 0))? {
        None => Ok(()),
        Some(free) => Err(lack(owner, (more, " more"), dir, free)),
    }
}

fn lack(owner: &Owner<'_>, (octets, more): (u64, &str), dir: &Path, free: u64) -> Error {
    owner.wrong(format!(
        "it needs {}{more}, {} has {} free; make `octets` smaller, or free some",
        said_octets(octets),
        dir.display(),
        said_octets(free)
    ))
}
