//! The articles of a stretch of the log as the store has them, in the order of the log.
//!
//! Every buffer is walked from its oldest article on, the one that is furthest behind first.  Inside a buffer the order
//! is that of the log but for a commit that was repaired, so a bounded heap in front sets it right.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use newsreel_store::{RecordScan, ScanRange, Scanned, StoreReader};
use newsreel_wire::{Sequence, Token};

use crate::error::Error;

/// Articles held back to be put in order: more than commits in flight have.
pub const HELD_MAX: usize = 64 << 10;

/// Records passed over in one call at most, so that a caller is never kept long.
const PASSED_MAX: usize = 4096;

/// A walk over one buffer, and the last sequence seen there.
#[derive(Debug)]
struct Walk {
    scan: Box<dyn RecordScan>,
    seen: Sequence,
}

/// Articles of the store in the order of the log.
#[derive(Debug)]
pub(crate) struct InOrder {
    range: (Sequence, Sequence),
    walks: Vec<Walk>,
    held: BinaryHeap<Reverse<(u64, [u8; 24])>>,
}

impl InOrder {
    /// Those of the sequences from `range.0` to `range.1`.
    pub(crate) fn new(store: &StoreReader, range: (Sequence, Sequence)) -> Self {
        let buffers = store.buffers();
        let walk = |scan| Walk {
            scan,
            seen: Sequence::ZERO,
        };
        Self {
            range,
            walks: buffers
                .iter()
                .filter_map(|buffer| store.scan(buffer.id(), ScanRange::Live))
                .map(walk)
                .collect(),
            held: BinaryHeap::new(),
        }
    }

    /// Whether there are no more.
    pub(crate) fn is_done(&self) -> bool {
        self.walks.is_empty() && self.held.is_empty()
    }

    /// The next article; `None` at the end, and when nothing was found in a long stretch: then ask again.
    pub(crate) fn next(&mut self) -> Result<Option<(Sequence, Token)>, Error> {
        let mut passed = 0;
        while self.held.len() < HELD_MAX && !self.walks.is_empty() {
            self.advance()?;
            passed += 1;
            if passed == PASSED_MAX {
                return Ok(None);
            }
        }
        let next = self.held.pop();
        Ok(next.map(|Reverse((sequence, token))| (Sequence(sequence), Token::from_bytes(token))))
    }

    /// One record further in the buffer that is furthest behind.
    fn advance(&mut self) -> Result<(), Error> {
        let behind = (0..self.walks.len()).min_by_key(|at| self.walks[*at].seen);
        let Some(at) = behind else { return Ok(()) };
        match self.walks[at].scan.step()? {
            None => {
                self.walks.swap_remove(at);
            }
            Some(Scanned::Record {
                token,
                sequence,
                sound: true,
                ..
            }) => {
                self.walks[at].seen = sequence;
                if sequence.0 > self.range.1.0.saturating_add(HELD_MAX as u64) {
                    self.walks.swap_remove(at);
                } else if (self.range.0..=self.range.1).contains(&sequence) {
                    self.held.push(Reverse((sequence.0, *token.as_bytes())));
                }
            }
            // What is damaged is lost, and the next record tells how far the walk is.
            Some(Scanned::Record { .. } | Scanned::Damaged { .. } | Scanned::Passed) => {}
        }
        Ok(())
    }
}
