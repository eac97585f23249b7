//! Takes any octets for what a client sends: the door for fuzzers.
//!
//! Must never panic, and what is found must not depend on the pieces in which it came.

use crate::framer::{Framed, Framer, is_takethis};

/// The largest article taken.
const ARTICLE_BYTES_MAX: usize = 256;

/// What is kept of what has come: an article, or a line, and a piece.
const KEPT_BYTES_MAX: usize = 1024;

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
    let mut framer = Framer::new(ARTICLE_BYTES_MAX);
    let (mut buf, mut found) = (Vec::new(), Vec::new());
    for piece in octets.chunks(step.max(1)) {
        buf.extend_from_slice(piece);
        loop {
            let (used, came) = match framer.next(&buf) {
                Framed::More { used } => {
                    buf.drain(..used);
                    break;
                }
                Framed::Line { len, used } => {
                    let line = buf[..len].to_vec();
                    if is_takethis(&line) || line.starts_with(b"IHAVE") {
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
            buf.len() <= KEPT_BYTES_MAX + step,
            "more is kept than a line or an article needs"
        );
    }
    found
}
