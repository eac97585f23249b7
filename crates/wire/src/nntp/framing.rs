//! Multi-line blocks (RFC 3977 section 3.1.1): finding the end, dot-stuffing and back, writing one.
//!
//! A block ends at CRLF "." CRLF, or at "." CRLF when that is all there is; LF alone ends nothing, anywhere, so a
//! command hidden behind LF "." LF stays part of the article.  The conversions keep every octet that is not a line
//! end or a stuffed dot; whether bare CR, LF or NUL are allowed is the caller's question to the octet facts.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use memchr::{memchr, memchr_iter};

/// The end of a block after a line.
pub const TERMINATOR: &[u8] = b"\r\n.\r\n";

/// The whole of an empty block, and what follows the last line's CRLF.
pub const TERMINATOR_LINE: &[u8] = b".\r\n";

static FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(TERMINATOR));

/// Finds the end of the block that begins at `buf[0]`: the offset after its terminator.
///
/// `scanned` says how many octets of `buf` an earlier call has seen without finding the end (0 at first); the search
/// goes on from there, stepping back as far as a terminator may have been cut.
#[must_use]
pub fn find_end(buf: &[u8], scanned: usize) -> Option<usize> {
    if buf.starts_with(TERMINATOR_LINE) {
        return Some(TERMINATOR_LINE.len());
    }
    find_terminator(buf, scanned)
}

/// The same behind the block's first octets, where a dot alone is the end only after a line.
pub(super) fn find_terminator(buf: &[u8], scanned: usize) -> Option<usize> {
    let from = scanned.min(buf.len()).saturating_sub(TERMINATOR.len() - 1);
    let found = FINDER.find(buf.get(from..)?)?;
    Some(from + found + TERMINATOR.len())
}

/// Whether these octets are one whole block and nothing more.
#[must_use]
pub fn is_whole_block(wire: &[u8]) -> bool {
    find_end(wire, 0) == Some(wire.len())
}

/// Appends `text` (CRLF lines) as a block in wire form: stuffed, terminated, the last line completed if it has no CRLF.
pub fn dot_stuff(text: &[u8], out: &mut Vec<u8>) {
    out.reserve(text.len() + text.len() / 64 + TERMINATOR.len());
    let mut copied = 0;
    if text.first() == Some(&b'.') {
        out.push(b'.');
    }
    for lf in memchr_iter(b'\n', text) {
        let ends_line = lf > 0 && text.get(lf - 1) == Some(&b'\r');
        if ends_line && text.get(lf + 1) == Some(&b'.') {
            out.extend_from_slice(text.get(copied..=lf).unwrap_or_default());
            out.push(b'.');
            copied = lf + 1;
        }
    }
    out.extend_from_slice(text.get(copied..).unwrap_or_default());
    finish(text.is_empty() || text.ends_with(b"\r\n"), out);
}

/// Appends `text` (LF lines, as in batches and files) as a block in wire form: every LF becomes CRLF.
pub fn lf_to_wire(text: &[u8], out: &mut Vec<u8>) {
    out.reserve(text.len() + text.len() / 16 + TERMINATOR.len());
    let mut rest = text;
    while !rest.is_empty() {
        if rest.first() == Some(&b'.') {
            out.push(b'.');
        }
        let Some((line, after)) = memchr(b'\n', rest).and_then(|lf| rest.split_at_checked(lf))
        else {
            out.extend_from_slice(rest);
            break;
        };
        out.extend_from_slice(line);
        out.extend_from_slice(b"\r\n");
        rest = after.get(1..).unwrap_or_default();
    }
    finish(text.is_empty() || text.ends_with(b"\n"), out);
}

fn finish(line_complete: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(if line_complete {
        TERMINATOR_LINE
    } else {
        TERMINATOR
    });
}

/// Appends a wire-form block's text: dots unstuffed, terminator (if there is one) taken off, CRLF kept.
pub fn dot_unstuff(wire: &[u8], out: &mut Vec<u8>) {
    let text = without_terminator(wire);
    out.reserve(text.len());
    let mut copied = usize::from(text.first() == Some(&b'.'));
    for lf in memchr_iter(b'\n', text) {
        let ends_line = lf > 0 && text.get(lf - 1) == Some(&b'\r');
        if ends_line && text.get(lf + 1) == Some(&b'.') {
            out.extend_from_slice(text.get(copied..=lf).unwrap_or_default());
            copied = lf + 2;
        }
    }
    out.extend_from_slice(text.get(copied..).unwrap_or_default());
}

/// Appends a wire-form block's text with LF line ends, the reverse of [`lf_to_wire`].
pub fn wire_to_lf(wire: &[u8], out: &mut Vec<u8>) {
    let mut rest = without_terminator(wire);
    out.reserve(rest.len());
    while !rest.is_empty() {
        rest = rest.strip_prefix(b".").unwrap_or(rest);
        let ends_line = |at: &usize| rest.get(*at) == Some(&b'\r');
        let mut before_lf = memchr_iter(b'\n', rest).filter_map(|lf| lf.checked_sub(1));
        let end = before_lf.find(ends_line);
        let (line, after) = rest
            .split_at_checked(end.unwrap_or(rest.len()))
            .unwrap_or_default();
        out.extend_from_slice(line);
        if end.is_some() {
            out.push(b'\n');
        }
        rest = after.get(2..).unwrap_or_default();
    }
}

/// A block's lines, without the terminator if there is one.
#[must_use]
pub fn without_terminator(wire: &[u8]) -> &[u8] {
    if wire == TERMINATOR_LINE {
        return b"";
    }
    match wire.strip_suffix(TERMINATOR_LINE) {
        Some(text) if text.ends_with(b"\r\n") => text,
        _ => wire,
    }
}

/// Writes a multi-line block line by line: stuffs dots and ends each line.
///
/// [`MultiLine::finish`] writes the terminator; a writer that is dropped before leaves an unfinished block behind.
#[derive(Debug)]
#[must_use = "a block needs its terminator: call finish"]
pub struct MultiLine<'o> {
    out: &'o mut Vec<u8>,
}

impl<'o> MultiLine<'o> {
    /// Begins a block at the end of `out`.
    pub const fn new(out: &'o mut Vec<u8>) -> Self {
        Self { out }
    }

    /// One line, without its CRLF.
    pub fn line(&mut self, line: &[u8]) {
        self.line_of(&[line]);
    }

    /// One line made of parts, without its CRLF.
    pub fn line_of(&mut self, parts: &[&[u8]]) {
        let start = self.out.len();
        for part in parts {
            self.out.extend_from_slice(part);
        }
        debug_assert!(
            memchr::memchr2(b'\r', b'\n', self.out.get(start..).unwrap_or_default()).is_none()
        );
        if self.out.get(start) == Some(&b'.') {
            self.out.insert(start, b'.');
        }
        self.out.extend_from_slice(b"\r\n");
    }

    /// Lines that are already in wire form, each with its CRLF.
    pub fn raw(&mut self, lines: &[u8]) {
        debug_assert!(lines.is_empty() || lines.ends_with(b"\r\n"));
        self.out.extend_from_slice(lines);
    }

    /// The terminator.
    pub fn finish(self) {
        self.out.extend_from_slice(TERMINATOR_LINE);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stuffed(text: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        dot_stuff(text, &mut out);
        out
    }

    fn unstuffed(wire: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        dot_unstuff(wire, &mut out);
        out
    }

    #[test]
    fn finds_only_crlf_dot_crlf() {
        assert_eq!(find_end(b".\r\n", 0), Some(3));
        assert_eq!(find_end(b".\r\nQUIT\r\n", 0), Some(3));
        assert_eq!(find_end(b"a\r\n.\r\nQUIT\r\n", 0), Some(6));
        assert_eq!(find_end(b"\r\n.\r\n", 0), Some(5));
        for open in [
            &b""[..],
            b".",
            b".\r",
            b"..\r\n",
            b"a\r\n.\r",
            b"a\n.\n",
            b"a\n.\r\n",
            b"a\r\n.\n",
            b"a\r.\r",
            b"a.\r\n",
        ] {
            assert_eq!(
                find_end(open, 0),
                None,
                "{:?}",
                String::from_utf8_lossy(open)
            );
        }
        assert!(is_whole_block(b"a\r\n.\r\n") && !is_whole_block(b".\r\na\r\n.\r\n"));
    }

    #[test]
    fn stuffs_and_unstuffs() {
        assert_eq!(stuffed(b""), b".\r\n");
        assert_eq!(stuffed(b"."), b"..\r\n.\r\n");
        assert_eq!(stuffed(b"a\r\n.b\r\n..\r\n"), b"a\r\n..b\r\n...\r\n.\r\n");
        assert_eq!(stuffed(b"a\n.b"), b"a\n.b\r\n.\r\n");
        assert_eq!(unstuffed(b".\r\n"), b"");
        assert_eq!(unstuffed(b"..\r\n.x\r\n.\r\n"), b".\r\nx\r\n");
    }

    #[test]
    fn line_feeds_become_wire_and_come_back() {
        let mut out = Vec::new();
        lf_to_wire(b"a: b\n\n.dot\nend", &mut out);
        assert_eq!(out, b"a: b\r\n\r\n..dot\r\nend\r\n.\r\n");
        let mut back = Vec::new();
        wire_to_lf(&out, &mut back);
        assert_eq!(back, b"a: b\n\n.dot\nend\n");
        out.clear();
        lf_to_wire(b"a\r\nb", &mut out);
        assert_eq!(
            out, b"a\r\r\nb\r\n.\r\n",
            "a CR in a file with LF lines is content"
        );
    }

    #[test]
    fn writes_blocks() {
        let mut out = b"215 list follows\r\n".to_vec();
        let mut block = MultiLine::new(&mut out);
        block.line(b"one");
        block.line(b".two");
        block.line_of(&[b"", b".", b"three"]);
        block.line(b"");
        block.raw(b"four\r\n");
        block.finish();
        assert_eq!(
            out,
            b"215 list follows\r\none\r\n..two\r\n..three\r\n\r\nfour\r\n.\r\n"
        );
    }

    /// Lines ended by CRLF, of an alphabet that is mostly dots and line ends.
    fn text() -> impl Strategy<Value = Vec<u8>> {
        let octet = prop_oneof![
            Just(b'.'),
            Just(b'\n'),
            Just(b'\r'),
            Just(b'a'),
            any::<u8>()
        ];
        let line = proptest::collection::vec(octet, 0..6);
        proptest::collection::vec(line, 0..20).prop_map(|lines| {
            lines
                .into_iter()
                .flat_map(|line| [line, b"\r\n".to_vec()].concat())
                .collect()
        })
    }

    proptest! {
        #[test]
        fn prop_dot_stuffing_round_trips(text in text()) {
            let wire = stuffed(&text);
            prop_assert_eq!(find_end(&wire, 0), Some(wire.len()));
            prop_assert_eq!(unstuffed(&wire), text);
        }

        #[test]
        fn prop_line_feed_form_round_trips(text in text()) {
            let text: Vec<u8> = text.into_iter().filter(|&octet| octet != b'\r').collect();
            let mut wire = Vec::new();
            lf_to_wire(&text, &mut wire);
            prop_assert_eq!(find_end(&wire, 0), Some(wire.len()));
            let mut back = Vec::new();
            wire_to_lf(&wire, &mut back);
            prop_assert_eq!(back, text);
        }

        #[test]
        fn prop_end_is_found_in_any_pieces(text in text(), cuts in proptest::collection::vec(0usize..200, 0..8)) {
            let mut wire = stuffed(&text);
            let end = wire.len();
            wire.extend_from_slice(b"QUIT\r\n");
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(end - 1)).collect();
            cuts.sort_unstable();
            let mut scanned = 0;
            for cut in cuts {
                prop_assert_eq!(find_end(&wire[..cut], scanned), None);
                scanned = cut;
            }
            prop_assert_eq!(find_end(&wire, scanned), Some(end));
        }
    }
}
