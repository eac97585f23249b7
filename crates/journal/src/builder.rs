//! Collects the records of one frame, on the hot path: a copy of the octets and nothing else.
//!
//! Bodies lie one behind the other, the table says where each begins; both keep their memory when the builder is
//! cleared.  The frame's crc is computed once, when it is written.

use newsreel_wire::Sequence;

use crate::format::Records;

/// A frame being filled; reused for frame after frame.
#[derive(Debug, Clone, Default)]
pub struct FrameBuilder {
    first: Sequence,
    epoch: u64,
    vouched_before: Sequence,
    bodies: Vec<u8>,
    table: Vec<u8>,
}

impl FrameBuilder {
    /// An empty builder.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins a frame: its first record will be `first`, written in `epoch` (see `Recovered::epoch`).
    pub fn start(&mut self, first: Sequence, epoch: u64) {
        self.clear();
        (self.first, self.epoch) = (first, epoch);
    }

    /// Says that everything before `before` is durable, in the log and in the buffers.
    pub const fn vouch(&mut self, before: Sequence) {
        self.vouched_before = before;
    }

    /// Forgets the records; the memory stays.
    pub fn clear(&mut self) {
        self.bodies.clear();
        self.table.clear();
        self.vouched_before = Sequence::ZERO;
    }

    /// Begins a record of this kind; what is appended to the octets returned is its payload.  Only append.
    pub fn record(&mut self, kind: u8) -> &mut Vec<u8> {
        // A frame that outgrows 32 bits is refused when it is written.
        let start = u32::try_from(self.bodies.len()).unwrap_or(u32::MAX);
        self.table.extend_from_slice(&start.to_le_bytes());
        self.bodies.push(kind);
        &mut self.bodies
    }

    /// Adds a record whose payload is given in parts and returns its sequence.
    pub fn push(&mut self, kind: u8, parts: &[&[u8]]) -> Sequence {
        let sequence = self.end();
        let bodies = self.record(kind);
        bodies.reserve(parts.iter().map(|part| part.len()).sum());
        for part in parts {
            bodies.extend_from_slice(part);
        }
        sequence
    }

    /// Whether there is no record.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// How many records there are.
    #[must_use]
    pub const fn record_count(&self) -> usize {
        self.table.len() / 4
    }

    /// The first record's sequence.
    #[must_use]
    pub const fn first(&self) -> Sequence {
        self.first
    }

    /// The last record's sequence; when there is no record, the one before the first.
    #[must_use]
    pub const fn last(&self) -> Sequence {
        Sequence(self.end().0.saturating_sub(1))
    }

    /// The sequence the next record will have.
    #[must_use]
    pub const fn end(&self) -> Sequence {
        Sequence(self.first.0.saturating_add(self.record_count() as u64))
    }

    /// The epoch given at the start.
    #[must_use]
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// What the frame vouches for.
    #[must_use]
    pub const fn vouched_before(&self) -> Sequence {
        self.vouched_before
    }

    /// The records' octets so far, kinds included.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bodies
    }

    /// The records, as a reader will see them.
    #[must_use]
    pub fn records(&self) -> Records<'_> {
        Records::new(self.first, &self.bodies, &self.table)
    }

    pub(crate) fn table(&self) -> &[u8] {
        &self.table
    }
}
