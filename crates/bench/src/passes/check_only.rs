//! CHECK only: what a look into the history costs.
//!
//! Invariant: the answer wanted is 438 for articles that the server has and 238 for ones that do not
//! exist; 431 (later) is counted, anything else is a complaint. Never sends an article.

use crate::client::outgoing::Outgoing;
use crate::client::script::{Issue, Next, Op, Script, code};
use crate::client::tally::{Kind, Tally};
use crate::feed::{FeedContext, UNKNOWN};
use crate::passes::FeedPass;

const KINDS: &[Kind] = &[Kind {
    name: "CHECK",
    counted: true,
}];

pub(super) const KNOWN: FeedPass = FeedPass {
    name: "check-known",
    help: "CHECK only, of articles that the server has",
    sends: false,
    streams: true,
    hello: Some(("MODE STREAM", &[203])),
    kinds: KINDS,
    make: make_known,
};

pub(super) const UNKNOWN_IDS: FeedPass = FeedPass {
    name: "check-unknown",
    help: "CHECK only, of articles that do not exist",
    sends: false,
    streams: true,
    hello: Some(("MODE STREAM", &[203])),
    kinds: KINDS,
    make: make_unknown,
};

#[derive(Debug)]
struct CheckOnly<'c> {
    feed: FeedContext<'c>,
    /// Added to the indices offered.
    beyond: u64,
    wanted: u16,
    stopped: bool,
}

fn make_known(feed: FeedContext<'_>) -> Box<dyn Script<'_> + '_> {
    Box::new(CheckOnly {
        feed,
        beyond: 0,
        wanted: 438,
        stopped: false,
    })
}

fn make_unknown(feed: FeedContext<'_>) -> Box<dyn Script<'_> + '_> {
    Box::new(CheckOnly {
        feed,
        beyond: UNKNOWN,
        wanted: 238,
        stopped: false,
    })
}

impl<'c> Script<'c> for CheckOnly<'c> {
    fn issue(&mut self, out: &mut Outgoing<'c>) -> Issue {
        let next = if self.stopped { None } else { self.feed.take() };
        let Some(n) = next.map(|n| n + self.beyond) else {
            return Issue::Done;
        };
        self.feed.write_command(b"CHECK", n, out);
        Issue::Sent(Op {
            kind: 0,
            key: n,
            group: 0,
        })
    }

    fn status(&mut self, op: Op, line: &[u8], tally: &mut Tally) -> Next {
        let code = code(line);
        tally.code(op.kind, code);
        self.feed.verify_id(op.key, line, tally);
        if code != Some(self.wanted) && code != Some(431) {
            let wanted = self.wanted;
            tally.complain(|| {
                format!(
                    "CHECK said \"{}\", not {wanted}",
                    String::from_utf8_lossy(line)
                )
            });
        }
        Next::Complete
    }

    fn stop(&mut self) {
        self.stopped = true;
    }
}
