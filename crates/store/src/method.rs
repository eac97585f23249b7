//! What a storage method must do, seen from the sequencer, the commit thread and readers.
//!
//! The sequencer places articles into memory, batch by batch; the commit thread writes and syncs
//! batches; readers ask by token, at any time, on any thread.  Three traits, one for each.

use std::fmt::Debug;
use std::ops::Range;

use newsreel_wire::{BufferId, IdHash, Position, Sequence, SetId, Token, UnixTime};

use crate::error::{PlaceError, ReadError, Result};

/// An article that needs a place.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// Its place in the log.
    pub sequence: Sequence,
    /// When it arrived.
    pub arrival: UnixTime,
    /// The hash of its message-id.
    pub id_hash: IdHash,
    /// The set the rules chose.
    pub set: SetId,
    /// Its final text in wire form, terminator included, in pieces.
    pub article: &'a [&'a [u8]],
    /// Octets of the header block, empty line not included.
    pub head_len: u32,
}

/// A region of a buffer that may be overwritten once the log says so durably.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reservation {
    /// The buffer.
    pub buffer: BufferId,
    /// Up to here it may be written.
    pub up_to: Position,
}

/// Where a buffer stands: what the log must keep to go on after a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marks {
    /// The buffer.
    pub buffer: BufferId,
    /// End of the last placed article.
    pub end: Position,
    /// Up to here it may be written.
    pub reserved: Position,
}

/// The sequencer's half of one buffer set.
pub trait StorageMethod: Send + Debug {
    /// Gives the article a place and copies it into the open batch.
    fn place(&mut self, place: &Place<'_>) -> std::result::Result<Token, PlaceError>;

    /// Appends what must be reserved so that coming batches have room; asked once a batch.
    fn reservations(&mut self, out: &mut Vec<Reservation>);

    /// Reservations asked for since the last durable one are lost: they are asked for again.
    fn reservations_lost(&mut self);

    /// A reservation is durable: publishes the new floor first, then allows the region to be
    /// written.
    fn reserved(&mut self, reservation: Reservation);

    /// Appends the collected batches, at most one a buffer.
    fn seal(&mut self, out: &mut Vec<Box<dyn BatchWrite>>);

    /// Takes the memory of a written batch back.
    fn recycle(&mut self, buffer: BufferId, memory: Vec<Vec<u8>>);

    /// Takes a buffer out of use after it failed; what is in it can still be read.
    fn suspend(&mut self, buffer: BufferId);

    /// Appends where each buffer stands.
    fn marks(&self, out: &mut Vec<Marks>);

    /// After recovery: goes on behind the last committed article.
    fn resume(&mut self, marks: Marks, log_end: Sequence) -> Result<()>;

    /// What must be written for tools (headers, bitmaps) about everything placed so far; the
    /// writing happens on another thread.
    fn checkpoint(&mut self, out: &mut Vec<Box<dyn CheckpointWrite>>);
}

/// A batch on its way to one buffer.
pub trait BatchWrite: Send + Debug {
    /// The buffer.
    fn buffer(&self) -> BufferId;

    /// Writes it.
    fn write(&mut self) -> newsreel_host::Result<()>;

    /// Makes it durable.
    fn sync(&mut self) -> newsreel_host::Result<()>;

    /// An article of this batch, to be placed elsewhere after a failure, and the length of its
    /// header block.
    fn article(&self, token: &Token) -> Option<(&[u8], u32)>;

    /// Gives its memory back, to be used again.
    fn into_memory(self: Box<Self>) -> Vec<Vec<u8>>;
}

/// Hints about a buffer on their way to it.
pub trait CheckpointWrite: Send + Debug {
    /// Writes and syncs them.
    fn write(&mut self) -> Result<()>;
}

/// How much of an article a reader wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Want {
    /// The header block.
    Head,
    /// Everything.
    Whole,
}

/// Whether a reader waits for the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blocking {
    /// Only what is in memory.
    No,
    /// Waits.
    Yes,
}

/// Where an article lies in the caller's memory after a read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The octets read: the whole article in wire form, or its header block.
    pub octets: Range<usize>,
    /// Length of the header block, empty line not included.
    pub head_len: usize,
    /// Its place in the log.
    pub sequence: Sequence,
    /// When it arrived.
    pub arrival: UnixTime,
    /// The hash of its message-id.
    pub id_hash: IdHash,
}

/// The readers' half of one buffer.
pub trait ArticleReader: Send + Sync + Debug {
    /// Positions below this are gone.
    fn floor(&self) -> Position;

    /// Reads an article into `memory`, which may be longer than needed and is used again.  What it
    /// returns was alive before and after the copy and passed its checksums.
    fn read(
        &self,
        token: &Token,
        want: Want,
        blocking: Blocking,
        memory: &mut Vec<u8>,
    ) -> std::result::Result<Stored, ReadError>;
}
