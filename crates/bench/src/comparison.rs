//! Holding an article that was served against the one that was sent.
//!
//! Invariant: where contents are verified, an article passes only if it is one of the corpus, octet for octet but for Path and
//! Xref, and, asked for by number, its Xref says that it has that number in that group.

use crate::client::script::Op;
use crate::read::{ReadContext, Verify};
use crate::verify::same_header;

/// Which part of an article is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Whole,
    Head,
    Body,
    Nothing,
}

/// The article that a block belongs to.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    article: Option<u64>,
    scratch: Vec<u8>,
}

impl Comparison {
    /// The reply named this message-id.
    pub(crate) fn named(&mut self, read: &ReadContext<'_>, id: &[u8]) {
        self.article = match read.verify {
            Verify::Contents => read.corpus.find(id),
            Verify::Replies => None,
        };
    }

    /// Whether what is held against the corpus was found there.
    pub(crate) const fn has_article(&self) -> bool {
        self.article.is_some()
    }

    /// Whether a block is the part that was asked for, of the article it should be; `numbered`: `op` has its number.
    pub(crate) fn is_right(
        &mut self,
        read: &ReadContext<'_>,
        part: Part,
        numbered: Option<Op>,
        octets: &[u8],
    ) -> bool {
        let split = memchr::memmem::find(octets, b"\r\n\r\n").map(|at| at + 4);
        let (head, body) = match (part, split) {
            (Part::Body, _) => (None, Some(octets)),
            (Part::Whole, Some(at)) => (octets.get(..at), octets.get(at..)),
            (Part::Head, None) if octets.ends_with(b"\r\n") => (Some(octets), None),
            _ => return false,
        };
        if read.verify == Verify::Replies {
            return true;
        }
        let Some(n) = self.article else { return false };
        let sent = read.corpus.parts(n, &mut self.scratch);
        let unknown = read.corpus.unknown_fields();
        let has_place = |head: &[u8]| {
            let Some(op) = numbered else { return true };
            let group = read.group(op.group);
            group.is_some_and(|group| is_at(head, &group.name, op.key))
        };
        head.is_none_or(|head| same_header(sent.0, head, unknown) && has_place(head))
            && body.is_none_or(|body| body == sent.1)
    }
}

/// Whether Xref says that an article has this number in this group.
fn is_at(head: &[u8], group: &[u8], number: u64) -> bool {
    let mut lines = head.split(|octet| *octet == b'\n');
    let xref = lines.find(|line| {
        let name = line.get(..5);
        name.is_some_and(|name| name.eq_ignore_ascii_case(b"xref:"))
    });
    let place = [group, b":", itoa::Buffer::new().format(number).as_bytes()].concat();
    let mut words = xref
        .unwrap_or_default()
        .split(|octet| octet.is_ascii_whitespace());
    words.any(|word| word == place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_xref() {
        let head = b"Path: a\r\nXREF: news.example misc.a:7 misc.b:12\r\nSubject: misc.c:3\r\n\r\n";
        let check = |group: &str, number| is_at(head, group.as_bytes(), number);
        assert!(check("misc.a", 7) && check("misc.b", 12));
        assert!(!check("misc.a", 12) && !check("misc.b", 1) && !check("misc.c", 3));
        assert!(!is_at(b"Subject: x\r\n\r\n", b"misc.a", 7));
    }
}
