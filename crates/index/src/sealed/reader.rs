//! Reading a run: header and footer are checked when it is opened, every frame when it is read.
//!
//! Of a run in two files the one that was always good is read, and the other one when that fails; a file that failed
//! once is remembered as bad.  Reads go into private memory, never through a mapping.  Nothing here trusts a length it
//! did not check against the file's.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use newsreel_host::{Disk, File, OpenMode};
use smallvec::SmallVec;

use super::ends::{self, FOOTER_OCTETS, Section, framed};
use super::frame::{self, FRAME_HEADER};
use super::set::DamagedRun;
use super::{RunKind, RunMeta, SpoolId, copy_path, run_path, run_paths};
use crate::cursor::Bad;
use crate::error::{Error, Result};

/// Whether a reader waits for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wait {
    /// Read from the disk when the answer is not in memory.
    #[default]
    Yes,
    /// Give [`Error::WouldBlock`] then, to be asked again from a thread that may wait.
    No,
}

/// One of the files of a run.
#[derive(Debug)]
struct Half {
    path: PathBuf,
    /// `None`: it could not be opened.
    file: Option<Arc<dyn File>>,
    /// What was found wrong with it first.
    bad: OnceLock<String>,
}

/// An open run.
#[derive(Debug)]
pub(crate) struct RunFile {
    /// At least one of them could be opened.
    halves: SmallVec<[Half; 2]>,
    meta: RunMeta,
    sections: Vec<Section>,
}

impl RunFile {
    /// Opens a run and checks that it is the one the manifest names, whole; one good file is enough.
    pub(crate) fn open(
        disk: &dyn Disk,
        dir: &Path,
        spool: &SpoolId,
        meta: &RunMeta,
    ) -> Result<Self> {
        let open = |path| Half::open(disk, path, spool, meta);
        let (first, mut sections) = open(run_path(dir, meta.kind, meta.id))?;
        let mut halves = SmallVec::from_iter([first]);
        if let Some(path) = copy_path(dir, meta.kind, meta.id) {
            let (copy, of_copy) = open(path)?;
            halves.push(copy);
            sections = sections.or_else(|first| of_copy.map_err(|_| first));
        }
        Ok(Self {
            halves,
            meta: *meta,
            sections: sections?,
        })
    }

    /// The run as the manifest names it.
    pub(crate) const fn meta(&self) -> &RunMeta {
        &self.meta
    }

    /// How many files there are of it.
    pub(crate) fn files(&self) -> u64 {
        let there = self.halves.iter().filter(|half| half.file.is_some());
        there.count() as u64
    }

    /// Its bad files, when the other one is read instead.
    pub(crate) fn bad_files(&self) -> impl Iterator<Item = DamagedRun> {
        let halves = self.halves.iter().filter(|_| self.halves.len() > 1);
        halves.filter_map(|half| {
            let why = half.bad.get()?.clone();
            Some(DamagedRun {
                is_readable: true,
                ..DamagedRun::new(&self.meta, &half.path, why)
            })
        })
    }

    /// Whether one of two files is bad.
    pub(crate) fn is_worn(&self) -> bool {
        self.halves.len() > 1 && self.halves.iter().any(|half| half.bad.get().is_some())
    }

    /// The open files, those that were always good first.
    fn in_order(&self) -> SmallVec<[(&Half, &Arc<dyn File>); 2]> {
        let open = self.halves.iter();
        let mut halves: SmallVec<[_; 2]> = open
            .filter_map(|half| Some((half, half.file.as_ref()?)))
            .collect();
        halves.sort_by_key(|(half, _)| half.bad.get().is_some());
        halves
    }

    /// Reads octets from the first file in which `check` finds them good.
    pub(crate) fn checked<T>(
        &self,
        buf: &mut [u8],
        offset: u64,
        wait: Wait,
        mut check: impl FnMut(&[u8]) -> Result<T, (u64, Bad)>,
    ) -> Result<T> {
        let mut first_error = None;
        for (half, file) in self.in_order() {
            let error = match half.read(file, buf, offset, wait, &mut check) {
                Ok(found) => return Ok(found),
                Err(error) if error.is_damage() => error,
                Err(error) => return Err(error),
            };
            half.bad.get_or_init(|| error.to_string());
            first_error.get_or_insert(error);
        }
        Err(first_error.unwrap_or_else(|| self.damage(offset, Bad("none of its files is open"))))
    }

    /// Looks at a piece of every file, though one would do; damage is an error when no file is good there.
    pub(crate) fn check_all(
        &self,
        buf: &mut [u8],
        offset: u64,
        check: impl Fn(&[u8]) -> Result<(), (u64, Bad)>,
    ) -> Result<()> {
        let (mut is_good, mut first_error) = (false, None);
        for (half, file) in self.in_order() {
            match half.read(file, buf, offset, Wait::Yes, &check) {
                Ok(()) => is_good = true,
                Err(error) if error.is_damage() => {
                    half.bad.get_or_init(|| error.to_string());
                    first_error.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        match first_error {
            Some(error) if !is_good => Err(error),
            _ => Ok(()),
        }
    }

    /// Reads a frame with a payload of `len` octets into `buf`; the payload is `buf[FRAME_HEADER..]`.
    pub(crate) fn frame(
        &self,
        buf: &mut Vec<u8>,
        offset: u64,
        len: usize,
        wait: Wait,
    ) -> Result<()> {
        self.frames(buf, offset, [len], wait)
    }

    /// Reads frames that lie one behind the other, with payloads of these lengths, at once.
    pub(crate) fn frames<const N: usize>(
        &self,
        buf: &mut Vec<u8>,
        offset: u64,
        lens: [usize; N],
        wait: Wait,
    ) -> Result<()> {
        let whole: u64 = lens.iter().map(|len| framed(*len as u64)).sum();
        let end = offset.checked_add(whole);
        if end.is_none_or(|end| end > self.meta.len) {
            return Err(self.damage(offset, Bad("a block lies outside the file")));
        }
        buf.clear();
        buf.resize(usize::try_from(whole).unwrap_or(usize::MAX), 0);
        self.checked(buf, offset, wait, |buf| {
            check_frames(self.meta.id, offset, &lens, buf)
        })
    }

    /// Looks at all sections in every file.
    pub(crate) fn check_sections(&self) -> Result<()> {
        for section in &self.sections {
            let mut buf =
                vec![0; usize::try_from(framed(u64::from(section.len))).unwrap_or(usize::MAX)];
            self.check_all(&mut buf, section.offset, |buf| {
                check_frames(self.meta.id, section.offset, &[section.len as usize], buf)
            })?;
        }
        Ok(())
    }

    /// A section's payload.
    pub(crate) fn section(&self, tag: u32) -> Result<Vec<u8>> {
        let Some(section) = self.sections.iter().find(|section| section.tag == tag) else {
            return Err(self.damage(self.meta.len, Bad("a section is missing")));
        };
        let mut buf = Vec::new();
        self.frame(&mut buf, section.offset, section.len as usize, Wait::Yes)?;
        buf.drain(..FRAME_HEADER);
        Ok(buf)
    }

    /// Where the sections begin and the blocks end.
    pub(crate) fn blocks_end(&self) -> u64 {
        let first = self.sections.iter().map(|section| section.offset).min();
        first.unwrap_or(self.meta.len - FOOTER_OCTETS as u64)
    }

    /// The error for damage found in this run.
    pub(crate) fn damage(&self, at: u64, Bad(what): Bad) -> Error {
        let path = self.halves.first().map(|half| half.path.as_path());
        Error::damaged(path.unwrap_or(Path::new("")), at, what)
    }
}

impl Half {
    /// Opens one of a run's files.  What is wrong with it when it is damaged comes beside it.
    fn open(
        disk: &dyn Disk,
        path: PathBuf,
        spool: &SpoolId,
        meta: &RunMeta,
    ) -> Result<(Self, Result<Vec<Section>>)> {
        let bad = OnceLock::new();
        match open_named(disk, &path, spool, meta) {
            Ok((file, sections)) => {
                let file = Some(file);
                Ok((Self { path, file, bad }, Ok(sections)))
            }
            Err(error) if error.is_damage() => {
                bad.get_or_init(|| error.to_string());
                let file = None;
                Ok((Self { path, file, bad }, Err(error)))
            }
            Err(error) => Err(error),
        }
    }

    fn read<T>(
        &self,
        file: &Arc<dyn File>,
        buf: &mut [u8],
        offset: u64,
        wait: Wait,
        check: impl FnOnce(&[u8]) -> Result<T, (u64, Bad)>,
    ) -> Result<T> {
        match wait {
            Wait::Yes => file.read_exact_at(buf, offset)?,
            Wait::No => match file.read_cached_at(buf, offset)? {
                Some(got) if got == buf.len() => {}
                _ => return Err(Error::WouldBlock),
            },
        }
        check(buf).map_err(|(at, Bad(what))| Error::damaged(&self.path, at, what))
    }
}

/// Whether frames with payloads of these lengths lie one behind the other.
pub(crate) fn check_frames(
    run: u64,
    offset: u64,
    lens: &[usize],
    buf: &[u8],
) -> Result<(), (u64, Bad)> {
    let mut at = 0;
    for len in lens {
        let place = offset + at as u64;
        let payload = frame::payload(run, place, &buf[at..]).map_err(|why| (place, why))?;
        if payload.len() != *len {
            return Err((place, Bad("a block has another length than its entry")));
        }
        at += FRAME_HEADER + len;
    }
    Ok(())
}

/// Opens a file that must be the one the manifest names.
fn open_named(
    disk: &dyn Disk,
    path: &Path,
    spool: &SpoolId,
    meta: &RunMeta,
) -> Result<(Arc<dyn File>, Vec<Section>)> {
    let file = disk.open(path, OpenMode::Read)?;
    let ends = ends::read(file.as_ref(), path, spool)?;
    let bad = |at, what| Err(Error::damaged(path, at, what));
    if ends.meta.len != meta.len {
        return bad(
            ends.meta.len,
            "it does not have the length it was sealed with",
        );
    }
    let sections = ends.sections?;
    if ends.meta != *meta {
        return bad(0, "it is another run than the manifest names");
    }
    Ok((file, sections))
}

/// Opens those of a run's files that are there, whatever state they are in: raw octets only.
pub(crate) fn open_raw(
    disk: &dyn Disk,
    dir: &Path,
    meta: (RunKind, u64),
) -> SmallVec<[Arc<dyn File>; 2]> {
    let paths = run_paths(dir, meta.0, meta.1);
    let files = paths.iter().map(|path| disk.open(path, OpenMode::Read));
    files.filter_map(Result::ok).collect()
}
