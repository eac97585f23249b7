//! Writing a pack: rows come by group and number, blocks are cut from them.
//!
//! Texts are written as they are while they are new: that is quick, costs little, and they are read most.  Merges that
//! make large packs compress them.

use std::fmt;

use newsreel_wire::overview::write_numbered;
use newsreel_wire::{ArticleNumber, GroupId, Sequence};
use zstd::bulk::Compressor;

use super::block::{BlockBuilder, Codec, Row};
use super::pack::{BLOCKS, BlockEntry, FACTS};
use super::tail::{Copied, TailPart};
use crate::config::IndexConfig;
use crate::error::Result;
use crate::liveness::{BufferFacts, FactsList, Floors};
use crate::narrow::u32_of;
use crate::sealed::writer::{Place, RunWriter};
use crate::sealed::{RunKind, RunMeta};

/// Shorter texts are not worth compressing.
const COMPRESSED_MIN: usize = 256;

/// A pack being written.
pub(crate) struct PackWriter {
    run: RunWriter,
    builder: BlockBuilder,
    compressor: Option<Compressor<'static>>,
    rows_max: u32,
    text_max: u32,
    /// The stored list of blocks.
    list: Vec<u8>,
    buffers: FactsList,
    rows: u64,
    scratch: Vec<u8>,
}

impl fmt::Debug for PackWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PackWriter")
            .field("run", &self.run.id())
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

impl PackWriter {
    /// Begins a pack; with `compress`, texts are compressed.
    pub(crate) fn create(
        place: &Place,
        id: u64,
        range: (Sequence, Sequence),
        config: &IndexConfig,
        compress: bool,
    ) -> Result<Self> {
        let level = config.compression_level;
        // Without memory for a compressor texts stay as they are.
        let compressor = compress.then(|| Compressor::new(level).ok()).flatten();
        Ok(Self {
            run: match compress {
                // Its rows are old, and readers have what they read of them in memory.
                true => RunWriter::create(place, RunKind::Overview, id, range)?.around_the_cache(),
                false => RunWriter::create(place, RunKind::Overview, id, range)?,
            },
            builder: BlockBuilder::default(),
            compressor,
            rows_max: config.block_rows_max,
            text_max: config.block_text_bytes_max,
            list: Vec::new(),
            buffers: FactsList::new(),
            rows: 0,
            scratch: Vec::new(),
        })
    }

    /// Begins with a group; its rows follow, or whole blocks.
    pub(crate) fn start(&mut self, group: GroupId) -> Result<()> {
        self.flush()?;
        self.builder.start(group);
        Ok(())
    }

    /// Appends the group's next row.
    pub(crate) fn push(&mut self, row: &Row<'_>) -> Result<()> {
        if self.builder.is_full_for(row, self.rows_max, self.text_max) {
            self.flush()?;
        }
        self.builder.push(row);
        Ok(())
    }

    /// Closes the open block.
    pub(crate) fn flush(&mut self) -> Result<()> {
        if self.builder.rows == 0 {
            return Ok(());
        }
        let builder = &self.builder;
        let compressed = match &mut self.compressor {
            Some(compressor) if builder.text().len() >= COMPRESSED_MIN => {
                self.scratch.clear();
                self.scratch
                    .reserve(zstd::zstd_safe::compress_bound(builder.text().len()));
                let done = compressor.compress_to_buffer(builder.text(), &mut self.scratch);
                done.is_ok_and(|len| len < builder.text().len())
            }
            _ => false,
        };
        let (codec, text) = match compressed {
            true => (Codec::Zstd, &self.scratch[..]),
            false => (Codec::Raw, builder.text()),
        };
        let head = builder.head(codec);
        let [a, b, c, d, e, f, g] = builder.columns();
        let parts = [&head[..], a, b, c, d, e, f, g];
        let offset = self.run.frame(&parts)?;
        self.run.frame(&[text])?;
        let entry = BlockEntry {
            group: builder.group,
            rows: builder.rows,
            first: builder.first,
            span: u32_of(builder.last - builder.first),
            arrival_max: builder.arrival_max,
            offset,
            columns_len: u32_of(parts.iter().map(|part| part.len()).sum::<usize>()),
            text_len: u32_of(text.len()),
            buffers: builder.buffers.clone(),
        };
        self.list_block(&entry);
        let group = GroupId(entry.group);
        self.builder.start(group);
        Ok(())
    }

    /// Appends a block of the group as it is, its text compressed or not.
    pub(crate) fn copy(
        &mut self,
        mut entry: BlockEntry,
        columns: &[u8],
        text: &[u8],
    ) -> Result<()> {
        self.flush()?;
        entry.offset = self.run.frame(&[columns])?;
        self.run.frame(&[text])?;
        self.list_block(&entry);
        Ok(())
    }

    fn list_block(&mut self, entry: &BlockEntry) {
        entry.encode(&mut self.list);
        self.rows += u64::from(entry.rows);
        for facts in &entry.buffers {
            merge_facts(&mut self.buffers, facts);
        }
    }

    /// Closes the pack; `None` when there was nothing to write.
    pub(crate) fn finish(mut self) -> Result<Option<RunMeta>> {
        self.flush()?;
        if self.rows == 0 {
            return Ok(None);
        }
        self.run.section(BLOCKS, &self.list)?;
        let mut facts = Vec::new();
        self.buffers.iter().for_each(|one| one.encode(&mut facts));
        self.run.section(FACTS, &facts)?;
        self.run.finish(self.rows).map(Some)
    }
}

fn merge_facts(list: &mut FactsList, facts: &BufferFacts) {
    match list.iter_mut().find(|one| one.buffer == facts.buffer) {
        Some(one) => {
            one.rows = one.rows.saturating_add(facts.rows);
            one.first = one.first.min(facts.first);
            one.last = one.last.max(facts.last);
        }
        None => list.push(*facts),
    }
}

/// Writes what is alive of a part in memory as a pack.
pub(crate) fn write_tails(
    place: &Place,
    id: u64,
    range: (Sequence, Sequence),
    config: &IndexConfig,
    part: &TailPart,
    floors: &mut Floors<'_>,
) -> Result<Option<RunMeta>> {
    let mut writer = PackWriter::create(place, id, range, config, false)?;
    let (mut copied, mut line) = (Copied::new(), Vec::new());
    for group in part.groups() {
        writer.start(group)?;
        let mut from = 0;
        loop {
            part.copy_rows(group, from, u64::MAX, &mut copied);
            let Some(last) = copied.last() else { break };
            from = last.number + 1;
            for row in copied.iter().filter(|row| floors.is_live(&row.token)) {
                line.clear();
                write_numbered(ArticleNumber(row.number), part.text(row), &mut line);
                writer.push(&Row {
                    number: row.number,
                    token: row.token,
                    arrival: row.arrival,
                    flags: row.flags,
                    id: part.id(row),
                    line: &line,
                })?;
            }
        }
    }
    writer.finish()
}
