//! ARTICLE, HEAD, BODY and STAT, by number or by message-id (RFC 3977 section 6.2).
//!
//! Invariant: a reply must carry the number or id that was asked for, a whole article must have a
//! header block and a body, and when contents are verified it must be the corpus's article, octet for
//! octet but for Path and Xref. An article that is not there is counted, not complained about.

use crate::client::outgoing::Outgoing;
use crate::client::script::{Issue, Next, Op, Script, code, number, word};
use crate::client::tally::{Kind, Tally};
use crate::comparison::{Comparison, Part};
use crate::passes::ReadPass;
use crate::read::{By, Choice, Order, ReadContext, write_number};

const GROUP_KIND: Kind = Kind {
    name: "GROUP",
    counted: false,
};
const ARTICLE_KINDS: &[Kind] = &[
    GROUP_KIND,
    Kind {
        name: "ARTICLE",
        counted: true,
    },
];
const HEAD_KINDS: &[Kind] = &[
    GROUP_KIND,
    Kind {
        name: "HEAD",
        counted: true,
    },
];
const BODY_KINDS: &[Kind] = &[
    GROUP_KIND,
    Kind {
        name: "BODY",
        counted: true,
    },
];
const STAT_KINDS: &[Kind] = &[
    GROUP_KIND,
    Kind {
        name: "STAT",
        counted: true,
    },
];
const GROUP: u8 = 0;
const FETCH: u8 = 1;
/// Articles read at random in one group before another is chosen.
const STAY: u64 = 100;

pub(super) const ARTICLE_PASS: ReadPass = ReadPass {
    name: "article",
    help: "whole articles",
    kinds: ARTICLE_KINDS,
    make: make_article,
};

pub(super) const HEAD_PASS: ReadPass = ReadPass {
    name: "head",
    help: "header blocks",
    kinds: HEAD_KINDS,
    make: make_head,
};

pub(super) const BODY_PASS: ReadPass = ReadPass {
    name: "body",
    help: "bodies",
    kinds: BODY_KINDS,
    make: make_body,
};

pub(super) const STAT_PASS: ReadPass = ReadPass {
    name: "stat",
    help: "whether articles are there",
    kinds: STAT_KINDS,
    make: make_stat,
};

#[derive(Debug)]
struct Fetch<'c> {
    read: ReadContext<'c>,
    verb: &'static [u8],
    success: u16,
    part: Part,
    group: u32,
    /// Numbers still to be asked for in the group: so many at random, or those from `next` on.
    left: u64,
    next: u64,
    comparison: Comparison,
    scratch: Vec<u8>,
}

impl<'c> Fetch<'c> {
    fn boxed(
        read: ReadContext<'c>,
        verb: &'static [u8],
        success: u16,
        part: Part,
    ) -> Box<dyn Script<'c> + 'c> {
        let scratch = Vec::with_capacity(4096);
        Box::new(Self {
            read,
            verb,
            success,
            part,
            group: 0,
            left: 0,
            next: 0,
            comparison: Comparison::default(),
            scratch,
        })
    }

    fn issue_by_id(&mut self, out: &mut Outgoing<'c>) -> Issue {
        let next = self
            .read
            .go_on()
            .then(|| self.read.choose_article())
            .flatten();
        let Some(n) = next else { return Issue::Done };
        let text = out.text();
        text.extend_from_slice(self.verb);
        text.push(b' ');
        self.read.corpus.write_message_id(n, text);
        text.extend_from_slice(b"\r\n");
        Issue::Sent(Op {
            kind: FETCH,
            key: n,
            group: 0,
        })
    }

    fn issue_by_number(&mut self, out: &mut Outgoing<'c>) -> Issue {
        if self.left == 0 {
            return self.issue_group(out);
        }
        if !self.read.go_on() {
            return Issue::Done;
        }
        self.left -= 1;
        let range = self
            .read
            .group(self.group)
            .map_or((1, 1), |group| (group.low, group.high));
        let wanted = match self.read.order {
            Order::Random => {
                range.0 + self.read.dice.below((range.1 - range.0 + 1) as usize) as u64
            }
            Order::Sequential => self.next,
        };
        self.next += 1;
        let text = out.text();
        text.extend_from_slice(self.verb);
        text.push(b' ');
        write_number(text, wanted);
        text.extend_from_slice(b"\r\n");
        Issue::Sent(Op {
            kind: FETCH,
            key: wanted,
            group: self.group,
        })
    }

    fn issue_group(&mut self, out: &mut Outgoing<'c>) -> Issue {
        let place = match self.read.order {
            Order::Random => Some(self.read.choose_group(Choice::Busy)),
            Order::Sequential => self.read.next_group(),
        };
        let Some((place, group)) = place.and_then(|p| Some((p, self.read.group(p)?))) else {
            return Issue::Done;
        };
        let all = group.high - group.low + 1;
        self.next = group.low;
        self.left = if self.read.order == Order::Random {
            STAY
        } else {
            all
        };
        self.group = place;
        self.read.write_group(b"GROUP", place, out);
        Issue::Sent(Op {
            kind: GROUP,
            key: 0,
            group: place,
        })
    }

    /// Whether the status line names what was asked for.
    fn names(&mut self, op: Op, line: &[u8]) -> bool {
        if self.read.by == By::Number {
            return number(word(line, 1)) == Some(op.key) && word(line, 2).starts_with(b"<");
        }
        self.scratch.clear();
        self.read.corpus.write_message_id(op.key, &mut self.scratch);
        word(line, 2) == self.scratch
    }
}

fn make_article(read: ReadContext<'_>) -> Box<dyn Script<'_> + '_> {
    Fetch::boxed(read, b"ARTICLE", 220, Part::Whole)
}

fn make_head(read: ReadContext<'_>) -> Box<dyn Script<'_> + '_> {
    Fetch::boxed(read, b"HEAD", 221, Part::Head)
}

fn make_body(read: ReadContext<'_>) -> Box<dyn Script<'_> + '_> {
    Fetch::boxed(read, b"BODY", 222, Part::Body)
}

fn make_stat(read: ReadContext<'_>) -> Box<dyn Script<'_> + '_> {
    Fetch::boxed(read, b"STAT", 223, Part::Nothing)
}

impl<'c> Script<'c> for Fetch<'c> {
    fn issue(&mut self, out: &mut Outgoing<'c>) -> Issue {
        if self.read.by == By::Number {
            self.issue_by_number(out)
        } else {
            self.issue_by_id(out)
        }
    }

    fn status(&mut self, op: Op, line: &[u8], tally: &mut Tally) -> Next {
        if op.kind == GROUP {
            self.read.verify_group(GROUP, op.group, line, tally);
            return Next::Complete;
        }
        let code = code(line);
        tally.code(op.kind, code);
        let success = code == Some(self.success);
        let missing = matches!(code, Some(423 | 430));
        let wanted = self.read.by != By::UnknownId;
        let right = missing || (success && wanted && self.names(op, line));
        if !right {
            tally.complain(|| {
                let (verb, line) = (
                    String::from_utf8_lossy(self.verb),
                    String::from_utf8_lossy(line),
                );
                format!("{verb} of {} said \"{line}\"", op.key)
            });
        }
        if !success || self.part == Part::Nothing {
            return Next::Complete;
        }
        self.comparison.named(&self.read, word(line, 2));
        Next::Whole
    }

    fn block(&mut self, op: Op, octets: &[u8], _last: bool, tally: &mut Tally) {
        let numbered = (self.read.by == By::Number).then_some(op);
        let (comparison, part) = (&mut self.comparison, self.part);
        if !comparison.is_right(&self.read, part, numbered, octets) {
            let verb = self.verb;
            tally.complain(|| {
                let verb = String::from_utf8_lossy(verb);
                format!(
                    "{verb} of {} brought {} octets that are not it (was it fed with another --seed, --size or \
                     --base-time, or not --from these files?)",
                    op.key,
                    octets.len()
                )
            });
        } else if self.comparison.has_article() {
            tally.compared += 1;
        }
    }

    fn stop(&mut self) {
        self.read.stop();
        self.left = self.left.max(1);
    }
}
