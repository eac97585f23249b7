//! IHAVE, one article at a time (RFC 3977 section 6.3.2).
//!
//! Invariant: nothing follows an IHAVE before its answer; the article is sent after 335 only.

use crate::client::outgoing::Outgoing;
use crate::client::script::{Issue, Next, Op, Script, code};
use crate::client::tally::{Kind, Tally};
use crate::feed::FeedContext;
use crate::passes::FeedPass;

const KINDS: &[Kind] = &[
    Kind {
        name: "IHAVE",
        counted: false,
    },
    Kind {
        name: "article",
        counted: true,
    },
];
const IHAVE: u8 = 0;
const ARTICLE: u8 = 1;

pub(super) const PASS: FeedPass = FeedPass {
    name: "ihave",
    help: "IHAVE, one article at a time",
    sends: true,
    streams: false,
    kinds: KINDS,
    make,
};

#[derive(Debug)]
struct Ihave<'c> {
    feed: FeedContext<'c>,
    wanted: Option<u64>,
    stopped: bool,
}

fn make(feed: FeedContext<'_>) -> Box<dyn Script<'_> + '_> {
    Box::new(Ihave {
        feed,
        wanted: None,
        stopped: false,
    })
}

impl<'c> Script<'c> for Ihave<'c> {
    fn issue(&mut self, out: &mut Outgoing<'c>) -> Issue {
        if let Some(n) = self.wanted.take() {
            self.feed.write_article(n, out);
            return Issue::Sent(Op {
                kind: ARTICLE,
                key: n,
                group: 0,
            });
        }
        let next = if self.stopped { None } else { self.feed.take() };
        let Some(n) = next else { return Issue::Done };
        self.feed.write_command(b"IHAVE", n, out);
        Issue::Sent(Op {
            kind: IHAVE,
            key: n,
            group: 0,
        })
    }

    fn status(&mut self, op: Op, line: &[u8], tally: &mut Tally) -> Next {
        let code = code(line);
        tally.code(op.kind, code);
        match (op.kind, code) {
            (IHAVE, Some(335)) => self.wanted = Some(op.key),
            (ARTICLE, Some(235)) => {}
            (IHAVE, Some(435 | 436)) | (ARTICLE, Some(436 | 437)) => tally.refused(line),
            _ => tally.complain(|| format!("IHAVE said \"{}\"", String::from_utf8_lossy(line))),
        }
        Next::Complete
    }

    fn stop(&mut self) {
        self.stopped = true;
    }
}
