//! Whether an article that came back is the one that was sent.
//!
//! Invariant: the body must be the same octet for octet, and so must every header field but the two
//! that a relaying server changes, Path and Xref (RFC 5537 sections 3.2.1 and 3.6), and those that
//! the caller cannot know.

/// Whether two header blocks (lines with CRLF, with or without the empty line) say the same, but for the fields
/// `unknown` (names in lower case, with their colons).
pub(crate) fn same_header(sent: &[u8], received: &[u8], unknown: &[&[u8]]) -> bool {
    let fields = |rest| Fields { rest, unknown };
    let (mut sent, mut received) = (fields(sent), fields(received));
    loop {
        match (sent.next(), received.next()) {
            (None, None) => return true,
            (Some(sent), Some(received)) if sent == received => {}
            _ => return false,
        }
    }
}

/// The fields that must not change, each with its folded lines.
struct Fields<'a> {
    rest: &'a [u8],
    unknown: &'a [&'a [u8]],
}

impl<'a> Iterator for Fields<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        loop {
            if self.rest.is_empty() || self.rest.starts_with(b"\r\n") {
                return None;
            }
            let mut end = 0;
            loop {
                let left = self.rest.get(end..).unwrap_or_default();
                end += memchr::memchr(b'\n', left).map_or(left.len(), |at| at + 1);
                if !matches!(self.rest.get(end), Some(b' ' | b'\t')) {
                    break;
                }
            }
            let (field, rest) = self.rest.split_at_checked(end).unwrap_or_default();
            self.rest = rest;
            let named = |name: &[u8]| {
                field
                    .get(..name.len())
                    .is_some_and(|start| start.eq_ignore_ascii_case(name))
            };
            let unknown = self.unknown.iter().any(|name| named(name));
            if !named(b"path:") && !named(b"xref:") && !unknown {
                return Some(field);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_path_and_xref_may_differ() {
        let sent = b"Path: a\r\nFrom: x\r\n y\r\nXref: old 1\r\n 2\r\nSubject: s\r\n\r\n";
        for (received, same) in [
            (
                &b"Path: us!a\r\nFrom: x\r\n y\r\nSubject: s\r\nXREF: us g:1\r\n"[..],
                true,
            ),
            (b"From: x\r\n y\r\nSubject: s\r\n\r\nbody", true),
            (b"Path: a\r\nFrom: x\r\nSubject: s\r\n\r\n", false),
            (b"Path: a\r\nFrom: x\r\n y\r\nSubject: t\r\n\r\n", false),
            (b"Path: a\r\nFrom: x\r\n y\r\n\r\n", false),
            (
                b"Path: a\r\nFrom: x\r\n y\r\nSubject: s\r\nLines: 1\r\n\r\n",
                false,
            ),
            (b"", false),
        ] {
            assert_eq!(
                same_header(sent, received, &[]),
                same,
                "{}",
                String::from_utf8_lossy(received)
            );
        }
        let other = b"Path: a\r\nFrom: x\r\n z\r\nSubject: s\r\n\r\n";
        assert!(same_header(sent, other, &[b"from:"]));
        assert!(!same_header(sent, other, &[b"date:"]));
    }
}
