//! Making one bucket of several neighbours, a step at a time, leaving out what is needed no more.
//!
//! Of two entries with one hash the newer bucket's counts.  An entry goes when its article has been gone for longer
//! than is remembered; what is live is always kept.

use std::sync::Arc;

use super::bucket::{Bucket, Forgetting};
use super::page::Stored;
use super::write::BucketWriter;
use crate::error::Result;
use crate::sealed::RunMeta;
use crate::sealed::window::Window;
use crate::sealed::writer::Place;

#[derive(Debug)]
struct Input {
    bucket: Arc<Bucket>,
    window: Window,
    next_page: u64,
    entries: Vec<Stored>,
    at: usize,
}

impl Input {
    /// The entry it stands at.
    fn current(&mut self) -> Result<Option<&Stored>> {
        if self.at == self.entries.len() && self.next_page < self.bucket.pages() {
            let page = self.next_page;
            self.bucket
                .read_page(page, &mut self.window, &mut self.entries)?;
            self.next_page += 1;
            self.at = 0;
        }
        Ok(self.entries.get(self.at))
    }
}

/// A merge under way.
#[derive(Debug)]
pub(crate) struct BucketMerge {
    /// From the oldest to the newest.
    inputs: Vec<Input>,
    writer: BucketWriter,
}

impl BucketMerge {
    /// Begins to merge neighbours, given from the oldest to the newest.
    pub(crate) fn begin(place: &Place, id: u64, buckets: &[Arc<Bucket>]) -> Result<Self> {
        let rows = buckets.iter().map(|bucket| bucket.meta().rows).sum();
        let first = buckets.iter().map(|bucket| bucket.meta().first).min();
        let last = buckets.iter().map(|bucket| bucket.meta().last).max();
        let range = (first.unwrap_or_default(), last.unwrap_or_default());
        let inputs = buckets
            .iter()
            .map(|bucket| Input {
                bucket: Arc::clone(bucket),
                window: Window::default(),
                next_page: 0,
                entries: Vec::new(),
                at: 0,
            })
            .collect();
        Ok(Self {
            inputs,
            writer: BucketWriter::create(place, id, range, rows)?,
        })
    }

    fn octets_read(&self) -> u64 {
        self.inputs.iter().map(|input| input.window.read).sum()
    }

    /// Goes on until about `step_bytes` were read.  `true`: all is written.
    pub(crate) fn step(
        &mut self,
        forgetting: &mut Forgetting<'_>,
        step_bytes: u64,
    ) -> Result<bool> {
        let until = self.octets_read() + step_bytes;
        while self.octets_read() < until {
            // Rows between two looks at the budget.
            for _ in 0..64 {
                let Some(stored) = self.next()? else {
                    return Ok(true);
                };
                if !forgetting.forgets(&stored) {
                    self.writer.push(&stored)?;
                }
            }
        }
        Ok(false)
    }

    /// The next entry in sort order, the newest of its hash.
    fn next(&mut self) -> Result<Option<Stored>> {
        let mut best: Option<Stored> = None;
        for input in &mut self.inputs {
            let Some(stored) = input.current()? else {
                continue;
            };
            if best.is_none_or(|best| stored.key() <= best.key()) {
                best = Some(*stored);
            }
        }
        let Some(best) = best else {
            return Ok(None);
        };
        for input in &mut self.inputs {
            let at_best = input
                .entries
                .get(input.at)
                .is_some_and(|s| s.hash == best.hash);
            input.at += usize::from(at_best);
        }
        Ok(Some(best))
    }

    /// Closes the new bucket; `None` when nothing was left to keep.
    pub(crate) fn finish(self) -> Result<Option<RunMeta>> {
        if self.writer.rows() == 0 {
            return Ok(None);
        }
        self.writer.finish().map(Some)
    }
}
