//! One article at a time, sent when the server said to: IHAVE (RFC 3977 section 6.3.2) and POST (section 6.3.1).
//!
//! Invariant: nothing follows a command before its answer; the article is sent after 335 or 340 only.

use crate::client::outgoing::Outgoing;
use crate::client::script::{Issue, Next, Op, Script, code};
use crate::client::tally::{Kind, Tally};
use crate::feed::FeedContext;
use crate::passes::FeedPass;

const COMMAND: u8 = 0;
const ARTICLE: u8 = 1;

/// What is said, and what the answers mean.
#[derive(Debug)]
struct Manner {
    verb: &'static str,
    /// Whether the article has no server behind it yet: the command does not name it, and it has no fields of servers.
    is_post: bool,
    go_on: u16,
    taken: u16,
    /// Answers to the command, and to the article, that say no.
    not_wanted: &'static [u16],
    not_taken: &'static [u16],
}

static IHAVE: Manner = Manner {
    verb: "IHAVE",
    is_post: false,
    go_on: 335,
    taken: 235,
    not_wanted: &[435, 436],
    not_taken: &[436, 437],
};

static POST: Manner = Manner {
    verb: "POST",
    is_post: true,
    go_on: 340,
    taken: 240,
    not_wanted: &[440],
    not_taken: &[441],
};

pub(super) const IHAVE_PASS: FeedPass = FeedPass {
    name: "ihave",
    help: "IHAVE, one article at a time",
    sends: true,
    streams: false,
    hello: None,
    kinds: &[
        Kind {
            name: "IHAVE",
            counted: false,
        },
        Kind {
            name: "article",
            counted: true,
        },
    ],
    make: |feed| make(feed, &IHAVE),
};

pub(super) const POST_PASS: FeedPass = FeedPass {
    name: "post",
    help: "POST, one article at a time, as people do",
    sends: true,
    streams: false,
    hello: Some(("MODE READER", &[200])),
    kinds: &[
        Kind {
            name: "POST",
            counted: false,
        },
        Kind {
            name: "article",
            counted: true,
        },
    ],
    make: |feed| make(feed, &POST),
};

#[derive(Debug)]
struct Asked<'c> {
    feed: FeedContext<'c>,
    manner: &'static Manner,
    wanted: Option<u64>,
    stopped: bool,
}

fn make<'c>(feed: FeedContext<'c>, manner: &'static Manner) -> Box<dyn Script<'c> + 'c> {
    Box::new(Asked {
        feed,
        manner,
        wanted: None,
        stopped: false,
    })
}

impl<'c> Script<'c> for Asked<'c> {
    fn issue(&mut self, out: &mut Outgoing<'c>) -> Issue {
        if let Some(n) = self.wanted.take() {
            match self.manner.is_post {
                true => self.feed.write_proto_article(n, out),
                false => self.feed.write_article(n, out),
            }
            return Issue::Sent(Op {
                kind: ARTICLE,
                key: n,
                group: 0,
            });
        }
        let next = if self.stopped { None } else { self.feed.take() };
        let Some(n) = next else { return Issue::Done };
        match self.manner.is_post {
            true => out.text().extend_from_slice(b"POST\r\n"),
            false => self.feed.write_command(b"IHAVE", n, out),
        }
        Issue::Sent(Op {
            kind: COMMAND,
            key: n,
            group: 0,
        })
    }

    fn status(&mut self, op: Op, line: &[u8], tally: &mut Tally) -> Next {
        let code = code(line);
        tally.code(op.kind, code);
        let manner = self.manner;
        let (yes, no) = match op.kind {
            COMMAND => (manner.go_on, manner.not_wanted),
            _ => (manner.taken, manner.not_taken),
        };
        match code {
            Some(code) if code == yes && op.kind == COMMAND => self.wanted = Some(op.key),
            Some(code) if code == yes => {}
            Some(code) if no.contains(&code) => tally.refused(line),
            _ => tally.complain(|| {
                let line = String::from_utf8_lossy(line);
                format!("{} said \"{line}\"", manner.verb)
            }),
        }
        Next::Complete
    }

    fn stop(&mut self) {
        self.stopped = true;
    }
}
