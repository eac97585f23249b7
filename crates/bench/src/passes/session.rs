//! As a newsreader does: choose a group, fetch the newest overview, read some of its articles.
//!
//! Invariant: everything is asked for within the group that is selected; every command counts; where contents are verified,
//! articles are held against the corpus.

use crate::client::outgoing::Outgoing;
use crate::client::script::{Issue, Next, Op, Script, code, number, word};
use crate::client::tally::{Kind, Tally};
use crate::comparison::{Comparison, Part};
use crate::passes::ReadPass;
use crate::passes::over::write_over;
use crate::read::{Choice, ReadContext, Verify, write_number};

const KINDS: &[Kind] = &[
    Kind {
        name: "GROUP",
        counted: true,
    },
    Kind {
        name: "OVER",
        counted: true,
    },
    Kind {
        name: "ARTICLE",
        counted: true,
    },
];
const GROUP: u8 = 0;
const OVER: u8 = 1;
const ARTICLE: u8 = 2;
/// Overview lines a newsreader fetches: one screen.
const SCREEN: u64 = 40;
/// Articles read in a group.
const ARTICLES: u8 = 5;

pub(super) const PASS: ReadPass = ReadPass {
    name: "session",
    help: "as a newsreader: a group, the newest overview, some of its articles",
    kinds: KINDS,
    make,
};

#[derive(Debug)]
struct Session<'c> {
    read: ReadContext<'c>,
    group: u32,
    /// 0: select a group; 1: fetch the overview; then articles.
    step: u8,
    comparison: Comparison,
}

fn make(read: ReadContext<'_>) -> Box<dyn Script<'_> + '_> {
    Box::new(Session {
        read,
        group: 0,
        step: 0,
        comparison: Comparison::default(),
    })
}

impl<'c> Script<'c> for Session<'c> {
    fn issue(&mut self, out: &mut Outgoing<'c>) -> Issue {
        if !self.read.go_on() {
            return Issue::Done;
        }
        let step = self.step;
        self.step = (step + 1) % (2 + ARTICLES);
        if step == GROUP {
            self.group = self.read.choose_group(Choice::Busy);
            self.read.write_group(b"GROUP", self.group, out);
            return Issue::Sent(Op {
                kind: GROUP,
                key: 0,
                group: self.group,
            });
        }
        let (low, high) = self
            .read
            .group(self.group)
            .map_or((1, 1), |group| (group.low, group.high));
        let low = low.max((high + 1).saturating_sub(SCREEN));
        if step == OVER {
            write_over(low, high, out);
            return Issue::Sent(Op {
                kind: OVER,
                key: 0,
                group: self.group,
            });
        }
        let wanted = low + self.read.dice.below((high - low + 1) as usize) as u64;
        let text = out.text();
        text.extend_from_slice(b"ARTICLE ");
        write_number(text, wanted);
        text.extend_from_slice(b"\r\n");
        Issue::Sent(Op {
            kind: ARTICLE,
            key: wanted,
            group: self.group,
        })
    }

    fn status(&mut self, op: Op, line: &[u8], tally: &mut Tally) -> Next {
        if op.kind == GROUP {
            self.read.verify_group(GROUP, op.group, line, tally);
            return Next::Complete;
        }
        tally.code(op.kind, code(line));
        match (op.kind, code(line)) {
            (OVER, Some(224)) => Next::Parts,
            (ARTICLE, Some(220)) if number(word(line, 1)) == Some(op.key) => {
                self.comparison.named(&self.read, word(line, 2));
                match self.read.verify {
                    Verify::Contents => Next::Whole,
                    Verify::Replies => Next::Parts,
                }
            }
            (_, Some(423)) => Next::Complete,
            (_, code) => {
                tally.complain(|| format!("the server said \"{}\"", String::from_utf8_lossy(line)));
                if code == Some(220) {
                    Next::Parts
                } else {
                    Next::Complete
                }
            }
        }
    }

    fn block(&mut self, op: Op, octets: &[u8], _last: bool, tally: &mut Tally) {
        if op.kind == OVER {
            tally.lines += memchr::memchr_iter(b'\n', octets).count() as u64;
        } else if self.read.verify == Verify::Replies {
            // Taken in parts, and not looked at.
        } else if self
            .comparison
            .is_right(&self.read, Part::Whole, Some(op), octets)
        {
            tally.compared += 1;
        } else {
            tally.complain(|| format!("article {} is not what was sent", op.key));
        }
    }

    fn stop(&mut self) {
        self.read.stop();
    }
}
