//! Finding the files of a catalogue that nothing is left of: those in front of the first card that was not overwritten; and giving
//! back the room between cards that stay.
//!
//! First it makes durable what was removed. For the rest it only reads, on the thread of checkpoints, and stops at the first file in which a card may be alive: so it reads what was withdrawn
//! since it looked last, and little more.  A file of which nothing can be read, or which is not there, may have had cards whose files are
//! all there: it stays.  That they go is said in the log first, as of segments that are dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use newsreel_wire::Position;

use super::folder::Folder;
use super::hollows::Hollows;
use super::removal::{Removed, settle_beside};
use crate::error::Result;
use crate::method::CheckpointWrite;
use crate::records::buffer::Buffer;
use crate::records::hollow;

/// A look at the front of a catalogue.
#[derive(Debug)]
pub(super) struct Reclaim {
    pub(super) cards: Arc<Buffer>,
    /// In the files of cycles below this there is no card.
    pub(super) empty_below: Arc<AtomicU32>,
    pub(super) hollows: Arc<Hollows>,
    pub(super) folder: Arc<Folder>,
    pub(super) removed: Arc<Removed>,
}

impl CheckpointWrite for Reclaim {
    fn write(&mut self) -> Result<()> {
        settle_beside((&self.cards, &self.folder, &self.hollows), &self.removed)?;
        // What is placed and not yet written lies in this cycle or behind it.
        let written = Position(self.cards.written.load(Ordering::Acquire)).cycle();
        let mut cycle = self.cards.floor().cycle().max(1);
        while cycle < written && hollow::is_empty(&self.cards, cycle)? {
            cycle += 1;
        }
        self.empty_below.fetch_max(cycle, Ordering::Relaxed);
        self.hollows.look(&self.cards);
        Ok(())
    }
}
