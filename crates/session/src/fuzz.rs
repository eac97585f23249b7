//! Takes any octets for what a client sends: the door for fuzzers.
//!
//! Must never panic, and what is found must not depend on the pieces in which it came.

use crate::framer::{Framed, Framer, RESPONSE_OCTETS_MAX, is_takethis};

/// The largest article taken.
const ARTICLE_BYTES_MAX: usize = 256;

/// What is kept of what has come, at most: the longest line, or a smaller article.
const KEPT_BYTES_MAX: usize = RESPONSE_OCTETS_MAX;

/// What a command line is followed by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Follows {
    /// Another command.
    Command,
    /// An article.
    Article,
    /// A line of an exchange.
    Response,
}

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
    /// A line of an exchange; none: one that cannot be it.
    Response(Option<Vec<u8>>),
}

/// Frames `octets` that come in pieces of `step`; TAKETHIS and IHAVE are followed by an article, AUTHINFO by a response.
#[must_use]
pub fn frame(octets: &[u8], step: usize) -> Vec<Came> {
    let follows = |line: &[u8]| match line {
        line if is_takethis(line) || line.starts_with(b"IHAVE") => Follows::Article,
        line if line.starts_with(b"AUTHINFO") => Follows::Response,
        _ => Follows::Command,
    };
    frame_pieces(ARTICLE_BYTES_MAX, octets.chunks(step.max(1)), follows)
}

/// Frames what comes in `pieces`.
pub(crate) fn frame_pieces<'o>(
    article_bytes_max: usize,
    pieces: impl Iterator<Item = &'o [u8]>,
    follows: impl Fn(&[u8]) -> Follows,
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
                    match follows(&line) {
                        Follows::Command => {}
                        Follows::Article => framer.expect_article(),
                        Follows::Response => framer.expect_response(),
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
                Framed::Response { len, used } => {
                    (used, Came::Response(len.map(|len| buf[..len].to_vec())))
                }
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
