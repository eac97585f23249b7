//! LISTGROUP, the numbers of a whole group (RFC 3977 section 6.1.2).
//!
//! Invariant: there are as many numbers as the status line says.

use crate::client::outgoing::Outgoing;
use crate::client::script::{Issue, Next, Op, Script, code, number, word};
use crate::client::tally::{Kind, Tally};
use crate::passes::ReadPass;
use crate::read::{Choice, ReadContext};

const KINDS: &[Kind] = &[Kind {
    name: "LISTGROUP",
    counted: true,
}];

pub(super) const PASS: ReadPass = ReadPass {
    name: "listgroup",
    help: "LISTGROUP, the numbers of a whole group",
    kinds: KINDS,
    make,
};

#[derive(Debug)]
struct Listgroup<'c> {
    read: ReadContext<'c>,
    promised: Option<u64>,
    lines: u64,
}

fn make(read: ReadContext<'_>) -> Box<dyn Script<'_> + '_> {
    Box::new(Listgroup {
        read,
        promised: None,
        lines: 0,
    })
}

impl<'c> Script<'c> for Listgroup<'c> {
    fn issue(&mut self, out: &mut Outgoing<'c>) -> Issue {
        if !self.read.go_on() {
            return Issue::Done;
        }
        let group = self.read.choose_group(Choice::Busy);
        self.read.write_group(b"LISTGROUP", group, out);
        Issue::Sent(Op {
            kind: 0,
            key: 0,
            group,
        })
    }

    fn status(&mut self, op: Op, line: &[u8], tally: &mut Tally) -> Next {
        self.read.verify_group(op.kind, op.group, line, tally);
        self.promised = number(word(line, 1));
        self.lines = 0;
        if code(line) == Some(211) {
            Next::Parts
        } else {
            Next::Complete
        }
    }

    fn block(&mut self, _op: Op, octets: &[u8], last: bool, tally: &mut Tally) {
        self.lines += memchr::memchr_iter(b'\n', octets).count() as u64;
        if last {
            tally.lines += self.lines;
            let (lines, promised) = (self.lines, self.promised);
            if promised != Some(lines) {
                tally.complain(|| format!("LISTGROUP had {lines} numbers, promised {promised:?}"));
            }
        }
    }

    fn stop(&mut self) {
        self.read.stop();
    }
}
