//! CHECK, and TAKETHIS for what is wanted, both under way at once (RFC 4644 section 2.4).
//!
//! Invariant: an article is sent only when its own CHECK said 238, and wanted articles go before new
//! offers. An offer that is put off (431) is counted and not offered again.

use std::collections::VecDeque;

use crate::client::outgoing::Outgoing;
use crate::client::script::{Issue, Next, Op, Script, code};
use crate::client::tally::{Kind, Tally};
use crate::feed::FeedContext;
use crate::passes::FeedPass;

const KINDS: &[Kind] = &[
    Kind {
        name: "CHECK",
        counted: false,
    },
    Kind {
        name: "TAKETHIS",
        counted: true,
    },
];
const CHECK: u8 = 0;
const TAKETHIS: u8 = 1;

pub(super) const PASS: FeedPass = FeedPass {
    name: "check",
    help: "CHECK, and TAKETHIS for what is wanted, as streaming peers do",
    sends: true,
    streams: true,
    hello: Some(("MODE STREAM", &[203])),
    kinds: KINDS,
    make,
};

#[derive(Debug)]
struct Check<'c> {
    feed: FeedContext<'c>,
    wanted: VecDeque<u64>,
    offered: usize,
    stopped: bool,
}

fn make(feed: FeedContext<'_>) -> Box<dyn Script<'_> + '_> {
    Box::new(Check {
        feed,
        wanted: VecDeque::new(),
        offered: 0,
        stopped: false,
    })
}

impl<'c> Script<'c> for Check<'c> {
    fn issue(&mut self, out: &mut Outgoing<'c>) -> Issue {
        if let Some(n) = self.wanted.pop_front() {
            self.feed.write_command(b"TAKETHIS", n, out);
            self.feed.write_article(n, out);
            return Issue::Sent(Op {
                kind: TAKETHIS,
                key: n,
                group: 0,
            });
        }
        let next = if self.stopped { None } else { self.feed.take() };
        let Some(n) = next else {
            return if self.offered == 0 {
                Issue::Done
            } else {
                Issue::Wait
            };
        };
        self.offered += 1;
        self.feed.write_command(b"CHECK", n, out);
        Issue::Sent(Op {
            kind: CHECK,
            key: n,
            group: 0,
        })
    }

    fn status(&mut self, op: Op, line: &[u8], tally: &mut Tally) -> Next {
        let code = code(line);
        tally.code(op.kind, code);
        self.feed.verify_id(op.key, line, tally);
        if op.kind == CHECK {
            self.offered -= 1;
        }
        if (op.kind, code) == (CHECK, Some(238)) {
            self.wanted.push_back(op.key);
        } else if code != Some(239) {
            tally.refused(line);
        }
        Next::Complete
    }

    fn stop(&mut self) {
        self.stopped = true;
    }
}
