//! Who may not read all groups: which articles are in a group that they may read.

use newsreel_wire::article::{Headers, Known};
use newsreel_wire::overview::OverviewFields;
use newsreel_wire::{newsgroups, xref};

/// Whether a group may be read by who asks.
pub type Reads<'r> = &'r (dyn Fn(&str) -> bool + Sync);

/// Whether Xref names a group that may be read.
fn is_placed(content: &[u8], reads: Reads<'_>) -> bool {
    xref::places(content).any(|(group, _)| reads(group))
}

/// Whether an overview line, with its number, tells in Xref of a group that may be read.
pub(crate) fn line_is_in(line: &[u8], reads: Reads<'_>) -> bool {
    let mut fields = line.splitn(2, |octet| *octet == b'\t');
    let line = fields.nth(1).unwrap_or_default();
    let line = line.strip_suffix(b"\r\n").unwrap_or(line);
    let fields = OverviewFields::parse(line).ok();
    let xref = fields.and_then(|fields| fields.header(Known::Xref));
    xref.is_some_and(|xref| is_placed(xref, reads))
}

/// Whether an article says of itself, in Newsgroups or in Xref, that it is in a group that may be read.
#[must_use]
pub fn says_in(headers: &Headers<'_>, reads: Reads<'_>) -> bool {
    let groups = headers.content(Known::Newsgroups).unwrap_or_default();
    let mut groups = newsgroups::split(groups).flatten();
    groups.any(|group| reads(group.as_str()))
        || headers
            .content(Known::Xref)
            .is_some_and(|xref| is_placed(xref, reads))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_a_group_is_in_it() {
        let says = |wire: &[u8]| {
            let headers = Headers::scan_stored(wire).unwrap();
            says_in(&headers, &|group| group == "misc.test")
        };
        assert!(says(b"Newsgroups: a.b,\r\n misc.test\r\n\r\n"));
        assert!(says(
            b"Newsgroups: a.b\r\nXref: t a.b:1\r\n misc.test:2\r\n\r\n"
        ));
        assert!(!says(
            b"Newsgroups: misc.test.a\r\nXref: misc.test a.b:1\r\n\r\n"
        ));
        assert!(!says(
            b"Subject: misc.test\r\n\r\nNewsgroups: misc.test\r\n"
        ));
    }

    #[test]
    fn a_line_is_in_the_groups_of_its_xref() {
        let is_in = |xref: &str| {
            let line = format!("0\ts\tf\td\t<1@t.example>\t\t1\t1{xref}\r\n");
            line_is_in(line.as_bytes(), &|group| group == "misc.test")
        };
        assert!(is_in("\tXref: t a.b:1 misc.test:2"));
        assert!(!is_in("\tXref: t a.b:1"));
        assert!(!is_in(""));
    }
}
