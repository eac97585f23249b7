//! What came from a server and is not looked at yet: status lines, and multi-line blocks line by line or in portions.
//!
//! One buffer of [`BUFFER_OCTETS`], never larger; nothing is lost or seen twice however the octets are cut into reads.

use newsreel_wire::nntp::block::{BlockSplitter, Portion};
use newsreel_wire::nntp::line::{LineSplitter, Split};

use super::error::{Fault, Said};

/// What one connection holds of what came.
pub const BUFFER_OCTETS: usize = 64 << 10;

/// The longest status line, CRLF included: RFC 3977 allows 512 octets, some servers send longer ones.
pub const STATUS_OCTETS_MAX: usize = 4 << 10;

/// The longest line of a list or an overview, CRLF included; longer ones are left out.  An overview line has a whole
/// References, Path and Xref in it.
pub const BLOCK_LINE_OCTETS_MAX: usize = 32 << 10;

/// All lines of one answer, CRLFs included: some ten times what the longest list of groups has.
pub const LINES_OCTETS_MAX: usize = 256 << 20;

/// What is done with the octets of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Line {
    /// No whole line yet.
    More,
    /// These octets, without CRLF.
    Whole(usize, usize),
    /// One that is no good, left out.
    LeftOut,
    /// The line that ends a block.
    End,
    /// The lines are more than [`LINES_OCTETS_MAX`].
    TooMuch,
}

#[derive(Debug)]
pub(super) struct Incoming {
    octets: Box<[u8]>,
    from: usize,
    to: usize,
    status: LineSplitter,
    lines: LineSplitter,
    block: BlockSplitter,
    /// Octets of lines of this block.
    lines_octets: usize,
}

impl Incoming {
    pub(super) fn new() -> Self {
        Self {
            octets: vec![0; BUFFER_OCTETS].into(),
            from: 0,
            to: 0,
            status: LineSplitter::new(STATUS_OCTETS_MAX),
            lines: LineSplitter::new(BLOCK_LINE_OCTETS_MAX),
            block: BlockSplitter::default(),
            lines_octets: 0,
        }
    }

    /// Whether everything that came was looked at.
    pub(super) const fn is_empty(&self) -> bool {
        self.from == self.to
    }

    /// Room for more; empty when there is none until something was looked at.
    pub(super) fn room(&mut self) -> &mut [u8] {
        if self.from > 0 {
            self.octets.copy_within(self.from..self.to, 0);
            self.to -= self.from;
            self.from = 0;
        }
        self.octets.get_mut(self.to..).unwrap_or_default()
    }

    /// So many octets were put into the room.
    pub(super) const fn came(&mut self, len: usize) {
        self.to += len;
    }

    pub(super) fn get(&self, from: usize, to: usize) -> &[u8] {
        self.octets.get(from..to).unwrap_or_default()
    }

    /// The next status line: where it is, without CRLF.
    pub(super) fn status(&mut self) -> Result<Option<(usize, usize)>, Fault> {
        let front = self.octets.get(self.from..self.to).unwrap_or_default();
        let at = self.from;
        match self.status.next(front) {
            Split::Incomplete { used: 0 } => Ok(None),
            Split::Incomplete { .. } => Err(Fault::TooLarge(STATUS_OCTETS_MAX)),
            Split::Line { line, used } => {
                self.from += used;
                Ok(Some((at, at + line.len())))
            }
            Split::Bad { .. } => Err(Fault::Nonsense(Said::new(front))),
        }
    }

    /// The next line of a block, as it is on the wire but for a stuffed dot.
    pub(super) fn line(&mut self) -> Line {
        let front = self.octets.get(self.from..self.to).unwrap_or_default();
        let at = self.from;
        let split = self.lines.next(front);
        let (Split::Incomplete { used } | Split::Line { used, .. } | Split::Bad { used, .. }) =
            split;
        self.from += used;
        self.lines_octets += used;
        match split {
            Split::Line { line: b".", .. } => {
                self.lines_octets = 0;
                Line::End
            }
            _ if self.lines_octets > LINES_OCTETS_MAX => Line::TooMuch,
            Split::Incomplete { .. } => Line::More,
            Split::Line { line, .. } => {
                let dot = usize::from(line.first() == Some(&b'.'));
                Line::Whole(at + dot, at + line.len())
            }
            Split::Bad { .. } => Line::LeftOut,
        }
    }

    /// What is there of a block: where, and whether it is the end; none: nothing new.
    pub(super) fn portion(&mut self) -> Option<(usize, usize, bool)> {
        let front = self.octets.get(self.from..self.to).unwrap_or_default();
        let at = self.from;
        let (len, is_last) = match self.block.next(front) {
            Portion::More => return None,
            Portion::Part(len) => (len, false),
            Portion::Last(len) => (len, true),
        };
        self.from += len;
        Some((at, at + len, is_last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(incoming: &mut Incoming, octets: &[u8]) {
        let room = incoming.room();
        room[..octets.len()].copy_from_slice(octets);
        incoming.came(octets.len());
    }

    #[test]
    fn a_line_that_is_no_good_is_left_out_and_the_next_one_is_read() {
        let mut incoming = Incoming::new();
        put(&mut incoming, b"a 1\r\n..b\r\nc\0\r\n");
        let mut found = Vec::new();
        for _ in 0..3 {
            let line = match incoming.line() {
                Line::Whole(from, to) => String::from_utf8_lossy(incoming.get(from, to)).into(),
                other => format!("{other:?}"),
            };
            found.push(line);
        }
        assert_eq!(found, ["a 1", ".b", "LeftOut"]);
        assert_eq!(incoming.line(), Line::More);
        // Longer than the buffer, and the buffer does not grow.
        for _ in 0..10 {
            let room = incoming.room().len();
            put(&mut incoming, &vec![b'x'; room]);
            assert_eq!(incoming.line(), Line::More);
        }
        put(&mut incoming, b"\r\n.\r\n");
        assert_eq!(incoming.line(), Line::LeftOut);
        assert_eq!(incoming.line(), Line::End);
        assert!(incoming.is_empty());
    }

    /// Lists were taken for ever.
    #[test]
    fn lines_without_an_end_are_too_much() {
        let mut incoming = Incoming::new();
        for (octets, expected) in [
            (LINES_OCTETS_MAX - 6, Line::End),
            (LINES_OCTETS_MAX - 4, Line::TooMuch),
        ] {
            incoming.lines_octets = octets;
            put(&mut incoming, b"a\r\n\0\r\n.\r\n");
            let (mut line, mut last) = (0, Line::More);
            while !matches!(last, Line::End | Line::TooMuch) {
                assert!(line < 3);
                line += 1;
                last = incoming.line();
            }
            assert_eq!(last, expected);
        }
    }

    #[test]
    fn a_status_line_has_a_limit() {
        let mut incoming = Incoming::new();
        put(&mut incoming, &[b'2'; STATUS_OCTETS_MAX - 1]);
        assert!(matches!(incoming.status(), Ok(None)));
        put(&mut incoming, b"2");
        let endless = incoming.status();
        assert!(matches!(endless, Err(Fault::TooLarge(STATUS_OCTETS_MAX))));
        let mut incoming = Incoming::new();
        put(&mut incoming, b"200 a\nb\r\n");
        assert!(matches!(incoming.status(), Err(Fault::Nonsense(_))));
    }
}
