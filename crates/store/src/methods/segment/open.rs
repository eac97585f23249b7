//! Opening a set of segments: its directory, and the newest sound header in it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_host::{Disk, ErrorKind, OpenMode, is_aside, random_bytes, set_aside};
use newsreel_wire::{BufferId, SetId};

use super::files::{Found, Segments, first_header, key_of};
use super::names::{list, path_of};
use super::set::SegmentSet;
use super::standing::{SEGMENTS_COMPARED_MAX, Standing, compare, header_in, is_stub, open_named};
use super::{METHOD, NAME};
use crate::config::SetConfig;
use crate::error::{Error, Result};
use crate::mark::{Mark, Marking};
use crate::method::BufferReader;
use crate::methods::{OpenedSet, Opening};
use crate::records::Home;
use crate::records::buffer::{Buffer, Parts};
use crate::records::format::{FileHeader, FileKey, Hints};
use crate::records::geometry::{BLOCK_MIN, Geometry};
use crate::records::headers::Headers;
use crate::records::home::Kind;
use crate::records::memory::Pool;
use crate::records::recent::Recent;
use crate::records::signed::{Signed, signed, signed_by};
use crate::store::Access;

/// Opens the segments of a set.
pub(crate) fn open(opening: &mut Opening<'_>, set: SetId, config: &SetConfig) -> Result<OpenedSet> {
    let kind = Kind {
        number: METHOD,
        name: NAME,
        is_of_articles: true,
    };
    let own = || opening.spool_dir.join("segments").join(&config.name);
    let dir = config.directory.clone().unwrap_or_else(own);
    let marking = Marking::look(opening, config, &dir)?;
    let mark = marking.mark(opening);
    let placing = open_as(kind, opening, set, (config, dir, mark))?;
    marking.keep(opening, config)?;
    Ok(OpenedSet {
        readers: vec![placing.buffer() as Arc<dyn BufferReader>],
        placing: Box::new(placing),
        cyclic: Vec::new(),
    })
}

/// Opens segments whose records are of this kind.
pub(crate) fn open_as(
    kind: Kind,
    opening: &mut Opening<'_>,
    set: SetId,
    (config, dir, mark): (&SetConfig, PathBuf, Option<Mark>),
) -> Result<SegmentSet> {
    let read_only = opening.access == Access::ReadOnly;
    let Some(geometry) = Geometry::of(config.segment_octets, BLOCK_MIN) else {
        let why = format!("segments of {} octets cannot be", config.segment_octets);
        return Err(wrong(config, &dir, why));
    };
    let found = find(opening, (kind, config), &dir, &geometry)?;
    let (id, key) = (BufferId(found.header.buffer), key_of(&found.header));
    let (is_rescued, complaint) = (found.is_rescued, found.complaint.clone());
    opening.register.enter(id, kind.name, &config.name)?;
    opening.register.set_uuid(&config.name, found.header.uuid);
    if !read_only {
        opening.register.save(opening.disk.as_ref())?;
    }
    let files = Segments::new(kind, opening.disk, (dir, mark), read_only, geometry, found);
    let files = Arc::new(files);
    let buffer = Buffer::new(Parts {
        id,
        name: config.name.clone(),
        set,
        home: Arc::clone(&files) as Arc<dyn Home>,
        geometry,
        closes_at: None,
        was_larger: false,
        key,
        is_rescued,
        complaint,
        read_only,
        recent: Recent::new(opening.recent_octets(config), Arc::new(Pool::default())),
        is_cached: false,
    });
    Ok(SegmentSet::new(buffer, files, config.clone()))
}

/// What is in the directory, if it is of this set.
fn find(
    opening: &Opening<'_>,
    (kind, config): (Kind, &SetConfig),
    dir: &Path,
    geometry: &Geometry,
) -> Result<Found> {
    let read_only = opening.access == Access::ReadOnly;
    let disk = opening.disk.as_ref();
    let mut names = list(disk, dir, read_only)?;
    let (header, newest_at, is_rescued) = match newest(opening, config, dir, &names)? {
        Some((header, at)) => (header, at, false),
        None if !holds_any(disk, (dir, &names), geometry)? => {
            (first(opening, config, geometry)?, 0, false)
        }
        None => match rescued(opening, config, (dir, &names), geometry)? {
            Ok(rescued) => (rescued, 0, true),
            // Cards are made again from the files of their articles; who only looks finds none.
            Err(why) if !kind.is_of_articles => {
                tracing::error!(set = config.name, directory = %dir.display(), "none of the files of a catalogue has a sound header, \
                    and {why}: they are set aside, and it is begun anew");
                for name in names.drain(..).filter(|_| !read_only) {
                    set_aside(disk, &path_of(dir, name))?;
                }
                (first(opening, config, geometry)?, 0, false)
            }
            Err(why) => return Err(lost(config, dir, why)),
        },
    };
    if header.spool != opening.spool || header.name != config.name {
        let why = format!(
            "its files are of set {:?}, or of another spool; mend `directory`",
            header.name
        );
        return Err(wrong(config, dir, why));
    }
    if (header.octets, header.block) != (config.segment_octets, BLOCK_MIN) {
        let there = header.octets;
        let why = format!("its files have {there} octets; set `segment_octets` to that");
        return Err(wrong(config, dir, why));
    }
    let mut compared = compare(disk, (dir, &names), &header, geometry)?;
    compared.told.extend(told_of_aside(disk, dir)?);
    if is_rescued {
        // Their headers were made again, and told of.
        compared.trust_headless();
    }
    for told in &compared.told {
        tracing::error!(set = config.name, "{told}");
    }
    let newest = compared.files.last_key_value();
    let newest = newest.filter(|(_, held)| held.standing == Standing::Right && !read_only);
    if let Some((_, newest)) = newest {
        make_whole(disk, &newest.path, header.octets)?;
    }
    Ok(Found {
        header,
        newest_at,
        is_rescued,
        complaint: compared.complaint(),
        files: compared.files,
    })
}

/// Whether any of the files reaches as far as its first record, or has a header that must be told of: else all that was in them is
/// lost, as if they were not there.
fn holds_any(disk: &dyn Disk, (dir, names): (&Path, &[u32]), geometry: &Geometry) -> Result<bool> {
    for name in names {
        let Ok(file) = open_named(disk, &path_of(dir, *name))? else {
            continue;
        };
        let is_whole = !is_stub(file.as_ref(), geometry)?;
        if is_whole || matches!(header_in(file.as_ref())?, Headers::Damaged(_)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What was set aside in this directory: nobody else would ever tell of it again.
fn told_of_aside(disk: &dyn Disk, dir: &Path) -> Result<Option<String>> {
    let entries = match disk.list(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        entries => entries?,
    };
    let mut aside = entries.iter().filter(|entry| is_aside(&entry.name));
    let Some(first) = aside.next() else {
        return Ok(None);
    };
    Ok(Some(format!(
        "{}: set aside, since nothing told what it was when it was met in the place of another file (such files: {}); nothing in it is \
         served: look at it, then move it elsewhere or remove it",
        dir.join(&first.name).display(),
        aside.count() + 1
    )))
}

/// A header made again where every file has lost both copies of its own: the register has the id, the log where the set stands,
/// and the records have the key they were signed with.  It is in memory until it is written.  Inside: why there is none, where nothing
/// in the files tells anything.
fn rescued(
    opening: &Opening<'_>,
    config: &SetConfig,
    (dir, cycles): (&Path, &[u32]),
    geometry: &Geometry,
) -> Result<std::result::Result<FileHeader, &'static str>> {
    let id = opening.register.id_of(&config.name);
    let unregistered = "the spool's register of buffers does not have it";
    let id = id.ok_or_else(|| lost(config, dir, unregistered))?;
    let mut header = header_for(opening, config, geometry, id)?;
    let known = opening.register.uuid_of(&config.name);
    let mut are_blank = true;
    for cycle in cycles.iter().rev() {
        let path = path_of(dir, *cycle);
        let Ok(file) = open_named(opening.disk.as_ref(), &path)? else {
            continue;
        };
        if let Headers::Damaged(why) = header_in(file.as_ref())? {
            return Err(wrong(config, &path, why));
        }
        let mut found = signed(file.as_ref(), geometry)?;
        if let Some(uuid) = known
            && !matches!(found, Signed::Blank)
        {
            let (key, whole) = (FileKey::of(&uuid), (config.segment_octets, geometry));
            found = match signed_by(file.as_ref(), whole, key)? {
                0 => Signed::Unknown,
                records => Signed::By(key, records),
            };
        }
        match found {
            Signed::By(key, records) => {
                let random: [u8; 12] = random_bytes()?;
                let Some(uuid) = known.or_else(|| key.uuid(&random)) else {
                    break;
                };
                tracing::error!(
                    path = %path.display(),
                    records,
                    "no segment of the set has a sound header: it was made again, and so many records or more bear it out"
                );
                header.uuid = uuid;
                return Ok(Ok(header));
            }
            Signed::Blank => {}
            Signed::Unknown => are_blank = false,
        }
    }
    if !are_blank {
        return Ok(Err("no articles in them tell whose they are"));
    }
    tracing::error!(
        directory = %dir.display(),
        "no segment of the set has a sound header, and none an article: their headers are made again"
    );
    Ok(Ok(header))
}

/// Why a set whose files have no sound header cannot be opened.
fn lost(config: &SetConfig, dir: &Path, but: &str) -> Error {
    let why = format!(
        "none of its files has a sound header, and {but}: restore one of them, or take the set out of the configuration \
         and let it go with `newsreel serve --drop-buffer {}`",
        config.name
    );
    wrong(config, dir, why)
}

/// Takes the room again that somebody cut off the file which is written on; what was in it is gone.
fn make_whole(disk: &dyn Disk, path: &Path, octets: u64) -> Result<()> {
    let file = disk.open(path, OpenMode::ReadWrite)?;
    let len = file.len()?;
    if len < octets {
        tracing::error!(path = %path.display(), len, octets, "a segment was cut; what was behind its end is lost");
        let made = file
            .set_len(octets)
            .and_then(|()| file.reserve(len, octets - len))
            .and_then(|()| file.sync_all());
        if let Err(error) = made {
            // What cannot be written there goes to the next file.
            tracing::error!(%error, "its room cannot be had again");
        }
    }
    Ok(())
}

fn wrong(config: &SetConfig, dir: &Path, why: String) -> Error {
    Error::Buffer {
        name: config.name.clone(),
        path: dir.to_path_buf(),
        why,
    }
}

/// The newest sound header of the set, and where it lies in its file: the one that was written last, whatever the name of its
/// file.  Where none is of this set, another: who opens it is told whose it is.
fn newest(
    opening: &Opening<'_>,
    config: &SetConfig,
    dir: &Path,
    names: &[u32],
) -> Result<Option<(FileHeader, u64)>> {
    let (mut newest, mut other) = (None::<(FileHeader, u64)>, None);
    for name in names.iter().rev().take(SEGMENTS_COMPARED_MAX) {
        let path = path_of(dir, *name);
        let Ok(file) = open_named(opening.disk.as_ref(), &path)? else {
            continue;
        };
        let Headers::Sound(header, at, complaint) = header_in(file.as_ref())? else {
            continue;
        };
        if let Some(complaint) = complaint {
            tracing::warn!(path = %path.display(), "{complaint}");
        }
        if header.spool != opening.spool || header.name != config.name {
            other.get_or_insert((*header, at));
        } else if newest
            .as_ref()
            .is_none_or(|(newest, _)| newest.generation < header.generation)
        {
            newest = Some((*header, at));
        }
    }
    Ok(newest.or(other))
}

/// The header that the first file of a new set will have, or of one whose files are all gone.
fn first(opening: &Opening<'_>, config: &SetConfig, geometry: &Geometry) -> Result<FileHeader> {
    let id = match opening.register.id_of(&config.name) {
        Some(id) => id,
        // Where there are buffers, a set that has none yet is as good as an empty one to whoever looks.
        None if opening.access == Access::ReadOnly && opening.register.is_empty() => {
            return Err(Error::Config(format!(
                "set {:?} is made when the server starts: nothing is in this spool yet",
                config.name
            )));
        }
        None if opening.register.is_in_doubt() => {
            return Err(Error::Config(format!(
                "set {:?} has no files, and the spool's register of buffers, of which both files are damaged, cannot tell whether it \
                 had some; mount its disk or restore it; if it never had, take it out of the configuration for one start, which \
                 makes the register again",
                config.name
            )));
        }
        None => opening.register.next_id(opening.known)?,
    };
    header_for(opening, config, geometry, id)
}

/// A header for the first file of the set with this id.
fn header_for(
    opening: &Opening<'_>,
    config: &SetConfig,
    geometry: &Geometry,
    id: BufferId,
) -> Result<FileHeader> {
    let header = FileHeader {
        spool: opening.spool,
        // While all files were away others may be made: those that come back are of the same set.
        uuid: match opening.register.uuid_of(&config.name) {
            Some(uuid) => uuid,
            None => random_bytes()?,
        },
        buffer: id.0,
        name: config.name.clone(),
        octets: config.segment_octets,
        block: BLOCK_MIN,
        data_start: geometry.data_start,
        generation: 0,
        hints: Hints::default(),
        narrowing: None,
    };
    Ok(first_header(header, geometry))
}
