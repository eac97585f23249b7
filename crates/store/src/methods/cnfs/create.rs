//! Making a new buffer: written out once, so that overwriting it later costs no allocation and the room is certain.
//!
//! A regular file gets its name only when it is whole; a device or a file that is there already gets its headers
//! last, and only when it is blank.  Nothing that is not blank is ever made into a buffer.

use std::path::{Path, PathBuf};

use newsreel_host::{Disk, ErrorKind, File, OpenMode, random_bytes};
use newsreel_wire::{BufferId, Sequence, UnixTime};

use super::file::Owner;
use super::room::{self, Room};
use crate::config::BufferConfig;
use crate::error::Result;
use crate::records::format::{FileHeader, Hints, SECOND_HEADER};
use crate::records::geometry::{Geometry, in_memory};
use crate::records::signed::signed_anywhere;

/// Told the buffer's name, how many octets of it were written, and of how many.
pub type CreateProgress<'a> = &'a mut dyn FnMut(&str, u64, u64);

/// Zeros are written in steps of this, between which progress is told.
pub(super) const FILL_STEP: u64 = 16 << 20;
/// So much at both ends of a device is looked at before it is taken: there file systems, volume managers and partition
/// tables have their marks.
const ENDS: u64 = 1 << 20;
/// What a file is called while it is made.
const UNFINISHED: &str = "unfinished";

/// Makes the buffer's file and names it.
pub(super) fn create_file(
    disk: &dyn Disk,
    owner: &Owner<'_>,
    id: BufferId,
    progress: CreateProgress<'_>,
) -> Result<()> {
    let dir = parent(owner.path);
    disk.create_dir_all(dir)?;
    let unfinished = unfinished(owner.path);
    match disk.remove(&unfinished) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    room::for_new_file(disk, owner, &mut Room::default())?;
    let file = disk.open(&unfinished, OpenMode::CreateNew)?;
    if let Err(error) = fill(file.as_ref(), owner, id, progress) {
        // Half a buffer is no use; what its removal says does not matter beside the cause.
        let _ = disk.remove(&unfinished);
        return Err(error);
    }
    disk.rename(&unfinished, owner.path)?;
    disk.sync_dir(dir)?;
    Ok(())
}

/// Makes a blank device or file that is there already into a buffer.
pub(super) fn create_in_place(
    disk: &dyn Disk,
    owner: &Owner<'_>,
    id: BufferId,
    progress: CreateProgress<'_>,
) -> Result<()> {
    let file = disk.open(owner.path, OpenMode::ReadWrite)?;
    check_blank(file.as_ref(), owner)?;
    fill(file.as_ref(), owner, id, progress)
}

/// Whether a device or file is as long as the configuration says, and nobody has anything in it.
pub(super) fn check_blank(file: &dyn File, owner: &Owner<'_>) -> Result<()> {
    let len = file.len()?;
    if len < owner.config.octets {
        return Err(owner.too_short(len));
    }
    if file.is_read_only()? {
        return Err(owner.wrong("it is a device that is read-only, so no buffer can be made of it"));
    }
    owner.no_file_system(file)?;
    for from in [0, len.saturating_sub(ENDS)] {
        let mut octets = vec![0; in_memory(ENDS.min(len - from))];
        file.read_exact_at(&mut octets, from)?;
        if let Some(at) = octets.iter().position(|octet| *octet != 0) {
            return Err(owner.wrong(format!(
                "it is not blank: there is something at {:#x}, a file system perhaps. If nobody needs it, overwrite its \
                 first and last mebibyte with zeros (`dd if=/dev/zero`), or all of it (`blkdiscard --zeroout`)",
                from + at as u64
            )));
        }
    }
    // All of it is overwritten otherwise.
    if owner.config.sparse && signed_anywhere(file, owner.config.octets)?.is_some() {
        return Err(owner.wrong(
            "it is not blank: articles of another buffer lie in it, which would be taken for its own if its header were lost, as `sparse` \
             leaves them. If nobody needs them, overwrite all of it (`blkdiscard --zeroout`), or take `sparse` out"
                .to_owned(),
        ));
    }
    Ok(())
}

/// Zeros first, headers last: until then it counts as blank.
fn fill(
    file: &dyn File,
    owner: &Owner<'_>,
    id: BufferId,
    progress: CreateProgress<'_>,
) -> Result<()> {
    let header = new_header(owner, id)?;
    zero(file, owner.config, progress)?;
    let page = header.encode();
    file.write_at(&page, 0)?;
    file.write_at(&page, SECOND_HEADER)?;
    file.sync_all()?;
    Ok(())
}

/// The header of a buffer in which nothing was written yet.
pub(super) fn new_header(owner: &Owner<'_>, id: BufferId) -> Result<FileHeader> {
    let config = owner.config;
    let geometry = Geometry::of(config.octets, config.block());
    let start = geometry.and_then(|geometry| Some((geometry.data_start, geometry.start_of(1)?)));
    let Some((data_start, start)) = start else {
        return Err(owner.wrong(format!(
            "{} octets in blocks of {} are no buffer",
            config.octets,
            config.block()
        )));
    };
    Ok(FileHeader {
        spool: owner.spool,
        uuid: random_bytes()?,
        buffer: id.0,
        name: config.name.clone(),
        octets: config.octets,
        block: config.block(),
        data_start,
        generation: 1,
        hints: Hints {
            end: start,
            reserved: start,
            bitmap_end: start,
            sequence: Sequence::ZERO,
            arrival: UnixTime(0),
        },
        narrowing: None,
    })
}

fn zero(file: &dyn File, config: &BufferConfig, progress: CreateProgress<'_>) -> Result<()> {
    if config.sparse {
        if file.len()? < config.octets {
            file.set_len(config.octets)?;
        }
        return Ok(());
    }
    let mut done = 0;
    while done < config.octets {
        let step = FILL_STEP.min(config.octets - done);
        file.zero_fill(done, step)?;
        done += step;
        progress(&config.name, done, config.octets);
    }
    // The zeros before the headers, so that a file with headers is whole.
    file.sync_all()?;
    Ok(())
}

pub(super) fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or_else(|| Path::new("/"))
}

pub(super) fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".");
    name.push(UNFINISHED);
    path.with_file_name(name)
}
