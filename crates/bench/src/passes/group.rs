//! GROUP of busy and quiet groups as they come (RFC 3977 section 6.1.1).

use crate::client::outgoing::Outgoing;
use crate::client::script::{Issue, Next, Op, Script};
use crate::client::tally::{Kind, Tally};
use crate::passes::ReadPass;
use crate::read::{Choice, ReadContext};

const KINDS: &[Kind] = &[Kind {
    name: "GROUP",
    counted: true,
}];

pub(super) const PASS: ReadPass = ReadPass {
    name: "group",
    help: "GROUP of busy and quiet groups as they come",
    kinds: KINDS,
    make,
};

#[derive(Debug)]
struct Group<'c> {
    read: ReadContext<'c>,
}

fn make(read: ReadContext<'_>) -> Box<dyn Script<'_> + '_> {
    Box::new(Group { read })
}

impl<'c> Script<'c> for Group<'c> {
    fn issue(&mut self, out: &mut Outgoing<'c>) -> Issue {
        if !self.read.go_on() {
            return Issue::Done;
        }
        let group = self.read.choose_group(Choice::Busy);
        self.read.write_group(b"GROUP", group, out);
        Issue::Sent(Op {
            kind: 0,
            key: 0,
            group,
        })
    }

    fn status(&mut self, op: Op, line: &[u8], tally: &mut Tally) -> Next {
        self.read.verify_group(op.kind, op.group, line, tally);
        Next::Complete
    }

    fn stop(&mut self) {
        self.read.stop();
    }
}
