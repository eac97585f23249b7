//! Reading a run: header and footer are checked when it is opened, every frame when it is read.
//!
//! Of a run in two files the one that was always good is read, and the other one when that fails; a file that failed
//! once is remembered as bad.  Reads go into private memory, never through a mapping.  Nothing here trusts a length it
//! did not check against the file's.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use newsreel_host::{Disk, File, OpenMode};
use smallvec::SmallVec;

use super::frame::{self, FRAME_HEADER};
use super::set::DamagedRun;
use super::writer::{
    FOOTER_OCTETS, HEADER_OCTETS, HEADER_USED, MAGIC, SECTIONS_MAX, Section, VERSION, framed,
};
use super::{RunKind, RunMeta, SpoolId, run_paths};
use crate::cursor::{Bad, Cursor, array_at};
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
        let (mut sections, mut first_error) = (None, None);
        let mut halves = SmallVec::new();
        for path in meta.paths(dir) {
            let bad = OnceLock::new();
            let file = match open_half(disk, &path, spool, meta) {
                Ok((file, found)) => {
                    sections.get_or_insert(found);
                    Some(file)
                }
                Err(error) if error.is_damage() => {
                    bad.get_or_init(|| error.to_string());
                    first_error.get_or_insert(error);
                    None
                }
                Err(error) => return Err(error),
            };
            halves.push(Half { path, file, bad });
        }
        match (sections, first_error) {
            (None, Some(error)) => Err(error),
            (sections, _) => Ok(Self {
                halves,
                meta: *meta,
                sections: sections.unwrap_or_default(),
            }),
        }
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
    fn in_order(&self) -> impl Iterator<Item = (&Half, &Arc<dyn File>)> {
        let good = self.halves.iter().filter(|half| half.bad.get().is_none());
        let bad = self.halves.iter().filter(|half| half.bad.get().is_some());
        good.chain(bad)
            .filter_map(|half| Some((half, half.file.as_ref()?)))
    }

    /// Reads octets as they are, from the best file; the caller checks them.
    pub(crate) fn octets(&self, buf: &mut [u8], offset: u64, wait: Wait) -> Result<()> {
        self.checked(buf, offset, wait, |_| Ok(()))
    }

    /// Reads octets from the first file in which `check` finds them good.
    pub(crate) fn checked<T>(
        &self,
        buf: &mut [u8],
        offset: u64,
        wait: Wait,
        check: impl Fn(&[u8]) -> Result<T, (u64, Bad)>,
    ) -> Result<T> {
        let mut first_error = None;
        for (half, file) in self.in_order() {
            let error = match half.read(file, buf, offset, wait, &check) {
                Ok(found) => return Ok(found),
                Err(error) if error.is_damage() => error,
                Err(error) => return Err(error),
            };
            half.bad.get_or_init(|| error.to_string());
            first_error.get_or_insert(error);
        }
        Err(first_error.unwrap_or_else(|| self.damage(offset, Bad("none of its files is open"))))
    }

    /// Looks at a piece of every file, though one would do.
    pub(crate) fn check_all(
        &self,
        buf: &mut [u8],
        offset: u64,
        check: impl Fn(&[u8]) -> Result<(), (u64, Bad)>,
    ) -> Result<()> {
        for half in &self.halves {
            let Some(file) = &half.file else { continue };
            match half.read(file, buf, offset, Wait::Yes, &check) {
                Ok(()) => {}
                Err(error) if error.is_damage() => {
                    half.bad.get_or_init(|| error.to_string());
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
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
        buf.resize(whole as usize, 0);
        self.checked(buf, offset, wait, |buf| {
            check_frames(self.meta.id, offset, &lens, buf)
        })
    }

    /// Looks at all sections in every file.
    pub(crate) fn check_sections(&self) -> Result<()> {
        for section in &self.sections {
            let mut buf = vec![0; framed(u64::from(section.len)) as usize];
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
    fn read<T>(
        &self,
        file: &Arc<dyn File>,
        buf: &mut [u8],
        offset: u64,
        wait: Wait,
        check: impl Fn(&[u8]) -> Result<T, (u64, Bad)>,
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
fn check_frames(run: u64, offset: u64, lens: &[usize], buf: &[u8]) -> Result<(), (u64, Bad)> {
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

fn open_half(
    disk: &dyn Disk,
    path: &Path,
    spool: &SpoolId,
    meta: &RunMeta,
) -> Result<(Arc<dyn File>, Vec<Section>)> {
    let file = disk.open(path, OpenMode::Read)?;
    let bad = |at: u64, Bad(what): Bad| Error::damaged(path, at, what);
    let len = file.len()?;
    if len != meta.len || len < (HEADER_OCTETS + FOOTER_OCTETS) as u64 {
        return Err(bad(
            len,
            Bad("it does not have the length it was sealed with"),
        ));
    }
    let mut header = [0; HEADER_USED];
    file.read_exact_at(&mut header, 0)?;
    check_header(&header, spool, meta).map_err(|why| bad(0, why))?;
    let at = len - FOOTER_OCTETS as u64;
    let mut footer = [0; FOOTER_OCTETS];
    file.read_exact_at(&mut footer, at)?;
    let sections = check_footer(&footer, meta).map_err(|why| bad(at, why))?;
    Ok((file, sections))
}

/// Whether a header is that of a run of a later version.
pub(crate) fn is_newer(octets: &[u8; HEADER_USED]) -> bool {
    let version = u16::from_le_bytes(array_at(octets, 8));
    let (body, crc) = octets.split_at(HEADER_USED - 4);
    let is_good = crc32c::crc32c(body).to_le_bytes() == crc;
    is_good && octets.starts_with(MAGIC) && version > VERSION
}

pub(crate) fn check_header(
    octets: &[u8; HEADER_USED],
    spool: &SpoolId,
    meta: &RunMeta,
) -> Result<(), Bad> {
    let (body, crc) = octets.split_at(HEADER_USED - 4);
    if crc32c::crc32c(body).to_le_bytes() != crc {
        return Err(Bad("the header's checksum is wrong"));
    }
    let mut cursor = Cursor::new(body);
    let magic: [u8; 8] = cursor.array()?;
    let version = cursor.u16()?;
    let kind = cursor.u8()?;
    cursor.take(5)?;
    let of_spool: SpoolId = cursor.array()?;
    let ids = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
    if &magic != MAGIC || kind != meta.kind.code() {
        return Err(Bad("it is not a sealed run of this kind"));
    }
    if version != VERSION {
        return Err(Bad("it is of a version this newsreel does not know"));
    }
    if &of_spool != spool {
        return Err(Bad("it belongs to another spool"));
    }
    if ids != (meta.id, meta.first.0, meta.last.0) {
        return Err(Bad("it is another run than the manifest names"));
    }
    Ok(())
}

pub(crate) fn check_footer(
    octets: &[u8; FOOTER_OCTETS],
    meta: &RunMeta,
) -> Result<Vec<Section>, Bad> {
    let (body, crc) = octets.split_at(FOOTER_OCTETS - 4);
    if crc32c::crc32c(body).to_le_bytes() != crc {
        return Err(Bad("the footer's checksum is wrong"));
    }
    let mut cursor = Cursor::new(body);
    let magic: [u8; 8] = cursor.array()?;
    let version = cursor.u16()?;
    let kind = cursor.u8()?;
    let count = usize::from(cursor.u8()?);
    cursor.take(4)?;
    let id = cursor.u64()?;
    cursor.take(16)?;
    let (rows, len) = (cursor.u64()?, cursor.u64()?);
    let same = (id, rows, len) == (meta.id, meta.rows, meta.len);
    if &magic != MAGIC || version != VERSION || kind != meta.kind.code() || !same {
        return Err(Bad("the footer is another run's"));
    }
    if count > SECTIONS_MAX {
        return Err(Bad("the footer has too many sections"));
    }
    let mut sections = Vec::with_capacity(count);
    for _ in 0..count {
        let section = Section {
            tag: cursor.u32()?,
            len: cursor.u32()?,
            offset: cursor.u64()?,
        };
        let end = section.offset.checked_add(framed(u64::from(section.len)));
        if section.offset < HEADER_OCTETS as u64 || end.is_none_or(|end| end > meta.len) {
            return Err(Bad("a section lies outside the file"));
        }
        sections.push(section);
    }
    Ok(sections)
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
