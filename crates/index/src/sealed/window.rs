//! Reading a run from front to back in large pieces, for merging.
//!
//! Blocks are asked for in the order they were written; every piece of the file is read about once.

use std::sync::Arc;

use newsreel_host::File;

use super::frame::FRAME_HEADER;
use super::reader::{RunFile, Wait, check_frames};
use crate::cursor::Bad;
use crate::error::{Error, Result};

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
    /// Hands the `len` octets at `offset` of the run to `check`: those of the first file in which it finds them good.
    pub(crate) fn checked(
        &mut self,
        run: &RunFile,
        offset: u64,
        len: usize,
        mut check: impl FnMut(&[u8]) -> Result<(), (u64, Bad)>,
    ) -> Result<()> {
        if self
            .held(offset, len)
            .is_some_and(|held| check(held).is_ok())
        {
            return Ok(());
        }
        let rest = run.meta().len.saturating_sub(offset);
        let ahead = usize::try_from(rest).unwrap_or(usize::MAX).min(PIECE);
        let mut result = self.fill(run, offset, ahead.max(len), |piece| check(&piece[..len]));
        if ahead > len && result.as_ref().is_err_and(Error::is_damage) {
            // What cannot be read may lie behind them.
            result = self.fill(run, offset, len, check);
        }
        result
    }

    /// The octets at `offset`, if they are in memory.
    fn held(&self, offset: u64, len: usize) -> Option<&[u8]> {
        let from = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        self.bytes.get(from..from.checked_add(len)?)
    }

    fn fill(
        &mut self,
        run: &RunFile,
        offset: u64,
        len: usize,
        check: impl FnMut(&[u8]) -> Result<(), (u64, Bad)>,
    ) -> Result<()> {
        self.bytes.resize(len, 0);
        self.start = offset;
        self.read += len as u64;
        let result = run.checked(&mut self.bytes, offset, Wait::Yes, check);
        if result.is_err() {
            self.bytes.clear();
        }
        result
    }

    /// The payload, `len` octets long, of the frame at `offset`.
    pub(crate) fn frame(&mut self, run: &RunFile, offset: u64, len: usize) -> Result<&[u8]> {
        let id = run.meta().id;
        self.checked(run, offset, FRAME_HEADER + len, |octets| {
            check_frames(id, offset, &[len], octets)
        })?;
        let held = self.held(offset, FRAME_HEADER + len).unwrap_or_default();
        Ok(held.get(FRAME_HEADER..).unwrap_or_default())
    }
}

/// Reads a file whose end or shape is not trusted, piece by piece: what cannot be read is skipped by the caller.
pub(crate) fn read_piece(file: &Arc<dyn File>, offset: u64, len: usize) -> Option<Vec<u8>> {
    let mut piece = vec![0; len];
    file.read_exact_at(&mut piece, offset).ok()?;
    Some(piece)
}
