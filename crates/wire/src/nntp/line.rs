//! Command lines (RFC 3977 section 3.1): splitting them from a buffer, and into verb and arguments.
//!
//! Only CRLF ends a line.  A line longer than the limit is skipped to its CRLF, in any number of pieces, and
//! reported once; so is a line with NUL, bare CR or bare LF in it, which must never be taken for two commands.
//! The splitter keeps two numbers between calls and never copies.

use memchr::{memchr, memchr3};
use smallvec::SmallVec;

/// The longest command line, CRLF included (RFC 3977 section 3.1).
pub const COMMAND_OCTETS_MAX: usize = 512;

/// Arguments kept without allocating; no command of ours takes more.
const ARGUMENTS_INLINE: usize = 6;

/// Why a line cannot be a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BadLine {
    /// More octets than the limit.
    TooLong,
    /// NUL, or CR or LF not as CRLF.
    Octet,
}

/// What the front of a buffer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split<'b> {
    /// No whole line yet.  Drop `used` octets (part of a line that is being skipped) and come back with more.
    Incomplete {
        /// Octets to drop.
        used: usize,
    },
    /// One line, without its CRLF.
    Line {
        /// The line.
        line: &'b [u8],
        /// Octets to drop, CRLF included.
        used: usize,
    },
    /// A line that was no good, now skipped to its end.
    Bad {
        /// What was wrong with it.
        why: BadLine,
        /// Octets to drop, CRLF included.
        used: usize,
    },
}

/// Splits command lines from the front of a growing buffer.
#[derive(Debug, Clone)]
pub struct LineSplitter {
    octets_max: usize,
    /// Octets at the front of the buffer that were searched before.
    scanned: usize,
    skipping: bool,
}

impl Default for LineSplitter {
    fn default() -> Self {
        Self::new(COMMAND_OCTETS_MAX)
    }
}

impl LineSplitter {
    /// A splitter for lines of at most `octets_max` octets, CRLF included.
    #[must_use]
    pub const fn new(octets_max: usize) -> Self {
        Self {
            octets_max,
            scanned: 0,
            skipping: false,
        }
    }

    /// Looks at the front of `buf`, which must begin where the last answer's `used` left it.
    pub fn next<'b>(&mut self, buf: &'b [u8]) -> Split<'b> {
        let mut from = self.scanned.min(buf.len());
        let end = loop {
            let Some(lf) = memchr(b'\n', buf.get(from..).unwrap_or_default()) else {
                break None;
            };
            let lf = from + lf;
            if lf > 0 && buf.get(lf - 1) == Some(&b'\r') {
                break Some(lf + 1);
            }
            from = lf + 1;
        };
        let Some(used) = end else {
            return self.incomplete(buf);
        };
        let skipped = std::mem::take(&mut self.skipping);
        self.scanned = 0;
        let line = buf.get(..used - 2).unwrap_or_default();
        if skipped || used > self.octets_max {
            Split::Bad {
                why: BadLine::TooLong,
                used,
            }
        } else if memchr3(b'\r', b'\n', 0, line).is_some() {
            Split::Bad {
                why: BadLine::Octet,
                used,
            }
        } else {
            Split::Line { line, used }
        }
    }

    /// Nothing ends in `buf`: drop it if it is already too long, but keep a CR that may be half of the end.
    fn incomplete(&mut self, buf: &[u8]) -> Split<'static> {
        if !self.skipping && buf.len() < self.octets_max {
            self.scanned = buf.len();
            return Split::Incomplete { used: 0 };
        }
        self.skipping = true;
        let kept = usize::from(buf.last() == Some(&b'\r'));
        self.scanned = kept;
        Split::Incomplete {
            used: buf.len() - kept,
        }
    }
}

/// A command line's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command<'l> {
    /// The first word, as written; empty when the line has none.
    pub verb: &'l [u8],
    /// The others.
    pub args: SmallVec<[&'l [u8]; ARGUMENTS_INLINE]>,
    /// Everything after the verb, blanks at the ends removed: for commands whose last argument may have blanks.
    pub rest: &'l [u8],
}

impl<'l> Command<'l> {
    /// Splits at spaces and TABs (RFC 3977 section 3.1).
    #[must_use]
    pub fn parse(line: &'l [u8]) -> Self {
        let line = trim(line);
        let (verb, rest) = word(line);
        let rest = trim(rest);
        let mut args = SmallVec::new();
        let mut left = rest;
        while !left.is_empty() {
            let (arg, after) = word(left);
            args.push(arg);
            left = trim(after);
        }
        Self { verb, args, rest }
    }

    /// Whether the verb is this one, in any case.
    #[must_use]
    pub fn is(&self, verb: &str) -> bool {
        self.verb.eq_ignore_ascii_case(verb.as_bytes())
    }

    /// The argument at this place, counted from 0.
    #[must_use]
    pub fn arg(&self, place: usize) -> Option<&'l [u8]> {
        self.args.get(place).copied()
    }

    /// Whether the argument at this place is this keyword, in any case.
    #[must_use]
    pub fn arg_is(&self, place: usize, keyword: &str) -> bool {
        self.arg(place)
            .is_some_and(|arg| arg.eq_ignore_ascii_case(keyword.as_bytes()))
    }
}

const fn is_space(octet: u8) -> bool {
    matches!(octet, b' ' | b'\t')
}

fn word(line: &[u8]) -> (&[u8], &[u8]) {
    let end = line
        .iter()
        .position(|&octet| is_space(octet))
        .unwrap_or(line.len());
    line.split_at_checked(end).unwrap_or_default()
}

fn trim(mut line: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = line
        && is_space(*first)
    {
        line = rest;
    }
    while let [rest @ .., last] = line
        && is_space(*last)
    {
        line = rest;
    }
    line
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Feeds `input` in pieces of `step` octets, collects the lines, `!` for too long and `?` for bad octets.
    fn lines(input: &[u8], step: usize) -> Vec<String> {
        let mut splitter = LineSplitter::new(16);
        let (mut buf, mut found) = (Vec::new(), Vec::new());
        for piece in input.chunks(step) {
            buf.extend_from_slice(piece);
            loop {
                let (used, what) = match splitter.next(&buf) {
                    Split::Incomplete { used } => {
                        buf.drain(..used);
                        break;
                    }
                    Split::Line { line, used } => {
                        (used, String::from_utf8_lossy(line).into_owned())
                    }
                    Split::Bad {
                        why: BadLine::TooLong,
                        used,
                    } => (used, "!".to_owned()),
                    Split::Bad {
                        why: BadLine::Octet,
                        used,
                    } => (used, "?".to_owned()),
                };
                buf.drain(..used);
                found.push(what);
            }
            assert!(
                buf.len() <= 16,
                "a splitter never asks to keep more than a line"
            );
        }
        found
    }

    #[test]
    fn only_crlf_ends_a_line() {
        assert_eq!(
            lines(b"DATE\r\nHELP\n\r\nA\rB\r\n\r\n\0\r\nQUIT", 3),
            ["DATE", "?", "?", "", "?"]
        );
        assert_eq!(lines(b"a\nQUIT\r\n", 99), ["?"]);
    }

    #[test]
    fn long_lines_are_skipped_once() {
        for step in 1..50 {
            assert_eq!(
                lines(b"12345678901234\r\nA\r\n", step),
                ["12345678901234", "A"],
                "{step}"
            );
            assert_eq!(
                lines(b"123456789012345\r\nA\r\n", step),
                ["!", "A"],
                "{step}"
            );
            assert_eq!(
                lines(&[&[b'x'; 100][..], b"\r\r\nA\r\n"].concat(), step),
                ["!", "A"],
                "{step}"
            );
            assert_eq!(
                lines(&[&[b'\n'; 40][..], b"\r\nA\r\n"].concat(), step),
                ["!", "A"],
                "{step}"
            );
        }
    }

    #[test]
    fn words() {
        let command = Command::parse(b" list\tActive  a.*,!b \t");
        assert!(command.is("LIST") && command.arg_is(0, "ACTIVE"));
        assert_eq!(command.arg(1), Some(&b"a.*,!b"[..]));
        assert_eq!(
            (command.args.len(), command.rest),
            (2, &b"Active  a.*,!b"[..])
        );
        assert_eq!(
            Command::parse(b" \t"),
            Command {
                verb: b"",
                args: SmallVec::new(),
                rest: b""
            }
        );
    }

    proptest! {
        #[test]
        fn prop_pieces_do_not_matter(input in proptest::collection::vec(prop_oneof![
            Just(b'\r'), Just(b'\n'), Just(b'a'), Just(b' '), any::<u8>()], 0..120), step in 1usize..40) {
            prop_assert_eq!(lines(&input, step), lines(&input, 200));
        }

        #[test]
        fn prop_words_hold_no_blanks(line in "[ \ta-c]{0,40}") {
            let command = Command::parse(line.as_bytes());
            let words: Vec<_> = line.split_ascii_whitespace().map(str::as_bytes).collect();
            let found: Vec<_> = std::iter::once(command.verb).chain(command.args.iter().copied())
                .filter(|word| !word.is_empty()).collect();
            prop_assert_eq!(found, words);
        }
    }
}
