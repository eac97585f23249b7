//! The sequencer's half of one buffer: where the next article goes, and what may be overwritten.
//!
//! Kept at any moment: `next <= reserved`, less than one round apart; only what lies below `reserved` is put into a
//! batch.  A batch begins and ends on a page; articles lie on blocks inside it.  Placing
//! copies the article once and makes its checksums from the copy; it allocates nothing once batches have grown.

mod packed;
mod resuming;

pub(crate) use resuming::true_end;

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use newsreel_wire::{IdHash, Position, Sequence, Token, TokenParts, UnixTime};
use smallvec::SmallVec;

use super::batch::Batch;
use super::buffer::Buffer;
use super::due::Due;
use super::format::{Hints, Mark, RECORD_HEADER, RecordHeader};
use super::geometry::{Geometry, PAGE, Slot, in_memory};
use super::memory::{BatchMemory, Stretch};
use super::packing::Packer;
use super::true_end::TrueEnd;
use crate::error::PlaceError;
use crate::method::{Marks, Place, Reservation};

/// Regions are reserved in steps of at most this.
const REGION_MAX: u64 = 16 << 20;
/// ... and of at least this, where the buffer is large enough: a batch should fit.
const REGION_USUAL_MIN: u64 = 2 << 20;
/// What is owed is counted in parts of an octet: buffers of a set may differ much in size.
const OWED_SHIFT: u32 = 32;
/// Replayed articles noted at once.
const REPLAYED_AT_ONCE: usize = 4096;
/// No article is larger, whatever the buffer's size: what a damaged index asks for must fit into memory.
pub const ARTICLE_OCTETS_MAX: u64 = 256 << 20;

/// The batch being collected.
#[derive(Debug)]
struct Open {
    memory: BatchMemory,
    stretches: SmallVec<[Stretch; 2]>,
    from: Position,
}

/// Whose turn it is in a set: nothing goes of a buffer before the set comes to it again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// This buffer's, whatever cycle it comes to.
    Always,
    /// This buffer's, up to the end of the cycle that it fills.
    ThisCycle,
    /// Another's.
    Elsewhere,
}

/// One buffer being filled.
#[derive(Debug)]
pub(crate) struct Filling {
    pub(crate) buffer: Arc<Buffer>,
    /// Where the next record goes.
    next: Position,
    /// Up to here may be written: the log says so durably.
    reserved: Position,
    /// Up to here an article needs that found no reserved room.
    needed: Position,
    open: Option<Open>,
    /// Octets of the last batches, the longer ones: the next will be about so long.
    usual_len: usize,
    /// Records of the open batch.
    starts: Vec<Position>,
    /// Packs articles, where they are to be.
    packer: Option<Box<Packer>>,
    /// Octets used since the set turned to this buffer.
    pub(crate) run_octets: u64,
    /// What is left of this cycle stays empty: the next record begins another.
    close_cycle: bool,
    /// Room that others of its set have overwritten while it drains, in its own size: octets times 2^32.  Nobody knows it behind a
    /// start: then it is no bound.
    owed: u128,
    /// How much of it goes by age, while it is retired.
    pub(crate) due: Due,
    /// The cycle that this buffer's turn fills, in a set that is filled in sequence.
    turn_cycle: u32,
    placed: Hints,
    /// What the last batch held when it was sealed.
    sealed: Hints,
    /// What of that is durable in the log.
    durable: Hints,
    /// The header is out of date by a reservation.
    header_due: bool,
    /// The log is known to be older than what lies here.
    pub(crate) is_distrusted: bool,
    /// What was found of the end of all that was written, from where on.
    found: OnceLock<(Position, TrueEnd)>,
    /// Behind this nothing comes for so many octets: that was looked at.
    passed: OnceLock<(Position, u64)>,
}

/// The largest article of a buffer with so much room: a quarter, so that making room for it leaves most alive.
pub(crate) fn article_octets_max(capacity: u64) -> u64 {
    (capacity / 4)
        .saturating_sub(RECORD_HEADER as u64)
        .min(ARTICLE_OCTETS_MAX)
}

/// Octets that are reserved at once.
fn region(buffer: &Buffer) -> u64 {
    let capacity = buffer.room();
    let usual_min = REGION_USUAL_MIN.min(capacity / 16);
    let region = (capacity / 64).max(usual_min).min(REGION_MAX);
    region.max(PAGE).next_multiple_of(PAGE)
}

/// What comes into a buffer one behind the other before the first of it is overwritten, octets: up to two regions are reserved
/// in front of it.
pub(crate) fn round_octets(buffer: &Buffer) -> u64 {
    let ahead = 2 * region(buffer) + 2 * PAGE;
    buffer.room().saturating_sub(ahead)
}

/// A header with the checksums of its article.
fn signed(header: RecordHeader, article: &[u8]) -> RecordHeader {
    let (head, body) = article.split_at(header.head_len as usize);
    RecordHeader {
        crc_head: crc32c::crc32c(head),
        crc_body: crc32c::crc32c(body),
        ..header
    }
}

/// The token of a record.
pub(crate) fn token_of(buffer: &Buffer, header: &RecordHeader) -> Token {
    let [h0, h1, h2, h3] = header.head_len.to_le_bytes();
    let [i0, i1, i2, i3, ..] = header.id_hash.0;
    Token::new(TokenParts {
        method: buffer.home.kind().number,
        set: buffer.set,
        buffer: buffer.id,
        len: header.article_len,
        position: header.position,
        tail: [h0, h1, h2, h3, i0, i1, i2, i3],
    })
}

impl Filling {
    pub(crate) fn new(buffer: Arc<Buffer>) -> Self {
        let hints = buffer.home.opened();
        Self {
            buffer,
            next: hints.end,
            reserved: hints.reserved,
            needed: Position::ZERO,
            open: None,
            usual_len: 0,
            starts: Vec::new(),
            packer: None,
            run_octets: 0,
            close_cycle: false,
            owed: u128::MAX,
            due: Due::default(),
            turn_cycle: hints.end.cycle(),
            placed: hints,
            sealed: hints,
            durable: hints,
            header_due: false,
            is_distrusted: false,
            found: OnceLock::new(),
            passed: OnceLock::new(),
        }
    }

    /// What lies there arrived by then.  What a header says of that is as of its last checkpoint, or of another file where its own is lost.
    pub(crate) fn arrived_by(&mut self, now: UnixTime) {
        self.placed.arrival = self.placed.arrival.max(now);
    }

    /// Where it stands.
    pub(crate) const fn cycle(&self) -> u32 {
        self.next.cycle()
    }

    /// Where the next record goes.
    pub(crate) const fn next(&self) -> Position {
        self.next
    }

    /// Where the cycle of a position ends: earlier where it is to become smaller, and it has not come further.
    fn closes_at(&self, next: Position) -> u64 {
        let end = self.buffer.closes_at();
        if next.offset() <= end {
            end
        } else {
            self.buffer.geometry().data_end
        }
    }

    /// Whether this record begins another cycle, though the data area may have room for it.
    fn closes(&self, next: Position, octets: u64) -> bool {
        self.close_cycle || octets > self.closes_at(next) - next.offset()
    }

    /// Nothing is alive behind a smaller end, or will be: it stands before it and may be written only before it, and what lay there up to the
    /// end of this cycle is gone.
    pub(crate) fn is_clear_behind(&self, data_end: u64, last_cycle: u32) -> bool {
        let is_gone = last_cycle == 0 || self.buffer.floor().cycle() > last_cycle;
        is_gone && self.next.offset() < data_end && self.reserved.offset() < data_end
    }

    /// Octets of one reservation.
    fn region(&self) -> u64 {
        region(&self.buffer)
    }

    /// The largest article taken.
    pub(crate) fn article_octets_max(&self) -> u64 {
        self.buffer.article_octets_max()
    }

    /// Whether this article would begin a cycle beyond the one this turn fills, now or when room was reserved for it.
    pub(crate) fn leaves_turn(&self, article_len: u64) -> bool {
        let octets = self.buffer.geometry().record_octets(article_len);
        let leaves = |slot: Option<Slot>| slot.is_none_or(|it| it.at.cycle() > self.turn_cycle);
        let slot = self.slot_at(self.next, octets);
        leaves(slot)
            || slot.is_some_and(|slot| slot.page_end > self.reserved)
                && leaves(self.slot_when_sealed(octets))
    }

    /// Where the cycle ends that this turn fills.
    fn turn_end(&self) -> Option<Position> {
        let next = self.turn_cycle.checked_add(1)?;
        self.buffer.geometry().start_of(next)
    }

    /// The next record begins another file, or does not have to.
    pub(crate) const fn close_file(&mut self, closes: bool) {
        self.close_cycle = closes;
    }

    /// The set goes on with another buffer; when it comes back this one fills the next cycle from its start.  What is left of this cycle is
    /// reserved, so that a start knows.
    pub(crate) fn end_turn(&mut self) {
        self.close_cycle = true;
        self.needed = self.needed.max(self.turn_end().unwrap_or_default());
        self.extend_turn();
    }

    /// The set comes to this buffer.
    pub(crate) fn begin_turn(&mut self) {
        self.run_octets = 0;
        // What is too large for others is placed here out of turn.
        self.turn_cycle = self.turn_cycle.max(self.next.cycle());
    }

    /// Behind a start: whether its turn was over before that.
    pub(crate) fn resume_turn(&mut self, has_turn: bool) {
        match (has_turn, self.begins_cycle() && self.has_begun()) {
            // It had come to the very end of its cycle.
            (true, true) => self.turn_cycle = self.turn_cycle.saturating_sub(1),
            (false, false) if self.reserved.cycle() > self.next.cycle() => self.end_turn(),
            _ => {}
        }
    }

    /// There is no other buffer: this one goes on with its next cycle.
    pub(crate) const fn extend_turn(&mut self) {
        self.turn_cycle = self.turn_cycle.saturating_add(1);
    }

    /// The last sequence placed here.
    pub(crate) const fn last_sequence(&self) -> Sequence {
        self.placed.sequence
    }

    /// Gives an article a place and copies it in.
    pub(crate) fn place(&mut self, place: &Place<'_>) -> Result<Token, PlaceError> {
        let article_len: usize = place.article.iter().map(|part| part.len()).sum();
        let limit = self.article_octets_max();
        let Some(len) = u32::try_from(article_len)
            .ok()
            .filter(|len| u64::from(*len) <= limit)
        else {
            return Err(PlaceError::TooLarge { limit });
        };
        let mut packer = self.packer.take();
        let placed = self.place_one(place, len, packer.as_deref_mut());
        self.packer = packer;
        placed
    }

    /// Gives an article of so many octets a place, packed if it is to be.
    fn place_one(
        &mut self,
        place: &Place<'_>,
        len: u32,
        mut packer: Option<&mut Packer>,
    ) -> Result<Token, PlaceError> {
        let (slot, packed_len) = match packer.as_deref_mut() {
            Some(packer) => self.pack(place, len, packer)?,
            None => (self.find_slot(u64::from(len))?, None),
        };
        if slot.wraps {
            self.end_cycle(place);
        }
        let header = RecordHeader {
            mark: Mark::Article,
            is_packed: packed_len.is_some(),
            article_len: packed_len.unwrap_or(len),
            head_len: place.head_len.min(len),
            crc_head: 0,
            crc_body: 0,
            position: slot.at,
            sequence: place.sequence,
            arrival: place.arrival,
            id_hash: place.id_hash,
        };
        let token = token_of(&self.buffer, &header);
        match &packer {
            Some(packer) if header.is_packed => {
                let (plain, packed) = packer.last();
                self.copy_in(signed(header, plain), &[packed]);
            }
            _ => self.copy_in(header, place.article),
        }
        if let Some(packer) = packer {
            packer.was_placed();
        }
        self.starts.push(slot.at);
        self.close_cycle = false;
        self.next = slot.end;
        self.placed.end = slot.end;
        self.placed.sequence = place.sequence;
        // What is moved or attached came long before what lies in front of it.
        let is_first = self.buffer.geometry().start_of(slot.at.cycle()) == Some(slot.at);
        let before = self.placed.arrival;
        self.placed.arrival = place
            .arrival
            .max(if is_first { UnixTime(0) } else { before });
        self.run_octets += self.buffer.geometry().distance(slot.at, slot.end);
        self.buffer.end.store(slot.end.0, Ordering::Relaxed);
        self.buffer
            .arrival
            .store(place.arrival.0, Ordering::Relaxed);
        Ok(token)
    }

    /// The place of the next record, if all its pages are reserved.
    fn find_slot(&mut self, article_len: u64) -> Result<Slot, PlaceError> {
        let geometry = self.buffer.geometry();
        let octets = geometry.record_octets(article_len);
        // Cycle numbers last for 67 million rounds; then the buffer is used up.
        let slot = self.slot_at(self.next, octets);
        let slot = slot.ok_or(PlaceError::Suspended)?;
        if self.buffer.home.is_endless() {
            let arrival = self.placed.arrival;
            let cycle = self.buffer.home.make(slot.at.cycle(), arrival)?;
            if cycle == slot.at.cycle() {
                return Ok(slot);
            }
            let start = geometry.start_of(cycle).ok_or(PlaceError::Suspended)?;
            let beyond = geometry.slot(start, octets, false).map(|beyond| Slot {
                wraps: slot.wraps,
                ..beyond
            });
            return beyond.ok_or(PlaceError::Suspended);
        }
        if slot.page_end <= self.reserved {
            return Ok(slot);
        }
        let later = self.slot_when_sealed(octets);
        self.needed = later.map_or(slot.page_end, |later| later.page_end);
        Err(PlaceError::NeedsReservation)
    }

    /// Where a record of so many octets goes when this place is free.
    fn slot_at(&self, next: Position, octets: u64) -> Option<Slot> {
        let geometry = self.buffer.geometry();
        geometry.slot(next, octets, self.closes(next, octets))
    }

    /// The same, when it is tried again: the open batch is sealed before, so that it may begin up to a page later.
    fn slot_when_sealed(&self, octets: u64) -> Option<Slot> {
        self.slot_at(self.buffer.geometry().page_up(self.next)?, octets)
    }

    /// Says in the file that nothing more comes before the end of the data area.
    fn end_cycle(&mut self, place: &Place<'_>) {
        let header = RecordHeader {
            mark: Mark::CycleEnd,
            is_packed: false,
            article_len: 0,
            head_len: 0,
            crc_head: 0,
            crc_body: 0,
            position: self.next,
            sequence: place.sequence,
            arrival: place.arrival,
            id_hash: IdHash::default(),
        };
        self.copy_in(header, &[]);
    }

    /// Appends the record to the open batch.
    fn copy_in(&mut self, mut header: RecordHeader, article: &[&[u8]]) {
        let offset = header.position.offset();
        let open = self.open.get_or_insert_with(|| Open {
            memory: self.buffer.recent.pool.memory(self.usual_len),
            stretches: SmallVec::new(),
            from: header.position,
        });
        let memory = &mut open.memory;
        let follows = open
            .stretches
            .last()
            .is_some_and(|last| last.at.offset() + (memory.len() - last.start) as u64 == offset);
        if !follows {
            assert!(offset.is_multiple_of(PAGE), "a stretch begins on a page");
            memory.pad();
            let start = memory.len();
            if let Some(last) = open.stretches.last_mut() {
                last.end = start;
            }
            open.stretches.push(Stretch {
                at: header.position,
                start,
                end: start,
            });
        }
        let octets = self
            .buffer
            .geometry()
            .record_octets(u64::from(header.article_len));
        // A record is at most a quarter of a gigabyte and a header: it fits.
        let mut parts: SmallVec<[&[u8]; 8]> = SmallVec::new();
        parts.push(&[0; RECORD_HEADER]);
        parts.extend_from_slice(article);
        let record = memory.append(&parts, in_memory(octets));
        let (front, text) = record.split_at_mut(RECORD_HEADER);
        if !header.is_packed {
            header = signed(header, &text[..header.article_len as usize]);
        }
        front.copy_from_slice(&header.encode(self.buffer.key));
    }

    /// Closes the open batch; the next one begins on a page.
    pub(crate) fn seal(&mut self) -> Option<Batch> {
        let mut open = self.open.take()?;
        open.memory.pad();
        self.usual_len = open.memory.len().max(self.usual_len / 4 * 3);
        if let Some(last) = open.stretches.last_mut() {
            last.end = open.memory.len();
        }
        // All pages of the batch are reserved, so that the position behind them exists.
        let end = self
            .buffer
            .geometry()
            .page_up(self.next)
            .unwrap_or(self.next);
        self.run_octets += self.buffer.geometry().distance(self.next, end);
        self.next = end;
        self.buffer.home.placed(&mut self.starts);
        self.sealed = self.placed;
        let hints = std::mem::take(&mut self.header_due).then_some(self.durable);
        let sealed = open.memory.seal(open.stretches, open.from, self.next);
        let sealed = Arc::new(sealed);
        self.buffer.recent.add(&sealed);
        Some(Batch {
            given_up: self.buffer.given_up(),
            buffer: Arc::clone(&self.buffer),
            sealed,
            hints,
        })
    }

    /// Writing to the file that is being filled failed: goes on in the next one.  Where nothing was ever written to it
    /// with success, the disk fails, and it stays suspended until it is tried again.
    pub(crate) fn give_file_up(&mut self) {
        if self.has_synced() {
            self.leave_file();
            self.buffer.give_file_up();
        }
    }

    /// Whether something was written with success in the file that is being filled.
    pub(crate) fn has_synced(&self) -> bool {
        let geometry = self.buffer.geometry();
        let here = geometry.start_of(self.next.cycle()).unwrap_or_default();
        Position(self.buffer.synced.load(Ordering::Acquire)) > here
    }

    /// Something was placed and is not sealed.
    pub(crate) const fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Nothing was written in its cycle yet.
    pub(crate) fn begins_cycle(&self) -> bool {
        self.buffer.geometry().start_of(self.next.cycle()) == Some(self.next)
    }

    /// Something was placed in it, ever.
    pub(crate) fn has_begun(&self) -> bool {
        self.buffer
            .geometry()
            .start_of(1)
            .is_some_and(|first| self.next > first)
    }

    /// Goes on at the start of the next cycle.
    pub(crate) fn leave_file(&mut self) {
        let next = self.next.cycle().checked_add(1);
        if let Some(next) = next.and_then(|cycle| self.buffer.geometry().start_of(cycle)) {
            self.open = None;
            self.next = next;
        }
    }

    /// What must be reserved so that a region's worth of room lies ahead, as far as its turn lets it.  What was asked for before and is
    /// not reserved now was in a commit that failed: it is asked for again.
    pub(crate) fn reservation(&self, turn: Turn) -> Option<Reservation> {
        let geometry = self.buffer.geometry();
        let region = self.region();
        let ahead = geometry.distance(self.next, self.reserved);
        let has_ahead = ahead >= region || turn == Turn::Elsewhere;
        if has_ahead && self.needed <= self.reserved {
            return None;
        }
        let two_regions = geometry.advance(self.next, 2 * region)?;
        // Nothing is written behind where the cycle ends.
        let end = self.closes_at(self.next);
        let up_to = Geometry {
            data_end: end,
            ..geometry
        }
        .normal(geometry.page_up(two_regions)?);
        let up_to = match turn {
            Turn::Always => up_to,
            Turn::ThisCycle => self.turn_end().map_or(up_to, |end| up_to.min(end)),
            Turn::Elsewhere => self.needed,
        };
        let up_to = up_to.max(self.needed);
        (up_to > self.reserved).then_some(Reservation {
            buffer: self.buffer.id,
            up_to,
        })
    }

    /// It is retired, and others of its set, with so much room together, are about to overwrite `octets`: the same share of
    /// it goes, and no more than it has.
    pub(crate) fn owe(&mut self, octets: u64, others: u64) {
        let last = self.last_to_go().unwrap_or_default();
        let left = self.buffer.geometry().distance(self.reserved, last);
        let share = u128::from(octets) * u128::from(self.buffer.geometry().capacity());
        let share = (share << OWED_SHIFT) / u128::from(others.max(1));
        self.owed = self.owed.saturating_add(share);
        self.owed = self.owed.min(u128::from(left) << OWED_SHIFT);
    }

    /// It takes articles: nothing of it goes but by itself.
    pub(crate) const fn owe_nothing(&mut self) {
        self.owed = 0;
    }

    /// What a retired buffer is reserved up to when nothing in it is left: one cycle behind its last article.
    fn last_to_go(&self) -> Option<Position> {
        let next = self.buffer.geometry().page_up(self.next)?;
        Position::checked(next.cycle().checked_add(1)?, next.offset())
    }

    /// Whether none of its articles is alive.  What lies there and an older log does not know is not for it to let go.
    pub(crate) fn is_empty(&self) -> bool {
        !self.is_distrusted && self.buffer.is_emptied(self.next)
    }

    /// What goes next of a buffer that is retired: its articles, oldest first, as if something overwrote them; no faster than others
    /// of its set are overwritten, and none sooner than what is older in those; all at once where none of them is alive.  Asked for
    /// in vain it is asked for again.
    pub(crate) fn drain<'b>(
        &mut self,
        others: impl Iterator<Item = &'b Arc<Buffer>> + Clone,
    ) -> Option<Reservation> {
        let last = self.last_to_go()?;
        let left = self.buffer.geometry().distance(self.reserved, last);
        let octets = if self.is_empty() {
            left
        } else {
            let owed = u64::try_from(self.owed >> OWED_SHIFT).unwrap_or(u64::MAX);
            let (owed, region) = (owed.min(left), self.region());
            if owed < left.min(region) {
                return None;
            }
            owed.min(self.due.steps(&self.buffer, others, region) * region)
        };
        // All of these marks lie on pages; what is less than a page stays owed.
        let up_to = self
            .buffer
            .geometry()
            .advance(self.reserved, octets - octets % PAGE);
        let up_to = up_to.map_or(last, |up_to| up_to.min(last));
        (up_to > self.reserved).then_some(Reservation {
            buffer: self.buffer.id,
            up_to,
        })
    }

    /// A reservation is durable.  Returns how many octets further it reaches.
    pub(crate) fn reserved(&mut self, up_to: Position) -> u64 {
        // It was asked for before the buffer became smaller.
        let up_to = self.buffer.geometry().normal(up_to);
        let further = self.buffer.geometry().distance(self.reserved, up_to);
        self.owed = self.owed.saturating_sub(u128::from(further) << OWED_SHIFT);
        // Readers must see the floor before the first octet of the region is touched.
        self.buffer.raise_floor(up_to.one_cycle_before());
        self.reserved = self.reserved.max(up_to);
        self.buffer
            .reserved
            .store(self.reserved.0, Ordering::Relaxed);
        // The commit that made it durable held everything sealed by then.
        self.durable = Hints {
            reserved: self.reserved,
            ..self.sealed
        };
        self.header_due = true;
        further
    }

    /// Where it stands.  A buffer that failed stands where it was sound: what it did not take was placed elsewhere.
    pub(crate) fn marks(&self) -> Marks {
        let end = if self.buffer.suspension().is_some() {
            Position(self.buffer.synced.load(Ordering::Acquire)).min(self.next)
        } else {
            self.next
        };
        Marks {
            buffer: self.buffer.id,
            end,
            reserved: self.reserved,
            known: None,
        }
    }

    /// What a checkpoint writes once everything placed so far is durable.
    pub(crate) const fn hints(&self) -> Hints {
        Hints {
            end: self.next,
            reserved: self.reserved,
            ..self.placed
        }
    }

    /// The same, with what is reserved by the next commit.
    pub(crate) fn hints_to_come(&self) -> Hints {
        Hints {
            reserved: self.reserved.max(self.needed),
            ..self.hints()
        }
    }

    /// An article that the log has since the last checkpoint.
    pub(crate) fn replayed(&mut self, position: Position) {
        self.starts.push(position);
        if self.starts.len() >= REPLAYED_AT_ONCE {
            self.buffer.home.placed(&mut self.starts);
        }
    }
}
