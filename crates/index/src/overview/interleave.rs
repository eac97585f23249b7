//! One pack of several whose rows lie between each other: they are put in order row by row.
//!
//! A pack that is made again from the store comes in such parts where articles were moved: their copies lie in the store behind
//! articles with higher numbers.  Packs of readers never overlap; those are merged block by block (`merge`).

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use newsreel_wire::{GroupId, Sequence};

use super::block::Columns;
use super::cache::BlockCache;
use super::pack::Pack;
use super::write::PackWriter;
use crate::config::IndexConfig;
use crate::error::Result;
use crate::liveness::Floors;
use crate::sealed::RunMeta;
use crate::sealed::reader::Wait;
use crate::sealed::writer::Place;

/// A part, and how far it is.
#[derive(Debug)]
struct Input {
    pack: Arc<Pack>,
    /// The block after the one that is open.
    next: usize,
    open: Option<(Arc<Columns>, Bytes)>,
    row: usize,
}

impl Input {
    /// The group and number of its next row.
    fn peek(&mut self, cache: &BlockCache) -> Result<Option<(u32, u64)>> {
        loop {
            if let Some((columns, _)) = &self.open
                && self.row < columns.len()
            {
                return Ok(Some((columns.group(), columns.number(self.row))));
            }
            let Some(block) = self.pack.block(self.next) else {
                return Ok(None);
            };
            self.open = Some(self.pack.whole(&block, cache, Wait::Yes)?);
            (self.next, self.row) = (self.next + 1, 0);
        }
    }
}

/// Whether a part has rows that belong before rows of an earlier one.
pub(crate) fn overlap(packs: &[Arc<Pack>]) -> bool {
    let mut ends = HashMap::new();
    packs.iter().any(|pack| {
        let mut blocks = (0..pack.blocks()).filter_map(|nth| pack.block(nth));
        blocks.any(|block| {
            let end = ends.insert(block.group, block.last);
            end.is_some_and(|end| end >= block.first)
        })
    })
}

/// Parts on their way into one pack.
#[derive(Debug)]
pub(crate) struct Interleave {
    /// From the oldest to the newest.
    inputs: Vec<Input>,
    writer: PackWriter,
    group: Option<u32>,
}

impl Interleave {
    /// Begins with these, given from the oldest to the newest.
    pub(crate) fn begin(
        place: &Place,
        id: u64,
        range: (Sequence, Sequence),
        packs: Vec<Arc<Pack>>,
        config: &IndexConfig,
    ) -> Result<Self> {
        let rows: u64 = packs.iter().map(|pack| pack.meta().rows).sum();
        let compress = rows >= config.compress_rows_min;
        let input = |pack| Input {
            pack,
            next: 0,
            open: None,
            row: 0,
        };
        Ok(Self {
            inputs: packs.into_iter().map(input).collect(),
            writer: PackWriter::create(place, id, range, config, compress)?,
            group: None,
        })
    }

    /// Goes on until about so many octets of text were written.  `true`: all is.
    pub(crate) fn step(
        &mut self,
        floors: &mut Floors<'_>,
        cache: &BlockCache,
        step_bytes: u64,
    ) -> Result<bool> {
        let mut written = 0;
        while written < step_bytes {
            let mut first = None;
            for input in &mut self.inputs {
                first = input.peek(cache)?.into_iter().chain(first).min();
            }
            let Some((group, number)) = first else {
                return Ok(true);
            };
            // Where several have it, the newest is written.
            let mut found = None;
            for input in &mut self.inputs {
                if input.peek(cache)? == first {
                    found = input.open.clone().map(|open| (open, input.row));
                    input.row += 1;
                }
            }
            let Some(((columns, text), at)) = found else {
                continue;
            };
            debug_assert_eq!(columns.number(at), number);
            if self.group != Some(group) {
                self.writer.start(GroupId(group))?;
                self.group = Some(group);
            }
            let row = columns.row(at, &text);
            written += row.line.len() as u64;
            if floors.is_live(&row.token) {
                self.writer.push(&row)?;
            }
        }
        Ok(false)
    }

    /// Closes the new pack; `None` when nothing was left to keep.
    pub(crate) fn finish(self) -> Result<Option<RunMeta>> {
        self.writer.finish()
    }
}
