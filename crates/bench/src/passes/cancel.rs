//! Cancels of the articles, by TAKETHIS: the server must have the articles, and heed the cancels of anybody.
//!
//! Invariant: a reply must name the message it answers; anything else is a complaint. Whether articles went is for a read pass to say.

use crate::client::outgoing::Outgoing;
use crate::client::script::{Issue, Next, Op, Script, code};
use crate::client::tally::{Kind, Tally};
use crate::feed::FeedContext;
use crate::passes::FeedPass;

const KINDS: &[Kind] = &[Kind {
    name: "TAKETHIS",
    counted: true,
}];

pub(super) const PASS: FeedPass = FeedPass {
    name: "cancel",
    help: "messages that cancel the articles, which the server has (its control.cancels must be all)",
    sends: true,
    streams: true,
    hello: Some(("MODE STREAM", &[203])),
    kinds: KINDS,
    make,
};

#[derive(Debug)]
struct Cancel<'c> {
    feed: FeedContext<'c>,
    stopped: bool,
}

fn make(feed: FeedContext<'_>) -> Box<dyn Script<'_> + '_> {
    Box::new(Cancel {
        feed,
        stopped: false,
    })
}

impl<'c> Script<'c> for Cancel<'c> {
    fn issue(&mut self, out: &mut Outgoing<'c>) -> Issue {
        let next = if self.stopped { None } else { self.feed.take() };
        let Some(n) = next else { return Issue::Done };
        self.feed.write_cancel(n, out);
        Issue::Sent(Op {
            kind: 0,
            key: n,
            group: 0,
        })
    }

    fn status(&mut self, op: Op, line: &[u8], tally: &mut Tally) -> Next {
        let code = code(line);
        tally.code(op.kind, code);
        if code != Some(239) {
            tally.refused(line);
        }
        self.feed.verify_cancel_id(op.key, line, tally);
        Next::Complete
    }

    fn stop(&mut self) {
        self.stopped = true;
    }
}
