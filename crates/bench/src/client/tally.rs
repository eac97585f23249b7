//! What one worker counts: replies by code, latencies by kind of command, octets, complaints.
//!
//! Invariant: counting costs no allocation in the steady state, and tallies of several workers can
//! be merged into one. Must not know a protocol beyond reply codes.

use hdrhistogram::Histogram;

use super::script::code;

/// Replies are counted by code below this.
const CODES: usize = 600;
/// Complaints kept word for word; all are counted.
const COMPLAINTS_KEPT: usize = 8;
/// Reasons of refusals that are told apart; those of further ones are counted together.
const REASONS_KEPT: usize = 16;
/// What those are called.
const OTHERWISE: &[u8] = b"(in other words)";
/// So much of a reason is kept.
const REASON_OCTETS_MAX: usize = 200;
/// Latencies are kept between one microsecond and five minutes, to three digits.
const LATENCY_NS: (u64, u64) = (1_000, 300_000_000_000);

/// A kind of command that a pass sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// Whether it is what the pass measures, or only needed on the way.
    pub(crate) counted: bool,
}

#[derive(Debug)]
pub(crate) struct KindTally {
    pub(crate) kind: Kind,
    pub(crate) latency_ns: Histogram<u64>,
    codes: Box<[u64; CODES]>,
}

impl KindTally {
    /// Replies by code, those that occurred.
    pub(crate) fn codes(&self) -> impl Iterator<Item = (u16, u64)> {
        let counts = self.codes.iter().zip(0u16..);
        counts
            .filter(|(count, _)| **count > 0)
            .map(|(count, code)| (code, *count))
    }
}

/// Why a server did not take articles, in its words, and how many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reason {
    pub(crate) code: u16,
    /// What follows the code and the message-id.
    pub(crate) text: Vec<u8>,
    pub(crate) count: u64,
}

#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) kinds: Vec<KindTally>,
    pub(crate) octets_in: u64,
    pub(crate) octets_out: u64,
    /// Replies that were not what was asked for.
    pub(crate) damaged: u64,
    /// Articles (or parts) that were compared octet for octet.
    pub(crate) compared: u64,
    /// Lines of blocks (overview lines, groups, numbers).
    pub(crate) lines: u64,
    /// Connections that ended before their work did.
    pub(crate) lost: u64,
    pub(crate) complaints: Vec<String>,
    pub(crate) reasons: Vec<Reason>,
}

impl Tally {
    pub(crate) fn new(kinds: &[Kind]) -> Result<Self, hdrhistogram::CreationError> {
        let kinds = kinds.iter().map(|&kind| {
            Ok(KindTally {
                kind,
                latency_ns: Histogram::new_with_bounds(LATENCY_NS.0, LATENCY_NS.1, 3)?,
                codes: Box::new([0; CODES]),
            })
        });
        Ok(Self {
            kinds: kinds.collect::<Result<_, _>>()?,
            octets_in: 0,
            octets_out: 0,
            damaged: 0,
            compared: 0,
            lines: 0,
            lost: 0,
            complaints: Vec::new(),
            reasons: Vec::new(),
        })
    }

    pub(crate) fn code(&mut self, kind: u8, code: Option<u16>) {
        let Some(tally) = self.kinds.get_mut(usize::from(kind)) else {
            return;
        };
        match code.and_then(|code| tally.codes.get_mut(usize::from(code))) {
            Some(count) => *count += 1,
            None => self.complain(|| "a reply without a code".to_owned()),
        }
    }

    /// The server did not take an article, and said this.
    pub(crate) fn refused(&mut self, line: &[u8]) {
        let text = line.get(4..).unwrap_or_default();
        let (first, rest) = match text.iter().position(|&octet| octet == b' ') {
            Some(space) => text.split_at(space),
            None => (text, &[][..]),
        };
        let text = match first {
            [b'<', ..] => rest.trim_ascii_start(),
            _ => text,
        };
        let text = text.get(..REASON_OCTETS_MAX).unwrap_or(text);
        self.reason(code(line).unwrap_or_default(), text, 1);
    }

    fn reason(&mut self, code: u16, text: &[u8], count: u64) {
        let mut kept = self.reasons.iter_mut();
        if let Some(known) = kept.find(|kept| kept.code == code && kept.text == text) {
            known.count += count;
            return;
        }
        // Texts without end (a name, a time in each) become one.
        let text = match self.reasons.len() < REASONS_KEPT {
            true => text,
            false if text == OTHERWISE => text,
            false => return self.reason(code, OTHERWISE, count),
        };
        self.reasons.push(Reason {
            code,
            text: text.to_owned(),
            count,
        });
    }

    /// A command was answered in full after so long. True when it is one that counts.
    pub(crate) fn answered(&mut self, kind: u8, latency_ns: u64) -> bool {
        let Some(tally) = self.kinds.get_mut(usize::from(kind)) else {
            return false;
        };
        tally.latency_ns.saturating_record(latency_ns);
        tally.kind.counted
    }

    /// A reply was damaged or wrong; `what` is made only when it will be kept.
    pub(crate) fn complain(&mut self, what: impl FnOnce() -> String) {
        self.damaged += 1;
        self.remark(what);
    }

    /// Something to tell that is no damaged reply.
    pub(crate) fn remark(&mut self, what: impl FnOnce() -> String) {
        if self.complaints.len() < COMPLAINTS_KEPT {
            self.complaints.push(what());
        }
    }

    /// Adds what another worker of the same pass counted.
    pub(crate) fn merge(&mut self, other: Self) {
        for (mine, theirs) in self.kinds.iter_mut().zip(other.kinds) {
            // The bounds are the same, so adding cannot fail.
            let _ = mine.latency_ns.add(&theirs.latency_ns);
            for (mine, theirs) in mine.codes.iter_mut().zip(theirs.codes.iter()) {
                *mine += theirs;
            }
        }
        self.octets_in += other.octets_in;
        self.octets_out += other.octets_out;
        self.damaged += other.damaged;
        self.compared += other.compared;
        self.lines += other.lines;
        self.lost += other.lost;
        for reason in other.reasons {
            self.reason(reason.code, &reason.text, reason.count);
        }
        self.complaints.extend(other.complaints);
        self.complaints.truncate(COMPLAINTS_KEPT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [Kind; 2] = [
        Kind {
            name: "CHECK",
            counted: false,
        },
        Kind {
            name: "TAKETHIS",
            counted: true,
        },
    ];

    #[test]
    fn two_workers_add_up() {
        let mut first = Tally::new(&KINDS).unwrap();
        let mut second = Tally::new(&KINDS).unwrap();
        for (tally, code) in [(&mut first, 239), (&mut second, 239)] {
            tally.code(1, Some(code));
            assert!(tally.answered(1, 5_000) && !tally.answered(0, 7_000_000));
        }
        second.code(0, Some(438));
        second.code(0, None);
        first.merge(second);
        assert_eq!(first.kinds[1].codes().collect::<Vec<_>>(), [(239, 2)]);
        assert_eq!(first.kinds[0].codes().collect::<Vec<_>>(), [(438, 1)]);
        assert_eq!(first.kinds[1].latency_ns.len(), 2);
        assert_eq!((first.damaged, first.complaints.len()), (1, 1));
    }

    #[test]
    fn reasons_are_counted_by_their_words_without_the_message_id() {
        let (mut tally, mut other) = (Tally::new(&KINDS).unwrap(), Tally::new(&KINDS).unwrap());
        for line in [
            "439 <1@a> No such group",
            "439 <2@a> No such group",
            "435 <3@a>",
            "437",
        ] {
            tally.refused(line.as_bytes());
        }
        other.refused(b"437 Article is old");
        other.refused(b"439 <9@a> No such group");
        tally.merge(other);
        let said = |tally: &Tally| {
            let reasons = tally.reasons.iter().map(|reason| {
                let text = String::from_utf8_lossy(&reason.text).into_owned();
                (reason.code, text, reason.count)
            });
            reasons.collect::<Vec<_>>()
        };
        let row = |code, text: &str, count| (code, text.to_owned(), count);
        let expected = [
            row(439, "No such group", 3),
            row(435, "", 1),
            row(437, "", 1),
            row(437, "Article is old", 1),
        ];
        assert_eq!(said(&tally), expected);
        for n in 0..1000 {
            tally.refused(format!("437 {n} is a number").as_bytes());
        }
        assert_eq!(tally.reasons.len(), REASONS_KEPT + 1);
        let last = said(&tally).pop().unwrap();
        assert_eq!(
            last,
            row(437, "(in other words)", 1000 - (REASONS_KEPT as u64 - 4))
        );
    }

    #[test]
    fn complaints_are_all_counted_and_few_are_kept() {
        let mut tally = Tally::new(&KINDS).unwrap();
        for n in 0..100 {
            tally.complain(|| format!("complaint {n}"));
        }
        assert_eq!(
            (tally.damaged, tally.complaints.len()),
            (100, COMPLAINTS_KEPT)
        );
    }
}
