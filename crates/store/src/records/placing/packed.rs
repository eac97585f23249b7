//! Placing articles that are packed: where one lies decides which dictionary it has, and how large it is then where it lies.

use std::sync::Arc;

use super::Filling;
use crate::error::PlaceError;
use crate::method::Place;
use crate::records::geometry::Slot;
use crate::records::packing::{Packer, Training};

impl Filling {
    /// Articles are packed from now on.
    pub(crate) fn pack_at(&mut self, level: i32) {
        self.packer = Some(Box::new(Packer::new(&self.buffer, level)));
    }

    /// What makes the next dictionary, when there is enough to make it of.
    pub(crate) fn training(&mut self) -> Option<Training> {
        self.packer.as_mut()?.training(&self.buffer)
    }

    /// Packs an article, if that makes it smaller, and finds its place: what is packed belongs to one cycle.
    pub(super) fn pack(
        &mut self,
        place: &Place<'_>,
        len: u32,
        packer: &mut Packer,
    ) -> Result<(Slot, Option<u32>), PlaceError> {
        let buffer = Arc::clone(&self.buffer);
        let mut cycle = self.next.cycle();
        // Its file may be full; the next one has another dictionary, or none yet.
        for _ in 0..2 {
            let Some(packed) = packer.pack(&buffer, cycle, place.article) else {
                break;
            };
            let slot = self.find_slot(u64::from(packed))?;
            if slot.at.cycle() == cycle {
                return Ok((slot, Some(packed)));
            }
            cycle = slot.at.cycle();
        }
        Ok((self.find_slot(u64::from(len))?, None))
    }
}
