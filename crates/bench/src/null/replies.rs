//! The canned replies.
//!
//! Invariant: everything large is made once, at the start; answering is copying. Every article has
//! one header block, every group the same numbers from 1 on.

use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use newsreel_host::FakeClock;

use super::seen::Seen;
use crate::corpus::{Corpus, CorpusArgs, Size};
use crate::error::Error;

/// What to answer with.
#[derive(Debug)]
pub(super) struct Replies {
    /// An article with its terminating line, and where its body begins.
    article: Vec<u8>,
    body_start: usize,
    /// Overview lines of a group, and where each ends.
    overview: Vec<u8>,
    overview_ends: Vec<usize>,
    numbers: Vec<u8>,
    list: Vec<u8>,
    articles: u64,
    seen: Seen,
    taken: AtomicU64,
}

/// What a command leaves behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum After {
    /// It is answered.
    Answered,
    /// An article follows, and this is its answer (the message-id is to be added).
    Article(&'static [u8]),
    /// The connection ends.
    Quit,
}

impl Replies {
    pub(super) fn new(octets: u32, groups: usize, articles: u64) -> Result<Self, Error> {
        let args = CorpusArgs {
            size: Size::Fixed(octets),
            groups,
            base_time_secs: Some(0),
            ..CorpusArgs::default()
        };
        let corpus = Corpus::new(&args, &newsreel_host::MemoryDisk::new(), &FakeClock::new(0))?;
        let mut article = Vec::new();
        let body = corpus.write_article(0, &mut article);
        let body_start = article.len();
        article.extend_from_slice(body);
        article.extend_from_slice(b".\r\n");
        let (mut overview, mut overview_ends, mut numbers) = (Vec::new(), vec![0], Vec::new());
        for n in 1..=articles {
            // Writing to a Vec cannot fail.
            let _ = write!(
                overview,
                "{n}\tRe: a subject of the usual length, of a few words\tAn Author <an.author@host.\
                 author.example>\tMon, 01 Jan 2024 00:00:00 +0000\t<{n:x}.checkchk@host.null.example>\
                 \t<1.checkchk@host1.null.example> <2.checkchk@host2.null.example>\t2650\t38\tXref: \
                 null.example {}:{n}\r\n",
                corpus.groups().first().map_or("", String::as_str),
            );
            overview_ends.push(overview.len());
            let _ = write!(numbers, "{n}\r\n");
        }
        let mut list = Vec::new();
        for name in corpus.groups() {
            let _ = write!(list, "{name} {articles:010} 0000000001 y\r\n");
        }
        for block in [&mut numbers, &mut list] {
            block.extend_from_slice(b".\r\n");
        }
        Ok(Self {
            article,
            body_start,
            overview,
            overview_ends,
            numbers,
            list,
            articles,
            seen: Seen::new(),
            taken: AtomicU64::new(0),
        })
    }

    /// Answers one command line.
    pub(super) fn answer(&self, line: &[u8], out: &mut Vec<u8>) -> After {
        let mut words = line
            .split(|&octet| octet == b' ')
            .filter(|word| !word.is_empty());
        let verb = words.next().unwrap_or_default();
        let argument = words.next().unwrap_or_default();
        let is = |name: &[u8]| verb.eq_ignore_ascii_case(name);
        if is(b"TAKETHIS") {
            return After::Article(b"239 ");
        } else if is(b"CHECK") {
            three(
                out,
                if self.seen.has(argument) {
                    b"438 "
                } else {
                    b"238 "
                },
                argument,
                b"",
            );
        } else if is(b"ARTICLE") {
            self.fetched(out, b"220 ", argument, &self.article);
        } else if is(b"STAT") {
            self.fetched(out, b"223 ", argument, b"");
        } else if is(b"HEAD") {
            // Without the empty line, with the terminating one.
            let head = self
                .article
                .get(..self.body_start.saturating_sub(2))
                .unwrap_or_default();
            self.fetched(out, b"221 ", argument, head);
            out.extend_from_slice(b".\r\n");
        } else if is(b"BODY") {
            let body = self.article.get(self.body_start..).unwrap_or_default();
            self.fetched(out, b"222 ", argument, body);
        } else if is(b"GROUP") {
            self.selected(out, argument);
        } else if is(b"OVER") || is(b"XOVER") {
            out.extend_from_slice(b"224 overview follows\r\n");
            out.extend_from_slice(self.overview(argument));
            out.extend_from_slice(b".\r\n");
        } else if is(b"IHAVE") {
            out.extend_from_slice(b"335 send it\r\n");
            return After::Article(b"235 ");
        } else if is(b"POST") {
            out.extend_from_slice(b"340 send it\r\n");
            return After::Article(b"240 ");
        } else if is(b"LISTGROUP") {
            self.selected(out, argument);
            out.extend_from_slice(&self.numbers);
        } else if is(b"LIST") {
            out.extend_from_slice(b"215 list follows\r\n");
            out.extend_from_slice(&self.list);
        } else if is(b"MODE") {
            let stream = argument.eq_ignore_ascii_case(b"STREAM");
            out.extend_from_slice(if stream {
                b"203 stream on\r\n"
            } else {
                b"200 reader\r\n"
            });
        } else if is(b"DATE") {
            out.extend_from_slice(b"111 20240101000000\r\n");
        } else if is(b"QUIT") {
            out.extend_from_slice(b"205 bye\r\n");
            return After::Quit;
        } else {
            out.extend_from_slice(b"500 this server does nothing\r\n");
        }
        After::Answered
    }

    /// The article with this message-id was taken.
    pub(super) fn took(&self, message_id: &[u8]) {
        self.seen.add(message_id);
        self.taken.fetch_add(1, Ordering::Relaxed);
    }

    /// Articles that were taken.
    pub(super) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    fn selected(&self, out: &mut Vec<u8>, name: &[u8]) {
        let mut count = itoa::Buffer::new();
        let count = count.format(self.articles).as_bytes();
        three(out, b"211 ", count, b" 1 ");
        // The line goes on where `three` ended it.
        out.truncate(out.len() - 2);
        three(out, count, b" ", name);
    }

    fn fetched(&self, out: &mut Vec<u8>, code: &[u8], argument: &[u8], block: &[u8]) {
        if argument.starts_with(b"<") {
            three(out, code, b"0 ", argument);
        } else {
            three(out, code, argument, b" <0.checkchk@host.null.example>");
        }
        out.extend_from_slice(block);
    }

    /// The lines of a range `low-high`, or all.
    fn overview(&self, range: &[u8]) -> &[u8] {
        let mut ends = range
            .split(|&octet| octet == b'-')
            .map(crate::client::script::number);
        let low = ends.next().flatten().unwrap_or(1).clamp(1, self.articles);
        let high = ends
            .next()
            .flatten()
            .unwrap_or(self.articles)
            .clamp(low, self.articles);
        let at = |n: u64| {
            self.overview_ends
                .get(n as usize)
                .copied()
                .unwrap_or_default()
        };
        self.overview.get(at(low - 1)..at(high)).unwrap_or_default()
    }
}

/// Appends three parts and CRLF.
pub(super) fn three(out: &mut Vec<u8>, first: &[u8], second: &[u8], third: &[u8]) {
    out.extend_from_slice(first);
    out.extend_from_slice(second);
    out.extend_from_slice(third);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_have_the_right_form() {
        let replies = Replies::new(2650, 3, 4).unwrap();
        let said = |line: &str| {
            let mut out = Vec::new();
            let after = replies.answer(line.as_bytes(), &mut out);
            (String::from_utf8(out).unwrap(), after)
        };
        assert_eq!(said("group a.b").0, "211 4 1 4 a.b\r\n");
        assert_eq!(said("STAT <x@y>").0, "223 0 <x@y>\r\n");
        assert_eq!(
            said("LISTGROUP a.b").0,
            "211 4 1 4 a.b\r\n1\r\n2\r\n3\r\n4\r\n.\r\n"
        );
        assert_eq!(
            said("TAKETHIS <x@y>"),
            (String::new(), After::Article(b"239 "))
        );
        assert_eq!(said("QUIT").1, After::Quit);
        assert_eq!(said("CHECK <x@y>").0, "238 <x@y>\r\n");
        replies.took(b"<x@y>");
        assert_eq!(said("CHECK <x@y>").0, "438 <x@y>\r\n");
        let article = said("ARTICLE 7").0;
        assert!(article.starts_with("220 7 <") && article.ends_with("\r\n.\r\n"));
        assert!((2600..2800).contains(&article.len()), "{}", article.len());
        let head = said("HEAD 7").0;
        assert!(
            head.ends_with("\r\n.\r\n") && !head.contains("\r\n\r\n"),
            "{head}"
        );
        let over = said("OVER 2-3").0;
        assert_eq!(over.lines().count(), 4, "{over}");
        assert!(over.contains("\r\n2\t") && over.contains("\r\n3\t"));
        assert_eq!(said("LIST ACTIVE").0.lines().count(), 5);
    }
}
