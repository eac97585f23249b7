//! A buffer made larger: room behind its end, then a header that knows of it.
//!
//! Nothing that is there moves: articles keep their places and the bitmap its size, so what is added has no bits.  Killed
//! anywhere the buffer is as it was, or larger, and another run goes on.  Only for one that nobody has open, and whose log
//! ended in order: where it did not, records behind its end may go around where the buffer ended.

use newsreel_host::{AlignedBuf, Disk, File, OpenMode, said_octets};
use newsreel_wire::{IdHash, Position};

use super::create::{CreateProgress, FILL_STEP, parent};
use super::file::Owner;
use crate::error::Result;
use crate::records::format::{FileHeader, FileKey, Mark, RecordHeader};
use crate::records::geometry::{Geometry, PAGE_LEN};
use crate::records::headers::{Headers, Written, read_headers};

/// Makes a buffer as large as the configuration says.
pub(super) fn enlarge(
    disk: &dyn Disk,
    owner: &Owner<'_>,
    progress: CreateProgress<'_>,
) -> Result<()> {
    let file = disk.open(owner.path, OpenMode::ReadWrite)?;
    let (header, newest_at) = match read_headers(file.as_ref())? {
        Headers::Sound(header, at, None) => (*header, at),
        // It may be the one that knows of more.
        Headers::Sound(_, _, Some(why)) => {
            return Err(owner.wrong(format!("{why}; start it once, and stop it, before")));
        }
        Headers::Blank => return Err(owner.wrong("it is blank")),
        Headers::Damaged(why) | Headers::Lost(why) => return Err(owner.wrong(why)),
    };
    owner.check(&header)?;
    let (there, wanted) = (header.octets, owner.config.octets);
    if wanted == there {
        return Ok(());
    }
    let larger = FileHeader {
        octets: wanted,
        ..header.clone()
    };
    let (Some(before), Some(after)) = (header.geometry(), larger.geometry()) else {
        return Err(owner.wrong(format!("{wanted} octets are no buffer")));
    };
    if wanted < there {
        return Err(owner.wrong(format!(
            "it has {there} octets, and none becomes smaller: add a smaller one to its set, and retire this one"
        )));
    }
    extend(disk, file.as_ref(), owner, &before, progress)?;
    end_last_cycle(file.as_ref(), &header, (&before, &after))?;
    file.sync_all()?;
    let hints = larger.hints;
    let mut written = Written {
        header: larger,
        newest_at,
    };
    for _ in 0..2 {
        written.write(file.as_ref(), hints)?;
        file.sync_data()?;
    }
    Ok(())
}

/// Makes room, written out as that of a new buffer is.
fn extend(
    disk: &dyn Disk,
    file: &dyn File,
    owner: &Owner<'_>,
    before: &Geometry,
    progress: CreateProgress<'_>,
) -> Result<()> {
    let (config, len) = (owner.config, file.len()?);
    if config.sparse {
        if len < config.octets {
            file.set_len(config.octets)?;
        }
        return Ok(());
    }
    let (dir, more) = (parent(owner.path), config.octets.saturating_sub(len));
    let free = disk.free_bytes(dir)?;
    if free < more {
        return Err(owner.wrong(format!(
            "it needs {} more, {} has {} free; make `octets` smaller, or free some",
            said_octets(more),
            dir.display(),
            said_octets(free)
        )));
    }
    let mut done = before.data_end;
    while done < config.octets {
        let step = FILL_STEP.min(config.octets - done);
        file.zero_fill(done, step)?;
        done += step;
        progress(
            &config.name,
            done - before.data_end,
            config.octets - before.data_end,
        );
    }
    Ok(())
}

/// What is left of the cycle before this one ends where the buffer ended: whoever walks over it looks for no more behind that,
/// whatever lies there.
fn end_last_cycle(
    file: &dyn File,
    header: &FileHeader,
    (before, after): (&Geometry, &Geometry),
) -> Result<()> {
    let cycle = header.hints.end.cycle().saturating_sub(1);
    let position = Position::checked(cycle, before.data_end).filter(|_| cycle > 0);
    let Some(position) = position.filter(|_| before.data_end < after.data_end) else {
        return Ok(());
    };
    let mark = RecordHeader {
        is_packed: false,
        mark: Mark::CycleEnd,
        article_len: 0,
        head_len: 0,
        crc_head: 0,
        crc_body: 0,
        position,
        sequence: header.hints.sequence,
        arrival: header.hints.arrival,
        id_hash: IdHash::default(),
    };
    let octets = mark.encode(FileKey::of(&header.uuid));
    let mut page = AlignedBuf::new();
    let whole = page.append(PAGE_LEN);
    whole.fill(0);
    whole[..octets.len()].copy_from_slice(&octets);
    Ok(file.write_at(&page, before.data_end)?)
}
