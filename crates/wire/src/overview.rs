//! Overview lines (RFC 3977 section 8.3): writing an article's fields, reading them back, and what LIST says of them.
//!
//! A line here is what follows the article number and its TAB: seven fields in the RFC's order, then whole header
//! fields, each by name.  No field ever holds TAB, CR, LF or NUL: folds are taken out and those octets become spaces.
//! Everything else stays as it is, 8-bit octets too.

use memchr::{memchr, memchr_iter};

use crate::article::{Field, Headers, Known, is_blank};
use crate::error::OverviewError;
use crate::ids::ArticleNumber;

/// What LIST OVERVIEW.FMT answers (RFC 3977 section 8.4), one line each.  Of the two spellings that the RFC permits for the
/// sixth and seventh this is the older one: slrn asks for no overview where it reads the other.
pub const FORMAT: [&str; 8] = [
    "Subject:",
    "From:",
    "Date:",
    "Message-ID:",
    "References:",
    "Bytes:",
    "Lines:",
    "Xref:full",
];

/// What LIST HEADERS answers (RFC 3977 section 8.6): any header field, and these metadata.
pub const HEADERS: [&str; 3] = [":", ":bytes", ":lines"];

/// The header fields at the front of a line, in order.
const FRONT: [Known; 5] = [
    Known::Subject,
    Known::From,
    Known::Date,
    Known::MessageId,
    Known::References,
];

/// Appends a whole line as OVER sends it: the article's number, TAB, the line, CRLF.
pub fn write_numbered(number: ArticleNumber, line: &[u8], out: &mut Vec<u8>) {
    let mut digits = itoa::Buffer::new();
    let digits = digits.format(number.0).as_bytes();
    out.reserve(digits.len() + line.len() + 3);
    out.extend_from_slice(digits);
    out.push(b'\t');
    out.extend_from_slice(line);
    out.extend_from_slice(b"\r\n");
}

/// Appends an article's seven fields, without the article number before and Xref behind.  `bytes` and `lines` are the
/// metadata of RFC 3977 section 8.1, see [`ArticleFacts`](crate::article::ArticleFacts).
pub fn write_fields(headers: &Headers<'_>, bytes: usize, lines: usize, out: &mut Vec<u8>) {
    write_front(headers, out);
    write_counts(bytes, lines, out);
}

/// Appends the first five fields, Subject to References, for a server that knows the final size only later.
pub fn write_front(headers: &Headers<'_>, out: &mut Vec<u8>) {
    for (place, known) in FRONT.into_iter().enumerate() {
        if place > 0 {
            out.push(b'\t');
        }
        if let Some(field) = headers.get(known) {
            write_as(known, &field, out);
        }
    }
}

/// Appends the two metadata fields behind [`write_front`].
pub fn write_counts(bytes: usize, lines: usize, out: &mut Vec<u8>) {
    out.push(b'\t');
    let mut number = itoa::Buffer::new();
    out.extend_from_slice(number.format(bytes).as_bytes());
    out.push(b'\t');
    out.extend_from_slice(number.format(lines).as_bytes());
}

/// Appends a whole header field as a line's next part: TAB, name, colon, space, content.
pub fn write_named(name: &str, content: &[u8], out: &mut Vec<u8>) {
    out.push(b'\t');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    unfold(content, out);
}

/// Appends a field's content as OVER and HDR show it (RFC 3977 sections 8.3.2 and 8.5.2).
pub fn write_content(field: &Field<'_>, out: &mut Vec<u8>) {
    match field.known() {
        Some(known) => write_as(known, field, out),
        None => unfold(field.content, out),
    }
}

/// Blanks around a message-id are no part of it (RFC 5536 section 3.1.3), and readers compare octets.
fn write_as(known: Known, field: &Field<'_>, out: &mut Vec<u8>) {
    let content = if known == Known::MessageId {
        field.trimmed()
    } else {
        field.content
    };
    unfold(content, out);
}

/// Appends `content` without folds and leading blanks; TAB, CR, LF and NUL that remain become one space each.
pub fn unfold(content: &[u8], out: &mut Vec<u8>) {
    let blanks = content.iter().take_while(|&&octet| is_blank(octet)).count();
    let content = content.get(blanks..).unwrap_or_default();
    let start = out.len();
    // Most contents are one plain line.  The test has no early exit, so that it vectorises.
    if !content
        .iter()
        .fold(false, |any, &octet| any | (octet < b' '))
    {
        out.extend_from_slice(content);
        return;
    }
    let mut copied = 0;
    for lf in memchr_iter(b'\n', content) {
        if let Some([part @ .., b'\r', b'\n']) = content.get(copied..=lf) {
            out.extend_from_slice(part);
            copied = lf + 1;
        }
    }
    out.extend_from_slice(content.get(copied..).unwrap_or_default());
    for octet in out.get_mut(start..).unwrap_or_default() {
        if matches!(octet, b'\t' | b'\r' | b'\n' | 0) {
            *octet = b' ';
        }
    }
}

/// An overview line taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverviewFields<'l> {
    /// Subject.
    pub subject: &'l [u8],
    /// From.
    pub from: &'l [u8],
    /// Date, as in the article.
    pub date: &'l [u8],
    /// Message-ID.
    pub message_id: &'l [u8],
    /// References, empty if there are none.
    pub references: &'l [u8],
    /// Octets of the article, `None` if the line does not say.
    pub bytes: Option<u64>,
    /// Lines of the body, `None` if the line does not say.
    pub lines: Option<u64>,
    /// The named fields behind, separated by TABs.
    pub named: &'l [u8],
}

impl<'l> OverviewFields<'l> {
    /// Reads a line without article number and CRLF.
    ///
    /// # Errors
    /// When there are less than seven fields, or a metadata field is neither empty nor a number.
    pub fn parse(line: &'l [u8]) -> Result<Self, OverviewError> {
        let mut rest = Some(line);
        let mut next = || {
            let here = rest?;
            let tab = memchr(b'\t', here);
            rest = tab.and_then(|tab| here.get(tab + 1..));
            here.get(..tab.unwrap_or(here.len()))
        };
        let mut field = || next().ok_or(OverviewError::Fields);
        let (subject, from, date) = (field()?, field()?, field()?);
        let (message_id, references) = (field()?, field()?);
        let (bytes, lines) = (number(field()?)?, number(field()?)?);
        let named = rest.unwrap_or_default();
        Ok(Self {
            subject,
            from,
            date,
            message_id,
            references,
            bytes,
            lines,
            named,
        })
    }

    /// The content of a named field behind the seven, such as Xref; names in any case.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&'l [u8]> {
        self.named.split(|&octet| octet == b'\t').find_map(|field| {
            let (found, after) = field.split_at_checked(name.len())?;
            let content = after.strip_prefix(b":")?;
            let content = content.strip_prefix(b" ").unwrap_or(content);
            found
                .eq_ignore_ascii_case(name.as_bytes())
                .then_some(content)
        })
    }

    /// The content of a header field, if the line has it: what HDR can answer without the article.
    #[must_use]
    pub fn header(&self, known: Known) -> Option<&'l [u8]> {
        match known {
            Known::Subject => Some(self.subject),
            Known::From => Some(self.from),
            Known::Date => Some(self.date),
            Known::MessageId => Some(self.message_id),
            Known::References => Some(self.references),
            other => self.find(other.name()),
        }
    }
}

/// The message-id of a line, without taking the rest apart: the fourth field.
#[must_use]
pub fn message_id(line: &[u8]) -> Option<&[u8]> {
    let mut tabs = memchr_iter(b'\t', line);
    let from = tabs.nth(2)? + 1;
    line.get(from..tabs.next()?)
}

fn number(digits: &[u8]) -> Result<Option<u64>, OverviewError> {
    if digits.is_empty() {
        return Ok(None);
    }
    crate::range::parse_number(digits)
        .map(|number| Some(number.0))
        .map_err(|_| OverviewError::Number)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn unfolded(content: &[u8]) -> String {
        let mut out = b"|".to_vec();
        unfold(content, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn unfolds_as_rfc_3977_says() {
        assert_eq!(unfolded(b"plain text "), "|plain text ");
        assert_eq!(unfolded(b"a\r\n b\r\n\tc"), "|a b c");
        assert_eq!(unfolded(b"\r\n \tfirst"), "|first");
        assert_eq!(unfolded(b"a\tb\0c\rd\ne"), "|a b c d e");
        assert_eq!(unfolded(b"a\r\r\n b\r\n"), "|a  b");
        assert_eq!(unfolded("\u{e9}\u{1}".as_bytes()), "|\u{e9}\u{1}");
    }

    #[test]
    fn writes_and_reads_a_line() {
        let wire = b"From: a\r\nDate: d\tt\r\nSubject: s\r\n s\r\nMessage-ID: <1@a>\r\n\r\n.\r\n";
        let mut line = Vec::new();
        write_fields(&Headers::scan(wire).unwrap(), 12_345, 67, &mut line);
        write_named("Xref", b"here a.b:1\r\n c:2", &mut line);
        assert_eq!(
            line,
            b"s s\ta\td t\t<1@a>\t\t12345\t67\tXref: here a.b:1 c:2"
        );
        let fields = OverviewFields::parse(&line).unwrap();
        assert_eq!(
            (fields.bytes, fields.lines, fields.references),
            (Some(12_345), Some(67), &b""[..])
        );
        assert_eq!(fields.header(Known::Xref), Some(&b"here a.b:1 c:2"[..]));
        assert_eq!(fields.header(Known::MessageId), message_id(&line));
        assert_eq!((fields.find("xre"), fields.find("Lines")), (None, None));
    }

    #[test]
    fn blanks_around_a_message_id_are_not_shown() {
        let mut line = Vec::new();
        let headers =
            Headers::scan(b"Message-ID: \r\n <1@a>  \r\nSubject: s \r\n\r\n.\r\n").unwrap();
        write_fields(&headers, 1, 0, &mut line);
        assert_eq!(line, b"s \t\t\t<1@a>\t\t1\t0");
        line.clear();
        write_content(&headers.get(Known::MessageId).unwrap(), &mut line);
        assert_eq!(line, b"<1@a>");
    }

    #[test]
    fn reads_what_other_servers_write() {
        let fields = OverviewFields::parse(b"s\tf\td\t<1@a>\t\t\t").unwrap();
        assert_eq!(
            (fields.bytes, fields.lines, fields.named),
            (None, None, &b""[..])
        );
        assert_eq!(
            OverviewFields::parse(b"s\tf\td\t<1@a>\t\t1\t2\txref:b")
                .unwrap()
                .find("Xref"),
            Some(&b"b"[..])
        );
        assert_eq!(
            OverviewFields::parse(b"s\tf\td\t<1@a>\t\t1"),
            Err(OverviewError::Fields)
        );
        assert_eq!(
            OverviewFields::parse(b"s\tf\td\t<1@a>\t\tx\t1"),
            Err(OverviewError::Number)
        );
        assert_eq!(message_id(b"s\tf\td\t<1@a>"), None);
    }

    proptest! {
        #[test]
        fn prop_lines_round_trip(contents in proptest::collection::vec("[!-~][ -~\t\0\u{e9}]{0,30}(\r\n [!-~]{0,9}){0,2}", 5), bytes: u32, lines: u32) {
            let mut wire = Vec::new();
            for (known, content) in FRONT.iter().zip(&contents) {
                wire.extend_from_slice(format!("{known}: {content}\r\n").as_bytes());
            }
            wire.extend_from_slice(b"\r\n.\r\n");
            let mut line = Vec::new();
            write_fields(&Headers::scan(&wire).unwrap(), bytes as usize, lines as usize, &mut line);
            let fields = OverviewFields::parse(&line).unwrap();
            for (&known, content) in FRONT.iter().zip(&contents) {
                let blanks: &[char] = if known == Known::MessageId { &[' ', '\t', '\r', '\n'] } else { &[] };
                let plain = content.trim_end_matches(blanks).replace("\r\n", "").replace(['\t', '\0'], " ");
                prop_assert_eq!(fields.header(known), Some(plain.as_bytes()));
            }
            prop_assert_eq!((fields.bytes, fields.lines), (Some(u64::from(bytes)), Some(u64::from(lines))));
        }

        #[test]
        fn prop_no_octet_breaks_a_line(content in proptest::collection::vec(any::<u8>(), 0..80)) {
            let mut out = Vec::new();
            unfold(&content, &mut out);
            prop_assert!(out.iter().all(|octet| !matches!(octet, b'\t' | b'\r' | b'\n' | 0)));
            let _ = OverviewFields::parse(&content);
        }
    }
}
