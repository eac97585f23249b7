//! Writing a run: sequentially, once, synced before anyone refers to it.
//!
//! A run of a [double](RunKind::is_double) kind goes into two files, octet for octet the same; checksums are computed
//! once.  A writer that is dropped unfinished removes its files.  It never overwrites: a run's id is new.

use std::path::PathBuf;
use std::sync::Arc;

use newsreel_host::{AlignedBuf, DIRECT_ALIGN_BYTES, Disk, File, OpenMode};
use newsreel_wire::Sequence;
use smallvec::SmallVec;

use super::ends::{self, FOOTER_OCTETS, SECTIONS_MAX, Section};
use super::frame;
use super::{RunKind, RunMeta, RunPaths, SpoolId};
use crate::error::Result;

/// Written in pieces of this size: small enough to stay in the processor's cache on the way ...
const PIECE: usize = 256 << 10;
/// ... and forced to the disk after so many octets, so that a large run does not stand in a commit's way at its end.
const SYNC_EVERY: u64 = 16 << 20;

/// Where runs are made.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) dir: PathBuf,
    pub(crate) spool: SpoolId,
}

/// A run being written.
#[derive(Debug)]
pub(crate) struct RunWriter {
    place: Place,
    /// Each gets the same octets.
    files: SmallVec<[Arc<dyn File>; 2]>,
    /// Those that were made.
    paths: RunPaths,
    meta: RunMeta,
    buf: AlignedBuf,
    written: u64,
    synced: u64,
    sections: Vec<Section>,
    /// Around the page cache.
    is_direct: bool,
    finished: bool,
}

impl RunWriter {
    /// Begins a run that covers these sequences, the last included.
    pub(crate) fn create(
        place: &Place,
        kind: RunKind,
        id: u64,
        range: (Sequence, Sequence),
    ) -> Result<Self> {
        let meta = RunMeta::unwritten(kind, id, range);
        let mut buf = AlignedBuf::with_capacity(PIECE + (PIECE >> 2));
        buf.extend_from_slice(&ends::header(&place.spool, &meta));
        let mut writer = Self {
            place: place.clone(),
            files: SmallVec::new(),
            paths: RunPaths::new(),
            meta,
            buf,
            written: 0,
            synced: 0,
            sections: Vec::new(),
            is_direct: false,
            finished: false,
        };
        for path in meta.paths(&place.dir) {
            let file = place.disk.open(&path, OpenMode::CreateNew)?;
            writer.files.push(file);
            writer.paths.push(path);
        }
        Ok(writer)
    }

    /// Writes around the page cache from now on: for what is old already and not likely to be read soon.
    pub(crate) const fn around_the_cache(mut self) -> Self {
        self.is_direct = true;
        self
    }

    /// The run's id.
    pub(crate) const fn id(&self) -> u64 {
        self.meta.id
    }

    /// Where the next octet goes.
    pub(crate) fn offset(&self) -> u64 {
        self.written + self.buf.len() as u64
    }

    /// Appends a frame and says where it begins.
    pub(crate) fn frame(&mut self, parts: &[&[u8]]) -> Result<u64> {
        let offset = self.offset();
        let header = frame::header(self.meta.id, offset, parts);
        self.buf.extend_from_slice(&header);
        for part in parts {
            self.buf.extend_from_slice(part);
        }
        self.spill(PIECE)?;
        Ok(offset)
    }

    /// Appends octets as they are.
    pub(crate) fn raw(&mut self, octets: &[u8]) -> Result<()> {
        self.buf.extend_from_slice(octets);
        self.spill(PIECE)
    }

    /// Appends a section: after all blocks, one for each tag.
    pub(crate) fn section(&mut self, tag: u32, payload: &[u8]) -> Result<()> {
        debug_assert!(self.sections.len() < SECTIONS_MAX);
        let offset = self.frame(&[payload])?;
        let len = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        self.sections.push(Section { tag, len, offset });
        Ok(())
    }

    /// Closes the run: footer, sync.  Its name is durable once its directory is synced.
    pub(crate) fn finish(mut self, rows: u64) -> Result<RunMeta> {
        self.meta.rows = rows;
        self.meta.len = self.offset() + FOOTER_OCTETS as u64;
        let footer = ends::footer(&self.meta, &self.sections);
        self.buf.extend_from_slice(&footer);
        self.spill(0)?;
        for file in &self.files {
            file.sync_all()?;
        }
        self.finished = true;
        Ok(self.meta)
    }

    /// Writes what is whole pages, when there is a piece of it, or (`keep` is 0) everything.
    fn spill(&mut self, keep: usize) -> Result<()> {
        if self.buf.len() <= keep {
            return Ok(());
        }
        let whole = match keep {
            0 if !self.is_direct => self.buf.len(),
            _ => self.buf.len() / DIRECT_ALIGN_BYTES * DIRECT_ALIGN_BYTES,
        };
        let (pages, rest) = self.buf.split_at(whole);
        for file in &self.files {
            if self.is_direct {
                file.write_direct_at(pages, self.written)?;
            } else {
                file.write_at(pages, self.written)?;
            }
        }
        self.written += whole as u64;
        let rest: SmallVec<[u8; DIRECT_ALIGN_BYTES]> = SmallVec::from_slice(rest);
        self.buf.clear();
        if keep == 0 {
            for file in &self.files {
                file.write_at(&rest, self.written)?;
            }
            self.written += rest.len() as u64;
        } else {
            self.buf.extend_from_slice(&rest);
        }
        if self.written - self.synced >= SYNC_EVERY {
            for file in &self.files {
                file.sync_data()?;
            }
            self.synced = self.written;
        }
        Ok(())
    }
}

impl Drop for RunWriter {
    fn drop(&mut self) {
        if !self.finished {
            // What cannot be removed now is an orphan and goes at the next start.
            for path in &self.paths {
                let _ = self.place.disk.remove(path);
            }
        }
    }
}
