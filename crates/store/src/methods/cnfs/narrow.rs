//! A buffer made smaller: it comes around, and what lies behind the new end goes as if that were overwritten.
//!
//! The header says which size it is to have. From then on a cycle that has not come further ends there, as one that is closed early does, so
//! everything else holds as before: places, marks, and what a walk meets. Once a cycle later nothing is alive behind the new end; then the
//! headers get the new size, and the file is cut. Each step is durable before the next, so that a kill leaves it the one or the other, and a
//! start goes on. Nothing moves, and the bitmap keeps its size.

use std::sync::atomic::Ordering;

use newsreel_host::{Disk, OpenMode};
use newsreel_wire::Position;

use super::enlarge::sound_header;
use super::file::{Cyclic, CyclicFile, Owner};
use crate::error::Result;
use crate::records::format::{FileHeader, Narrowing};
use crate::records::geometry::Geometry;
use crate::records::headers::Written;
use crate::records::placing::Filling;

/// What the header of a buffer that stands here says of a smaller size; `None`: none can have it.
fn narrowing(header: &FileHeader, octets: u64, next: Position) -> Option<(Narrowing, u64)> {
    let end = header.geometry_at(octets)?.data_end;
    // It stands behind the new end, or what lies there is of the cycle before.
    let is_beyond = next.offset() > end;
    let last_cycle = next.cycle().saturating_sub(u32::from(!is_beyond));
    let narrowing = Narrowing { octets, last_cycle };
    Some((narrowing, end))
}

/// Whether a buffer can have this smaller size.
pub(super) fn check(owner: &Owner<'_>, there: &Geometry, octets: u64) -> Result<()> {
    let smaller = Geometry::of(octets, there.block);
    let smaller = smaller.and_then(|smaller| smaller.with_start(there.data_start));
    smaller.map(drop).ok_or_else(|| {
        owner.wrong(format!(
            "{octets} octets have no room for its bitmap, which keeps its size, and for articles"
        ))
    })
}

/// Has an open buffer become smaller that stands here.
pub(super) fn begin(cyclic: &Cyclic, next: Position, octets: u64) -> newsreel_host::Result<()> {
    let header = cyclic.file.header();
    let Some((narrowing, end)) = narrowing(&header, octets, next) else {
        return Ok(());
    };
    let unchanged = |_: &dyn newsreel_host::File, _: &FileHeader, _: &_| Ok(());
    cyclic
        .file
        .resize(header.octets, Some(narrowing), unchanged)?;
    cyclic.buffer.close_at(end);
    Ok(())
}

/// The header of a buffer that becomes smaller was made again, and does not say since when: from where it stands now.
pub(super) fn resume(cyclic: &Cyclic, next: Position) {
    let header = cyclic.file.header();
    let narrowing = header
        .becomes()
        .and_then(|octets| narrowing(&header, octets, next));
    if let Some((narrowing, _)) = narrowing {
        cyclic.file.know_narrowing(narrowing);
    }
}

/// Has one stay as large as it is.
pub(super) fn give_up(cyclic: &Cyclic) -> newsreel_host::Result<()> {
    let octets = cyclic.file.header().octets;
    let unchanged = |_: &dyn newsreel_host::File, _: &FileHeader, _: &_| Ok(());
    cyclic.file.resize(octets, None, unchanged)?;
    cyclic.buffer.close_at(cyclic.buffer.geometry().data_end);
    Ok(())
}

/// The same of a buffer that nobody has open, and whose log ended in order: it becomes smaller, or stays as it is.
pub(super) fn note(disk: &dyn Disk, owner: &Owner<'_>) -> Result<()> {
    let file = disk.open(owner.path, OpenMode::ReadWrite)?;
    let (header, newest_at) = sound_header(file.as_ref(), owner)?;
    let wanted = owner.config.octets;
    let narrowing = match (wanted < header.octets, header.geometry()) {
        (true, Some(there)) => {
            check(owner, &there, wanted)?;
            narrowing(&header, wanted, header.hints.end).map(|(narrowing, _)| narrowing)
        }
        _ => None,
    };
    let hints = header.hints;
    let header = FileHeader {
        narrowing,
        ..header
    };
    let mut written = Written { header, newest_at };
    Ok(written.write_both(file.as_ref(), hints)?)
}

/// Gives a buffer its smaller size, if nothing is alive behind that; by the sequencer.  Whether its file is to be cut.
pub(super) fn settle(cyclic: &Cyclic, filling: &Filling) -> newsreel_host::Result<bool> {
    let Cyclic { buffer, file } = cyclic;
    let header = file.header();
    if let (Some(octets), Some(narrowing)) = (header.becomes(), header.narrowing) {
        let end = buffer.closes_at();
        if !filling.is_clear_behind(end, narrowing.last_cycle) {
            return Ok(false);
        }
        let unchanged = |_: &dyn newsreel_host::File, _: &FileHeader, _: &_| Ok(());
        if let Some(end) = file.resize(octets, Some(narrowing), unchanged)? {
            buffer.resize(end);
            file.is_cut_due.store(true, Ordering::Relaxed);
            tracing::info!(buffer = buffer.name, octets, "a buffer has become smaller");
        }
    }
    Ok(file.is_cut_due.load(Ordering::Relaxed))
}

/// Cuts the file of a buffer that has become smaller, behind the bits of what lay there.
pub(super) fn cut(file: &CyclicFile) -> newsreel_host::Result<()> {
    let header = file.header();
    let side = file.side();
    if let Some(geometry) = header.geometry() {
        super::bitmap::clear_behind(side, &geometry)?;
        side.sync_data()?;
    }
    // What is behind it on a device is nobody's.
    if !side.is_device()? && side.len()? > header.octets {
        side.set_len(header.octets)?;
        side.sync_all()?;
    }
    file.is_cut_due.store(false, Ordering::Relaxed);
    Ok(())
}
