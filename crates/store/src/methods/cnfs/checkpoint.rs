//! Header and bitmap brought up to date, for tools and against logs that are too old.
//!
//! Written in the background, through an open file of its own (see [`CyclicFile`](super::file::CyclicFile)), and only what is durable in the log:
//! the bitmap first, then the headers that say how far it is right.

use super::file::Cyclic;
use super::narrow;
use crate::error::Result;
use crate::method::CheckpointWrite;
use crate::records::format::Hints;

/// What a checkpoint writes about one buffer.
#[derive(Debug)]
pub(super) struct BufferCheckpoint {
    pub(super) cyclic: Cyclic,
    /// Where it stood when the checkpoint was begun.
    pub(super) hints: Hints,
    /// It has become smaller: its file is cut.
    pub(super) is_cut: bool,
}

impl CheckpointWrite for BufferCheckpoint {
    fn write(&mut self) -> Result<()> {
        let Cyclic { buffer, file } = &self.cyclic;
        // What is taken out is in the bitmap before anybody compares that with the articles.
        let _one = file.bits.lock();
        let change = file.starts.lock().take_until(self.hints.end);
        self.hints.bitmap_end = change.end;
        let written = change
            .write(file.side(), &buffer.geometry())
            .and_then(|()| file.write_both_headers(self.hints));
        if written.is_err() {
            file.starts.lock().give_back(change);
        }
        written?;
        if self.is_cut
            && let Err(error) = narrow::cut(file)
        {
            // It is tried again with the next one, which is not to wait for that.
            tracing::error!(%error, buffer = buffer.name, "the file of a buffer that has become smaller cannot be cut");
        }
        Ok(())
    }
}
