//! The two ends of a run's file: the header says which run it is, the footer what is in it and that it is whole.
//!
//! Written and read here only, whether the manifest is there to say what must be in them or they are all that is left.

use std::path::Path;

use newsreel_host::File;
use newsreel_wire::Sequence;

use super::frame::FRAME_HEADER;
use super::{RunKind, RunMeta, SpoolId};
use crate::cursor::{Bad, Cursor};
use crate::error::{Error, Result};

/// The first octets of every run and of its footer.
pub(crate) const MAGIC: &[u8; 8] = b"NRSEALED";
/// Of their layout.
pub(crate) const VERSION: u16 = 1;
/// The header's page; blocks begin behind it.
pub(crate) const HEADER_OCTETS: usize = 4096;
/// Octets of the header that mean something, its checksum included.
pub(crate) const HEADER_USED: usize = 64;
/// The footer.
pub(crate) const FOOTER_OCTETS: usize = 256;
/// Sections a run can have.
pub(crate) const SECTIONS_MAX: usize = 8;

/// A named part at the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Section {
    pub(crate) tag: u32,
    /// Octets of its payload.
    pub(crate) len: u32,
    pub(crate) offset: u64,
}

impl Section {
    /// Where it ends; `None`: nowhere in any file.
    fn end(&self) -> Option<u64> {
        self.offset.checked_add(framed(u64::from(self.len)))
    }
}

/// The header page: magic 8, version 2, kind 1, zero 5, spool 16, run 8, first 8, last 8, zero 4, crc 4.
pub(crate) fn header(spool: &SpoolId, meta: &RunMeta) -> Vec<u8> {
    let mut page = Vec::with_capacity(HEADER_OCTETS);
    page.extend_from_slice(MAGIC);
    page.extend_from_slice(&VERSION.to_le_bytes());
    page.extend_from_slice(&[meta.kind.code(), 0, 0, 0, 0, 0]);
    page.extend_from_slice(spool);
    page.extend_from_slice(&meta.id.to_le_bytes());
    page.extend_from_slice(&meta.first.0.to_le_bytes());
    page.extend_from_slice(&meta.last.0.to_le_bytes());
    page.extend_from_slice(&[0; 4]);
    debug_assert_eq!(page.len(), HEADER_USED - 4);
    let crc = crc32c::crc32c(&page);
    page.extend_from_slice(&crc.to_le_bytes());
    page.resize(HEADER_OCTETS, 0);
    page
}

/// The footer: magic 8, version 2, kind 1, sections 1, zero 4, run 8, first 8, last 8, rows 8, file length 8, then
/// eight times tag 4, length 4, offset 8; zeros; crc 4.
pub(crate) fn footer(meta: &RunMeta, sections: &[Section]) -> Vec<u8> {
    let mut out = Vec::with_capacity(FOOTER_OCTETS);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    let count = u8::try_from(sections.len()).unwrap_or(u8::MAX);
    out.extend_from_slice(&[meta.kind.code(), count, 0, 0, 0, 0]);
    for number in [meta.id, meta.first.0, meta.last.0, meta.rows, meta.len] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    for section in sections {
        out.extend_from_slice(&section.tag.to_le_bytes());
        out.extend_from_slice(&section.len.to_le_bytes());
        out.extend_from_slice(&section.offset.to_le_bytes());
    }
    out.resize(FOOTER_OCTETS - 4, 0);
    let crc = crc32c::crc32c(&out);
    out.extend_from_slice(&crc.to_le_bytes());
    out
}

/// Octets a section takes in the file.
pub(crate) const fn framed(len: u64) -> u64 {
    len + FRAME_HEADER as u64
}

/// What a file's ends say.
#[derive(Debug)]
pub(crate) struct Ends {
    /// Its length is that of the file; without a good footer there are no rows.
    pub(crate) meta: RunMeta,
    /// What its footer lists, or what is wrong with it.
    pub(crate) sections: Result<Vec<Section>>,
}

/// What a header says, or why it cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Header {
    /// A run of this spool, without length and rows.
    Good(RunMeta),
    /// It is whole, and of a version that is not known here.
    Newer,
}

/// Reads both ends; an error when the file is not this spool's or its header cannot be used.
pub(crate) fn read(file: &dyn File, path: &Path, spool: &SpoolId) -> Result<Ends> {
    let damaged = |at: u64, Bad(what): Bad| Error::damaged(path, at, what);
    let mut header = [0; HEADER_USED];
    file.read_exact_at(&mut header, 0)?;
    let mut meta = match parse_header(&header, spool).map_err(|why| damaged(0, why))? {
        Header::Good(meta) => meta,
        Header::Newer => {
            return Err(Error::Newer {
                path: path.to_path_buf(),
            });
        }
    };
    meta.len = file.len()?;
    let sections = read_footer(file, &mut meta, damaged);
    Ok(Ends { meta, sections })
}

fn read_footer(
    file: &dyn File,
    meta: &mut RunMeta,
    damaged: impl Fn(u64, Bad) -> Error,
) -> Result<Vec<Section>> {
    let at = meta.len.checked_sub(FOOTER_OCTETS as u64);
    let Some(at) = at.filter(|at| *at >= HEADER_OCTETS as u64) else {
        return Err(damaged(meta.len, Bad("it ends before its first block")));
    };
    let mut footer = [0; FOOTER_OCTETS];
    file.read_exact_at(&mut footer, at)?;
    parse_footer(&footer, meta).map_err(|why| damaged(at, why))
}

fn parse_header(octets: &[u8; HEADER_USED], spool: &SpoolId) -> Result<Header, Bad> {
    let (body, crc) = octets.split_at(HEADER_USED - 4);
    if crc32c::crc32c(body).to_le_bytes() != crc {
        return Err(Bad("the header's checksum is wrong"));
    }
    let mut cursor = Cursor::new(body);
    if cursor.array::<8>()? != *MAGIC {
        return Err(Bad("it is not a sealed run"));
    }
    let version = cursor.u16()?;
    if version > VERSION {
        return Ok(Header::Newer);
    }
    let kind = RunKind::from_code(cursor.u8()?).filter(|_| version == VERSION);
    let kind = kind.ok_or(Bad("it is not a sealed run of a known kind"))?;
    cursor.take(5)?;
    if cursor.array::<16>()? != *spool {
        return Err(Bad("it belongs to another spool"));
    }
    let id = cursor.u64()?;
    let range = (Sequence(cursor.u64()?), Sequence(cursor.u64()?));
    Ok(Header::Good(RunMeta::unwritten(kind, id, range)))
}

/// The sections; `meta`, which says the rest, gets the rows.
fn parse_footer(octets: &[u8; FOOTER_OCTETS], meta: &mut RunMeta) -> Result<Vec<Section>, Bad> {
    let (body, crc) = octets.split_at(FOOTER_OCTETS - 4);
    if crc32c::crc32c(body).to_le_bytes() != crc {
        return Err(Bad("the footer's checksum is wrong"));
    }
    let mut cursor = Cursor::new(body);
    let is_footer = cursor.array::<8>()? == *MAGIC && cursor.u16()? == VERSION;
    let (kind, count) = (cursor.u8()?, usize::from(cursor.u8()?));
    cursor.take(4)?;
    let (id, first, last) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
    let (rows, len) = (cursor.u64()?, cursor.u64()?);
    let is_same = (kind, id, first, last, len)
        == (
            meta.kind.code(),
            meta.id,
            meta.first.0,
            meta.last.0,
            meta.len,
        );
    if !is_footer || !is_same {
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
        let is_inside = section.end().is_some_and(|end| end <= meta.len);
        if section.offset < HEADER_OCTETS as u64 || !is_inside {
            return Err(Bad("a section lies outside the file"));
        }
        sections.push(section);
    }
    meta.rows = rows;
    Ok(sections)
}
