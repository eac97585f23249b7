//! The line protocol between the server and a filter (docs/filters.md), without I/O.
//!
//! Article by article, answer by answer, in one order: an answer names the article it is for, so one that belongs to nothing is
//! noticed.  What a filter says is data: nothing in it can become a line of a reply.

use newsreel_service::Subject;
use newsreel_wire::nntp::framing::dot_unstuff;

/// What a filter says first, when it is ready to judge.
pub const GREETING: &str = "newsreel-filter 1";

/// The longest line that a filter may say, octets.
pub const ANSWER_OCTETS_MAX: usize = 1024;

/// What a filter says of an article.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer<'l> {
    /// It may be taken.
    Accept,
    /// It is refused, with this text.
    Reject(&'l str),
    /// It is not kept, and nobody is told.
    Drop,
    /// It may be taken; the log has this word of it.
    Label(&'l str),
    /// It may be taken, to be stored in a set of this class.
    Class(&'l str),
}

/// Appends what a filter is told: a line, then the article as it is, CRLF at the ends of its lines.
pub(crate) fn write_article(number: u64, subject: &Subject, out: &mut Vec<u8>) {
    let mut article = Vec::with_capacity(subject.article.len());
    dot_unstuff(&subject.article, &mut article);
    let kind = if subject.is_post { "post" } else { "feed" };
    let from = match subject.from {
        Some(address) => address.to_canonical().to_string(),
        None => "-".to_owned(),
    };
    let line = format!("article {number} {} {kind} {from}\n", article.len());
    out.extend_from_slice(line.as_bytes());
    out.extend_from_slice(&article);
}

/// Reads a line, without its end: `NUMBER VERDICT [TEXT]`.  None: it is no answer to the article of this number.
#[must_use]
pub fn parse_answer(line: &str, number: u64) -> Option<Answer<'_>> {
    let (first, rest) = line.split_once(' ')?;
    // As it was told, digit by digit.
    if first != number.to_string() {
        return None;
    }
    let (verdict, text) = rest.split_once(' ').unwrap_or((rest, ""));
    let text = text.trim();
    let is_word = !text.is_empty() && !text.contains(char::is_whitespace);
    match verdict {
        "accept" if text.is_empty() => Some(Answer::Accept),
        "drop" if text.is_empty() => Some(Answer::Drop),
        "reject" => Some(Answer::Reject(text)),
        "label" if is_word => Some(Answer::Label(text)),
        "class" if is_word => Some(Answer::Class(text)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn answers() {
        for (line, answer) in [
            ("7 accept", Some(Answer::Accept)),
            ("7 accept ", Some(Answer::Accept)),
            ("7 drop", Some(Answer::Drop)),
            ("7 reject EMP (md5)", Some(Answer::Reject("EMP (md5)"))),
            ("7 reject", Some(Answer::Reject(""))),
            ("7 label binary", Some(Answer::Label("binary"))),
            ("7 class junk", Some(Answer::Class("junk"))),
            ("8 accept", None),
            ("7", None),
            ("+7 accept", None),
            ("07 accept", None),
            ("7  accept", None),
            ("accept", None),
            ("7 accept it", None),
            ("7 ACCEPT", None),
            ("7 label", None),
            ("7 label two words", None),
            ("7 class ", None),
            ("7 maybe", None),
            ("", None),
        ] {
            assert_eq!(parse_answer(line, 7), answer, "{line:?}");
        }
    }

    #[test]
    fn articles_are_told_as_they_are() {
        let subject = Subject {
            article: bytes::Bytes::from_static(b"Subject: a\r\n\r\n..hidden\r\n\r\n.\r\n"),
            from: "::ffff:192.0.2.7".parse().ok(),
            is_post: false,
        };
        let mut told = Vec::new();
        write_article(7, &subject, &mut told);
        let expected = "article 7 25 feed 192.0.2.7\nSubject: a\r\n\r\n.hidden\r\n\r\n";
        assert_eq!(String::from_utf8(told).unwrap(), expected);
        let mut told = Vec::new();
        let posted = Subject {
            from: None,
            is_post: true,
            ..subject
        };
        write_article(8, &posted, &mut told);
        assert!(told.starts_with(b"article 8 25 post -\n"));
    }

    proptest! {
        #[test]
        fn prop_any_line_is_read(line in ".{0,80}", number in 0u64..20) {
            let _ = parse_answer(&line, number);
        }
    }
}
