//! Replies as they come in: status lines and multi-line blocks, found in place.
//!
//! Invariant: nothing is lost or seen twice however the octets are cut into reads, and the buffer
//! grows only for a block that was asked for whole. Only CRLF ends a status line and only CRLF.CRLF
//! (or a first line of one dot) ends a block, RFC 3977 section 3.1.
//! Must not judge what a reply means.

use std::io::{self, Read};

use memchr::memmem::Finder;

const BUFFER_OCTETS_START: usize = 4 * 1024;
/// A socket's usual receive buffer; more than this a read seldom brings.
const BUFFER_OCTETS_USUAL: usize = 256 * 1024;
/// RFC 3977 allows 512; some servers send longer ones, and none is endless.
const LINE_OCTETS_MAX: usize = 8 * 1024;

/// What one read brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Got {
    /// Octets, and perhaps there are more.
    More,
    /// All there was for now.
    All,
    /// The other side closed.
    End,
}

/// A part of the input that was recognised; its octets are read with [`Incoming::get`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    start: usize,
    end: usize,
}

/// A status line did not end within its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LineTooLong;

#[derive(Debug)]
pub(crate) struct Incoming {
    buf: Vec<u8>,
    start: usize,
    end: usize,
    /// Whether the last read took all the room there was: there may be much more.
    filled: bool,
    /// Where the search for a block's end goes on.
    scanned: usize,
    /// Whether the block's first line is still to come.
    at_block_start: bool,
    terminator: Finder<'static>,
}

impl Incoming {
    pub(crate) fn new() -> Self {
        Self {
            buf: Vec::new(),
            start: 0,
            end: 0,
            filled: false,
            scanned: 0,
            at_block_start: true,
            terminator: Finder::new(b"\r\n.\r\n"),
        }
    }

    pub(crate) fn get(&self, span: Span) -> &[u8] {
        self.buf.get(span.start..span.end).unwrap_or_default()
    }

    /// How many octets wait to be recognised.
    pub(crate) const fn waiting(&self) -> usize {
        self.end - self.start
    }

    /// Reads once, making room first.
    pub(crate) fn read(&mut self, from: &mut impl Read) -> io::Result<Got> {
        self.make_room();
        let room = self.buf.get_mut(self.end..).unwrap_or_default();
        let asked = room.len();
        match from.read(room) {
            Ok(0) => Ok(Got::End),
            Ok(got) => {
                self.end += got;
                self.filled = got == asked;
                Ok(if got < asked { Got::All } else { Got::More })
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Got::All),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(Got::More),
            Err(error) => Err(error),
        }
    }

    /// The next line without its CRLF, when it is there.
    pub(crate) fn line(&mut self) -> Result<Option<Span>, LineTooLong> {
        let mut from = self.start;
        while let Some(found) = self
            .buf
            .get(from..self.end)
            .and_then(|b| memchr::memchr(b'\n', b))
        {
            let newline = from + found;
            from = newline + 1;
            if newline > self.start && self.buf.get(newline - 1) == Some(&b'\r') {
                let span = Span {
                    start: self.start,
                    end: newline - 1,
                };
                self.start = from;
                self.begin_block();
                return Ok(Some(span));
            }
        }
        if self.waiting() > LINE_OCTETS_MAX {
            Err(LineTooLong)
        } else {
            Ok(None)
        }
    }

    /// The whole block without its terminating line, when it is there.
    pub(crate) fn whole_block(&mut self) -> Option<Span> {
        let (start, end) = (self.start, self.find_end()?);
        self.start = end + 3;
        Some(Span { start, end })
    }

    /// What is there of a block, and whether that was its end. `None` when nothing new is known.
    pub(crate) fn part_of_block(&mut self) -> Option<(Span, bool)> {
        let start = self.start;
        if let Some(end) = self.find_end() {
            self.start = end + 3;
            return Some((Span { start, end }, true));
        }
        // The last four octets may be the beginning of the terminator.
        let end = self.end.saturating_sub(4);
        if end <= start {
            return None;
        }
        self.start = end;
        self.at_block_start = false;
        Some((Span { start, end }, false))
    }

    fn begin_block(&mut self) {
        self.scanned = self.start;
        self.at_block_start = true;
    }

    /// Where the terminating line of the block starts.
    fn find_end(&mut self) -> Option<usize> {
        if self.at_block_start && self.scanned == self.start {
            let first = self.buf.get(self.start..self.end).unwrap_or_default();
            if first.starts_with(b".\r\n") {
                return Some(self.start);
            }
            if first.len() < 3 {
                return None;
            }
        }
        let haystack = self.buf.get(self.scanned..self.end).unwrap_or_default();
        let found = self.terminator.find(haystack);
        let end = found.map(|at| self.scanned + at + 2);
        if end.is_none() {
            // The next search starts where a terminator cut in two would start.
            self.scanned = self.end.saturating_sub(4).max(self.scanned);
        }
        end
    }

    fn make_room(&mut self) {
        if self.start == self.end {
            self.moved_by(self.start);
        } else if self.end == self.buf.len() && self.start > 0 {
            self.buf.copy_within(self.start..self.end, 0);
            self.moved_by(self.start);
        }
        let is_small = self.buf.len() < BUFFER_OCTETS_USUAL;
        if self.end == self.buf.len() || (self.filled && is_small) {
            let grown = match self.buf.len() {
                0 => BUFFER_OCTETS_START,
                len if len < BUFFER_OCTETS_USUAL => BUFFER_OCTETS_USUAL.min(len * 8),
                len => len * 2,
            };
            self.buf.resize(grown, 0);
        }
    }

    fn moved_by(&mut self, octets: usize) {
        self.start -= octets;
        self.end -= octets;
        self.scanned = self.scanned.saturating_sub(octets);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Gives its octets in pieces of the lengths asked for, then would block.
    struct Pieces<'a> {
        left: &'a [u8],
        next: usize,
    }

    impl Read for Pieces<'_> {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            if self.next == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let len = self.next.min(self.left.len()).min(buf.len());
            let (now, left) = self.left.split_at(len);
            buf[..len].copy_from_slice(now);
            self.left = left;
            self.next -= len;
            Ok(len)
        }
    }

    #[derive(Debug, Clone)]
    enum Reply {
        Line(Vec<u8>),
        Block(Vec<u8>, Vec<u8>),
    }

    fn reply() -> impl Strategy<Value = Reply> {
        let line = "[0-9]{3} [ -~]{0,40}".prop_map(String::into_bytes);
        let lines = proptest::collection::vec("(\\.\\.)?[a-z\r\n]{0,20}", 0..12);
        let block = lines.prop_map(|lines| {
            let mut block = Vec::new();
            for line in lines {
                // No bare dot at a line's start: that is what dot-stuffing is for.
                block.extend_from_slice(line.replace("\r\n", "").as_bytes());
                block.extend_from_slice(b"\r\n");
            }
            block
        });
        prop_oneof![
            line.clone().prop_map(Reply::Line),
            (line, block).prop_map(|(line, block)| Reply::Block(line, block)),
        ]
    }

    /// What a parser sees of `wire` when it arrives in pieces of `cuts` octets.
    fn parse(replies: &[Reply], wire: &[u8], cuts: &[usize], whole: bool) -> Vec<Vec<u8>> {
        let mut incoming = Incoming::new();
        let mut pieces = Pieces {
            left: wire,
            next: 0,
        };
        let mut cuts = cuts.iter().cycle();
        let mut seen: Vec<Vec<u8>> = Vec::new();
        let mut expected = replies.iter();
        let mut reply = expected.next();
        let mut in_block = false;
        let mut reads = 0;
        while reply.is_some() {
            reads += 1;
            assert!(reads <= wire.len() + 1, "the end of {reply:?} was missed");
            pieces.next = *cuts.next().unwrap();
            while incoming.read(&mut pieces).unwrap() == Got::More {}
            while let Some(now) = reply {
                if !in_block {
                    let Some(line) = incoming.line().unwrap() else {
                        break;
                    };
                    seen.push(incoming.get(line).to_vec());
                    in_block = matches!(now, Reply::Block(..));
                    if in_block {
                        seen.push(Vec::new());
                    }
                } else if whole {
                    let Some(block) = incoming.whole_block() else {
                        break;
                    };
                    seen.last_mut()
                        .unwrap()
                        .extend_from_slice(incoming.get(block));
                    in_block = false;
                } else {
                    let Some((part, last)) = incoming.part_of_block() else {
                        break;
                    };
                    seen.last_mut()
                        .unwrap()
                        .extend_from_slice(incoming.get(part));
                    in_block = !last;
                }
                if !in_block {
                    reply = expected.next();
                }
            }
        }
        assert_eq!(incoming.waiting(), 0);
        seen
    }

    proptest! {
        #[test]
        fn prop_replies_survive_any_cutting(
            replies in proptest::collection::vec(reply(), 1..20),
            cuts in proptest::collection::vec(1usize..200, 1..10),
            whole in any::<bool>(),
        ) {
            let mut wire = Vec::new();
            let mut expected = Vec::new();
            for reply in &replies {
                let (Reply::Line(line) | Reply::Block(line, _)) = reply;
                wire.extend_from_slice(line);
                wire.extend_from_slice(b"\r\n");
                expected.push(line.clone());
                if let Reply::Block(_, block) = reply {
                    wire.extend_from_slice(block);
                    wire.extend_from_slice(b".\r\n");
                    expected.push(block.clone());
                }
            }
            prop_assert_eq!(parse(&replies, &wire, &cuts, whole), expected);
        }
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let mut incoming = Incoming::new();
        let endless = vec![b'x'; LINE_OCTETS_MAX + 1];
        let mut from = Pieces {
            left: &endless,
            next: endless.len(),
        };
        while incoming.read(&mut from).unwrap() == Got::More {}
        assert_eq!(incoming.line(), Err(LineTooLong));
    }

    #[test]
    fn a_large_block_is_kept_whole_and_a_streamed_one_takes_no_room() {
        let mut wire = b"220 0 <a@b>\r\n".to_vec();
        wire.resize(3_000_000, b'x');
        wire.extend_from_slice(b"\r\n.\r\n");
        for whole in [true, false] {
            let mut incoming = Incoming::new();
            let mut from = &wire[..];
            let (mut len, mut in_block) = (0, false);
            loop {
                incoming.read(&mut from).unwrap();
                if !in_block {
                    in_block = incoming.line().unwrap().is_some();
                }
                let found = if whole {
                    incoming.whole_block().map(|span| (span, true))
                } else {
                    incoming.part_of_block()
                };
                if let Some((span, last)) = found {
                    len += incoming.get(span).len();
                    if last {
                        break;
                    }
                }
            }
            assert_eq!(len, 3_000_000 - 13 + 2);
            assert_eq!(incoming.buf.len() > 1_000_000, whole);
        }
    }
}
