//! DATE: what a round trip costs when the server has nothing to do.

use crate::client::outgoing::Outgoing;
use crate::client::script::{Issue, Next, Op, Script, code};
use crate::client::tally::{Kind, Tally};
use crate::passes::ReadPass;
use crate::read::ReadContext;

const KINDS: &[Kind] = &[Kind {
    name: "DATE",
    counted: true,
}];

pub(super) const PASS: ReadPass = ReadPass {
    name: "date",
    help: "DATE, the cheapest command: what a round trip costs",
    kinds: KINDS,
    make,
};

#[derive(Debug)]
struct Date<'c> {
    read: ReadContext<'c>,
}

fn make(read: ReadContext<'_>) -> Box<dyn Script<'_> + '_> {
    Box::new(Date { read })
}

impl<'c> Script<'c> for Date<'c> {
    fn issue(&mut self, out: &mut Outgoing<'c>) -> Issue {
        if !self.read.go_on() {
            return Issue::Done;
        }
        out.text().extend_from_slice(b"DATE\r\n");
        Issue::Sent(Op {
            kind: 0,
            key: 0,
            group: 0,
        })
    }

    fn status(&mut self, op: Op, line: &[u8], tally: &mut Tally) -> Next {
        tally.code(op.kind, code(line));
        if code(line) != Some(111) {
            tally.complain(|| format!("DATE said \"{}\"", String::from_utf8_lossy(line)));
        }
        Next::Complete
    }

    fn stop(&mut self) {
        self.read.stop();
    }
}
