//! The sequencer's half of one buffer: where the next article goes, and what may be overwritten.
//!
//! Kept at any moment: `end <= reserved <= requested`; only what lies below `reserved` is put into
//! a batch.  A batch begins on a page and ends on a page; articles lie on blocks inside it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use newsreel_wire::{Position, Sequence, Token, TokenParts};

use super::METHOD;
use super::batch::{Batch, Stretch};
use super::file::Buffer;
use super::format::{BLOCK, PAGE, RECORD_HEADER, RecordHeader, record_len};
use crate::error::PlaceError;
use crate::method::{Marks, Place, Reservation};

/// Regions are reserved in steps of at most this.
const REGION_MAX: u64 = 16 << 20;
/// Stretches of memory kept for the next batches.
const SPARE_MAX: usize = 4;
/// Memory of a kept stretch; what a huge batch needed is given back.
const SPARE_OCTETS_MAX: usize = 16 << 20;

/// One buffer being filled.
#[derive(Debug)]
pub(super) struct Filling {
    pub(super) buffer: Arc<Buffer>,
    /// Where the next record goes.
    next: Position,
    /// Up to here may be written: the log says so durably.
    reserved: Position,
    /// Up to here was asked for.
    requested: Position,
    /// The open batch.
    stretches: Vec<Stretch>,
    spare: Vec<Vec<u8>>,
    /// Octets a record needed that found no reserved room.
    needed: u64,
    /// Octets placed since the set last changed buffers.
    pub(super) run_octets: u64,
    /// Record starts since the last checkpoint, and where it stood then.
    pub(super) starts: Vec<Position>,
    pub(super) checkpointed: Position,
    last_sequence: Sequence,
}

impl Filling {
    pub(super) fn new(buffer: Arc<Buffer>) -> Self {
        let (end, reserved) = (buffer.header.end, buffer.header.reserved);
        Self {
            buffer,
            next: end,
            reserved,
            requested: reserved,
            stretches: Vec::new(),
            spare: Vec::new(),
            needed: 0,
            run_octets: 0,
            starts: Vec::new(),
            checkpointed: end,
            last_sequence: Sequence(0),
        }
    }

    /// Octets of one reservation.
    fn region(&self) -> u64 {
        (self.buffer.capacity() / 64)
            .clamp(PAGE, REGION_MAX)
            .next_multiple_of(PAGE)
    }

    /// The largest article taken: a quarter of the buffer, so that a reservation for it leaves
    /// most of the buffer alive.
    pub(super) fn article_octets_max(&self) -> u64 {
        self.buffer.capacity() / 4
    }

    /// Octets from one position to a later one, at most one wrap between them.
    fn distance(&self, from: Position, to: Position) -> u64 {
        if from.cycle() == to.cycle() {
            to.offset().saturating_sub(from.offset())
        } else if to > from {
            (self.buffer.data_end - from.offset()) + (to.offset() - self.buffer.data_start)
        } else {
            0
        }
    }

    /// The position `octets` further on; the end of the buffer leads to the next cycle's start.
    fn advance(&self, from: Position, octets: u64) -> Position {
        let to = from.offset() + octets;
        if to < self.buffer.data_end {
            return Position::new(from.cycle(), to);
        }
        let over = to - self.buffer.data_end;
        let cycle = from.cycle() + 1;
        Position::new(cycle, self.buffer.data_start + over)
    }

    /// Gives an article a place and copies it in.
    pub(super) fn place(&mut self, place: &Place<'_>) -> Result<Token, PlaceError> {
        let article_len: usize = place.article.iter().map(|part| part.len()).sum();
        let octets = record_len(article_len as u64);
        let limit = self.article_octets_max();
        let (true, Ok(article_len)) = (octets <= limit, u32::try_from(article_len)) else {
            return Err(PlaceError::TooLarge { limit });
        };
        let mut at = self.next;
        // As in the paper: what does not fit before the end goes to the start.
        if at.offset() + octets > self.buffer.data_end {
            at = Position::new(at.cycle() + 1, self.buffer.data_start);
        }
        let end = at.offset() + octets;
        let page_end = Position::new(at.cycle(), end.next_multiple_of(PAGE));
        if page_end > self.reserved {
            // Also what the wrap skips must be reserved.
            self.needed = self.distance(self.next, at) + octets.next_multiple_of(PAGE) + PAGE;
            return Err(PlaceError::NeedsReservation);
        }
        self.needed = 0;
        let header = RecordHeader {
            head_len: place.head_len,
            article_len,
            crc_head: 0,
            crc_body: 0,
            position: at,
            sequence: place.sequence,
            arrival: place.arrival,
            id_hash: place.id_hash,
        };
        self.copy_in(at, header, place.article);
        self.next = Position::new(at.cycle(), end);
        self.run_octets += octets;
        self.last_sequence = place.sequence;
        self.starts.push(at);
        self.buffer.end.store(self.next.0, Ordering::Relaxed);
        Ok(Token::new(TokenParts {
            method: METHOD,
            set: self.buffer.set,
            buffer: self.buffer.id,
            len: article_len,
            position: at,
            tail: [0; 8],
        }))
    }

    /// Appends the record to the open batch; the checksums are made from the copy, which is in the
    /// processor's cache then.
    fn copy_in(&mut self, at: Position, mut header: RecordHeader, article: &[&[u8]]) {
        let follows = self
            .stretches
            .last()
            .is_some_and(|last| last.offset + last.octets.len() as u64 == at.offset());
        if !follows {
            debug_assert!(at.offset().is_multiple_of(PAGE));
            let octets = self.spare.pop().unwrap_or_default();
            self.stretches.push(Stretch {
                offset: at.offset(),
                octets,
            });
        }
        let Some(stretch) = self.stretches.last_mut() else {
            return;
        };
        let out = &mut stretch.octets;
        let start = out.len();
        out.extend_from_slice(&[0; RECORD_HEADER]);
        for part in article {
            out.extend_from_slice(part);
        }
        let body = start + RECORD_HEADER;
        let split = body + (header.head_len as usize).min(header.article_len as usize);
        header.crc_head = crc32c::crc32c(&out[body..split]);
        header.crc_body = crc32c::crc32c(&out[split..]);
        out[start..body].copy_from_slice(&header.encode());
        let padded = out.len().next_multiple_of(BLOCK as usize);
        out.resize(padded, 0);
    }

    /// Closes the open batch; the next one begins on a page.
    pub(super) fn seal(&mut self) -> Option<Batch> {
        if self.stretches.is_empty() {
            return None;
        }
        let mut stretches = std::mem::take(&mut self.stretches);
        for stretch in &mut stretches {
            stretch.pad();
        }
        self.next = Position::new(self.next.cycle(), self.next.offset().next_multiple_of(PAGE));
        Some(Batch {
            buffer: self.buffer.id,
            file: Arc::clone(&self.buffer.file),
            stretches,
        })
    }

    /// Takes the memory of a written batch back.
    pub(super) fn recycle(&mut self, stretches: Vec<Vec<u8>>) {
        for mut octets in stretches {
            if self.spare.len() < SPARE_MAX && octets.capacity() <= SPARE_OCTETS_MAX {
                octets.clear();
                self.spare.push(octets);
            }
        }
    }

    /// What must be reserved so that a region's worth of room lies ahead.
    pub(super) fn reservation(&mut self) -> Option<Reservation> {
        let wanted = self.region().max(self.needed);
        if self.distance(self.next, self.requested) >= wanted {
            return None;
        }
        let mut up_to = self.requested.max(self.next);
        while self.distance(self.next, up_to) < wanted + self.region() {
            up_to = self.advance(up_to, self.region());
        }
        self.requested = up_to;
        Some(Reservation {
            buffer: self.buffer.id,
            up_to,
        })
    }

    /// What was asked for did not become durable.
    pub(super) const fn reservation_lost(&mut self) {
        self.requested = self.reserved;
    }

    /// A reservation is durable.
    pub(super) fn reserved(&mut self, up_to: Position) {
        // Readers must see the floor before the first octet of the region is touched.
        self.buffer
            .floor
            .fetch_max(up_to.one_cycle_before().0, Ordering::SeqCst);
        self.reserved = self.reserved.max(up_to);
        self.buffer
            .reserved
            .store(self.reserved.0, Ordering::Relaxed);
    }

    pub(super) fn marks(&self) -> Marks {
        Marks {
            buffer: self.buffer.id,
            end: self.next,
            reserved: self.reserved,
        }
    }

    /// After recovery: goes on behind the last committed article.  A buffer whose header knows
    /// later sequences than the log begins a new cycle, so that nothing of it is overwritten that
    /// the log does not know; the complaint says so.
    pub(super) fn resume(&mut self, marks: Marks, log_end: Sequence) -> Option<String> {
        let header = &self.buffer.header;
        let ahead = header.sequence > log_end;
        let (end, reserved) = if ahead {
            let last = header.end.max(header.reserved).max(marks.reserved);
            let start = Position::new(last.cycle() + 1, self.buffer.data_start);
            (start, start)
        } else {
            (marks.end, marks.reserved.max(marks.end))
        };
        let offset = end.offset().next_multiple_of(PAGE);
        self.next = if offset >= self.buffer.data_end {
            Position::new(end.cycle() + 1, self.buffer.data_start)
        } else {
            Position::new(end.cycle(), offset)
        };
        self.reserved = reserved;
        self.requested = reserved;
        self.checkpointed = self.next;
        self.starts.clear();
        self.buffer
            .floor
            .store(reserved.one_cycle_before().0, Ordering::SeqCst);
        self.buffer.end.store(self.next.0, Ordering::Relaxed);
        self.buffer.reserved.store(reserved.0, Ordering::Relaxed);
        ahead.then(|| {
            format!(
                "it holds articles up to sequence {}, the log ends at {}: an old log was put back, \
                 or the file comes from elsewhere; it goes on in a new cycle",
                header.sequence.0, log_end.0
            )
        })
    }

    /// The last sequence placed.
    pub(super) const fn last_sequence(&self) -> Sequence {
        self.last_sequence
    }
}
