//! Writing a bucket: entries come in sort order, each hash once.

use newsreel_wire::Sequence;

use super::bucket::{BucketFacts, FACTS, FENCES, FILTER, page_offset};
use super::page::{PageBuilder, Stored};
use crate::error::Result;
use crate::liveness::count_in;
use crate::narrow::u32_of;
use crate::sealed::filter::Filter;
use crate::sealed::writer::{Place, RunWriter};
use crate::sealed::{RunKind, RunMeta};

/// A bucket being written.
#[derive(Debug)]
pub(crate) struct BucketWriter {
    run: RunWriter,
    page: PageBuilder,
    fences: Vec<u64>,
    filter: Filter,
    facts: BucketFacts,
    rows: u64,
}

impl BucketWriter {
    /// Begins a bucket of at most `rows_max` entries.
    pub(crate) fn create(
        place: &Place,
        id: u64,
        range: (Sequence, Sequence),
        rows_max: u64,
    ) -> Result<Self> {
        Ok(Self {
            run: RunWriter::create(place, RunKind::History, id, range)?,
            page: PageBuilder::default(),
            fences: Vec::new(),
            filter: Filter::for_keys(rows_max),
            facts: BucketFacts {
                arrival_min: u32::MAX,
                ..BucketFacts::default()
            },
            rows: 0,
        })
    }

    /// Appends the next entry in sort order.
    pub(crate) fn push(&mut self, stored: &Stored) -> Result<()> {
        if self.page.is_full() {
            self.flush_page()?;
        }
        if self.page.is_empty() {
            self.fences.push(stored.hash.prefix());
        }
        self.page.push(stored);
        self.filter.insert(stored.hash.suffix());
        self.rows += 1;
        let facts = &mut self.facts;
        match stored.token() {
            Some(token) => count_in(&mut facts.buffers, &token),
            None => facts.tokenless += 1,
        }
        facts.arrival_min = facts.arrival_min.min(stored.arrival);
        facts.arrival_max = facts.arrival_max.max(stored.arrival);
        Ok(())
    }

    /// How many entries were written.
    pub(crate) const fn rows(&self) -> u64 {
        self.rows
    }

    fn flush_page(&mut self) -> Result<()> {
        let number = self.fences.len() as u64 - 1;
        let (id, offset) = (self.run.id(), self.run.offset());
        debug_assert_eq!(offset, page_offset(number));
        let octets = self.page.seal(id, offset, u32_of(number));
        self.run.raw(&octets[..])?;
        self.page.clear();
        Ok(())
    }

    /// Closes the bucket.
    pub(crate) fn finish(mut self) -> Result<RunMeta> {
        if !self.page.is_empty() {
            self.flush_page()?;
        }
        let fences: Vec<u8> = self
            .fences
            .iter()
            .flat_map(|fence| fence.to_le_bytes())
            .collect();
        self.run.section(FENCES, &fences)?;
        self.run.section(FILTER, &self.filter.encode())?;
        self.run.section(FACTS, &self.facts.encode())?;
        self.run.finish(self.rows)
    }
}
