//! The protocol's outer shape, without I/O: where commands and articles begin and end in what has come.
//!
//! Only CRLF ends a line and only CRLF "." CRLF ends an article (`wire` owns both rules); what belongs to an article
//! is never looked at as a command, also when the article is too large, or its TAKETHIS line was no good.  Memory is
//! bounded: of a line or an article that is too long only the last octets are asked to be kept.

use newsreel_wire::nntp::framing::find_end;
use newsreel_wire::nntp::line::{BadLine, LineSplitter, Split};

/// The longest line in an exchange of AUTHINFO SASL, CRLF included: twice what a name and a password of the longest kind take
/// (RFC 4643 section 2.4.2 lets it be longer than a command line).
pub const RESPONSE_OCTETS_MAX: usize = 1024;

/// How many octets of a terminator may be cut off at the end of what has come.
const TERMINATOR_CUT_MAX: usize = 4;

/// What the front of the buffer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framed {
    /// Nothing whole; drop `used` octets and come back with more.
    More { used: usize },
    /// A command line: the first `len` octets; drop `used`.
    Line { len: usize, used: usize },
    /// A line that cannot be a command; drop `used`.  After `takethis` an article follows all the same.
    Bad {
        why: BadLine,
        takethis: bool,
        used: usize,
    },
    /// An article, terminator included: the first `used` octets.
    Article { used: usize },
    /// The end of an article that was too large; drop `used`.
    Oversized { used: usize },
    /// What was asked for in an exchange of AUTHINFO: the first `len` octets, or none that could be it; drop `used`.
    Response { len: Option<usize>, used: usize },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Command,
    /// In an article, of which `scanned` octets have been searched.
    Article {
        scanned: usize,
    },
    /// In an article that is too large and is being dropped.
    Dropping,
    /// Before a line of an exchange.
    Response,
}

/// Where a connection is between commands and articles.
#[derive(Debug)]
pub(crate) struct Framer {
    lines: LineSplitter,
    responses: LineSplitter,
    state: State,
    article_bytes_max: usize,
    /// The verb of the overlong line that is being skipped.
    skipped: Option<Verb>,
}

impl Framer {
    pub(crate) fn new(article_bytes_max: usize) -> Self {
        Self {
            lines: LineSplitter::default(),
            responses: LineSplitter::new(RESPONSE_OCTETS_MAX),
            state: State::Command,
            article_bytes_max,
            skipped: None,
        }
    }

    /// What comes next is an article.
    pub(crate) const fn expect_article(&mut self) {
        self.state = State::Article { scanned: 0 };
    }

    /// What comes next is a line of an exchange.
    pub(crate) const fn expect_response(&mut self) {
        self.state = State::Response;
    }

    /// Whether an article is being read.
    pub(crate) const fn in_article(&self) -> bool {
        matches!(self.state, State::Article { .. } | State::Dropping)
    }

    /// Whether the rest of an overlong command line is being dropped.
    pub(crate) const fn is_skipping(&self) -> bool {
        self.skipped.is_some()
    }

    /// Whether what comes is thrown away: the rest of a line that is too long, or of an article that is too large.
    pub(crate) const fn is_dropping(&self) -> bool {
        self.is_skipping() || matches!(self.state, State::Dropping)
    }

    /// Looks at the front of `buf`, which must begin where the last answer's `used` left it; asked again without
    /// dropping, a [`Framed::Line`] is answered again.
    pub(crate) fn next(&mut self, buf: &[u8]) -> Framed {
        match self.state {
            State::Command => self.next_line(buf),
            State::Article { scanned } => self.next_article(buf, scanned),
            State::Dropping => self.drop_article(buf),
            State::Response => self.next_response(buf),
        }
    }

    fn next_line(&mut self, buf: &[u8]) -> Framed {
        match self.lines.next(buf) {
            Split::Line { line, used } => Framed::Line {
                len: line.len(),
                used,
            },
            Split::Incomplete { used } => {
                if let Some(dropped) = buf.get(..used).filter(|dropped| !dropped.is_empty()) {
                    self.skipped.get_or_insert_default().take(dropped);
                }
                Framed::More { used }
            }
            Split::Bad { why, used } => {
                let mut verb = self.skipped.take().unwrap_or_default();
                verb.take(buf.get(..used).unwrap_or_default());
                Framed::Bad {
                    why,
                    takethis: verb.is_takethis(),
                    used,
                }
            }
        }
    }

    fn next_response(&mut self, buf: &[u8]) -> Framed {
        let (len, used) = match self.responses.next(buf) {
            Split::Incomplete { used } => return Framed::More { used },
            Split::Line { line, used } => (Some(line.len()), used),
            Split::Bad { used, .. } => (None, used),
        };
        self.state = State::Command;
        Framed::Response { len, used }
    }

    fn next_article(&mut self, buf: &[u8], scanned: usize) -> Framed {
        match find_end(buf, scanned) {
            Some(used) if used <= self.article_bytes_max => {
                self.state = State::Command;
                Framed::Article { used }
            }
            Some(used) => {
                self.state = State::Command;
                Framed::Oversized { used }
            }
            None if buf.len() > self.article_bytes_max => {
                self.state = State::Dropping;
                Framed::More {
                    used: buf.len() - TERMINATOR_CUT_MAX,
                }
            }
            None => {
                self.state = State::Article { scanned: buf.len() };
                Framed::More { used: 0 }
            }
        }
    }

    fn drop_article(&mut self, buf: &[u8]) -> Framed {
        // The buffer no longer begins with the article, so ".CRLF" at its front is no terminator: a whole one begins
        // with CR, and what is before the first CR may be passed over.
        let passed = buf
            .iter()
            .position(|octet| *octet == b'\r')
            .unwrap_or(buf.len());
        match find_end(&buf[passed..], 0) {
            Some(end) => {
                self.state = State::Command;
                Framed::Oversized { used: passed + end }
            }
            None => Framed::More {
                used: buf.len().saturating_sub(TERMINATOR_CUT_MAX),
            },
        }
    }
}

/// Finds out whether a line's verb is TAKETHIS, from the pieces in which the line comes.
#[derive(Debug, Default)]
struct Verb {
    /// Octets of TAKETHIS that have come.
    matched: usize,
    verdict: Option<bool>,
}

impl Verb {
    const TAKETHIS: &'static [u8] = b"TAKETHIS";

    fn take(&mut self, piece: &[u8]) {
        for octet in piece {
            match octet {
                _ if self.verdict.is_some() => return,
                b' ' | b'\t' if self.matched == 0 => {}
                // What is no blank in a command, yet ends a word: the article behind it is meant all the same.
                b' ' | b'\t' | b'\r' | b'\n' => self.verdict = Some(self.is_takethis()),
                _ => match Self::TAKETHIS.get(self.matched) {
                    Some(expected) if octet.eq_ignore_ascii_case(expected) => self.matched += 1,
                    _ => self.verdict = Some(false),
                },
            }
        }
    }

    fn is_takethis(&self) -> bool {
        self.verdict.unwrap_or(self.matched == Self::TAKETHIS.len())
    }
}

/// Whether a line's verb is TAKETHIS.
pub(crate) fn is_takethis(line: &[u8]) -> bool {
    let mut verb = Verb::default();
    verb.take(line);
    verb.is_takethis()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::fuzz::{Came, Follows, frame_pieces};

    /// Feeds `input` in pieces; lines that begin with A announce an article, those with R a response.
    fn frames(input: &[u8], cuts: &[usize]) -> Vec<String> {
        let mut from = 0;
        let pieces = cuts.iter().copied().chain([input.len()]).map(|to| {
            let piece = &input[from..to.max(from)];
            from = to.max(from);
            piece
        });
        let text = |octets: Vec<u8>| String::from_utf8_lossy(&octets).into_owned();
        let came = frame_pieces(40, pieces, |line| match line {
            [b'A', ..] => Follows::Article,
            [b'R', ..] => Follows::Response,
            _ => Follows::Command,
        });
        let shown = came.into_iter().map(|came| match came {
            Came::Line(line) => format!("line {}", text(line)),
            Came::Bad(why, takethis) => format!("bad {why} {takethis}"),
            Came::Article(article) => format!("article {}", text(article)),
            Came::Oversized => "oversized".to_owned(),
            Came::Response(Some(line)) => format!("response {}", text(line)),
            Came::Response(None) => "no response".to_owned(),
        });
        shown.collect()
    }

    #[test]
    fn articles_end_only_at_crlf_dot_crlf() {
        let input = b"A\r\nx\n.\nQUIT\n.\r\nQUIT\r\n.\nQUIT\r\n.\r\nB\r\nA\r\n.\r\nC\r\n";
        assert_eq!(
            frames(input, &[]),
            [
                "line A",
                "article x\n.\nQUIT\n.\r\nQUIT\r\n.\nQUIT\r\n.\r\n",
                "line B",
                "line A",
                "article .\r\n",
                "line C"
            ]
        );
    }

    #[test]
    fn a_large_article_is_dropped_whole() {
        for dots in 0..6 {
            let body = [
                &[b'x'; 60][..],
                &b"\r\n."[..],
                &[b'.'; 5][..dots.min(5)],
                b"\r\nQUIT\r\n",
            ]
            .concat();
            let input = [b"A\r\n", &body[..], b"z.\r\nQUIT\r\n.\r\nB\r\n"].concat();
            let expected: &[&str] = if dots == 0 {
                &[
                    "line A",
                    "oversized",
                    "line QUIT",
                    "line z.",
                    "line QUIT",
                    "line .",
                    "line B",
                ]
            } else {
                &["line A", "oversized", "line B"]
            };
            for cut in 3..input.len() {
                assert_eq!(frames(&input, &[cut]), expected, "{dots} {cut}");
            }
            let all: Vec<usize> = (0..input.len()).collect();
            assert_eq!(frames(&input, &all), expected, "{dots}");
        }
    }

    #[test]
    fn an_article_follows_a_bad_takethis() {
        let long = [
            b"takethis <",
            &[b'a'; 600][..],
            b"@b>\r\nQUIT\r\n.\r\nB\r\n",
        ]
        .concat();
        for cut in 0..long.len() {
            assert_eq!(
                frames(&long, &[cut]),
                ["bad TooLong true", "article QUIT\r\n.\r\n", "line B"],
                "{cut}"
            );
        }
        // Also behind more blanks than a line may have octets.
        let blanks = [&[b' '; 600][..], b"TAKETHIS <a@b>\r\nQUIT\r\n.\r\nB\r\n"].concat();
        for cut in 0..blanks.len() {
            assert_eq!(
                frames(&blanks, &[cut]),
                ["bad TooLong true", "article QUIT\r\n.\r\n", "line B"],
                "{cut}"
            );
        }
        assert_eq!(
            frames(b"\tTAKETHIS <a\0b>\r\nQUIT\r\n.\r\nB\r\n", &[]),
            ["bad Octet true", "article QUIT\r\n.\r\n", "line B"]
        );
        // An LF ends no line, and what it parts are two words to whoever wrote it.
        for end in ["\n", "\r", "\r \n"] {
            let parted = format!("TAKETHIS{end}<a@b>\r\nQUIT\r\n.\r\nB\r\n");
            for cut in 0..parted.len() {
                assert_eq!(
                    frames(parted.as_bytes(), &[cut]),
                    ["bad Octet true", "article QUIT\r\n.\r\n", "line B"],
                    "{end:?} {cut}"
                );
            }
        }
        assert_eq!(
            frames(b"TAKETHISX\0\r\nB\r\n", &[]),
            ["bad Octet false", "line B"]
        );
    }

    #[test]
    fn responses_may_be_longer_than_commands() {
        let long = vec![b'x'; super::RESPONSE_OCTETS_MAX - 2];
        let response = format!("response {}", String::from_utf8_lossy(&long));
        let input = [
            b"R\r\n",
            &long[..],
            b"\r\nB\r\nR\r\n",
            &long,
            b"x\r\nR\r\n\0\r\nB\r\n",
        ]
        .concat();
        let expected = [
            "line R",
            &response,
            "line B",
            "line R",
            "no response",
            "line R",
            "no response",
            "line B",
        ];
        assert_eq!(frames(&input, &[]), expected);
        let all: Vec<usize> = (0..input.len()).collect();
        assert_eq!(frames(&input, &all), expected);
    }

    const PIECES: &[&[u8]] = &[
        b"R",
        b"\r\n",
        b".",
        b"\r\n.\r\n",
        b"A",
        b"\n",
        b"\r",
        b"\0",
        b"takethis ",
        &[b' '; 300],
        b"0123456789012345678901234567890123456789",
        b"b",
    ];

    proptest! {
        #[test]
        fn prop_pieces_do_not_matter(
            pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..60),
            cuts in proptest::collection::vec(0usize..600, 0..12),
        ) {
            let input = pieces.concat();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(input.len())).collect();
            cuts.sort_unstable();
            prop_assert_eq!(frames(&input, &cuts), frames(&input, &[]));
        }
    }
}
