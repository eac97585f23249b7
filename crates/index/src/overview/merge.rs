//! Making one pack of several neighbours, a step at a time, leaving out what is dead.
//!
//! A group's blocks come together in order of number.  A wholly live block that is large enough, and compressed if the
//! new pack's are to be, is copied as it is; others are taken apart and their live rows put into new blocks.

use std::sync::Arc;

use bytes::Bytes;
use newsreel_wire::GroupId;

use super::block::{Codec, Columns};
use super::cache::BlockCache;
use super::pack::{Block, BlockEntry, Pack};
use super::write::PackWriter;
use crate::config::IndexConfig;
use crate::cursor::Bad;
use crate::error::Result;
use crate::liveness::{Floors, Share};
use crate::narrow::u32_of;
use crate::repack::Moves;
use crate::sealed::RunMeta;
use crate::sealed::window::Window;
use crate::sealed::writer::Place;

#[derive(Debug)]
struct Input {
    pack: Arc<Pack>,
    window: Window,
    next: usize,
}

/// A merge under way.
#[derive(Debug)]
pub(crate) struct PackMerge {
    /// From the oldest to the newest.
    inputs: Vec<Input>,
    writer: PackWriter,
    compress: bool,
    group: Option<u32>,
    /// Where articles lie by now.
    moves: Arc<Moves>,
    rows_max: u32,
    text_max: u32,
}

impl PackMerge {
    /// Begins to merge neighbours, given from the oldest to the newest; rows of articles that were moved get their new tokens.
    pub(crate) fn begin(
        place: &Place,
        id: u64,
        packs: &[Arc<Pack>],
        config: &IndexConfig,
        moves: Arc<Moves>,
    ) -> Result<Self> {
        let first = packs.iter().map(|pack| pack.meta().first).min();
        let last = packs.iter().map(|pack| pack.meta().last).max();
        let range = (first.unwrap_or_default(), last.unwrap_or_default());
        let rows: u64 = packs.iter().map(|pack| pack.meta().rows).sum();
        let compress = rows >= config.compress_rows_min;
        let inputs = packs
            .iter()
            .map(|pack| Input {
                pack: Arc::clone(pack),
                window: Window::default(),
                next: 0,
            })
            .collect();
        Ok(Self {
            inputs,
            writer: PackWriter::create(place, id, range, config, compress)?,
            compress,
            group: None,
            moves,
            rows_max: config.block_rows_max,
            text_max: config.block_text_bytes_max,
        })
    }

    fn octets_read(&self) -> u64 {
        self.inputs.iter().map(|input| input.window.read).sum()
    }

    /// Goes on until about `step_bytes` were read.  `true`: all is written.
    pub(crate) fn step(
        &mut self,
        floors: &mut Floors<'_>,
        cache: &BlockCache,
        is_gone: &dyn Fn(GroupId) -> bool,
        step_bytes: u64,
    ) -> Result<bool> {
        let until = self.octets_read() + step_bytes;
        let mut skipped = 0;
        while self.octets_read() < until {
            let Some((at, block)) = self.next() else {
                return Ok(true);
            };
            self.inputs[at].next += 1;
            let share = self.inputs[at].pack.alive(&block, floors).share;
            if share == Share::None || is_gone(GroupId(block.group)) {
                // What is not read costs time too, though little.
                skipped += 1;
                if skipped > 100_000 {
                    return Ok(false);
                }
                continue;
            }
            if self.group != Some(block.group) {
                self.writer.start(GroupId(block.group))?;
                self.group = Some(block.group);
            }
            self.take(at, &block, share, floors, cache)?;
        }
        Ok(false)
    }

    /// The next block by group, then by age.
    fn next(&self) -> Option<(usize, Block)> {
        self.inputs
            .iter()
            .enumerate()
            .filter_map(|(at, input)| Some((at, input.pack.block(input.next)?)))
            .min_by_key(|(at, block)| (block.group, *at, block.first))
    }

    fn take(
        &mut self,
        at: usize,
        block: &Block,
        share: Share,
        floors: &mut Floors<'_>,
        cache: &BlockCache,
    ) -> Result<()> {
        let Input { pack, window, .. } = &mut self.inputs[at];
        let columns_len = block.columns_len as usize;
        let octets = window.frame(pack.run(), block.offset, columns_len)?;
        let columns = pack.checked(block, Bytes::copy_from_slice(octets))?;
        let stored = window.frame(pack.run(), block.text_offset(), block.text_len as usize)?;
        let is_large =
            block.rows >= self.rows_max / 2 || columns.text_octets() >= self.text_max as usize / 2;
        let is_as_wished = columns.codec() == Codec::Zstd || !self.compress;
        let moves = Some(&*self.moves).filter(|moves| moves.concern(pack.buffers_of(block)));
        if share == Share::All && is_large && is_as_wished && moves.is_none() {
            let entry = BlockEntry {
                group: block.group,
                rows: block.rows,
                first: block.first,
                span: u32_of(block.last - block.first),
                arrival_max: block.arrival_max,
                offset: 0,
                columns_len: block.columns_len,
                text_len: block.text_len,
                buffers: pack.buffers_of(block).collect(),
            };
            return self.writer.copy(entry, columns.octets(), stored);
        }
        let decompressed;
        let text = match columns.codec() {
            Codec::Raw => stored,
            Codec::Zstd => {
                let why = |why| pack.run().damage(block.text_offset(), why);
                decompressed = cache
                    .decompress(stored, columns.text_octets())
                    .map_err(why)?;
                &decompressed[..]
            }
        };
        if text.len() != columns.text_octets() {
            let why = Bad("a block's text does not have the length its columns say");
            return Err(pack.run().damage(block.text_offset(), why));
        }
        push_live(&mut self.writer, &columns, text, floors, moves)
    }

    /// Closes the new pack; `None` when nothing was left to keep.
    pub(crate) fn finish(self) -> Result<Option<RunMeta>> {
        self.writer.finish()
    }
}

fn push_live(
    writer: &mut PackWriter,
    columns: &Columns,
    text: &[u8],
    floors: &mut Floors<'_>,
    moves: Option<&Moves>,
) -> Result<()> {
    for nth in 0..columns.len() {
        let mut row = columns.row(nth, text);
        if floors.is_live(&row.token) {
            row.token = moves
                .and_then(|moves| moves.of(&row.token))
                .unwrap_or(row.token);
            writer.push(&row)?;
        }
    }
    Ok(())
}
