//! Reading a run: header and footer are checked when it is opened, every frame when it is read.
//!
//! Reads go into private memory, never through a mapping.  Nothing here trusts a length it did not check against the
//! file's.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use newsreel_host::{Disk, File, OpenMode};

use super::frame::{self, FRAME_HEADER};
use super::writer::{
    FOOTER_OCTETS, HEADER_OCTETS, HEADER_USED, MAGIC, SECTIONS_MAX, Section, VERSION, framed,
};
use super::{RunKind, RunMeta, SpoolId, run_path};
use crate::cursor::{Bad, Cursor};
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

/// An open run.
#[derive(Debug)]
pub(crate) struct RunFile {
    file: Arc<dyn File>,
    path: PathBuf,
    meta: RunMeta,
    sections: Vec<Section>,
}

impl RunFile {
    /// Opens a run and checks that it is the one the manifest names, whole.
    pub(crate) fn open(
        disk: &dyn Disk,
        dir: &Path,
        spool: &SpoolId,
        meta: &RunMeta,
    ) -> Result<Self> {
        let path = run_path(dir, meta.kind, meta.id);
        let file = disk.open(&path, OpenMode::Read)?;
        let bad = |at: u64, Bad(what): Bad| Error::damaged(&path, at, what);
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
        Ok(Self {
            file,
            path,
            meta: *meta,
            sections,
        })
    }

    /// The run as the manifest names it.
    pub(crate) const fn meta(&self) -> &RunMeta {
        &self.meta
    }

    /// Reads octets as they are; the caller checks them.
    pub(crate) fn octets(&self, buf: &mut [u8], offset: u64, wait: Wait) -> Result<()> {
        match wait {
            Wait::Yes => Ok(self.file.read_exact_at(buf, offset)?),
            Wait::No => match self.file.read_cached_at(buf, offset)? {
                Some(got) if got == buf.len() => Ok(()),
                _ => Err(Error::WouldBlock),
            },
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
        buf.resize(whole as usize, 0);
        self.octets(buf, offset, wait)?;
        let mut at = 0;
        for len in lens {
            let place = offset + at as u64;
            match frame::payload(self.meta.id, place, &buf[at..]) {
                Ok(payload) if payload.len() == len => {}
                Ok(_) => {
                    return Err(
                        self.damage(place, Bad("a block has another length than its entry"))
                    );
                }
                Err(why) => return Err(self.damage(place, why)),
            }
            at += FRAME_HEADER + len;
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
        Error::damaged(&self.path, at, what)
    }
}

fn check_header(octets: &[u8; HEADER_USED], spool: &SpoolId, meta: &RunMeta) -> Result<(), Bad> {
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

fn check_footer(octets: &[u8; FOOTER_OCTETS], meta: &RunMeta) -> Result<Vec<Section>, Bad> {
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

/// Opens a run by its kind for a tool or a rebuild, whatever state its footer is in: raw octets only.
pub(crate) fn open_raw(
    disk: &dyn Disk,
    dir: &Path,
    kind: RunKind,
    id: u64,
) -> Result<Arc<dyn File>> {
    Ok(disk.open(&run_path(dir, kind, id), OpenMode::Read)?)
}
