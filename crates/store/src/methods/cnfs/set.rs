//! A set of cyclic buffers: which one takes the next batch.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use newsreel_wire::{BufferId, Sequence, Token};

use super::checkpoint::BufferCheckpoint;
use super::file::Buffer;
use super::placing::Filling;
use crate::config::SetOrder;
use crate::error::{PlaceError, Result};
use crate::method::{BatchWrite, CheckpointWrite, Marks, Place, Reservation, StorageMethod};

/// An interleaved set changes buffers after a batch, but not before this much: each buffer that a
/// commit touches must be synced.
const RUN_OCTETS: u64 = 1 << 20;

/// A set of buffers, filled by one thread.
#[derive(Debug)]
pub struct Cnfs {
    fillings: Vec<Filling>,
    order: SetOrder,
    current: usize,
    cycle_of_current: u32,
}

impl Cnfs {
    /// A set of these buffers, in this order.
    #[must_use]
    pub fn new(buffers: Vec<Arc<Buffer>>, order: SetOrder) -> Self {
        let fillings = buffers.into_iter().map(Filling::new).collect();
        let mut set = Self {
            fillings,
            order,
            current: 0,
            cycle_of_current: 0,
        };
        set.enter(0);
        set
    }

    /// Makes a buffer the current one.
    fn enter(&mut self, at: usize) {
        self.current = at;
        if let Some(filling) = self.fillings.get_mut(at) {
            filling.run_octets = 0;
            self.cycle_of_current = filling.marks().end.cycle();
        }
    }

    /// The next buffer behind `at` that takes articles.
    fn usable_from(&self, at: usize) -> Option<usize> {
        let count = self.fillings.len();
        (0..count)
            .map(|step| (at + step) % count)
            .find(|at| !self.fillings[*at].buffer.is_suspended())
    }

    fn find(&mut self, buffer: BufferId) -> Option<&mut Filling> {
        self.fillings
            .iter_mut()
            .find(|filling| filling.buffer.id == buffer)
    }

    /// Between two batches: is it another buffer's turn?
    fn turn(&mut self) {
        let Some(filling) = self.fillings.get(self.current) else {
            return;
        };
        let done = match self.order {
            SetOrder::Interleave => filling.run_octets >= RUN_OCTETS,
            SetOrder::Sequential => filling.marks().end.cycle() > self.cycle_of_current,
        };
        if done && let Some(next) = self.usable_from(self.current + 1) {
            self.enter(next);
        }
    }
}

impl StorageMethod for Cnfs {
    fn place(&mut self, place: &Place<'_>) -> std::result::Result<Token, PlaceError> {
        let Some(at) = self.usable_from(self.current) else {
            return Err(PlaceError::Suspended);
        };
        if at != self.current {
            self.enter(at);
        }
        match self.fillings[at].place(place) {
            // Buffers of a set may differ in size: a smaller one passes a large article on.
            Err(PlaceError::TooLarge { limit }) => {
                let larger = (0..self.fillings.len()).find(|at| {
                    let filling = &self.fillings[*at];
                    !filling.buffer.is_suspended() && filling.article_octets_max() > limit
                });
                match larger {
                    Some(larger) if larger != at => self.fillings[larger].place(place),
                    _ => Err(PlaceError::TooLarge { limit }),
                }
            }
            other => other,
        }
    }

    fn reservations(&mut self, out: &mut Vec<Reservation>) {
        for filling in &mut self.fillings {
            if !filling.buffer.is_suspended() {
                out.extend(filling.reservation());
            }
        }
    }

    fn reservations_lost(&mut self) {
        for filling in &mut self.fillings {
            filling.reservation_lost();
        }
    }

    fn reserved(&mut self, reservation: Reservation) {
        if let Some(filling) = self.find(reservation.buffer) {
            filling.reserved(reservation.up_to);
        }
    }

    fn seal(&mut self, out: &mut Vec<Box<dyn BatchWrite>>) {
        for filling in &mut self.fillings {
            if let Some(batch) = filling.seal() {
                out.push(Box::new(batch));
            }
        }
        self.turn();
    }

    fn recycle(&mut self, buffer: BufferId, memory: Vec<Vec<u8>>) {
        if let Some(filling) = self.find(buffer) {
            filling.recycle(memory);
        }
    }

    fn suspend(&mut self, buffer: BufferId) {
        if let Some(filling) = self.find(buffer) {
            filling.buffer.suspended.store(true, Ordering::Relaxed);
        }
    }

    fn marks(&self, out: &mut Vec<Marks>) {
        out.extend(self.fillings.iter().map(Filling::marks));
    }

    fn resume(&mut self, marks: Marks, log_end: Sequence) -> Result<()> {
        if let Some(filling) = self.find(marks.buffer)
            && let Some(complaint) = filling.resume(marks, log_end)
        {
            tracing::warn!(buffer = filling.buffer.name, "{complaint}");
        }
        self.enter(self.current);
        Ok(())
    }

    fn checkpoint(&mut self, out: &mut Vec<Box<dyn CheckpointWrite>>) {
        for filling in &mut self.fillings {
            let Marks { end, reserved, .. } = filling.marks();
            if filling.buffer.is_suspended() || end == filling.checkpointed {
                continue;
            }
            out.push(Box::new(BufferCheckpoint {
                buffer: Arc::clone(&filling.buffer),
                from: filling.checkpointed,
                end,
                reserved,
                sequence: filling.last_sequence(),
                starts: std::mem::take(&mut filling.starts),
            }));
            filling.checkpointed = end;
        }
    }
}
