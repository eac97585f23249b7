//! The rows of articles that lie in a stretch of a buffer: whose they were, when nothing can be read there any more.

use std::ops::{ControlFlow, Range};

use newsreel_wire::{BufferId, GroupId, Position};

use super::read::{Seen, tail_rows};
use super::{Column, Overview, Parts};
use crate::error::{Error, Result};
use crate::sealed::reader::Wait;

impl Overview {
    /// Visits the rows with places in a stretch of a buffer whose articles were not withdrawn, with their groups and message-ids, in
    /// no order.  Of the sealed blocks those are read that say that they have some.
    ///
    /// # Errors
    /// When something that may have some of them cannot be read or is missing; all others were visited.
    pub fn rows_within(
        &self,
        buffer: BufferId,
        stretch: &Range<Position>,
        mut visit: impl FnMut(GroupId, &Column, &[u8]),
    ) -> Result<()> {
        let is_here = |column: &Column| {
            column.token.buffer() == buffer && stretch.contains(&column.token.position())
        };
        let parts = self.layers.load();
        let mut failed: Option<Error> = self.layers.all_there(&parts).err();
        for pack in parts.runs.open() {
            for block in (0..pack.blocks()).filter_map(|nth| pack.block(nth)) {
                let has_some = pack.buffers_of(&block).any(|facts| {
                    facts.buffer == buffer
                        && facts.first < stretch.end
                        && facts.last >= stretch.start
                });
                if !has_some {
                    continue;
                }
                let columns = match pack.columns(&block, &self.cache, Wait::Yes) {
                    Ok(columns) => columns,
                    Err(error) => {
                        failed = Some(self.layers.noted(pack.meta(), error));
                        continue;
                    }
                };
                let group = GroupId(block.group);
                let mut range = self.range(group, block.first, block.last, Wait::Yes);
                for row in 0..columns.len() {
                    let seen = Seen::Block(&columns, row);
                    let column = seen.column();
                    if is_here(&column) && range.offers(column.number.0, &column.token) {
                        visit(group, &column, seen.id());
                    }
                }
            }
        }
        self.of_tails(&parts, |group, column, id| {
            if is_here(column) {
                visit(group, column, id);
            }
        });
        failed.map_or(Ok(()), Err)
    }

    /// Visits the rows that no pack has yet and whose articles were not withdrawn, with their groups, in no order.
    pub fn rows_in_memory(&self, mut visit: impl FnMut(GroupId, &Column)) {
        self.of_tails(&self.layers.load(), |group, column, _| visit(group, column));
    }

    fn of_tails(&self, parts: &Parts, mut visit: impl FnMut(GroupId, &Column, &[u8])) {
        for part in parts.parts() {
            for group in part.groups() {
                let mut range = self.range(group, 0, u64::MAX, Wait::Yes);
                tail_rows(part, &mut range, |row| {
                    let seen = Seen::Tail(part, row);
                    visit(group, &seen.column(), seen.id());
                    ControlFlow::Continue(())
                });
            }
        }
    }
}
