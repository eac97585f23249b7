//! GROUP, and the overview of the whole group (RFC 3977 section 8.3).
//!
//! Invariant: there are no more lines than numbers; when contents are verified, numbers ascend
//! within the range, every line has its fields, and its message-id is one of the corpus.

use crate::client::outgoing::Outgoing;
use crate::client::script::{Issue, Next, Op, Script, code, number};
use crate::client::tally::{Kind, Tally};
use crate::corpus::Corpus;
use crate::passes::ReadPass;
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
];
const GROUP: u8 = 0;
const OVER: u8 = 1;

pub(super) const PASS: ReadPass = ReadPass {
    name: "over",
    help: "GROUP, and the overview of the whole group",
    kinds: KINDS,
    make,
};

#[derive(Debug)]
struct Over<'c> {
    read: ReadContext<'c>,
    selected: Option<u32>,
    lines: u64,
}

fn make(read: ReadContext<'_>) -> Box<dyn Script<'_> + '_> {
    Box::new(Over {
        read,
        selected: None,
        lines: 0,
    })
}

impl<'c> Script<'c> for Over<'c> {
    fn issue(&mut self, out: &mut Outgoing<'c>) -> Issue {
        if !self.read.go_on() {
            return Issue::Done;
        }
        let Some(group) = self.selected.take() else {
            let group = self.read.choose_group(Choice::Even);
            self.selected = Some(group);
            self.read.write_group(b"GROUP", group, out);
            return Issue::Sent(Op {
                kind: GROUP,
                key: 0,
                group,
            });
        };
        let (low, high) = self
            .read
            .group(group)
            .map_or((1, 1), |group| (group.low, group.high));
        write_over(low, high, out);
        Issue::Sent(Op {
            kind: OVER,
            key: high - low + 1,
            group,
        })
    }

    fn status(&mut self, op: Op, line: &[u8], tally: &mut Tally) -> Next {
        if op.kind == GROUP {
            self.read.verify_group(GROUP, op.group, line, tally);
            return Next::Complete;
        }
        self.lines = 0;
        tally.code(op.kind, code(line));
        match code(line) {
            Some(224) if self.read.verify == Verify::Contents => Next::Whole,
            Some(224) => Next::Parts,
            Some(423) => Next::Complete,
            _ => {
                tally.complain(|| format!("OVER said \"{}\"", String::from_utf8_lossy(line)));
                Next::Complete
            }
        }
    }

    fn block(&mut self, op: Op, octets: &[u8], last: bool, tally: &mut Tally) {
        self.lines += memchr::memchr_iter(b'\n', octets).count() as u64;
        if last {
            tally.lines += self.lines;
            if self.lines > op.key {
                let lines = self.lines;
                tally.complain(|| format!("OVER had {lines} lines for {} numbers", op.key));
            }
        }
        if self.read.verify == Verify::Contents {
            let range = self
                .read
                .group(op.group)
                .map_or((1, 1), |group| (group.low, group.high));
            verify_lines(self.read.corpus, octets, range, tally);
        }
    }

    fn stop(&mut self) {
        self.read.stop();
    }
}

/// Puts OVER for a range of numbers.
pub(super) fn write_over(low: u64, high: u64, out: &mut Outgoing<'_>) {
    let text = out.text();
    text.extend_from_slice(b"OVER ");
    write_number(text, low);
    text.push(b'-');
    write_number(text, high);
    text.extend_from_slice(b"\r\n");
}

/// Complains about lines that are out of order, short of fields or of unknown articles.
fn verify_lines(corpus: &Corpus, octets: &[u8], range: (u64, u64), tally: &mut Tally) {
    let mut next = range.0;
    for line in octets.split_inclusive(|&octet| octet == b'\n') {
        let mut fields = line.split(|&octet| octet == b'\t');
        let at = fields
            .next()
            .and_then(number)
            .filter(|at| (next..=range.1).contains(at));
        let id = fields.nth(3).unwrap_or_default();
        let rest = fields.count();
        if at.is_none() || rest < 3 || !line.ends_with(b"\r\n") || corpus.find(id).is_none() {
            tally.complain(|| format!("OVER had the line \"{}\"", String::from_utf8_lossy(line)));
        }
        next = at.map_or(next, |at| at + 1);
    }
}
