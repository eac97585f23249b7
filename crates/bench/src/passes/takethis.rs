//! TAKETHIS without asking first (RFC 4644 section 2.5): of the articles, or of the messages that cancel them.
//!
//! Invariant: a reply must name what it answers; anything else is a complaint.

use crate::client::outgoing::Outgoing;
use crate::client::script::{Issue, Next, Op, Script, code};
use crate::client::tally::{Kind, Tally};
use crate::feed::FeedContext;
use crate::passes::FeedPass;

pub(super) const KINDS: &[Kind] = &[Kind {
    name: "TAKETHIS",
    counted: true,
}];

pub(super) const PASS: FeedPass = FeedPass {
    name: "takethis",
    help: "TAKETHIS without asking first",
    sends: true,
    streams: true,
    hello: Some(("MODE STREAM", &[203])),
    kinds: KINDS,
    make,
};

/// What is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Articles,
    Cancels,
}

#[derive(Debug)]
pub(super) struct Takethis<'c> {
    feed: FeedContext<'c>,
    what: What,
    stopped: bool,
}

fn make(feed: FeedContext<'_>) -> Box<dyn Script<'_> + '_> {
    Box::new(Takethis::of(feed, What::Articles))
}

impl<'c> Takethis<'c> {
    pub(super) const fn of(feed: FeedContext<'c>, what: What) -> Self {
        Self {
            feed,
            what,
            stopped: false,
        }
    }
}

impl<'c> Script<'c> for Takethis<'c> {
    fn issue(&mut self, out: &mut Outgoing<'c>) -> Issue {
        let next = if self.stopped { None } else { self.feed.take() };
        let Some(n) = next else { return Issue::Done };
        if self.what == What::Cancels {
            self.feed.write_cancel(n, out);
        } else {
            self.feed.write_command(b"TAKETHIS", n, out);
            self.feed.write_article(n, out);
        }
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
        match self.what {
            What::Articles => self.feed.verify_id(op.key, line, tally),
            What::Cancels => self.feed.verify_cancel_id(op.key, line, tally),
        }
        Next::Complete
    }

    fn stop(&mut self) {
        self.stopped = true;
    }
}
