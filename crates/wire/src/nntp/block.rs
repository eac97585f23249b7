//! A multi-line block that is passed on while it comes: cut from the front of a growing buffer in portions.
//!
//! The end is found as [`super::framing`] has it, however the octets are cut into reads; of what was looked at no more
//! than [`CUT_OCTETS_MAX`] octets are asked to be kept.  Nothing is converted and nothing is copied.

use super::framing::{TERMINATOR, find_end, find_terminator};

/// Octets at the end of a buffer that may be the beginning of the terminator.
pub const CUT_OCTETS_MAX: usize = TERMINATOR.len() - 1;

/// What the front of a buffer holds of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Portion {
    /// Nothing can be said yet: come back with more.
    More,
    /// So many octets belong to the block, and it goes on.
    Part(usize),
    /// So many octets are the rest of it, terminator included.
    Last(usize),
}

/// Cuts blocks, one after the other, each from the front of a buffer.
#[derive(Debug, Clone, Default)]
pub struct BlockSplitter {
    /// A part of the block has been given out.
    has_begun: bool,
    /// Octets at the front of the buffer that were searched before.
    scanned: usize,
}

impl BlockSplitter {
    /// Looks at the front of `buf`, from which the octets of the last answer must have been dropped.
    pub fn next(&mut self, buf: &[u8]) -> Portion {
        let end = if self.has_begun {
            find_terminator(buf, self.scanned)
        } else {
            find_end(buf, self.scanned)
        };
        if let Some(end) = end {
            *self = Self::default();
            return Portion::Last(end);
        }
        let len = buf.len().saturating_sub(CUT_OCTETS_MAX);
        self.scanned = buf.len() - len;
        if len == 0 {
            return Portion::More;
        }
        self.has_begun = true;
        Portion::Part(len)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Feeds `input` in pieces of `step` octets; the blocks in it, and what was left.
    fn blocks(input: &[u8], step: usize) -> (Vec<Vec<u8>>, Vec<u8>) {
        let mut splitter = BlockSplitter::default();
        let (mut buf, mut block, mut found) = (Vec::new(), Vec::new(), Vec::new());
        for piece in input.chunks(step) {
            buf.extend_from_slice(piece);
            loop {
                match splitter.next(&buf) {
                    Portion::More => break,
                    Portion::Part(len) => block.extend(buf.drain(..len)),
                    Portion::Last(len) => {
                        block.extend(buf.drain(..len));
                        found.push(std::mem::take(&mut block));
                    }
                }
            }
            assert!(buf.len() <= CUT_OCTETS_MAX, "{}", buf.len());
        }
        block.extend(buf);
        (found, block)
    }

    #[test]
    fn a_block_ends_only_at_crlf_dot_crlf() {
        for step in 1..12 {
            // A portion that ends in front of a dot does not make it the block's first octet.
            let input = b"abc.\r\nd\n.\n..\r\n.\r\n.\r\n\r\n.\r\nrest";
            let (found, left) = blocks(input, step);
            let expected = [&b"abc.\r\nd\n.\n..\r\n.\r\n"[..], b".\r\n", b"\r\n.\r\n"];
            assert_eq!(found, expected, "{step}");
            assert_eq!(left, b"rest");
        }
    }

    proptest! {
        #[test]
        fn prop_pieces_do_not_matter(input in proptest::collection::vec(prop_oneof![
            Just(b'\r'), Just(b'\n'), Just(b'.'), Just(b'a')], 0..60), step in 1usize..20) {
            let (found, left) = blocks(&input, step);
            let mut rest = input.as_slice();
            for block in found {
                prop_assert_eq!(find_end(rest, 0), Some(block.len()));
                prop_assert_eq!(&rest[..block.len()], &block);
                rest = &rest[block.len()..];
            }
            prop_assert_eq!(find_end(rest, 0), None);
            prop_assert_eq!(rest, left);
        }
    }
}
