//! The seam between the event loop and the passes: what to send next, and what a reply means.
//!
//! Invariant: a script sees the replies of its connection in the order of its commands, each with
//! the operation it belongs to. A script must not wait, read a clock or touch a socket.

use std::fmt::Debug;

use super::outgoing::Outgoing;
use super::tally::Tally;

/// A command under way. What `key` and `group` mean is the script's affair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Op {
    /// Which of the pass's kinds of command this is.
    pub(crate) kind: u8,
    pub(crate) key: u64,
    pub(crate) group: u32,
}

/// What a script did when it was asked to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Issue {
    /// It put a command (or an article) that will be answered.
    Sent(Op),
    /// It has to see a reply first.
    Wait,
    /// It has nothing more to send.
    Done,
}

/// What follows a status line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing: the reply is complete.
    Complete,
    /// A block that the script wants in one piece.
    Whole,
    /// A block that the script takes in parts as they arrive.
    Parts,
}

/// One connection's behaviour.
pub(crate) trait Script<'c>: Send + Debug {
    /// Puts the next command into `out`.
    fn issue(&mut self, out: &mut Outgoing<'c>) -> Issue;

    /// Takes a status line (without CRLF).
    fn status(&mut self, op: Op, line: &[u8], tally: &mut Tally) -> Next;

    /// Takes a block or a part of one, wire form without the terminating line.
    fn block(&mut self, op: Op, octets: &[u8], last: bool, tally: &mut Tally) {
        let _ = (op, octets, last, tally);
    }

    /// Time is up: only finish what is begun.
    fn stop(&mut self);
}

/// The reply code at the start of a status line.
pub(crate) fn code(line: &[u8]) -> Option<u16> {
    let (digits, rest) = line.split_first_chunk::<3>()?;
    if !digits.iter().all(u8::is_ascii_digit) || !matches!(rest.first(), None | Some(b' ')) {
        return None;
    }
    Some(
        digits
            .iter()
            .fold(0, |code, digit| code * 10 + u16::from(digit - b'0')),
    )
}

/// The word at `place` of a status line, the code being word 0.
pub(crate) fn word(line: &[u8], place: usize) -> &[u8] {
    line.split(|&octet| octet == b' ')
        .nth(place)
        .unwrap_or_default()
}

/// A decimal number that fills the whole word.
pub(crate) fn number(word: &[u8]) -> Option<u64> {
    if word.is_empty() || word.len() > 19 || !word.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(
        word.iter()
            .fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0')),
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn codes_words_and_numbers() {
        assert_eq!(code(b"220 1 <a@b>"), Some(220));
        assert_eq!(code(b"205"), Some(205));
        assert_eq!(
            (code(b"22"), code(b"2200 x"), code(b"2x0 a"), code(b"")),
            (None, None, None, None)
        );
        assert_eq!(word(b"211 5 1 9 misc.test", 4), b"misc.test");
        assert_eq!(word(b"211 5", 9), b"");
        assert_eq!(
            (number(b"00012"), number(b""), number(b"1x")),
            (Some(12), None, None)
        );
    }

    proptest! {
        #[test]
        fn prop_no_line_panics(line in proptest::collection::vec(any::<u8>(), 0..40), place in 0usize..9) {
            let _ = (code(&line), number(word(&line, place)));
        }

        #[test]
        fn prop_a_printed_status_line_is_read_back(
            reply in 100u16..600,
            value in 0u64..10_000_000_000,
        ) {
            let line = format!("{reply} {value} <x@y>");
            prop_assert_eq!(code(line.as_bytes()), Some(reply));
            prop_assert_eq!(number(word(line.as_bytes(), 1)), Some(value));
            prop_assert_eq!(word(line.as_bytes(), 2), b"<x@y>");
        }
    }
}
