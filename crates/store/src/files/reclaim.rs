//! Finding the files of a catalogue that nothing is left of: those in front of the first card that was not overwritten; and giving
//! back the room between cards that stay.
//!
//! It reads only, on the thread of checkpoints, and stops at the first card that may be alive: so it reads what was withdrawn since it
//! looked last, and little more.  That they go is said in the log first, as of segments that are dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use newsreel_wire::Position;

use super::hollows::Hollows;
use crate::error::Result;
use crate::method::{BufferReader as _, CheckpointWrite, ScanRange, Scanned};
use crate::records::buffer::Buffer;

/// A look at the front of a catalogue.
#[derive(Debug)]
pub(super) struct Reclaim {
    pub(super) cards: Arc<Buffer>,
    /// In the files of cycles below this there is no card.
    pub(super) empty_below: Arc<AtomicU32>,
    pub(super) hollows: Arc<Hollows>,
}

impl CheckpointWrite for Reclaim {
    fn write(&mut self) -> Result<()> {
        // What is placed and not yet written lies in this cycle or behind it.
        let written = Position(self.cards.written.load(Ordering::Acquire)).cycle();
        let mut scan = Arc::clone(&self.cards).scan(ScanRange::Live);
        let first = loop {
            match scan.step()? {
                Some(Scanned::Passed) => {}
                Some(Scanned::Record { token, .. }) => break token.position().cycle(),
                // What is damaged may have been a card.
                Some(Scanned::Damaged { cycle, .. }) => break cycle.unwrap_or_default(),
                None => break written,
            }
        };
        self.empty_below
            .fetch_max(first.min(written), Ordering::Relaxed);
        self.hollows.look(&self.cards);
        Ok(())
    }
}
