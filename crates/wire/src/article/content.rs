//! What an article carries: text, or a file encoded for Usenet.
//!
//! Told from the body as it came, without decoding anything: yEnc by its `=ybegin` line (yenc-draft 1.3), uuencode by its
//! `begin` line or by its lines alone (the middle parts of a file posted in parts have no `begin`), base64 by MIME's
//! header fields or by its lines.  Signatures and keys in base64 are text: they are short beside what is written.

use memchr::memmem;

use super::{Headers, Known};

/// What the body of an article is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Something to read.
    Text,
    /// A file in uuencode, base64 or another encoding of MIME.
    Binary,
    /// A file in yEnc.
    YEnc,
}

/// Encoded lines in a row that count as a piece of a file; a page of hexadecimal or a long address is shorter.
const RUN_LINES: usize = 8;

impl Content {
    /// Looks at header and body.
    #[must_use]
    pub fn of(headers: &Headers<'_>) -> Self {
        let body = headers.body();
        if starts_line(body, b"=ybegin ", is_ybegin) {
            return Self::YEnc;
        }
        if starts_line(body, b"begin ", is_uu_begin) || is_mime_file(headers) || is_encoded(body) {
            return Self::Binary;
        }
        Self::Text
    }
}

/// Whether a line begins with `word` and what follows passes.
fn starts_line(body: &[u8], word: &[u8], passes: fn(&[u8]) -> bool) -> bool {
    memmem::find_iter(body, word).any(|at| {
        let before = body.get(..at).unwrap_or_default();
        let rest = body.get(at + word.len()..).unwrap_or_default();
        (at == 0 || before.ends_with(b"\r\n")) && passes(rest)
    })
}

/// `=ybegin` has at least `line=` and `size=` on its line.
fn is_ybegin(rest: &[u8]) -> bool {
    let line = first_line(rest);
    memmem::find(line, b"line=").is_some() && memmem::find(line, b"size=").is_some()
}

/// `begin`, three or four octal digits, a name; then a line of data.
fn is_uu_begin(rest: &[u8]) -> bool {
    let line = first_line(rest);
    let mode = line.iter().take_while(|octet| matches!(octet, b'0'..=b'7'));
    let mode = mode.count();
    if !(3..=4).contains(&mode) || line.get(mode) != Some(&b' ') || line.len() < mode + 2 {
        return false;
    }
    rest.get(line.len() + 2..)
        .is_some_and(|next| is_uu(first_line(next)))
}

/// Whether MIME says that the body, or a part of it, is no text and is in base64.
fn is_mime_file(headers: &Headers<'_>) -> bool {
    let has = |known, word: &[u8]| {
        let content = headers.content(known).unwrap_or_default();
        content
            .get(..word.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(word))
    };
    has(Known::ContentTransferEncoding, b"base64")
        && headers.content(Known::ContentType).is_some()
        && !has(Known::ContentType, b"text/")
        && !has(Known::ContentType, b"multipart/")
        && !has(Known::ContentType, b"message/")
}

/// Whether more than half of the body is long runs of encoded lines.
fn is_encoded(body: &[u8]) -> bool {
    let (mut coded, mut total) = (0, 0);
    let (mut run, mut run_octets) = (0, 0);
    let mut rest = body;
    while !rest.is_empty() {
        let line = first_line(rest);
        rest = rest.get(line.len() + 2..).unwrap_or_default();
        total += line.len() + 2;
        if is_uu(line) || is_base64(line) {
            run += 1;
            run_octets += line.len() + 2;
            continue;
        }
        if run >= RUN_LINES {
            coded += run_octets;
        }
        (run, run_octets) = (0, 0);
    }
    if run >= RUN_LINES {
        coded += run_octets;
    }
    coded * 2 > total
}

/// Up to the next CRLF.
fn first_line(octets: &[u8]) -> &[u8] {
    let end = memmem::find(octets, b"\r\n").unwrap_or(octets.len());
    octets.get(..end).unwrap_or_default()
}

/// A full line of uuencode, or of any length if it says so itself: the first character counts the octets.
fn is_uu(line: &[u8]) -> bool {
    // Dot-stuffed when it begins with a dot.
    let line = match line {
        [b'.', unstuffed @ ..] if unstuffed.starts_with(b".") => unstuffed,
        _ => line,
    };
    let Some((&first, data)) = line.split_first() else {
        return false;
    };
    if !(b'!'..=b'M').contains(&first) {
        return false;
    }
    let groups = usize::from(first - b' ').div_ceil(3);
    // Some encoders add a check character, some leave trailing blanks out.
    (groups * 4..=groups * 4 + 1).contains(&data.len())
        && data.iter().all(|octet| (b' '..=b'`').contains(octet))
}

/// A full line of base64: 60 to 76 characters of its alphabet, as encoders write them.
fn is_base64(line: &[u8]) -> bool {
    let is_digit =
        |octet: &u8| octet.is_ascii_alphanumeric() || matches!(octet, b'+' | b'/' | b'=');
    (60..=76).contains(&line.len()) && line.len().is_multiple_of(4) && line.iter().all(is_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(fields: &str, body: &str) -> Content {
        let wire = format!("Subject: x\n{fields}\n{body}.\n").replace('\n', "\r\n");
        Content::of(&Headers::scan(wire.as_bytes()).unwrap())
    }

    fn lines(line: &str, count: usize) -> String {
        format!("{line}\n").repeat(count)
    }

    /// A full line of uuencode.
    fn uu_line() -> String {
        format!("M{}", "0A)2".repeat(15))
    }

    #[test]
    fn text_is_text() {
        let signature = lines(&"iQEzBAEBCAAdFiEE".repeat(4), 9);
        for body in [
            "",
            "Hello.\n",
            "begin with a word\nand go on\n",
            "begin 644 things\nand go on, said the man who counts\n",
            "=ybegin is how yEnc begins\n",
            "I wrote =ybegin line=128 size=5 name=x\n",
        ] {
            assert_eq!(content("", body), Content::Text, "{body:?}");
        }
        let signed = format!(
            "{}-----BEGIN PGP SIGNATURE-----\n{signature}",
            lines("Some words that somebody wrote here.", 30)
        );
        assert_eq!(content("", &signed), Content::Text);
        let mime = "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n";
        assert_eq!(content(mime, &lines("SGVsbG8=", 1)), Content::Text);
    }

    #[test]
    fn files_are_told_by_their_encoding() {
        let yenc = "a line\n=ybegin line=128 size=5 name=x\nabcde\n=yend size=5\n";
        assert_eq!(content("", yenc), Content::YEnc);
        let uu = format!("Here it is:\n\nbegin 644 x.gif\n{}\n`\nend\n", uu_line());
        assert_eq!(content("", &uu), Content::Binary);
        let middle = format!("part 2 of 3\n{}", lines(&uu_line(), 40));
        assert_eq!(content("", &middle), Content::Binary);
        let base64 = lines(&"SGVsbG8gV29y".repeat(6), 40);
        assert_eq!(content("", &base64), Content::Binary);
        let mime = "Content-Type: image/gif\nContent-Transfer-Encoding: Base64\n";
        assert_eq!(content(mime, "R0lGODlhAQABAAAAACw=\n"), Content::Binary);
    }

    #[test]
    fn a_stuffed_line_of_uuencode_counts() {
        let line = format!("..{}", &"0A)2".repeat(5)[..19]);
        // `.` counts 14 octets, five groups.
        assert_eq!(line.len(), 21);
        assert!(is_uu(format!("..{}", "0A)2".repeat(5)).as_bytes()));
        assert!(!is_uu(line.as_bytes()));
    }
}
