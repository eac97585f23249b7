//! Takes any octets for what a server answers: the door for fuzzers.
//!
//! Must never panic, whatever comes.

use std::io::Read;

use crate::client::incoming::Incoming;
use crate::client::script::{code, number, word};

/// What the load generator saw of a server's octets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Saw {
    /// A status line, its code, and the numbers among its first words.
    Status(Vec<u8>, Option<u16>, Vec<Option<u64>>),
    /// A block, wire form without its end.
    Block(Vec<u8>),
    /// A status line without end.
    TooLong,
}

/// Gives its octets in pieces of one length.
struct Pieces<'a> {
    left: &'a [u8],
    step: usize,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        let len = self.step.min(self.left.len()).min(buf.len());
        let (now, left) = self.left.split_at(len);
        buf[..len].copy_from_slice(now);
        self.left = left;
        Ok(len)
    }
}

/// Reads `octets` as they come in pieces of `step` octets: status lines, and behind a code that ends in 0, 1, 2, 4 or 5
/// a block, in one piece or, where `in_parts`, as it comes.  What is not whole at the end is not told.
#[must_use]
pub fn replies(octets: &[u8], step: usize, in_parts: bool) -> Vec<Saw> {
    let mut incoming = Incoming::new();
    let mut pieces = Pieces {
        left: octets,
        step: step.max(1),
    };
    let (mut seen, mut block): (Vec<Saw>, Option<Vec<u8>>) = (Vec::new(), None);
    loop {
        if let Some(octets) = &mut block {
            let found = match in_parts {
                true => incoming.part_of_block(),
                false => incoming.whole_block().map(|span| (span, true)),
            };
            if let Some((span, last)) = found {
                octets.extend_from_slice(incoming.get(span));
                if last {
                    seen.extend(block.take().map(Saw::Block));
                }
                continue;
            }
        } else {
            match incoming.line() {
                Ok(Some(span)) => {
                    let line = incoming.get(span).to_vec();
                    let numbers = (1..4).map(|place| number(word(&line, place)));
                    let (code, numbers) = (code(&line), numbers.collect());
                    if code.is_some_and(|code| matches!(code % 10, 0 | 1 | 2 | 4 | 5)) {
                        block = Some(Vec::new());
                    }
                    seen.push(Saw::Status(line, code, numbers));
                    continue;
                }
                Ok(None) => {}
                Err(_) => {
                    seen.push(Saw::TooLong);
                    return seen;
                }
            }
        }
        // Nothing more can be read when all of it came.
        if pieces.left.is_empty() || incoming.read(&mut pieces).is_err() {
            return seen;
        }
    }
}
