//! Text files whose first line says what they are, in which version, and the checksum of the lines behind it.
//!
//! `newsreel users 2 89abcdef`: the words that a kind of file begins with, then the crc32c of all that follows, as eight hexadecimal
//! digits.  People may read such a file; who changes it by hand is told so.

/// The line that belongs in front of these, beginning with these words.
#[must_use]
pub fn first_line(words: &str, lines: &[u8]) -> String {
    format!("{words}{:08x}\n", crc32c::crc32c(lines))
}

/// Lines behind the first line that belongs to them.
#[must_use]
pub fn seal(words: &str, lines: &[u8]) -> Vec<u8> {
    [first_line(words, lines).as_bytes(), lines].concat()
}

/// The lines of such a file, and with which of these words it begins.
///
/// # Errors
/// What is wrong with its first line or its end; `other` where it begins with none of the words.
pub fn unseal<'t>(
    octets: &'t [u8],
    words: &[&str],
    other: &'static str,
) -> Result<(usize, &'t str), &'static str> {
    let text = std::str::from_utf8(octets).map_err(|_| "it is not UTF-8")?;
    let (first, lines) = text.split_once('\n').ok_or("it has no first line")?;
    let of = |(at, words): (usize, &&str)| Some((at, first.strip_prefix(*words)?));
    let (at, sum) = words.iter().enumerate().find_map(of).ok_or(other)?;
    if sum != format!("{:08x}", crc32c::crc32c(lines.as_bytes())) {
        return Err("the checksum is wrong");
    }
    if !lines.is_empty() && !lines.ends_with('\n') {
        return Err("the last line has no end");
    }
    Ok((at, lines))
}

/// The version that such a file says it is of, behind these words; none: it does not, or its checksum is wrong.
#[must_use]
pub fn version_of(octets: &[u8], words: &str) -> Option<u32> {
    let text = std::str::from_utf8(octets).ok()?;
    let (first, lines) = text.split_once('\n')?;
    let (version, sum) = first.strip_prefix(words)?.split_once(' ')?;
    let is_whole = sum == format!("{:08x}", crc32c::crc32c(lines.as_bytes()));
    version.parse().ok().filter(|_| is_whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sealed_is_there_again_and_nothing_else() {
        let words = ["newsreel things 2 ", "newsreel things 1 "];
        let read = |octets: &[u8]| {
            let read = unseal(octets, &words, "it is no file of things");
            read.map(|(at, lines)| (at, lines.to_owned()))
        };
        let whole = seal(words[1], b"a\nb\n");
        assert_eq!(read(&whole), Ok((1, "a\nb\n".to_owned())));
        assert_eq!(read(&seal(words[0], b"")), Ok((0, String::new())));
        assert_eq!(read(&seal(words[0], b"a")), Err("the last line has no end"));
        assert_eq!(read(&seal(words[0], b"\xff\n")), Err("it is not UTF-8"));
        assert_eq!(read(b"newsreel"), Err("it has no first line"));
        assert_eq!(
            read(&seal("newsreel words 1 ", b"")),
            Err("it is no file of things")
        );
        assert_eq!(version_of(&whole, "newsreel things "), Some(1));
        assert_eq!(version_of(&whole, "newsreel words "), None);
        for place in words[1].len()..whole.len() {
            let mut other = whole.clone();
            other[place] ^= 1;
            assert!(read(&other).is_err(), "{place}");
            assert_eq!(version_of(&other, "newsreel things "), None, "{place}");
        }
    }
}
