//! Opening a set of cyclic buffers: those that are there, and new ones where the spool never had one of that name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_host::{Disk, OpenMode};
use newsreel_wire::{BufferId, Position, SetId};

use super::NAME;
use super::create::{CreateProgress, create_file, create_in_place};
use super::enlarge::Resizing;
use super::file::{Cyclic, Owner};
use super::rescue;
use super::room::{self, Room};
use super::set::Cnfs;
use crate::config::{BufferConfig, SetConfig, StoreConfig};
use crate::error::{Error, Result};
use crate::facts::PlannedBuffer;
use crate::method::BufferReader;
use crate::methods::{OpenedSet, Opening};
use crate::records::buffer::Buffer;
use crate::records::format::FileHeader;
use crate::records::headers::{Headers, left_as_it_is, read_headers};
use crate::records::memory::Pool;
use crate::register::{Register, Standing, WAS_DROPPED};
use crate::store::Access;

/// Opens the buffers of a set.
pub(crate) fn open(opening: &mut Opening<'_>, set: SetId, config: &SetConfig) -> Result<OpenedSet> {
    let mut buffers = Vec::new();
    let recent_octets = opening.recent_octets(config) / config.buffers.len().max(1);
    let pool = Arc::new(Pool::default());
    for name in &config.buffers {
        let buffer = configured(&opening.config.buffers, config, name)?;
        buffers.push(open_buffer(opening, (set, recent_octets, &pool), buffer)?);
    }
    let cyclic = buffers.iter().map(|cyclic| Arc::clone(&cyclic.buffer));
    let cyclic: Vec<_> = cyclic.collect();
    let readers = cyclic.iter().cloned();
    Ok(OpenedSet {
        readers: readers.map(|one| one as Arc<dyn BufferReader>).collect(),
        cyclic,
        placing: Box::new(Cnfs::new(buffers, config)),
    })
}

/// Opens one of a set's buffers, made if it is not there; the register is not told.
pub(crate) fn open_one(
    opening: &mut Opening<'_>,
    (set, config): (SetId, &SetConfig),
    buffer: &BufferConfig,
) -> Result<Cyclic> {
    let recent_octets = opening.recent_octets(config) / config.buffers.len().max(1);
    open_file(opening, (set, recent_octets, &Arc::default()), buffer)
}

/// Opens those of a set's buffers that have these names, so that they are made.
pub(crate) fn create(
    opening: &mut Opening<'_>,
    set: SetId,
    config: &SetConfig,
    names: &[String],
) -> Result<()> {
    let pool = Arc::new(Pool::default());
    for name in config.buffers.iter().filter(|name| names.contains(name)) {
        let buffer = configured(&opening.config.buffers, config, name)?;
        open_buffer(opening, (set, 0, &pool), buffer)?;
    }
    Ok(())
}

/// Why those of a set's buffers that have these names cannot be opened, or made where they are not there; reads only.
pub(crate) fn refusals(
    opening: &mut Opening<'_>,
    (set, config): (SetId, &SetConfig),
    names: &[String],
    room: &mut Room,
) -> Result<Vec<(String, Error)>> {
    let mut refusals = Vec::new();
    for name in config.buffers.iter().filter(|name| names.contains(name)) {
        let buffer = configured(&opening.config.buffers, config, name)?;
        if let Err(why) = check(opening, set, buffer, room) {
            refusals.push((name.clone(), why));
        }
    }
    Ok(refusals)
}

/// Whether a buffer can be opened, or made if it is not there.
fn check(
    opening: &mut Opening<'_>,
    set: SetId,
    config: &BufferConfig,
    room: &mut Room,
) -> Result<()> {
    let (path, pool) = (path_of(opening.spool_dir, config), Arc::default());
    let owner = Owner {
        may_be_cut: false,
        config,
        path: &path,
        spool: opening.spool,
        set,
        recent_octets: 0,
        pool: &pool,
    };
    let disk = Arc::clone(opening.disk);
    if !disk.exists(&path)? {
        may_make(opening, &owner, MISSING)?;
        return room::for_new_file(disk.as_ref(), &owner, room);
    }
    let headers = read_headers(disk.open(&path, OpenMode::Read)?.as_ref())?;
    if matches!(headers, Headers::Blank) && blanked(opening, &owner, true)?.is_none() {
        may_make(opening, &owner, BLANK)?;
        return room::in_place(disk.as_ref(), &owner);
    }
    let access = std::mem::replace(&mut opening.access, Access::ReadOnly);
    let opened = open_buffer(opening, (set, 0, &pool), config);
    opening.access = access;
    opened.map(drop)
}

/// A buffer of the configuration that may be written, by its path.
fn owned<T>(
    (spool_dir, spool): (&Path, [u8; 16]),
    config: &BufferConfig,
    with: impl FnOnce(&Owner<'_>) -> Result<T>,
) -> Result<T> {
    let path = path_of(spool_dir, config);
    let owner = Owner {
        may_be_cut: false,
        config,
        path: &path,
        spool,
        set: SetId(0),
        recent_octets: 0,
        pool: &Arc::default(),
    };
    if config.read_only {
        return Err(owner.wrong("`read_only` forbids to write it"));
    }
    with(&owner)
}

/// Whether a buffer can have the size that the configuration says, and has another; it is `open`, or nobody has it open.
pub(crate) fn check_size(
    disk: &dyn Disk,
    place: (&Path, [u8; 16]),
    (config, open): (&BufferConfig, Option<&Buffer>),
    room: &mut Room,
) -> Result<bool> {
    owned(place, config, |owner| match open {
        Some(buffer) => super::enlarge::check_open(disk, owner, buffer, room),
        None => super::enlarge::check(disk, owner, room),
    })
}

/// Makes a set's buffer of this name as large as the configuration says, or has it become smaller.
pub(crate) fn resize(
    disk: &dyn Disk,
    place: (&Path, [u8; 16]),
    config: &BufferConfig,
    progress: CreateProgress<'_>,
) -> Result<()> {
    owned(place, config, |owner| {
        super::enlarge::resize(disk, owner, progress)
    })
}

/// Makes room for one that is open and is to become as large as the configuration says; `None`: it is.
pub(crate) fn make_room(
    disk: &dyn Disk,
    place: (&Path, [u8; 16]),
    (config, buffer): (&BufferConfig, &Buffer),
    progress: CreateProgress<'_>,
) -> Result<Option<Resizing>> {
    owned(place, config, |owner| {
        super::enlarge::make_room(disk, owner, buffer, progress)
    })
}

/// What there is of a set's buffers, which stand here, or as their headers say.
pub(crate) fn planned(
    disk: &Arc<dyn Disk>,
    spool_dir: &Path,
    (store, set): (&StoreConfig, &SetConfig),
    register: &Register,
    ends: &BTreeMap<BufferId, Position>,
) -> Result<Vec<PlannedBuffer>> {
    let plan = |name: &String| {
        let config = configured(&store.buffers, set, name)?;
        let path = path_of(spool_dir, config);
        let (mut is_there, mut is_device, mut found) = (false, false, None);
        if disk.exists(&path)? {
            let file = disk.open(&path, OpenMode::Read)?;
            is_device = file.is_device()?;
            let headers = read_headers(file.as_ref())?;
            is_there = !matches!(headers, Headers::Blank);
            if let Headers::Sound(header, ..) = headers {
                found = Some(header);
            }
        }
        let lies_in = room::there(disk.as_ref(), &path)?;
        let header = found.as_deref();
        let beyond_octets = header.and_then(|header| {
            let end = ends.get(&BufferId(header.buffer));
            let end = end.map_or(header.hints.end, |end| header.hints.end.max(*end));
            beyond(header, end, config.octets)
        });
        Ok(PlannedBuffer {
            name: name.clone(),
            set: set.name.clone(),
            octets: config.octets,
            is_sparse: config.sparse,
            is_there,
            octets_there: header.map(|it| it.octets),
            becomes: header.and_then(|it| it.becomes()),
            beyond_octets: beyond_octets.unwrap_or_default(),
            was_made: register.has(name),
            was_dropped: register.standing(name) == Some(Standing::Dropped),
            free_octets: match is_device {
                true => None,
                false => Some(disk.free_bytes(lies_in)?),
            },
            path: path.display().to_string(),
        })
    };
    set.buffers.iter().map(plan).collect()
}

/// Octets that articles may have behind the end of a buffer that stands here and gets this size.
fn beyond(header: &FileHeader, stands: Position, octets: u64) -> Option<u64> {
    let (before, after) = (header.geometry()?, header.geometry_at(octets)?);
    let end = match stands.cycle() {
        // Nothing came further.
        0 | 1 => stands.offset(),
        _ => before.data_end,
    };
    Some(end.saturating_sub(after.data_end))
}

/// A set's buffer as the configuration has it.
fn configured<'c>(
    buffers: &'c [BufferConfig],
    set: &SetConfig,
    name: &str,
) -> Result<&'c BufferConfig> {
    let found = buffers.iter().find(|buffer| buffer.name == name);
    found.ok_or_else(|| {
        Error::Config(format!(
            "set {:?} wants buffer {name:?}, which is not configured",
            set.name
        ))
    })
}

fn open_buffer(
    opening: &mut Opening<'_>,
    of_set: (SetId, usize, &Arc<Pool>),
    config: &BufferConfig,
) -> Result<Cyclic> {
    let buffer = open_file(opening, of_set, config)?;
    let opened = &buffer.buffer;
    opening.register.enter(opened.id, NAME, &opened.name)?;
    opening
        .register
        .set_uuid(&opened.name, buffer.file.header().uuid);
    if opening.access == Access::Write {
        opening.register.save(opening.disk.as_ref())?;
    }
    Ok(buffer)
}

/// The same, but the register is not told.
fn open_file(
    opening: &mut Opening<'_>,
    (set, recent_octets, pool): (SetId, usize, &Arc<Pool>),
    config: &BufferConfig,
) -> Result<Cyclic> {
    let path = path_of(opening.spool_dir, config);
    let owner = Owner {
        may_be_cut: false,
        config,
        path: &path,
        spool: opening.spool,
        set,
        recent_octets,
        pool,
    };
    let read_only = opening.access == Access::ReadOnly || config.read_only;
    if !opening.disk.exists(&path)? {
        make(opening, &owner, MISSING, create_file)?;
    }
    let mut headers = read_headers(opening.disk.open(&path, OpenMode::Read)?.as_ref())?;
    if matches!(headers, Headers::Blank) {
        if let Some(found) = blanked(opening, &owner, read_only)? {
            return Ok(found);
        }
        make(opening, &owner, BLANK, create_in_place)?;
        headers = read_headers(opening.disk.open(&path, OpenMode::Read)?.as_ref())?;
    }
    match headers {
        Headers::Sound(header, at, complaint) => {
            if let Some(complaint) = &complaint {
                tracing::warn!(buffer = config.name, "{complaint}");
            }
            let told = (complaint, false);
            Cyclic::open(
                opening.disk.as_ref(),
                &owner,
                read_only,
                (*header, at),
                told,
            )
        }
        Headers::Blank => Err(owner.wrong("its headers cannot be written")),
        Headers::Damaged(why) => Err(owner.wrong(why)),
        Headers::Lost(why) => rescued(opening, &owner, read_only, &why),
    }
}

/// A buffer that this spool had, with a header made again: in memory, until a checkpoint writes it.
fn rescued(opening: &Opening<'_>, owner: &Owner<'_>, read_only: bool, why: &str) -> Result<Cyclic> {
    let file = opening.disk.open(owner.path, OpenMode::Read)?;
    owner.no_file_system(file.as_ref())?;
    let name = &owner.config.name;
    let lost = |but: &str| {
        let why = format!("{why}, and {but}");
        let let_go = "or let it go with `newsreel serve --drop-buffer";
        owner.wrong(format!("{}, {let_go} {name}`", left_as_it_is(&why)))
    };
    let id = opening.register.id_of(name);
    let id = id.ok_or_else(|| lost("the spool's register of buffers does not have it"))?;
    let known = opening.register.uuid_of(name);
    let found = rescue::header(file.as_ref(), owner, (id, known))?;
    let found = found.ok_or_else(|| {
        lost(match known {
            Some(_) => "none of the articles that were found in it is one of this buffer",
            None => "no articles in it tell whose it is",
        })
    })?;
    open_rescued(opening, owner, read_only, (found, why))
}

/// A buffer that this spool had and whose headers are zeros, if articles behind them tell that it is it.
fn blanked(opening: &Opening<'_>, owner: &Owner<'_>, read_only: bool) -> Result<Option<Cyclic>> {
    let Some(id) = opening.register.id_of(&owner.config.name) else {
        return Ok(None);
    };
    let file = opening.disk.open(owner.path, OpenMode::Read)?;
    owner.no_file_system(file.as_ref())?;
    if file.len()? < owner.config.octets {
        return Ok(None);
    }
    let why = "both copies of its header are blank";
    let known = opening.register.uuid_of(&owner.config.name);
    let found = rescue::header(file.as_ref(), owner, (id, known))?;
    let opened = found.map(|found| open_rescued(opening, owner, read_only, (found, why)));
    opened.transpose()
}

fn open_rescued(
    opening: &Opening<'_>,
    owner: &Owner<'_>,
    read_only: bool,
    ((header, records), why): ((FileHeader, u32), &str),
) -> Result<Cyclic> {
    let complaint = format!("{why}; it was made again, and {records} records or more bear it out");
    tracing::error!(buffer = owner.config.name, "{complaint}");
    let told = (Some(complaint), true);
    Cyclic::open(opening.disk.as_ref(), owner, read_only, (header, 0), told)
}

fn path_of(spool_dir: &Path, config: &BufferConfig) -> PathBuf {
    let own = || spool_dir.join("buffers").join(&config.name);
    config.path.clone().unwrap_or_else(own)
}

type Create = fn(&dyn Disk, &Owner<'_>, BufferId, CreateProgress<'_>) -> Result<()>;

/// What is wrong with a buffer that is to be made.
const MISSING: &str = "its file is missing";
const BLANK: &str = "its file is blank";

/// Whether a buffer is to be made.  Not if the spool had one of this name: then something else is wrong.
fn may_make(opening: &Opening<'_>, owner: &Owner<'_>, what: &str) -> Result<()> {
    let name = &owner.config.name;
    if opening.register.standing(name) == Some(Standing::Dropped) {
        return Err(owner.wrong(format!("{what}, and {WAS_DROPPED}")));
    }
    if opening.register.has(name) {
        return Err(owner.wrong(format!(
            "{what}, though this spool has such a buffer; mount its disk or restore it; if it is lost, take it \
             out of the configuration, let it go with `newsreel serve --drop-buffer {name}`, and give a new one another name"
        )));
    }
    if opening.register.is_in_doubt() {
        return Err(owner.wrong(format!(
            "{what}, and the spool's register of buffers, of which both files are damaged, cannot tell whether it had such a \
             buffer; mount its disk or restore it; if it never had, take it out of the configuration for one start, \
             which makes the register again"
        )));
    }
    if opening.access == Access::ReadOnly {
        return Err(owner.wrong(format!("{what}; it is made when the server starts")));
    }
    if owner.config.read_only {
        return Err(owner.wrong(format!(
            "{what}, and `read_only` forbids to make it; mount its disk, or correct its path"
        )));
    }
    Ok(())
}

/// Makes a buffer.
fn make(opening: &mut Opening<'_>, owner: &Owner<'_>, what: &str, create: Create) -> Result<()> {
    may_make(opening, owner, what)?;
    // Those that are there keep their ids, also when the register was lost.
    for other in &opening.config.buffers {
        let path = path_of(opening.spool_dir, other);
        if opening.disk.exists(&path)? {
            let file = opening.disk.open(&path, OpenMode::Read)?;
            if let Headers::Sound(header, ..) = read_headers(file.as_ref())? {
                let id = BufferId(header.buffer);
                opening.register.enter(id, NAME, &header.name)?;
            }
        }
    }
    let id = opening.register.next_id(opening.known)?;
    create(opening.disk.as_ref(), owner, id, &mut *opening.progress)
}

#[cfg(test)]
mod tests {
    use newsreel_host::MemoryDisk;

    use super::*;
    use crate::config::StoreConfig;

    /// How much the only buffer keeps in memory where its set may keep so much.
    fn kept(buffer_octets: u64, recent_octets: u64) -> usize {
        let mut config = StoreConfig::two_buffers(buffer_octets);
        config.sets[0].buffers.truncate(1);
        config.sets[0].recent_octets = Some(recent_octets);
        let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
        let spool_dir = Path::new("/spool");
        disk.create_dir_all(&spool_dir.join("buffers")).unwrap();
        let mut register = Register::open(disk.as_ref(), spool_dir).unwrap();
        let mut opening = Opening {
            disk: &disk,
            spool_dir,
            spool: [1; 16],
            config: &config,
            register: &mut register,
            known: &[],
            access: Access::Write,
            machine_octets: 1 << 30,
            progress: &mut |_, _, _| {},
        };
        let set = &config.sets[0];
        let owner = (
            SetId(0),
            opening.recent_octets(set),
            &Arc::new(Pool::default()),
        );
        let cyclic = open_buffer(&mut opening, owner, &config.buffers[0]).unwrap();
        cyclic.buffer.recent.octets_max()
    }

    #[test]
    fn no_more_is_kept_in_memory_than_the_buffer_has_room_for() {
        let kept_of_all = kept(4 << 20, 64 << 20);
        assert!(
            (3 << 20..4 << 20).contains(&kept_of_all),
            "{kept_of_all} octets"
        );
        assert_eq!(kept(4 << 20, 1 << 20), 1 << 20);
        assert_eq!(kept(4 << 20, 0), 0);
    }
}
