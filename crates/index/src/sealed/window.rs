//! Reading a run from front to back in large pieces, for merging.
//!
//! Blocks are asked for in the order they were written; every piece of the file is read about once.

use std::sync::Arc;

use newsreel_host::File;

use super::frame::{self, FRAME_HEADER};
use super::reader::{RunFile, Wait};
use crate::error::Result;

/// Read at once.
const PIECE: usize = 256 << 10;

/// A piece of a run in memory.
#[derive(Debug, Default)]
pub(crate) struct Window {
    bytes: Vec<u8>,
    start: u64,
    /// Octets read from the file, over the window's life.
    pub(crate) read: u64,
}

impl Window {
    /// `len` octets at `offset` of the run, as they are.
    pub(crate) fn octets(&mut self, run: &RunFile, offset: u64, len: usize) -> Result<&[u8]> {
        let held = self.start..self.start + self.bytes.len() as u64;
        if !(held.contains(&offset) && offset + len as u64 <= held.end) {
            let rest = run.meta().len.saturating_sub(offset);
            let want = usize::try_from(rest)
                .unwrap_or(usize::MAX)
                .min(len.max(PIECE));
            self.bytes.clear();
            self.bytes.resize(want.max(len), 0);
            self.start = offset;
            let done = run.octets(&mut self.bytes, offset, Wait::Yes);
            if done.is_err() {
                self.bytes.clear();
            }
            done?;
            self.read += self.bytes.len() as u64;
        }
        let from = (offset - self.start) as usize;
        Ok(&self.bytes[from..from + len])
    }

    /// The payload, `len` octets long, of the frame at `offset`.
    pub(crate) fn frame(&mut self, run: &RunFile, offset: u64, len: usize) -> Result<&[u8]> {
        let id = run.meta().id;
        let bytes = self.octets(run, offset, FRAME_HEADER + len)?;
        frame::payload(id, offset, bytes).map_err(|why| run.damage(offset, why))
    }
}

/// Reads a file whose end or shape is not trusted, piece by piece: what cannot be read is skipped by the caller.
pub(crate) fn read_piece(file: &Arc<dyn File>, offset: u64, len: usize) -> Option<Vec<u8>> {
    let mut piece = vec![0; len];
    file.read_exact_at(&mut piece, offset).ok()?;
    Some(piece)
}
