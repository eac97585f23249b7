//! Header and bitmap brought up to date, for tools and against logs that are too old.
//!
//! Written in the background, through an open file of its own (see [`Buffer`]), and only what is durable in the log:
//! the bitmap first, then the headers that say how far it is right.

use std::sync::Arc;

use super::buffer::Buffer;
use super::format::Hints;
use crate::error::Result;
use crate::method::CheckpointWrite;

/// What a checkpoint writes about one buffer.
#[derive(Debug)]
pub(super) struct BufferCheckpoint {
    pub(super) buffer: Arc<Buffer>,
    /// Where it stood when the checkpoint was begun.
    pub(super) hints: Hints,
}

impl CheckpointWrite for BufferCheckpoint {
    fn write(&mut self) -> Result<()> {
        let change = self.buffer.starts.lock().take_until(self.hints.end);
        self.hints.bitmap_end = change.end;
        let written = change
            .write(self.buffer.side(), &self.buffer.geometry)
            .and_then(|()| self.buffer.write_both_headers(self.hints));
        if written.is_err() {
            self.buffer.starts.lock().give_back(change);
        }
        Ok(written?)
    }
}
