//! Files of mail folders (mbox): messages one behind the other, each with a line `From ` in front and an empty line behind.
//!
//! The reader works on the front of a growing buffer and copies nothing.  A `From ` at the beginning of a line begins a message only
//! behind an empty line: inside one it is quoted, or it is no line that anybody wrote into such a file.  How it is quoted (`>From `, once or again
//! for each time) no file says: see [`Quoting`].

use std::ops::Range;

use memchr::memmem;

use crate::date::{CivilTime, parse_relaxed};
use crate::ids::UnixTime;

const FROM: &[u8] = b"From ";

/// How a line that begins with `From ` stands in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Quoting {
    /// `>` is put before `From ` and before any `>From `, `>>From `: nothing is ambiguous (mboxrd).
    #[default]
    Each,
    /// `>` is put before `From ` only: a `>From ` may have been one before (mboxo).
    Once,
    /// It stands as it is.
    None,
}

/// What the front of a buffer holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MboxStep {
    /// Drop `used` octets and come back with more.
    Incomplete {
        /// Octets to drop.
        used: usize,
    },
    /// Nothing is left.
    End {
        /// Octets to drop.
        used: usize,
    },
    /// A message, quoted as it is.
    Message {
        /// Where it is in the buffer.
        body: Range<usize>,
        /// Octets to drop.
        used: usize,
    },
    /// Something that is no message: octets before the first `From `, or a message that is too large.
    Damaged {
        /// Offset in the whole file.
        at: u64,
        /// What is wrong.
        why: MboxDamage,
        /// Octets to drop.
        used: usize,
    },
}

/// What is wrong with a part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum MboxDamage {
    /// No `From ` where one must be.
    #[error("no \"From \" line where one must be")]
    NoFrom,
    /// A message is larger than the limit.
    #[error("message is larger than the limit")]
    TooLarge,
}

/// Takes a file apart.
#[derive(Debug, Clone)]
pub struct MboxReader {
    message_octets_max: usize,
    /// Octets dropped so far.
    offset: u64,
    /// Octets of the buffer in which no message begins.
    scanned: usize,
    skipping: bool,
}

impl MboxReader {
    /// A reader that takes messages up to this size: about as much as a caller must hold.
    #[must_use]
    pub const fn new(message_octets_max: usize) -> Self {
        Self {
            message_octets_max,
            offset: 0,
            scanned: 0,
            skipping: false,
        }
    }

    /// Looks at the front of `buf`, which must begin where the last answer's `used` left it; `at_end` says that nothing more
    /// will come.
    pub fn next(&mut self, buf: &[u8], at_end: bool) -> MboxStep {
        let step = self.step(buf, at_end);
        let (MboxStep::Incomplete { used }
        | MboxStep::End { used }
        | MboxStep::Message { used, .. }
        | MboxStep::Damaged { used, .. }) = &step;
        self.offset += *used as u64;
        self.scanned = self.scanned.saturating_sub(*used);
        step
    }

    fn step(&mut self, buf: &[u8], at_end: bool) -> MboxStep {
        if buf.len() < FROM.len() && !at_end {
            return MboxStep::Incomplete { used: 0 };
        }
        if buf.is_empty() {
            return MboxStep::End { used: 0 };
        }
        let begins = buf.starts_with(FROM) && !self.skipping;
        let found = self.find(buf);
        match found {
            Some(end) => self.scanned = end,
            None if !begins && !at_end => {
                // The next message, and the empty line before it, may be there in part.
                return self.pass(buf, buf.len().saturating_sub(FROM.len() + 3), true);
            }
            None if !begins => return self.pass(buf, buf.len(), false),
            None if at_end => {}
            // The beginning of the next message may be there in part.
            None if buf.len() > self.message_octets_max + FROM.len() => {
                self.skipping = true;
                return self.damaged(MboxDamage::TooLarge, buf.len() - FROM.len() - 3);
            }
            None => return MboxStep::Incomplete { used: 0 },
        }
        let end = found.unwrap_or(buf.len());
        if !begins {
            return self.pass(buf, end, false);
        }
        if end > self.message_octets_max {
            return self.damaged(MboxDamage::TooLarge, end);
        }
        let line = memchr::memchr(b'\n', buf.get(..end).unwrap_or_default());
        let start = line.map_or(end, |lf| lf + 1);
        let body = start..end - empty_line(buf.get(start..end).unwrap_or_default());
        MboxStep::Message { body, used: end }
    }

    const fn damaged(&self, why: MboxDamage, used: usize) -> MboxStep {
        let at = self.offset;
        MboxStep::Damaged { at, why, used }
    }

    /// Passes over what is no message; what was told already is not told again.
    fn pass(&mut self, buf: &[u8], used: usize, goes_on: bool) -> MboxStep {
        let rest = buf.get(..used).unwrap_or_default();
        let was_told = std::mem::replace(&mut self.skipping, goes_on);
        // Empty lines are no damage.
        if rest.iter().all(|octet| b"\r\n".contains(octet)) {
            self.skipping = was_told && goes_on;
            return MboxStep::Incomplete { used };
        }
        match was_told {
            true => MboxStep::Incomplete { used },
            false => self.damaged(MboxDamage::NoFrom, used),
        }
    }

    /// Where the next message begins behind the front.
    fn find(&mut self, buf: &[u8]) -> Option<usize> {
        let mut from = self.scanned.saturating_sub(FROM.len() + 3);
        loop {
            let Some(found) = memmem::find(buf.get(from..)?, b"\nFrom ") else {
                self.scanned = buf.len();
                return None;
            };
            let found = found + from + 1;
            let before = buf.get(..found - 1).unwrap_or_default();
            let before = before.strip_suffix(b"\r").unwrap_or(before);
            if before.is_empty() || before.ends_with(b"\n") {
                return Some(found);
            }
            from = found;
            self.scanned = found;
        }
    }
}

/// The length of the empty line at the end.
fn empty_line(text: &[u8]) -> usize {
    if text.ends_with(b"\r\n\r\n") {
        2
    } else {
        usize::from(text.ends_with(b"\n\n"))
    }
}

/// How many `>` stand before a `From ` at the beginning of a line, if it is one.
fn quoted(line: &[u8]) -> Option<usize> {
    let marks = line.iter().take_while(|octet| **octet == b'>').count();
    line.get(marks..)?.starts_with(FROM).then_some(marks)
}

fn each_line<'t>(text: &'t [u8], mut visit: impl FnMut(&'t [u8])) {
    let mut rest = text;
    while !rest.is_empty() {
        let end = memchr::memchr(b'\n', rest).map_or(rest.len(), |lf| lf + 1);
        let (line, after) = rest.split_at_checked(end).unwrap_or((rest, &[]));
        visit(line);
        rest = after;
    }
}

/// Appends a message without its quoting.
pub fn unquote(message: &[u8], quoting: Quoting, out: &mut Vec<u8>) {
    if quoting == Quoting::None || memmem::find(message, b">From ").is_none() {
        out.extend_from_slice(message);
        return;
    }
    each_line(message, |line| {
        let is_quoted = match quoted(line) {
            Some(marks) => marks == 1 || marks > 1 && quoting == Quoting::Each,
            None => false,
        };
        out.extend_from_slice(line.get(usize::from(is_quoted)..).unwrap_or_default());
    });
}

/// When a message came, by its `From ` line: `From ada@a.example Thu Nov 26 09:41:07 2026`, with a zone before or behind the year where one is.
#[must_use]
pub fn came(line: &[u8]) -> Option<UnixTime> {
    let line = std::str::from_utf8(line).ok()?;
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let is_clock =
        |word: &&str| word.contains(':') && word.bytes().all(|b| b.is_ascii_digit() || b == b':');
    let at = words.iter().rposition(is_clock)?;
    let [month, day, clock] = words.get(at.checked_sub(2)?..=at)? else {
        return None;
    };
    let rest = words.get(at + 1..)?.iter().take(2);
    let is_year = |word: &&&str| word.len() == 4 && word.bytes().all(|b| b.is_ascii_digit());
    let is_zone =
        |word: &&&str| word.starts_with(['+', '-']) || word.bytes().all(|b| b.is_ascii_uppercase());
    let year = rest.clone().find(is_year)?;
    let in_zone =
        |zone: &str| parse_relaxed(format!("{day} {month} {year} {clock} {zone}").as_bytes());
    let zone = rest.clone().find(is_zone);
    zone.and_then(|zone| in_zone(zone).ok())
        .or_else(|| in_zone("+0000").ok())
}

/// Appends a text with LF line ends as a message, quoted so that nothing is ambiguous ([`Quoting::Each`]).
pub fn write_message(text: &[u8], came: UnixTime, out: &mut Vec<u8>) {
    out.extend_from_slice(b"From news ");
    out.extend_from_slice(asctime(came).as_bytes());
    out.push(b'\n');
    each_line(text, |line| {
        if quoted(line).is_some() {
            out.push(b'>');
        }
        out.extend_from_slice(line);
    });
    if !text.ends_with(b"\n") {
        out.push(b'\n');
    }
    out.push(b'\n');
}

fn asctime(time: UnixTime) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let civil = CivilTime::of(time);
    let weekday = DAYS.get((time.0 / 86_400 % 7) as usize).unwrap_or(&"");
    let month = MONTHS.get(usize::from(civil.month).wrapping_sub(1));
    format!(
        "{weekday} {} {:2} {:02}:{:02}:{:02} {:04}",
        month.unwrap_or(&""),
        civil.day,
        civil.hour,
        civil.minute,
        civil.second,
        civil.year
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MESSAGE_MAX: usize = 70;

    /// Reads a file that arrives in pieces; shows messages and damages.
    fn read(file: &[u8], step: usize, quoting: Quoting) -> Vec<String> {
        let mut reader = MboxReader::new(MESSAGE_MAX);
        let (mut buf, mut found) = (Vec::new(), Vec::new());
        let mut pieces = file.chunks(step);
        let mut at_end = false;
        loop {
            let used = match reader.next(&buf, at_end) {
                MboxStep::Incomplete { used } => {
                    if let Some(piece) = pieces.next() {
                        buf.extend_from_slice(piece);
                    } else if at_end && used == 0 {
                        panic!("it never ends: {:?}", String::from_utf8_lossy(&buf));
                    } else {
                        at_end = true;
                    }
                    used
                }
                MboxStep::End { used } => {
                    assert_eq!(used, buf.len());
                    return found;
                }
                MboxStep::Message { body, used } => {
                    let mut text = Vec::new();
                    unquote(&buf[body], quoting, &mut text);
                    found.push(String::from_utf8_lossy(&text).into_owned());
                    used
                }
                MboxStep::Damaged { at, why, used } => {
                    found.push(format!("{at}: {why}"));
                    used
                }
            };
            buf.drain(..used);
        }
    }

    fn check(file: &str, quoting: Quoting, expected: &[&str]) {
        for step in [1, 2, 7, 1000] {
            assert_eq!(
                read(file.as_bytes(), step, quoting),
                expected,
                "{file:?} by {step}"
            );
        }
    }

    #[test]
    fn the_line_says_when_a_message_came() {
        for (line, expected) in [
            (
                "From ada@a.example Thu Nov 26 09:41:07 2026",
                Some(1_795_686_067),
            ),
            ("From a b Thu Nov  6 09:41:07 2026\r\n", Some(1_793_958_067)),
            ("From x Thu Nov 26 09:41:07 +0100 2026", Some(1_795_682_467)),
            (
                "From x Thu Nov 26 09:41:07 2026 +0100\n",
                Some(1_795_682_467),
            ),
            ("From x Thu Nov 26 09:41 EST 2026", Some(1_795_704_060)),
            (
                "From x Thu Nov 26 09:41:07 2026 remote from far",
                Some(1_795_686_067),
            ),
            ("From -123456789", None),
            ("From x 12:00", None),
            ("From x Thu Xxx 99 09:41:07 2026", None),
            ("From", None),
        ] {
            assert_eq!(came(line.as_bytes()), expected.map(UnixTime), "{line}");
        }
    }

    #[test]
    fn messages_are_told_apart() {
        check("", Quoting::Each, &[]);
        check("From a\nA: b\n\nc\n", Quoting::Each, &["A: b\n\nc\n"]);
        let two = "From a\nA: b\n\nc\n\nFrom -123\nD: e\n\nFrom me to you\nFrom here\n\n";
        check(
            two,
            Quoting::Each,
            &["A: b\n\nc\n", "D: e\n", "From here\n"],
        );
        check(
            &two.replace('\n', "\r\n"),
            Quoting::Each,
            &["A: b\r\n\r\nc\r\n", "D: e\r\n", "From here\r\n"],
        );
        check(
            "From a\nA: b\n\nc\nFrom d\n",
            Quoting::Each,
            &["A: b\n\nc\nFrom d\n"],
        );
        check("\n\nFrom a\nA: b\n\nc", Quoting::Each, &["A: b\n\nc"]);
    }

    /// One that came in pieces was called too large where the beginning of the next had come in part.
    #[test]
    fn a_message_may_be_as_large_as_the_limit_says() {
        // Up to the next message, with the empty line before it.
        let body = "c".repeat(MESSAGE_MAX - "From a\nA: b\n\n\n\n".len());
        let text = format!("A: b\n\n{body}\n");
        check(
            &format!("From a\n{text}\nFrom d\nD: e\n"),
            Quoting::Each,
            &[&text, "D: e\n"],
        );
    }

    /// Each piece was looked through with all before it, so that a large message in small pieces took for ever.
    #[test]
    fn what_was_looked_through_is_not_looked_through_again() {
        let mut reader = MboxReader::new(1 << 20);
        let text = b"From a\nA: b\n\nc\nFrom me\nto you\n".repeat(100);
        for len in (50..text.len()).step_by(50) {
            let step = reader.next(&text[..len], false);
            assert_eq!(step, MboxStep::Incomplete { used: 0 });
            assert_eq!(reader.scanned, len);
        }
    }

    #[test]
    fn quoting_is_taken_off_as_it_was_put_on() {
        let file = "From a\nA: b\n\n>From c\n>>From d\n> From e\n>Fromage\n";
        let text = |lines: &str| format!("A: b\n\n{lines}> From e\n>Fromage\n");
        check(file, Quoting::Each, &[&text("From c\n>From d\n")]);
        check(file, Quoting::Once, &[&text("From c\n>>From d\n")]);
        check(file, Quoting::None, &[&text(">From c\n>>From d\n")]);
    }

    #[test]
    fn damage_costs_only_itself() {
        let no = "no \"From \" line where one must be";
        check(
            "junk\n\nFrom a\nA: b\n",
            Quoting::Each,
            &[&format!("0: {no}"), "A: b\n"],
        );
        check("junk", Quoting::Each, &[&format!("0: {no}")]);
        let large = format!("From a\nA: b\n\n{}\n\nFrom b\nC: d\n", "x".repeat(80));
        let found = read(large.as_bytes(), 1000, Quoting::Each);
        assert_eq!(found, ["0: message is larger than the limit", "C: d\n"]);
        let found = read(large.as_bytes(), 5, Quoting::Each);
        assert_eq!(found, ["0: message is larger than the limit", "C: d\n"]);
    }

    #[test]
    fn what_is_written_says_when_it_came() {
        let mut out = Vec::new();
        write_message(
            b"A: b\n\nFrom c\n>From d\nFro",
            UnixTime(1_700_000_000),
            &mut out,
        );
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "From news Tue Nov 14 22:13:20 2023\nA: b\n\n>From c\n>>From d\nFro\n\n"
        );
    }

    proptest! {
        #[test]
        fn prop_messages_round_trip(texts in proptest::collection::vec("A: b\n\n(>{0,2}From x\n|[a> F\n]{0,5}\n){0,4}", 0..4), step in 1usize..50) {
            let mut file = Vec::new();
            for text in &texts {
                write_message(text.as_bytes(), UnixTime(0), &mut file);
            }
            prop_assume!(texts.iter().all(|text| text.len() < 22));
            prop_assert_eq!(read(&file, step, Quoting::Each), texts);
        }

        #[test]
        fn prop_no_file_is_a_defect(file in "([From >\nx]|From |\n\nFrom ){0,60}", step in 1usize..9) {
            let whole = read(file.as_bytes(), step, Quoting::Once);
            prop_assert!(whole.len() <= file.len());
        }
    }
}
