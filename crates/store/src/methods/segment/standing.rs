//! Whether the files of a set of segments are what their names say: the header of each, and where that is no help its records,
//! are compared with its name.
//!
//! Names are changed by hand, copies are put back under a wrong one, and whole files are overwritten.  What a file is decides what
//! lies in it, and its name only where nothing else tells it.  A file that is not what its name says is read as what it is, and
//! never written into; what may be somebody's only copy is never removed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use newsreel_host::{Disk, ErrorKind, File, OpenMode};

use super::files::{Held, key_of};
use super::names::path_of;
use crate::error::Result;
use crate::records::format::{FileHeader, FileKey, RECORD_HEADER, RecordHeader};
use crate::records::geometry::{Geometry, in_memory};
use crate::records::headers::{Headers, read_headers};

/// So many files, the newest, are compared at a start: a page or two is read of each.
pub const SEGMENTS_COMPARED_MAX: usize = 4096;
/// In so many octets a record is looked for that tells the cycle.
const LOOK_OCTETS: u64 = 1 << 20;

/// What a file is, beside what its name says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// What its name says.
    Right,
    /// Neither copy of its header can be used; its records are those of its name.
    Headless(String),
    /// Neither copy of its header can be used, and no record tells what it is.
    Unknown(String),
    /// The file of another cycle.
    Of(u32),
    /// The file of another set, or of another spool.
    Foreign(String),
}

/// What is known of the files of a set.
#[derive(Debug, Default)]
pub(super) struct Compared {
    /// The file of each cycle.
    pub(super) files: BTreeMap<u32, Held>,
    /// What is wrong with some of them, for people.
    pub(super) told: Vec<String>,
    /// Those in which no record can be.
    stubs: BTreeSet<u32>,
}

impl Compared {
    /// Files without headers are what their names say: one was made again for all of them.  Not those in which no record can be:
    /// what is left in them is not written over.
    pub(super) fn trust_headless(&mut self) {
        self.told.clear();
        for (name, held) in &mut self.files {
            if self.stubs.contains(name) {
                self.told.extend(told(&held.path, *name, &held.standing));
            } else if !matches!(held.standing, Standing::Of(_)) {
                held.standing = Standing::Right;
            }
        }
    }

    /// What is wrong in a line, for the state of the set.
    pub(super) fn complaint(&self) -> Option<String> {
        let (first, rest) = self.told.split_first()?;
        Some(match rest.len() {
            0 => first.clone(),
            more => format!("{first} (and {more} more, see the log)"),
        })
    }
}

/// Opens the file with this name to look at it.  Inside: what is there in its place, a link that leads nowhere or a pipe.
pub(super) fn open_named(
    disk: &dyn Disk,
    path: &Path,
) -> Result<std::result::Result<Arc<dyn File>, String>> {
    match disk.open(path, OpenMode::Read) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Ok(Err("it is a symbolic link that leads nowhere".to_owned()))
        }
        Err(error) if error.kind() == ErrorKind::NotAFile => Ok(Err(error.to_string())),
        file => Ok(Ok(file?)),
    }
}

/// Whether a file ends before its first record could begin.
pub(super) fn is_stub(file: &dyn File, geometry: &Geometry) -> Result<bool> {
    Ok(file.len()? < geometry.data_start)
}

/// The header of a file, if it has a sound one, and where that lies; else what there is in its place.
pub(super) fn header_in(file: &dyn File) -> Result<Headers> {
    match read_headers(file) {
        Err(crate::error::Error::Host(error)) if error.is_medium() => {
            Ok(Headers::Lost(format!("its header cannot be read: {error}")))
        }
        headers => headers,
    }
}

/// What the file with this name is.
pub(super) fn standing(
    file: &dyn File,
    name: u32,
    ours: &FileHeader,
    geometry: &Geometry,
) -> Result<Standing> {
    let by_records = || cycle_of_records(file, geometry, key_of(ours));
    let why = match header_in(file)? {
        Headers::Sound(header, ..) => {
            if (header.spool, header.uuid) != (ours.spool, ours.uuid) {
                let why = match header.spool == ours.spool {
                    true => format!("it belongs to another set, {:?}", header.name),
                    false => "it belongs to another spool".to_owned(),
                };
                return Ok(Standing::Foreign(why));
            }
            let said = header.hints.bitmap_end.cycle();
            // An earlier version may have put an older header into a newer file.
            return Ok(match (said == name).then_some(name).or_else(by_records) {
                Some(cycle) if cycle == name => Standing::Right,
                cycle => Standing::Of(cycle.unwrap_or(said)),
            });
        }
        Headers::Blank if file.len()? == 0 => "it is empty".to_owned(),
        Headers::Blank => "it is full of zeros where its header should be".to_owned(),
        Headers::Damaged(why) | Headers::Lost(why) => why,
    };
    Ok(match by_records() {
        Some(cycle) if cycle == name => Standing::Headless(why),
        Some(cycle) => Standing::Of(cycle),
        None => Standing::Unknown(why),
    })
}

/// The cycle that the first sound record of a file says, of those near its front.
fn cycle_of_records(file: &dyn File, geometry: &Geometry, key: FileKey) -> Option<u32> {
    let len = LOOK_OCTETS.min(geometry.capacity());
    let mut octets = vec![0; in_memory(len)];
    let got = file.read_at(&mut octets, geometry.data_start).ok()?;
    octets.truncate(got);
    let block = in_memory(geometry.block);
    let mut starts = (0..octets.len()).step_by(block);
    starts.find_map(|at| {
        let octets = octets.get(at..at + RECORD_HEADER)?;
        if !RecordHeader::may_begin(octets) {
            return None;
        }
        let header = RecordHeader::decode(octets, key).ok()?;
        let is_here = header.position.offset() == geometry.data_start + at as u64;
        is_here.then(|| header.position.cycle())
    })
}

/// Compares the files with these names.
pub(super) fn compare(
    disk: &dyn Disk,
    (dir, names): (&Path, &[u32]),
    ours: &FileHeader,
    geometry: &Geometry,
) -> Result<Compared> {
    let mut compared = Compared::default();
    let (mut elsewhere, mut foreign) = (Vec::new(), BTreeSet::new());
    let unlooked = names.len().saturating_sub(SEGMENTS_COMPARED_MAX);
    for (nth, name) in names.iter().enumerate() {
        let path = path_of(dir, *name);
        let standing = match nth < unlooked {
            true => Standing::Right,
            false => match open_named(disk, &path)? {
                Err(what) => {
                    compared.stubs.insert(*name);
                    Standing::Unknown(what)
                }
                Ok(file) => {
                    if is_stub(file.as_ref(), geometry)? {
                        compared.stubs.insert(*name);
                    }
                    standing(file.as_ref(), *name, ours, geometry)?
                }
            },
        };
        if let Some(told) = told(&path, *name, &standing) {
            compared.told.push(told);
        }
        match standing {
            Standing::Of(cycle) => elsewhere.push((cycle, *name)),
            Standing::Foreign(_) => {
                foreign.insert(*name);
            }
            standing => {
                let held = Held::new(path, standing);
                compared.files.insert(*name, held);
            }
        }
    }
    for (cycle, name) in elsewhere {
        let path = path_of(dir, name);
        let is_better = |held: &Held| !matches!(held.standing, Standing::Unknown(_));
        match compared.files.get(&cycle).filter(|held| is_better(held)) {
            Some(held) => compared.told.push(format!(
                "{}: the articles of cycle {cycle} are served from {}, and this file is left alone",
                path.display(),
                held.path.display()
            )),
            None => {
                let held = Held::new(path, Standing::Of(cycle));
                compared.files.insert(cycle, held);
            }
        }
    }
    // What stands in a file's place is told by itself.
    foreign.extend(compared.files.keys());
    compared.told.extend(missing(dir, &foreign));
    Ok(compared)
}

/// What is to be told of a file that is not what it should be: what, why, and what to do.
fn told(path: &Path, name: u32, standing: &Standing) -> Option<String> {
    let path = path.display();
    let is_served =
        "its articles are served as far as they can be read, and nothing is written into it";
    Some(match standing {
        Standing::Right => return None,
        Standing::Headless(why) => format!(
            "{path}: {why}; its records are those of its name: {is_served}; it goes with its turn"
        ),
        Standing::Unknown(why) => format!(
            "{path}: {why}, and no record in it tells what it is: {is_served}, and it is never removed; put it back from a copy, \
             or remove it, and see `newsreel store scrub` for what is lost"
        ),
        Standing::Of(cycle) => format!(
            "{path}: by its name it is segment {name} of the set, by its content segment {cycle}: {is_served}, and it is never \
             removed; stop the server and rename it to {cycle:08}.seg (files that were swapped one after the other), or \
             move it elsewhere if that is there"
        ),
        Standing::Foreign(why) => format!(
            "{path}: {why}: it is left alone and nothing in it is served; move it to where it belongs"
        ),
    })
}

/// So many names are told at most.
const NAMED: usize = 8;

/// Which files are not there that lie between others.
fn missing(dir: &Path, files: &BTreeSet<u32>) -> Option<String> {
    let gaps = files.iter().zip(files.iter().skip(1));
    let gaps = gaps.filter(|(one, next)| *one + 1 < **next);
    let (mut names, mut more) = (Vec::new(), 0);
    for (one, next) in gaps {
        let (room, gap) = (NAMED - names.len(), (next - one - 1) as usize);
        let named = (one + 1..*next).take(room);
        names.extend(named.map(|cycle| format!("{cycle:08}.seg")));
        more += gap.saturating_sub(room);
    }
    match (names.is_empty(), more) {
        (true, _) => return None,
        (false, 0) => {}
        _ => names.push(format!("{more} more")),
    }
    Some(format!(
        "{}: there is no {}, but files before and behind: what was in there is lost if somebody removed it; put it back and start \
         again, or see `newsreel store scrub` for what is lost",
        dir.display(),
        names.join(", ")
    ))
}
