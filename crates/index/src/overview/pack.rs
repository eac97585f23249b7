//! A sealed overview pack, open for look-ups: in memory the place of each block and what is known of it, blocks on disk.
//!
//! Blocks are sorted by group and first number; a group's blocks in older packs have lower numbers.  Nothing of a
//! block is read when its buffers' marks tell enough.  Layout: `docs/formats/overview-pack.md`.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use newsreel_wire::{BufferId, GroupId, Position};

use super::block::{Codec, Columns};
use super::cache::{BlockCache, Part};
use super::tail::TailPart;
use crate::cursor::{Bad, Cursor};
use crate::error::Result;
use crate::groups::GROUPS_MAX;
use crate::layers::Run;
use crate::liveness::{Alive, BufferFacts, FactsList, Floors, alive, dead_estimate};
use crate::narrow::{halves, u16_of, u32_of};
use crate::sealed::ends::HEADER_OCTETS;
use crate::sealed::frame::FRAME_HEADER;
use crate::sealed::reader::{RunFile, Wait};
use crate::sealed::{RunKind, RunMeta};

/// The section that lists the blocks.
pub(crate) const BLOCKS: u32 = 1;
/// The section with what is known about all rows.
pub(crate) const FACTS: u32 = 2;

/// Groups that share a fence into the list of blocks.
const FENCE: u32 = 16;
/// Rows of a block, at most, in a pack that is read.
const BLOCK_ROWS_MAX: u32 = 1 << 15;

/// A block's entry as it is written and read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlockEntry {
    pub(crate) group: u32,
    pub(crate) rows: u32,
    pub(crate) first: u64,
    /// Last number less the first.
    pub(crate) span: u32,
    pub(crate) arrival_max: u32,
    /// Where the columns' frame begins; the text's frame follows.
    pub(crate) offset: u64,
    pub(crate) columns_len: u32,
    pub(crate) text_len: u32,
    pub(crate) buffers: FactsList,
}

impl BlockEntry {
    /// Appends the stored form.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.group.to_le_bytes());
        out.extend_from_slice(&self.rows.to_le_bytes());
        out.extend_from_slice(&self.first.to_le_bytes());
        out.extend_from_slice(&self.span.to_le_bytes());
        out.extend_from_slice(&self.arrival_max.to_le_bytes());
        out.extend_from_slice(&self.offset.to_le_bytes());
        out.extend_from_slice(&self.columns_len.to_le_bytes());
        out.extend_from_slice(&self.text_len.to_le_bytes());
        out.extend_from_slice(&u32_of(self.buffers.len()).to_le_bytes());
        self.buffers.iter().for_each(|facts| facts.encode(out));
    }

    fn decode(cursor: &mut Cursor<'_>) -> Result<Self, Bad> {
        let mut entry = Self {
            group: cursor.u32()?,
            rows: cursor.u32()?,
            first: cursor.u64()?,
            span: cursor.u32()?,
            arrival_max: cursor.u32()?,
            offset: cursor.u64()?,
            columns_len: cursor.u32()?,
            text_len: cursor.u32()?,
            buffers: FactsList::new(),
        };
        for _ in 0..cursor.u32()? {
            entry.buffers.push(BufferFacts::decode(cursor)?);
        }
        let counted: u64 = entry
            .buffers
            .iter()
            .map(|facts| u64::from(facts.rows))
            .sum();
        let is_sound = (entry.group as usize) < GROUPS_MAX
            && entry.rows > 0
            && entry.rows <= BLOCK_ROWS_MAX
            && counted == u64::from(entry.rows)
            && entry.first.checked_add(u64::from(u32::MAX)).is_some();
        is_sound
            .then_some(entry)
            .ok_or(Bad("a block's entry contradicts itself"))
    }
}

/// A block's entry in memory, packed: there may be one for every group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    first: [u32; 2],
    /// Blocks lie one behind the other, so this ends the one before.
    offset: u32,
    group: u32,
    span: u32,
    columns_len: u32,
    arrival_max: u32,
    /// Where its buffers' facts begin.
    buffers_at: u32,
    rows: u16,
    buffers: u16,
}

/// A block's facts about one buffer, packed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PackedFacts {
    first: [u32; 2],
    last: [u32; 2],
    rows: u16,
    buffer: u16,
}

const fn join([low, high]: [u32; 2]) -> u64 {
    low as u64 | ((high as u64) << 32)
}

impl PackedFacts {
    fn new(facts: &BufferFacts) -> Self {
        Self {
            first: halves(facts.first.0),
            last: halves(facts.last.0),
            rows: u16_of(facts.rows),
            buffer: facts.buffer.0,
        }
    }

    fn unpacked(&self) -> BufferFacts {
        BufferFacts {
            first: Position(join(self.first)),
            last: Position(join(self.last)),
            rows: u32::from(self.rows),
            buffer: BufferId(self.buffer),
        }
    }
}

/// A block of an open pack.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    /// Its place in the pack's list.
    pub(crate) nth: u32,
    pub(crate) group: u32,
    pub(crate) rows: u32,
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) arrival_max: u32,
    pub(crate) offset: u64,
    pub(crate) columns_len: u32,
    pub(crate) text_len: u32,
}

impl Block {
    /// Whether every number between its first and its last is there.
    pub(crate) const fn is_dense(&self) -> bool {
        self.last - self.first + 1 == self.rows as u64
    }

    /// Where its text's frame begins.
    pub(crate) const fn text_offset(&self) -> u64 {
        self.offset + (FRAME_HEADER as u64) + self.columns_len as u64
    }
}

/// An open pack.
#[derive(Debug)]
pub(crate) struct Pack {
    run: RunFile,
    entries: Box<[Entry]>,
    facts: Box<[PackedFacts]>,
    /// The first entry of group `FENCE * n` or above.
    fences: Box<[u32]>,
    /// Of all rows.
    buffers: FactsList,
    /// Where the last block ends.
    blocks_end: u32,
}

impl Run for Pack {
    const KIND: RunKind = RunKind::Overview;

    type Part = TailPart;

    fn file(&self) -> &RunFile {
        &self.run
    }

    fn open(run: RunFile) -> Result<Self> {
        let at_end = |why| run.damage(run.meta().len, why);
        let buffers = decode_facts(&run.section(FACTS)?).map_err(at_end)?;
        let list = run.section(BLOCKS)?;
        let (entries, facts) = decode_entries(&list, run.blocks_end()).map_err(at_end)?;
        let rows: u64 = entries.iter().map(|entry| u64::from(entry.rows)).sum();
        if rows != run.meta().rows {
            return Err(at_end(Bad(
                "its blocks do not have the rows its footer says",
            )));
        }
        Ok(Self {
            fences: fences(&entries),
            entries: entries.into(),
            facts: facts.into(),
            buffers,
            blocks_end: u32_of(run.blocks_end()),
            run,
        })
    }
}

impl Pack {
    /// Facts of all rows, by buffer.
    pub(crate) fn buffers(&self) -> impl Iterator<Item = &BufferFacts> {
        self.buffers.iter()
    }

    pub(crate) const fn meta(&self) -> &RunMeta {
        self.run.meta()
    }

    pub(crate) const fn run(&self) -> &RunFile {
        &self.run
    }

    /// Octets it takes in memory.
    pub(crate) fn octets(&self) -> u64 {
        (size_of_val(&*self.entries) + size_of_val(&*self.facts) + size_of_val(&*self.fences))
            as u64
    }

    pub(crate) fn blocks(&self) -> usize {
        self.entries.len()
    }

    /// Whether nothing in it is alive.
    pub(crate) fn is_dead(&self, floors: &mut Floors<'_>) -> bool {
        let alive = alive(self.buffers.iter().copied(), floors);
        alive.rows == 0 && alive.exact
    }

    /// About how many rows are dead.
    pub(crate) fn dead(&self, floors: &mut Floors<'_>) -> u64 {
        dead_estimate(&self.buffers, floors)
    }

    /// The block in place `nth`.
    pub(crate) fn block(&self, nth: usize) -> Option<Block> {
        let entry = self.entries.get(nth)?;
        let first = join(entry.first);
        let end = self
            .entries
            .get(nth + 1)
            .map_or(self.blocks_end, |next| next.offset);
        let text_len = end - entry.offset - entry.columns_len - 2 * u32_of(FRAME_HEADER);
        Some(Block {
            nth: u32_of(nth),
            group: entry.group,
            rows: u32::from(entry.rows),
            first,
            last: first + u64::from(entry.span),
            arrival_max: entry.arrival_max,
            offset: u64::from(entry.offset),
            columns_len: entry.columns_len,
            text_len,
        })
    }

    /// What is known of a block's rows, per buffer.
    pub(crate) fn buffers_of(&self, block: &Block) -> impl Iterator<Item = BufferFacts> {
        let entry = self.entries.get(block.nth as usize);
        let range = entry.map_or(0..0, |entry| {
            let at = entry.buffers_at as usize;
            at..at + usize::from(entry.buffers)
        });
        let facts = self.facts.get(range).unwrap_or_default().iter();
        facts.map(PackedFacts::unpacked)
    }

    /// How much of a block is alive.
    pub(crate) fn alive(&self, block: &Block, floors: &mut Floors<'_>) -> Alive {
        alive(self.buffers_of(block), floors)
    }

    /// The blocks that may hold numbers `from..=to` of a group.
    pub(crate) fn find(&self, group: GroupId, from: u64, to: u64) -> Range<usize> {
        let fence = (group.0 / FENCE) as usize;
        let Some(&low) = self.fences.get(fence) else {
            return 0..0;
        };
        let high = self.fences.get(fence + 1).copied();
        let high = high.map_or(self.entries.len(), |high| high as usize);
        let near = &self.entries[low as usize..high];
        let key = |entry: &Entry| (entry.group, join(entry.first));
        let mut start = near.partition_point(|entry| key(entry) <= (group.0, from));
        // The block before may reach into the range.
        if let Some(before) = start.checked_sub(1).map(|at| &near[at])
            && before.group == group.0
            && join(before.first) + u64::from(before.span) >= from
        {
            start -= 1;
        }
        let rest = near.get(start..).unwrap_or_default();
        let end = start + rest.partition_point(|entry| key(entry) <= (group.0, to));
        low as usize + start..low as usize + end
    }

    /// A block's columns.
    pub(crate) fn columns(
        &self,
        block: &Block,
        cache: &BlockCache,
        wait: Wait,
    ) -> Result<Arc<Columns>> {
        let key = (self.meta().id, block.nth, Part::Columns);
        if let Some(columns) = cache.columns(&key) {
            return Ok(columns);
        }
        let mut octets = Vec::new();
        let len = block.columns_len as usize;
        self.run.frame(&mut octets, block.offset, len, wait)?;
        let octets = Bytes::from(octets).slice(FRAME_HEADER..);
        let columns = Arc::new(self.checked(block, octets)?);
        cache.put_columns(key, &columns);
        Ok(columns)
    }

    /// Decodes columns and compares them with the block's entry.
    pub(crate) fn checked(&self, block: &Block, octets: Bytes) -> Result<Columns> {
        let at = |why| self.run.damage(block.offset, why);
        let columns = Columns::decode(octets).map_err(at)?;
        let is_it = columns.group() == block.group
            && columns.len() == block.rows as usize
            && columns.number(0) == block.first
            && columns.number(columns.len() - 1) == block.last;
        if !is_it {
            return Err(at(Bad("a block is not the one its entry says")));
        }
        Ok(columns)
    }

    /// A block's columns and its text, decompressed; one read when they are not in memory.
    pub(crate) fn whole(
        &self,
        block: &Block,
        cache: &BlockCache,
        wait: Wait,
    ) -> Result<(Arc<Columns>, Bytes)> {
        let key = |part| (self.meta().id, block.nth, part);
        let (columns_key, text_key) = (key(Part::Columns), key(Part::Text));
        if let Some(text) = cache.text(&text_key)
            && let Some(columns) = cache.columns(&columns_key)
        {
            return Ok((columns, text));
        }
        let mut octets = Vec::new();
        let lens = [block.columns_len as usize, block.text_len as usize];
        self.run.frames(&mut octets, block.offset, lens, wait)?;
        let octets = Bytes::from(octets);
        let text_at = FRAME_HEADER + lens[0];
        let columns = self.checked(block, octets.slice(FRAME_HEADER..text_at))?;
        let stored = octets.slice(text_at + FRAME_HEADER..);
        let text = match columns.codec() {
            Codec::Raw => stored,
            Codec::Zstd => {
                let plain = cache.decompress(&stored, columns.text_octets());
                let plain = plain.map_err(|why| self.run.damage(block.text_offset(), why))?;
                plain.into()
            }
        };
        if text.len() != columns.text_octets() {
            let why = Bad("a block's text does not have the length its columns say");
            return Err(self.run.damage(block.text_offset(), why));
        }
        let columns = Arc::new(columns);
        cache.put_columns(columns_key, &columns);
        cache.put_text(text_key, &text);
        Ok((columns, text))
    }
}

fn decode_facts(octets: &[u8]) -> Result<FactsList, Bad> {
    let mut cursor = Cursor::new(octets);
    let mut list = FactsList::new();
    while !cursor.rest().is_empty() {
        list.push(BufferFacts::decode(&mut cursor)?);
    }
    Ok(list)
}

/// Decodes the list of blocks of a file whose blocks end there.
pub(crate) fn decode_entries(
    octets: &[u8],
    blocks_end: u64,
) -> Result<(Vec<Entry>, Vec<PackedFacts>), Bad> {
    let mut cursor = Cursor::new(octets);
    let (mut entries, mut facts): (Vec<Entry>, Vec<PackedFacts>) = (Vec::new(), Vec::new());
    let mut after: Option<(u32, u64)> = None;
    let mut end = HEADER_OCTETS as u64;
    while !cursor.rest().is_empty() {
        let entry = BlockEntry::decode(&mut cursor)?;
        if entry.offset != end {
            return Err(Bad("its blocks do not lie one behind the other"));
        }
        end += u64::from(entry.columns_len) + u64::from(entry.text_len) + 2 * FRAME_HEADER as u64;
        if after.is_some_and(|after| (entry.group, entry.first) <= after) {
            return Err(Bad("the list of blocks is not sorted"));
        }
        after = Some((entry.group, entry.first + u64::from(entry.span)));
        entries.push(Entry {
            first: halves(entry.first),
            offset: u32_of(entry.offset),
            group: entry.group,
            span: entry.span,
            columns_len: entry.columns_len,
            arrival_max: entry.arrival_max,
            buffers_at: u32_of(facts.len()),
            rows: u16_of(entry.rows),
            buffers: u16_of(entry.buffers.len()),
        });
        facts.extend(entry.buffers.iter().map(PackedFacts::new));
    }
    if end != blocks_end || end > u64::from(u32::MAX) {
        return Err(Bad("its blocks do not end where they should"));
    }
    Ok((entries, facts))
}

fn fences(entries: &[Entry]) -> Box<[u32]> {
    let groups = entries.last().map_or(0, |entry| entry.group / FENCE + 1);
    let mut fences = Vec::with_capacity(groups as usize);
    for (at, entry) in entries.iter().enumerate() {
        while fences.len() <= (entry.group / FENCE) as usize {
            fences.push(u32_of(at));
        }
    }
    fences.into()
}
