//! A buffer made larger: room behind its end, then a header that knows of it.
//!
//! Nothing that is there moves: articles keep their places and the bitmap its size, so what is added has no bits.  Killed
//! anywhere the buffer is as it was, or larger, and another run goes on.  One that nobody has open must have a log that
//! ended in order: where it did not, records behind its end may go around where the buffer ended.  In one that is open the
//! room is made beside everything else; what remains is the sequencer's, so that nothing is placed by two sizes.

use newsreel_host::{AlignedBuf, Disk, File, OpenMode};
use newsreel_wire::{BufferId, IdHash, Position};

use super::create::{CreateProgress, FILL_STEP};
use super::file::{Cyclic, Owner};
use super::narrow;
use super::room::{self, Room};
use crate::error::Result;
use crate::records::buffer::Buffer;
use crate::records::format::{FileHeader, FileKey, Mark, RecordHeader};
use crate::records::geometry::{Geometry, PAGE_LEN};
use crate::records::headers::{Headers, Written, read_headers};

/// A buffer on its way to another size; one that becomes larger has room behind its end.
#[derive(Debug)]
pub struct Resizing {
    pub(crate) buffer: BufferId,
    /// The size it is to have; the one it has: it is to become smaller no more.
    pub(crate) octets: u64,
}

/// Whether a buffer that is open is to have another size than it has, or is on its way to; why it cannot have it.
pub(super) fn check_open(
    disk: &dyn Disk,
    owner: &Owner<'_>,
    buffer: &Buffer,
    room: &mut Room,
) -> Result<bool> {
    // One that failed while it became larger says a size that its file may not have.
    if let Some(error) = buffer.suspended_error() {
        return Err(error);
    }
    let becomes = buffer.home.narrowing().map(|it| it.octets);
    let there = (buffer.home.octets(), becomes);
    let file = disk.open(owner.path, OpenMode::Read)?;
    check_size(
        disk,
        (owner, file.as_ref()),
        there,
        &buffer.geometry(),
        room,
    )
}

/// The same of one that nobody has open.
pub(super) fn check(disk: &dyn Disk, owner: &Owner<'_>, room: &mut Room) -> Result<bool> {
    let file = disk.open(owner.path, OpenMode::Read)?;
    let (header, _) = sound_header(file.as_ref(), owner)?;
    let there = (header.octets, header.becomes());
    let geometry = header.geometry();
    let geometry = geometry.ok_or_else(|| owner.wrong("sizes in the file header"))?;
    check_size(disk, (owner, file.as_ref()), there, &geometry, room)
}

fn check_size(
    disk: &dyn Disk,
    (owner, file): (&Owner<'_>, &dyn File),
    (there, becomes): (u64, Option<u64>),
    geometry: &Geometry,
    room: &mut Room,
) -> Result<bool> {
    let octets = owner.config.octets;
    if octets == becomes.unwrap_or(there) {
        return Ok(false);
    }
    if octets < there {
        narrow::check(owner, geometry, octets)?;
    } else if octets > there {
        if Geometry::of(octets, geometry.block).is_none() {
            return Err(owner.wrong(format!("{octets} octets are no buffer")));
        }
        room::behind(disk, file, owner, room)?;
    }
    Ok(true)
}

/// Makes room behind the end of a buffer that is open, if it is to become larger; `None`: it has that size.
pub(super) fn make_room(
    disk: &dyn Disk,
    owner: &Owner<'_>,
    buffer: &Buffer,
    progress: CreateProgress<'_>,
) -> Result<Option<Resizing>> {
    if !check_open(disk, owner, buffer, &mut Room::default())? {
        return Ok(None);
    }
    let octets = owner.config.octets;
    if octets > buffer.home.octets() {
        let file = disk.open(owner.path, OpenMode::ReadWrite)?;
        extend(file.as_ref(), owner, &buffer.geometry(), progress)?;
        // So that the sequencer waits for little.
        file.sync_all()?;
    }
    let buffer = buffer.id;
    Ok(Some(Resizing { buffer, octets }))
}

/// Makes an open buffer larger that stands in this cycle, and has the room.
pub(super) fn enlarge_open(cyclic: &Cyclic, cycle: u32, octets: u64) -> newsreel_host::Result<()> {
    let (buffer, before) = (&cyclic.buffer, cyclic.buffer.geometry());
    let data_end = cyclic.file.resize(octets, None, |file, header, after| {
        end_last_cycle(file, header, cycle, (&before, after))
    })?;
    buffer.resize(data_end.unwrap_or(before.data_end));
    Ok(())
}

/// The header of a file that is this buffer, both copies sound, and where the newer one lies.
pub(super) fn sound_header(file: &dyn File, owner: &Owner<'_>) -> Result<(FileHeader, u64)> {
    let (header, newest_at) = match read_headers(file)? {
        Headers::Sound(header, at, None) => (*header, at),
        // It may be the one that knows of more.
        Headers::Sound(_, _, Some(why)) => {
            return Err(owner.wrong(format!("{why}; start it once, and stop it, before")));
        }
        Headers::Blank => return Err(owner.wrong("it is blank")),
        Headers::Damaged(why) | Headers::Lost(why) => return Err(owner.wrong(why)),
    };
    owner.check(&header)?;
    Ok((header, newest_at))
}

/// Makes a buffer as large as the configuration says, or has it become smaller.
pub(super) fn resize(
    disk: &dyn Disk,
    owner: &Owner<'_>,
    progress: CreateProgress<'_>,
) -> Result<()> {
    if !check(disk, owner, &mut Room::default())? {
        return Ok(());
    }
    let file = disk.open(owner.path, OpenMode::ReadWrite)?;
    let (header, newest_at) = sound_header(file.as_ref(), owner)?;
    let wanted = owner.config.octets;
    if wanted <= header.octets {
        return narrow::note(disk, owner);
    }
    let larger = FileHeader {
        octets: wanted,
        narrowing: None,
        ..header.clone()
    };
    let (Some(before), Some(after)) = (header.geometry(), larger.geometry()) else {
        return Err(owner.wrong(format!("{wanted} octets are no buffer")));
    };
    extend(file.as_ref(), owner, &before, progress)?;
    let cycle = header.hints.end.cycle();
    end_last_cycle(file.as_ref(), &header, cycle, (&before, &after))?;
    file.sync_all()?;
    let hints = larger.hints;
    let mut written = Written {
        header: larger,
        newest_at,
    };
    Ok(written.write_both(file.as_ref(), hints)?)
}

/// Makes room, written out as that of a new buffer is.
fn extend(
    file: &dyn File,
    owner: &Owner<'_>,
    before: &Geometry,
    progress: CreateProgress<'_>,
) -> Result<()> {
    let config = owner.config;
    if config.sparse {
        if file.len()? < config.octets {
            file.set_len(config.octets)?;
        }
        return Ok(());
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

/// What is left of the cycle before the one in which a buffer stands ends where the buffer ended: whoever walks over it looks for no more behind that,
/// whatever lies there.
fn end_last_cycle(
    file: &dyn File,
    header: &FileHeader,
    cycle: u32,
    (before, after): (&Geometry, &Geometry),
) -> newsreel_host::Result<()> {
    let cycle = cycle.saturating_sub(1);
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
    file.write_at(&page, before.data_end)
}
