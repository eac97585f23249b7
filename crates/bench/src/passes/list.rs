//! LIST ACTIVE of all groups (RFC 3977 section 7.6.3).
//!
//! Invariant: every list has as many lines as the first one had.

use crate::client::outgoing::Outgoing;
use crate::client::script::{Issue, Next, Op, Script, code};
use crate::client::tally::{Kind, Tally};
use crate::passes::ReadPass;
use crate::read::ReadContext;

const KINDS: &[Kind] = &[Kind {
    name: "LIST",
    counted: true,
}];

pub(super) const PASS: ReadPass = ReadPass {
    name: "list",
    help: "LIST ACTIVE of all groups",
    kinds: KINDS,
    make,
};

#[derive(Debug)]
struct List<'c> {
    read: ReadContext<'c>,
    lines: u64,
}

fn make(read: ReadContext<'_>) -> Box<dyn Script<'_> + '_> {
    Box::new(List { read, lines: 0 })
}

impl<'c> Script<'c> for List<'c> {
    fn issue(&mut self, out: &mut Outgoing<'c>) -> Issue {
        if !self.read.go_on() {
            return Issue::Done;
        }
        out.text().extend_from_slice(b"LIST ACTIVE\r\n");
        Issue::Sent(Op {
            kind: 0,
            key: 0,
            group: 0,
        })
    }

    fn status(&mut self, op: Op, line: &[u8], tally: &mut Tally) -> Next {
        tally.code(op.kind, code(line));
        self.lines = 0;
        if code(line) == Some(215) {
            return Next::Parts;
        }
        tally.complain(|| format!("LIST said \"{}\"", String::from_utf8_lossy(line)));
        Next::Complete
    }

    fn block(&mut self, _op: Op, octets: &[u8], last: bool, tally: &mut Tally) {
        self.lines += memchr::memchr_iter(b'\n', octets).count() as u64;
        if last {
            tally.lines += self.lines;
            let (lines, listed) = (self.lines, self.read.groups().listed);
            if lines != listed {
                tally.complain(|| format!("LIST had {lines} lines, the first one {listed}"));
            }
        }
    }

    fn stop(&mut self) {
        self.read.stop();
    }
}
