//! What a body is made of: anything at all, and how much of it is quoted.

/// Shorter bodies may quote as they like, lines.
const LINES_MIN: usize = 40;

/// Whether a body in wire form has nothing but blanks.
pub(super) fn is_empty(body: &[u8]) -> bool {
    lines(body).all(|line| line.trim_ascii().is_empty())
}

/// The part of quoted lines in percent, rounded down; 0 for what is short.
pub(super) fn percent(body: &[u8]) -> usize {
    let (mut all, mut quoted) = (0, 0);
    for line in lines(body) {
        all += 1;
        quoted += usize::from(matches!(line.first(), Some(b'>' | b'|' | b':')));
    }
    if all < LINES_MIN {
        0
    } else {
        quoted * 100 / all
    }
}

/// The lines of a body without its terminator.
fn lines(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    let text = newsreel_wire::nntp::framing::without_terminator(body);
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    text.split(|octet| *octet == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_bodies() {
        for body in [".\r\n", "\r\n.\r\n", " \r\n\t\r\n.\r\n"] {
            assert!(is_empty(body.as_bytes()), "{body:?}");
        }
        for body in ["x\r\n.\r\n", "..\r\n.\r\n", "\r\n-\r\n.\r\n"] {
            assert!(!is_empty(body.as_bytes()), "{body:?}");
        }
    }

    #[test]
    fn quoted_parts() {
        let body = |quoted: usize, own: usize| {
            let text = "> old\r\n".repeat(quoted) + &"new\r\n".repeat(own) + ".\r\n";
            percent(text.as_bytes())
        };
        assert_eq!(body(39, 0), 0, "short");
        assert_eq!(body(40, 0), 100);
        assert_eq!(body(30, 10), 75);
        assert_eq!(body(0, 40), 0);
    }
}
