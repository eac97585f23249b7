//! Batches: `#! rnews N`, a line feed, N octets of article, again and again (RFC 1036 section 4.3.3, RFC 5537 section 8.2).
//!
//! The reader works on the front of a growing buffer and copies nothing.  A count is believed when the next header, or the end, follows the
//! article, perhaps behind blank lines or zeros; or when it leads to the end of a line and to no header in the article, whatever follows.
//! Otherwise the article may be cut or joined, and the reader reports the damage and goes on at the next header it finds.
//!
//! Articles in batches have LF line ends.  Where lines were given CRLF ends on the way, header lines too, counts leave out each CR: such an
//! article is taken where its count, so read, leads to the end of a line that the next header, or the end, follows, and to no header in it.

use std::ops::Range;

use memchr::memchr;
use memchr::memmem;

use crate::error::BatchDamage;

const MAGIC: &[u8] = b"#! rnews ";
/// What every batch header, also of a compressed batch, begins with.
const SHEBANG: &[u8] = b"#! ";
/// The longest header line: magic, 20 digits, perhaps the name of a host.
const HEADER_LINE_OCTETS_MAX: usize = 320;
/// So much behind an article is looked at for the next header.
const LOOKED_AT_OCTETS: usize = 64;

/// What the front of a buffer holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
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
    /// One article.
    Article {
        /// Where it is in the buffer.
        body: Range<usize>,
        /// Octets to drop, header line included.
        used: usize,
    },
    /// Blank lines or zeros where a header may be: files and tapes are filled up with them.
    Padding {
        /// Octets to drop.
        used: usize,
    },
    /// Something that is not a header and an article; the reader looks for the next header from here.
    Damaged {
        /// Offset in the whole batch.
        at: u64,
        /// What is wrong.
        why: BatchDamage,
        /// Octets to drop.
        used: usize,
    },
}

/// Takes a batch apart.
#[derive(Debug, Clone)]
pub struct BatchReader {
    article_octets_max: usize,
    /// Octets dropped so far.
    offset: u64,
    skipping: bool,
}

impl BatchReader {
    /// A reader that takes articles up to this size: also the most a caller must hold, plus a header line.
    #[must_use]
    pub const fn new(article_octets_max: usize) -> Self {
        Self {
            article_octets_max,
            offset: 0,
            skipping: false,
        }
    }

    /// Looks at the front of `buf`, which must begin where the last answer's `used` left it; `at_end` says that nothing
    /// more will come.
    pub fn next(&mut self, buf: &[u8], at_end: bool) -> Step {
        let skipped = if self.skipping {
            self.skip(buf, at_end)
        } else {
            Ok(0)
        };
        let mut step = match skipped {
            Ok(skipped) => self.step(buf.get(skipped..).unwrap_or_default(), skipped, at_end),
            Err(step) => step,
        };
        let (Step::Incomplete { used }
        | Step::End { used }
        | Step::Article { used, .. }
        | Step::Padding { used }
        | Step::Damaged { used, .. }) = &mut step;
        self.offset += *used as u64;
        step
    }

    /// How far the next header is, when something damaged is being skipped.
    fn skip(&mut self, buf: &[u8], at_end: bool) -> Result<usize, Step> {
        // Damage is always skipped from a line feed, so a header inside a line is never taken for one.
        match memmem::find(buf, b"\n#! rnews ") {
            Some(lf) => {
                self.skipping = false;
                Ok(lf + 1)
            }
            None if at_end => Err(Step::End { used: buf.len() }),
            // A line feed and all but the last octet of the magic may be there already.
            None => Err(Step::Incomplete {
                used: buf.len().saturating_sub(MAGIC.len()),
            }),
        }
    }

    fn step(&mut self, buf: &[u8], skipped: usize, at_end: bool) -> Step {
        if buf.is_empty() {
            return if at_end {
                Step::End { used: skipped }
            } else {
                Step::Incomplete { used: skipped }
            };
        }
        let padding = buf.iter().take_while(|octet| is_padding(**octet)).count();
        if padding > 0 {
            return Step::Padding {
                used: skipped + padding,
            };
        }
        let head = buf.get(..HEADER_LINE_OCTETS_MAX).unwrap_or(buf);
        let Some(lf) = memchr(b'\n', head) else {
            if !at_end && head.len() < HEADER_LINE_OCTETS_MAX {
                return Step::Incomplete { used: skipped };
            }
            return self.damaged(BatchDamage::NoHeader, skipped, head.len());
        };
        let line = head.get(..lf).unwrap_or_default();
        let count = match read_header(line) {
            Ok(count) if count <= self.article_octets_max => count,
            Ok(_) => return self.damaged(BatchDamage::TooLarge, skipped, lf),
            Err(why) => return self.damaged(why, skipped, lf),
        };
        let (start, end) = (lf + 1, lf + 1 + count);
        if buf.len() < end {
            return if at_end {
                self.damaged(BatchDamage::Truncated, skipped, lf)
            } else {
                Step::Incomplete { used: skipped }
            };
        }
        let Some(mut follows) = follows(buf, end, at_end) else {
            return Step::Incomplete { used: skipped };
        };
        let (has_cr, mut end) = (line.ends_with(b"\r"), end);
        let ends_line = buf.get(..end).is_some_and(|seen| seen.ends_with(b"\n"));
        if has_cr && follows != Follows::Directly {
            match self.without_cr(buf, (start, count), at_end) {
                None => return Step::Incomplete { used: skipped },
                Some(Some((other, then))) if then < follows || (then == follows && !ends_line) => {
                    (end, follows) = (other, then);
                }
                Some(_) => {}
            }
        }
        let article = buf.get(start..end).unwrap_or_default();
        // Where a count leads to is no sign if it may leave out octets of the article.
        let is_sure = || is_whole(article) && !(has_cr && article.contains(&b'\r'));
        if follows == Follows::Otherwise && !is_sure() {
            return self.damaged(BatchDamage::Count, skipped, lf);
        }
        Step::Article {
            body: skipped + start..skipped + end,
            used: skipped + end,
        }
    }

    /// Where an article ends that has a CR more at each line than was counted, and what follows it there, if it is such a one; outer none:
    /// more must be seen.
    fn without_cr(
        &self,
        buf: &[u8],
        (start, count): (usize, usize),
        at_end: bool,
    ) -> Option<Option<(usize, Follows)>> {
        let most = buf.len().min(start + self.article_octets_max);
        let seen = buf.get(start..most).unwrap_or_default();
        for (nth, lf) in memchr::memchr_iter(b'\n', seen).enumerate() {
            let has_cr = seen.get(..lf).is_some_and(|line| line.ends_with(b"\r"));
            let counted = lf - nth;
            if !has_cr || counted > count {
                return Some(None);
            }
            if counted == count {
                let end = start + lf + 1;
                let is_one = seen.get(..=lf).is_some_and(is_whole);
                return match is_one {
                    true => follows(buf, end, at_end).map(|then| Some((end, then))),
                    false => Some(None),
                };
            }
        }
        // One that is larger than the limit has no end here.
        (at_end || most < buf.len()).then_some(None)
    }

    /// Reports damage at the octet after `skipped` and begins skipping `more` octets later.
    const fn damaged(&mut self, why: BatchDamage, skipped: usize, more: usize) -> Step {
        self.skipping = true;
        Step::Damaged {
            at: self.offset + skipped as u64,
            why,
            used: skipped + more,
        }
    }
}

/// What files and tapes are filled up with; DOS ends a text with 1A.
const fn is_padding(octet: u8) -> bool {
    matches!(octet, b'\n' | b'\r' | b' ' | b'\t' | 0 | 0x1a)
}

/// What stands behind an article, the surest sign of its end first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Follows {
    /// The next header, or the end.
    Directly,
    /// The same, behind padding.
    Padded,
    /// Something else.
    Otherwise,
}

/// What stands behind an article that ends there; none: more must be seen.
fn follows(buf: &[u8], end: usize, at_end: bool) -> Option<Follows> {
    let after = buf.get(end..).unwrap_or_default();
    let looked_at = after.get(..LOOKED_AT_OCTETS).unwrap_or(after);
    let padding = looked_at.iter().take_while(|octet| is_padding(**octet));
    let padding = padding.count();
    let rest = looked_at.get(padding..).unwrap_or_default();
    let there = match padding {
        0 => Follows::Directly,
        _ => Follows::Padded,
    };
    if rest.is_empty() {
        return (at_end || looked_at.len() == LOOKED_AT_OCTETS).then_some(there);
    }
    if rest.len() < SHEBANG.len() && SHEBANG.starts_with(rest) && !at_end {
        // Where so much filling stands in front, a header may be anything.
        return (looked_at.len() == LOOKED_AT_OCTETS).then_some(there);
    }
    Some(match rest.starts_with(SHEBANG) {
        true => there,
        false => Follows::Otherwise,
    })
}

/// Whether an article behind which something strange stands may be all there is of it, and nothing else.
fn is_whole(article: &[u8]) -> bool {
    article.ends_with(b"\n") && memmem::find(article, b"\n#! rnews ").is_none()
}

fn read_header(line: &[u8]) -> Result<usize, BatchDamage> {
    let Some(count) = line.strip_prefix(MAGIC) else {
        return Err(if line.starts_with(SHEBANG) {
            BatchDamage::Kind
        } else {
            BatchDamage::NoHeader
        });
    };
    // Some write who made the batch behind the count.
    let mut words = count.split(u8::is_ascii_whitespace);
    let count = words.find(|word| !word.is_empty()).unwrap_or_default();
    if !count.iter().all(u8::is_ascii_digit) {
        return Err(BatchDamage::Count);
    }
    match std::str::from_utf8(count)
        .unwrap_or_default()
        .parse::<usize>()
    {
        Ok(0) | Err(_) => Err(BatchDamage::Count),
        Ok(count) => Ok(count),
    }
}

/// Appends one article (LF line ends) with its header line.
pub fn write_article(article: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(itoa::Buffer::new().format(article.len()).as_bytes());
    out.push(b'\n');
    out.extend_from_slice(article);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ARTICLE_MAX: usize = 50;

    /// Reads a batch that arrives in pieces; shows articles and damages.
    fn read(batch: &[u8], step: usize) -> Vec<String> {
        let mut reader = BatchReader::new(ARTICLE_MAX);
        let (mut buf, mut found) = (Vec::new(), Vec::new());
        let mut pieces = batch.chunks(step);
        loop {
            let piece = pieces.next();
            buf.extend_from_slice(piece.unwrap_or_default());
            loop {
                let used = match reader.next(&buf, piece.is_none()) {
                    Step::Incomplete { used } => {
                        assert!(piece.is_some(), "at the end nothing is incomplete");
                        buf.drain(..used);
                        break;
                    }
                    Step::End { used } => {
                        assert_eq!(used, buf.len());
                        return found;
                    }
                    Step::Article { body, used } => {
                        found.push(String::from_utf8_lossy(&buf[body]).into_owned());
                        used
                    }
                    Step::Padding { used } => used,
                    Step::Damaged { at, why, used } => {
                        found.push(format!("{at} {why:?}"));
                        used
                    }
                };
                buf.drain(..used);
            }
            let most = ARTICLE_MAX + HEADER_LINE_OCTETS_MAX + LOOKED_AT_OCTETS;
            assert!(buf.len() <= most + step);
        }
    }

    fn check(batch: &str, expected: &[&str]) {
        for step in [1, 2, 3, 7, 1000] {
            assert_eq!(
                read(batch.as_bytes(), step),
                expected,
                "{batch:?} in pieces of {step}"
            );
        }
    }

    #[test]
    fn reads_batches() {
        check("", &[]);
        check("#! rnews 4\na\nb\n#! rnews 2 \r\nc\n", &["a\nb\n", "c\n"]);
        check(
            "#! rnews 11\n#! rnews 3\n#! rnews 1\nx",
            &["#! rnews 3\n", "x"],
        );
    }

    #[test]
    fn reports_damage_and_goes_on() {
        check("junk\n#! rnews 2\nc\n", &["0 NoHeader", "c\n"]);
        check("#! rnews 3\nabcd\n#! rnews 2\nc\n", &["0 Count", "c\n"]);
        check("#! rnews 2\nc\n#! rnews 9\nabc", &["c\n", "13 Truncated"]);
        check(
            "#! rnews 2\nc\n#! rnews 9\nabc\n#! rnews 2\nd\n",
            &["c\n", "13 Count", "d\n"],
        );
        check("#! rnews x\n#! rnews 2\nc\n", &["0 Count", "c\n"]);
        check(
            "#! rnews 2 a.example\nc\n#! rnews  2\tb\r\nd\n",
            &["c\n", "d\n"],
        );
        check(
            "#! rnews 0\n#! rnews -1\n#! rnews 2\nc\n",
            &["0 Count", "11 Count", "c\n"],
        );
        check("#! rnews 99999999999999999999999\n", &["0 Count"]);
        check("#! rnews 51\n#! rnews 1\nx", &["0 TooLarge", "x"]);
        check("#! cunbatch\nxyz", &["0 Kind"]);
        check(&"x".repeat(200), &["0 NoHeader"]);
        check("#! rnews 3", &["0 NoHeader"]);
    }

    /// An article with a right count was not taken when blank lines, zeros or junk stood behind it.
    #[test]
    fn what_stands_behind_an_article_costs_it_nothing() {
        for padding in [
            "\n",
            "\r\n\r\n",
            "\0\0\0",
            &"\0".repeat(500),
            &"\n".repeat(63),
        ] {
            check(
                &format!("{padding}#! rnews 2\nb\n{padding}#! rnews 1\nc{padding}"),
                &["b\n", "c"],
            );
        }
        check(
            "#! rnews 2\nb\njunk\n#! rnews 2\nc\n",
            &["b\n", "13 NoHeader", "c\n"],
        );
        check(
            "#! rnews 2\nb\n#! rnexs 2\nd\n#! rnews 2\nc\n",
            &["b\n", "13 Kind", "c\n"],
        );
        check("#! rnews 2\nb\n\0junk", &["b\n", "14 NoHeader"]);
        check("#! rnews 2\nb\n#!", &["b\n", "13 NoHeader"]);
        // It leads to the end of a line, in the next article.
        check(
            "#! rnews 15\nb\n#! rnews 3\nc\nd\n#! rnews 2\ne\n",
            &["0 Count", "c\nd", "e\n"],
        );
    }

    /// Of a batch that had CRLF line ends everywhere no article was taken.
    #[test]
    fn counts_may_leave_out_the_cr_of_each_line() {
        let both = ["a\r\n\r\nb\r\n", "c\r\n"];
        let all = "#! rnews 5\r\na\r\n\r\nb\r\n#! rnews 2\r\nc\r\n";
        check(all, &both);
        for padding in ["\r\n", "\0\0\0", "\x1a"] {
            check(&format!("{all}{padding}"), &both);
        }
        // Those that count it are what they were, whatever comes behind them.
        check("#! rnews 8\r\na\r\n\r\nb\r\n#! rnews 3\r\nc\r\n", &both);
        check(
            "#! rnews 3\r\nc\r\n\r\n\r\n#! rnews 3\r\nd\r\n",
            &["c\r\n", "d\r\n"],
        );
        // An empty line more or less: what is counted decides.
        check(
            "#! rnews 3\r\nc\r\n\r\n#! rnews 2\r\nd\r\n",
            &["c\r\n\r\n", "d\r\n"],
        );
        // Nothing is taken that may be cut, joined, or of another kind of line.
        for one in [
            "#! rnews 3\r\na\r\nbc\r\n",
            "#! rnews 3\r\na\r\nb\r\nc\r\n",
            "#! rnews 9\r\na\r\nb\r\nc\r\n",
            "#! rnews 4\r\na\r\nb\nd\r\n",
            "#! rnews 4\na\r\nb\r\n",
        ] {
            check(
                &format!("{one}x\r\n#! rnews 2\r\nc\r\n"),
                &["0 Count", "c\r\n"],
            );
        }
        check(
            "#! rnews 15\r\na\r\n#! rnews 2\r\nb\r\n#! rnews 2\r\nc\r\n",
            &["0 Count", "b\r\n", "c\r\n"],
        );
        let long = format!("#! rnews 34\r\n{}", "a\r\n".repeat(17));
        check(&format!("{long}#! rnews 2\r\nc\r\n"), &["0 Count", "c\r\n"]);
    }

    proptest! {
        /// Of sound batches whose lines were given CRLF ends each article is taken, as it was.
        #[test]
        fn prop_lines_may_have_got_crlf(articles in proptest::collection::vec("([a-c ]{1,5}\n{1,2}){1,4}", 0..10), step in 1usize..100) {
            let mut batch = Vec::new();
            for article in &articles {
                write_article(article.as_bytes(), &mut batch);
            }
            let batch = String::from_utf8(batch).unwrap().replace('\n', "\r\n");
            let found = read(batch.as_bytes(), step);
            prop_assert_eq!(found.concat().replace('\r', ""), articles.concat());
            prop_assert_eq!(found.len(), articles.len());
        }

        #[test]
        fn prop_batches_round_trip(articles in proptest::collection::vec("[a-c\n#! ]{1,40}", 0..10), step in 1usize..100) {
            let mut batch = Vec::new();
            for article in &articles {
                write_article(article.as_bytes(), &mut batch);
            }
            prop_assert_eq!(read(&batch, step), articles);
        }

        #[test]
        fn prop_pieces_do_not_matter(batch in "((#! rnews [0-9x]{1,2}\r?\n)?(a|\r?\n){0,6}){0,6}", step in 1usize..20) {
            prop_assert_eq!(read(batch.as_bytes(), step), read(batch.as_bytes(), 1000));
        }
    }
}
