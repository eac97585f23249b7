//! The overview line of an article, made from the article (R22): for who asks by message-id, and where the server was not asked
//! for it yet.

use newsreel_service::says_in;
use newsreel_wire::article::{Headers, Known};
use newsreel_wire::overview::{write_fields, write_named};

use crate::keep::Kept;

/// The line without number and CRLF; none: this is no article with that message-id.
pub(super) fn line_of(id: &[u8], kept: &Kept) -> Option<Vec<u8>> {
    let headers = Headers::scan_stored(&kept.wire).ok()?;
    line_from(id, kept, &headers)
}

/// The same for a number of a group; none also where the article does not say that it is in the group: what has that message-id there is
/// another one.
pub(super) fn line_in(group: &str, id: &[u8], kept: &Kept) -> Option<Vec<u8>> {
    let headers = Headers::scan_stored(&kept.wire).ok()?;
    let is_in = says_in(&headers, &|name| name == group);
    is_in.then(|| line_from(id, kept, &headers)).flatten()
}

fn line_from(id: &[u8], kept: &Kept, headers: &Headers<'_>) -> Option<Vec<u8>> {
    let (bytes, lines) = kept.bytes_and_lines(headers)?;
    let own = headers.get(Known::MessageId)?;
    if own.trimmed() != id {
        return None;
    }
    let mut line = Vec::with_capacity(512);
    write_fields(headers, bytes, lines, &mut line);
    if let Some(xref) = headers.content(Known::Xref) {
        write_named("Xref", xref, &mut line);
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_that_of_the_server() {
        let wire = b"Subject: a\r\n b\r\nFrom: me@t.example\r\nDate: d\r\nMessage-ID: <1@t.example>\r\nXref: t misc.test:1\r\n\r\n..x\r\n.\r\n";
        let kept = |wire: &'static [u8]| Kept::new(wire.into()).unwrap();
        let article = kept(wire);
        let line = line_of(b"<1@t.example>", &article).unwrap();
        let expected = "a b\tme@t.example\td\t<1@t.example>\t\t99\t1\tXref: t misc.test:1";
        assert_eq!(String::from_utf8_lossy(&line), expected);
        assert_eq!(line_of(b"<1@t.example>", &article), Some(line));
        assert_eq!(line_of(b"<2@t.example>", &article), None);
        let none = kept(b"\r\nno article");
        assert_eq!(line_of(b"<1@t.example>", &none), None);
    }
}
