//! Takes any octets for what a client sends: the door for fuzzers.
//!
//! Must never panic, and what is found must not depend on the pieces in which it came.

use crate::framer::{Framed, Framer, is_takethis};

/// The largest article taken.
const ARTICLE_BYTES_MAX: usize = 256;

/// What is kept of what has come, at most: a line, or a smaller article.
const KEPT_BYTES_MAX: usize = 512;

/// One thing that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Came {
    /// A command line.
    Line(Vec<u8>),
    /// A line that is none, and whether an article follows it.
    Bad(String, bool),
    /// An article, terminator included.
    Article(Vec<u8>),
    /// An article that was too large.
    Oversized,
}

/// Frames `octets` that come in pieces of `step`; TAKETHIS and IHAVE are followed by an article.
#[must_use]
pub fn frame(octets: &[u8], step: usize) -> Vec<Came> {
    let announces = |line: &[u8]| is_takethis(line) || line.starts_with(b"IHAVE");
    frame_pieces(ARTICLE_BYTES_MAX, octets.chunks(step.max(1)), announces)
}

/// Frames what comes in `pieces`; lines that announce one are followed by an article.
pub(crate) fn frame_pieces<'o>(
    article_bytes_max: usize,
    pieces: impl Iterator<Item = &'o [u8]>,
    announces: impl Fn(&[u8]) -> bool,
) -> Vec<Came> {
    let mut framer = Framer::new(article_bytes_max);
    let (mut buf, mut found) = (Vec::new(), Vec::new());
    for piece in pieces {
        buf.extend_from_slice(piece);
        loop {
            let (used, came) = match framer.next(&buf) {
                Framed::More { used } => {
                    buf.drain(..used);
                    break;
                }
                Framed::Line { len, used } => {
                    let line = buf[..len].to_vec();
                    if announces(&line) {
                        framer.expect_article();
                    }
                    (used, Came::Line(line))
                }
                Framed::Bad {
                    why,
                    takethis,
                    used,
                } => {
                    if takethis {
                        framer.expect_article();
                    }
                    (used, Came::Bad(format!("{why:?}"), takethis))
                }
                Framed::Article { used } => (used, Came::Article(buf[..used].to_vec())),
                Framed::Oversized { used } => (used, Came::Oversized),
            };
            assert!(used > 0 && used <= buf.len(), "it goes on: {came:?}");
            buf.drain(..used);
            found.push(came);
        }
        assert!(
            buf.len() <= KEPT_BYTES_MAX,
            "more is kept than a line or an article can need"
        );
    }
    found
}
