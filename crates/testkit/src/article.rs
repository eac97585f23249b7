//! Example articles: from readable files to wire form, and whether a served article is the one that was sent.

use std::path::Path;

use anyhow::Context as _;
use newsreel_wire::nntp::framing::lf_to_wire;

/// The wire form of an article written with plain line ends: CRLF, dots stuffed, terminator appended.
#[must_use]
pub fn wire_form(text: &[u8]) -> Vec<u8> {
    let mut wire = Vec::new();
    lf_to_wire(text, &mut wire);
    wire
}

/// Reads an article file in wire form: `.wire` files as they are, others from plain text.
#[expect(
    clippy::disallowed_methods,
    reason = "reads example files of tests, never a spool"
)]
pub(crate) fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let octets = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    let is_wire = path
        .extension()
        .is_some_and(|extension| extension == "wire");
    Ok(if is_wire { octets } else { wire_form(&octets) })
}

/// Whether the served lines are the article that was sent, but for what RFC 5537 section 3.6 lets a server change:
/// entries in front of Path, and its own Xref.  Lines come without CRLF; neither has the terminator.
///
/// # Errors
/// Says which line differs.
pub fn same_article(sent: &[&[u8]], served: &[&[u8]]) -> Result<(), String> {
    let (sent, served) = (without_xref(sent), without_xref(served));
    for place in 0..sent.len().max(served.len()) {
        let (want, got) = (sent.get(place).copied(), served.get(place).copied());
        if want == got {
            continue;
        }
        let path = |line: Option<&[u8]>| line.and_then(path_content).map(<[u8]>::to_vec);
        if let (Some(want), Some(got)) = (path(want), path(got))
            && got.ends_with(&want)
            && got[..got.len() - want.len()].ends_with(b"!")
        {
            continue;
        }
        let quoted =
            |line: Option<&[u8]>| line.map_or("nothing".into(), |line| format!("{:?}", show(line)));
        return Err(format!(
            "line {} of the article: expected {}, got {}",
            place + 1,
            quoted(want),
            quoted(got)
        ));
    }
    Ok(())
}

/// Octets as text: what is not printable ASCII as `\xHH`.
pub(crate) fn show(octets: &[u8]) -> String {
    let mut out = String::with_capacity(octets.len());
    for &octet in octets {
        if matches!(octet, b' '..=b'~') {
            out.push(char::from(octet));
        } else {
            out.push_str(&format!("\\x{octet:02x}"));
        }
    }
    out
}

fn path_content(line: &[u8]) -> Option<&[u8]> {
    let (name, content) = line.split_at_checked(5)?;
    name.eq_ignore_ascii_case(b"path:")
        .then(|| content.trim_ascii())
}

fn without_xref<'a>(lines: &[&'a [u8]]) -> Vec<&'a [u8]> {
    let mut out = Vec::with_capacity(lines.len());
    let (mut in_head, mut in_xref) = (true, false);
    for &line in lines {
        if in_head {
            in_head = !line.is_empty();
            let folded = line.starts_with(b" ") || line.starts_with(b"\t");
            in_xref = in_xref && folded
                || line
                    .get(..5)
                    .is_some_and(|name| name.eq_ignore_ascii_case(b"xref:"));
            if in_xref {
                continue;
            }
        }
        out.push(line);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_form_stuffs_and_terminates() {
        assert_eq!(
            wire_form(b"A: b\n\n.dot\nend\n"),
            b"A: b\r\n\r\n..dot\r\nend\r\n.\r\n"
        );
        assert_eq!(
            wire_form(b"A: b\n\nno newline"),
            b"A: b\r\n\r\nno newline\r\n.\r\n"
        );
    }

    fn check(sent: &str, served: &str) -> Result<(), String> {
        let split = |text: &str| {
            text.split('\n')
                .map(|l| l.as_bytes().to_vec())
                .collect::<Vec<_>>()
        };
        let (sent, served) = (split(sent), split(served));
        let (a, b): (Vec<&[u8]>, Vec<&[u8]>) = (
            sent.iter().map(Vec::as_slice).collect(),
            served.iter().map(Vec::as_slice).collect(),
        );
        same_article(&a, &b)
    }

    #[test]
    fn path_entries_and_xref_are_the_servers() {
        let sent = "Path: a!b\nSubject: s\n\nXref: in the body stays";
        let served = "Path: us!a!b\nSubject: s\nXref: us x:1\n y:2\n\nXref: in the body stays";
        assert_eq!(check(sent, served), Ok(()));
        assert!(check(sent, &served.replace("us!a!b", "usa!b")).is_err());
        assert!(check(sent, &served.replace("us!a!b", "us!a!c")).is_err());
        assert!(check(sent, &served.replace("in the body", "not")).is_err());
        assert!(check(sent, &served.replace("Subject: s", "Subject: S")).is_err());
    }
}
