//! The Path field: which servers an article passed (RFC 5536 section 3.1.5, RFC 5537 section 3.2).
//!
//! `ours!.SEEN.192.0.2.1!theirs!!first!not-for-mail`: entries from newest to oldest, each with an optional diagnostic, then the
//! tail entry, which names no server.  Real paths hold odd names (even control characters), so reading is
//! lenient: anything between two `!` is an entry.  Only what we write ourselves is held to the grammar ([`identity_is_valid`]).

use crate::article::trim;
use crate::error::PathError;

/// The longest path identity we use for ourselves: a domain name's limit.
pub const IDENTITY_OCTETS_MAX: usize = 253;

/// What an entry says of the server to its right (RFC 5537 section 3.2.1 and 3.2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Diagnostic<'a> {
    /// Nothing was checked: a single `!`.
    None,
    /// `!!`: the entry to the right is who sent it, verified.
    Match,
    /// `!.SEEN.source!`: sent by this host or address, which names no expected entry.
    Seen(&'a str),
    /// `!.MISMATCH.source!`: sent by this host or address, which is not who the entry to the right says.
    Mismatch(&'a str),
    /// `!.POSTED!` or `!.POSTED.source!`: injected here.
    Posted(Option<&'a str>),
    /// Some other keyword, with what follows it, as in `.OTHER.source`.
    Other(&'a str),
}

/// One server of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PathEntry<'a> {
    /// The server's name as written.
    pub identity: &'a [u8],
    /// What it says of the next one.
    pub diagnostic: Diagnostic<'a>,
}

/// A path, taken apart on demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path<'a> {
    content: &'a [u8],
}

impl<'a> Path<'a> {
    /// Takes the content of a Path field, folds and blanks included.
    ///
    /// # Errors
    /// When there is nothing but blanks.
    pub fn parse(content: &'a [u8]) -> Result<Self, PathError> {
        let content = trim(content);
        if content.is_empty() {
            return Err(PathError::Empty);
        }
        Ok(Self { content })
    }

    /// Whether there is a first entry and a tail entry, and none has a space inside, which no name has (RFC 5536 section
    /// 3.1.5).  Folds, blanks around a `!` and a comment behind the tail entry are none of that.
    ///
    /// # Errors
    /// When it is otherwise.
    pub fn check(&self) -> Result<(), PathError> {
        if self.content.starts_with(b"!") || self.content.ends_with(b"!") {
            return Err(PathError::Incomplete);
        }
        match memchr::memchr(b' ', self.content) {
            None => Ok(()),
            Some(_) => self.check_spaces(),
        }
    }

    #[cold]
    fn check_spaces(&self) -> Result<(), PathError> {
        let mut rest = before_comment(self.content);
        while let Some(at) = memchr::memchr(b' ', rest) {
            let (before, from) = rest.split_at_checked(at).unwrap_or_default();
            let after = from.trim_ascii_start();
            let is_between = matches!(after.first(), None | Some(b'!'));
            let run = from.get(..from.len() - after.len()).unwrap_or_default();
            if !is_between && has_space_behind_name(before.last(), run) {
                return Err(PathError::Space);
            }
            rest = after;
        }
        Ok(())
    }

    /// The raw content, trimmed.
    #[must_use]
    pub const fn content(&self) -> &'a [u8] {
        self.content
    }

    /// The tail entry: what follows the last `!`; it names no server.
    #[must_use]
    pub fn tail(&self) -> &'a [u8] {
        let from = memchr::memrchr(b'!', self.content).map_or(0, |bang| bang + 1);
        trim(self.content.get(from..).unwrap_or_default())
    }

    /// The entries from left (newest) to right, without the tail.
    #[must_use]
    pub const fn entries(&self) -> PathEntries<'a> {
        PathEntries { rest: self.content }
    }

    /// Whether a server has this name.  Letters' case is ignored, as in domain names; diagnostics and tail do not count.
    #[must_use]
    pub fn contains(&self, identity: &[u8]) -> bool {
        let mut rest = self.content;
        while let Some((part, after)) = split_bang(rest) {
            if part.len() >= identity.len()
                && trim(part).eq_ignore_ascii_case(identity)
                && !identity.is_empty()
            {
                return true;
            }
            rest = after;
        }
        false
    }
}

/// The content without a comment behind its tail entry: the first `(` that follows a space and has no `!` behind it.
fn before_comment(content: &[u8]) -> &[u8] {
    let tail_from = memchr::memrchr(b'!', content).map_or(0, |bang| bang + 1);
    let tail = content.get(tail_from..).unwrap_or_default();
    for at in memchr::memchr_iter(b'(', tail) {
        let before = tail.get(..at).unwrap_or_default();
        let name_end = before.trim_ascii_end().len();
        if before
            .get(name_end..)
            .is_some_and(|run| run.contains(&b' '))
        {
            return content.get(..tail_from + name_end).unwrap_or_default();
        }
    }
    content
}

/// Whether a run of blanks has a space that follows neither a `!` nor another blank and does not begin a fold.
fn has_space_behind_name(before: Option<&u8>, run: &[u8]) -> bool {
    let mut last = before;
    // In front of each line end and of what else counts as a blank.
    run.split_inclusive(|octet| !matches!(octet, b' ' | b'\t'))
        .any(|part| {
            let follows_name = !matches!(last, None | Some(b'!' | b' ' | b'\t' | b'\n'));
            last = part.last();
            follows_name && part.first() == Some(&b' ') && last != Some(&b'\r')
        })
}

fn split_bang(content: &[u8]) -> Option<(&[u8], &[u8])> {
    let bang = memchr::memchr(b'!', content)?;
    let (part, after) = content.split_at_checked(bang)?;
    Some((part, after.get(1..)?))
}

/// The entries of a [`Path`].
#[derive(Debug, Clone)]
pub struct PathEntries<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for PathEntries<'a> {
    type Item = PathEntry<'a>;

    fn next(&mut self) -> Option<PathEntry<'a>> {
        let (part, mut rest) = split_bang(self.rest)?;
        let mut diagnostic = Diagnostic::None;
        // `a!!b`: an empty part.  `a!.KEY.x!b`: a part that begins with a dot.
        while let Some((next, after)) = split_bang(rest) {
            let next = trim(next);
            match next {
                [] if diagnostic == Diagnostic::None => diagnostic = Diagnostic::Match,
                [] => {}
                [b'.', keyword @ ..] => diagnostic = Diagnostic::read(keyword),
                _ => break,
            }
            rest = after;
        }
        self.rest = rest;
        Some(PathEntry {
            identity: trim(part),
            diagnostic,
        })
    }
}

impl<'a> Diagnostic<'a> {
    fn read(text: &'a [u8]) -> Self {
        let text = std::str::from_utf8(text).unwrap_or_default();
        let (keyword, source) = match text.split_once('.') {
            Some((keyword, source)) => (keyword, Some(source)),
            None => (text, None),
        };
        match (keyword, source) {
            ("SEEN", Some(source)) => Self::Seen(source),
            ("MISMATCH", Some(source)) => Self::Mismatch(source),
            ("POSTED", source) => Self::Posted(source),
            _ => Self::Other(text),
        }
    }
}

/// Appends what a server puts in front of the old path: its name, the diagnostic, the last `!`.
pub fn write_prefix(identity: &str, diagnostic: Diagnostic<'_>, out: &mut Vec<u8>) {
    debug_assert!(identity_is_valid(identity));
    out.extend_from_slice(identity.as_bytes());
    let (keyword, source) = match diagnostic {
        Diagnostic::None => ("", None),
        Diagnostic::Match => ("!", None),
        Diagnostic::Seen(source) => ("!.SEEN", Some(source)),
        Diagnostic::Mismatch(source) => ("!.MISMATCH", Some(source)),
        Diagnostic::Posted(source) => ("!.POSTED", source),
        Diagnostic::Other(text) => ("!", Some(text)),
    };
    out.extend_from_slice(keyword.as_bytes());
    if let Some(source) = source {
        out.push(b'.');
        out.extend_from_slice(source.as_bytes());
    }
    out.push(b'!');
}

/// Whether a server may call itself this in paths (RFC 5536 section 3.1.5, `path-identity`): a domain name, or a name of
/// letters, digits, `-` and `_` without dots.
#[must_use]
pub fn identity_is_valid(identity: &str) -> bool {
    if identity.is_empty() || identity.len() > IDENTITY_OCTETS_MAX {
        return false;
    }
    if !identity.contains('.') {
        return identity
            .bytes()
            .all(|octet| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_'));
    }
    let label = |label: &str| {
        let octets = label.as_bytes();
        let ends = [octets.first(), octets.last()];
        ends.iter()
            .all(|end| end.is_some_and(u8::is_ascii_alphanumeric))
            && octets
                .iter()
                .all(|octet| octet.is_ascii_alphanumeric() || *octet == b'-')
    };
    // The last label has a letter or a dash somewhere, so that no address is taken for a name.
    let top = identity.rsplit('.').next().unwrap_or_default();
    identity.split('.').all(label) && top.bytes().any(|octet| !octet.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn check(content: &str, expected: &Expect) {
        let path = Path::parse(content.as_bytes()).unwrap();
        let mut out = String::new();
        for entry in path.entries() {
            out += &format!(
                "{} {:?}\n",
                String::from_utf8_lossy(entry.identity),
                entry.diagnostic
            );
        }
        out += &format!("tail {}\n", String::from_utf8_lossy(path.tail()));
        expected.assert_eq(&out);
    }

    #[test]
    fn takes_paths_apart() {
        check(
            " a.example!!b!.SEEN.192.0.2.1!c!.MISMATCH.2001:db8::1\r\n !d!.POSTED!not-for-mail ",
            &expect![[r#"
            a.example Match
            b Seen("192.0.2.1")
            c Mismatch("2001:db8::1")
            d Posted(None)
            tail not-for-mail
        "#]],
        );
        check(
            "a!.POSTED.h.example!x!.NEW.1!!!y",
            &expect![[r#"
            a Posted(Some("h.example"))
            x Other("NEW.1")
            tail y
        "#]],
        );
        check("not-for-mail", &expect![["tail not-for-mail\n"]]);
        check("!", &expect![["\u{20}None\ntail \n"]]);
    }

    #[test]
    fn refuses_nothing_but_nothing() {
        assert_eq!(Path::parse(b" \r\n\t "), Err(PathError::Empty));
        assert_eq!(Path::parse(b""), Err(PathError::Empty));
    }

    #[test]
    fn something_stands_on_both_sides() {
        for bad in ["!", "!!", "!a!b", "a!b!", "a!\r\n !"] {
            let path = Path::parse(bad.as_bytes()).unwrap();
            assert_eq!(path.check(), Err(PathError::Incomplete), "{bad:?}");
        }
        assert_eq!(Path::parse(b"a!!b").unwrap().check(), Ok(()));
    }

    #[test]
    fn no_entry_has_a_space_inside() {
        let check = |path: &str| Path::parse(path.as_bytes()).unwrap().check();
        for good in [
            "not-for-mail",
            "a!b!c",
            "a ! b !c",
            "a!\r\n b!c",
            "a \r\n b",
            "a!\r\n\t b!c \r\n  !d",
            "a!b (not for mail)",
            "a!b  (not for mail)",
            "a!b\tc!d",
            "a!\x07b",
        ] {
            assert_eq!(check(good), Ok(()), "{good:?}");
        }
        for bad in [
            "a b",
            "a!b c!d",
            "a!b  c",
            "a!b (c)!d",
            "a b!c",
            "a!b\r\n c d",
        ] {
            assert_eq!(check(bad), Err(PathError::Space), "{bad:?}");
        }
    }

    /// Issue: each space looked at all blanks behind it, so that one article of a MiB kept a core busy for minutes.
    #[test]
    fn a_long_run_of_blanks_is_judged_once() {
        let (sender, judged) = std::sync::mpsc::sync_channel(1);
        std::thread::spawn(move || {
            let many = 1 << 20;
            for (content, is_good) in [
                (format!("a!{}b", " ".repeat(many)), true),
                (format!("a!{}b", "\r\n ".repeat(many / 3)), true),
                (format!("a!{}b", " \t\r".repeat(many / 3)), true),
                (format!("a!{}b", "\x0c ".repeat(many / 2)), false),
                (format!("a{}!b", " \x0c".repeat(many / 2)), true),
                (format!("a!{}b!c", " (".repeat(many / 2)), false),
                (format!("a!b{}", " (".repeat(many / 2)), true),
                (format!("a{}b", " !".repeat(many / 2)), true),
            ] {
                let verdict = Path::parse(content.as_bytes()).unwrap().check();
                sender.send((content, verdict.is_ok() == is_good)).unwrap();
            }
        });
        let patience = std::time::Duration::from_secs(20);
        for _ in 0..8 {
            let (content, is_right) = judged.recv_timeout(patience).unwrap();
            assert!(is_right, "{:?}", &content[..8]);
        }
    }

    /// What [`Path::check`] says, each space judged by itself.
    fn check_each_space(content: &[u8]) -> Result<(), PathError> {
        if content.first() == Some(&b'!') || content.last() == Some(&b'!') {
            return Err(PathError::Incomplete);
        }
        for at in memchr::memchr_iter(b' ', content) {
            let (before, after) = content.split_at(at);
            let after = after.trim_ascii_start();
            let is_between = matches!(before.last(), None | Some(b'!' | b' ' | b'\t' | b'\n'))
                || matches!(after.first(), None | Some(b'!'));
            if after.first() == Some(&b'(') && !after.contains(&b'!') {
                return Ok(());
            }
            let line = content[at + 1..].iter();
            let is_fold = line.clone().find(|octet| !matches!(octet, b' ' | b'\t')) == Some(&b'\r');
            if !(is_between || is_fold) {
                return Err(PathError::Space);
            }
        }
        Ok(())
    }

    #[test]
    fn finds_our_name() {
        let contains = |path: &str| {
            Path::parse(path.as_bytes())
                .unwrap()
                .contains(b"us.example")
        };
        assert!(
            contains("a!US.example!b")
                && contains("us.example!!b")
                && contains("a!\r\n us.example !b")
        );
        assert!(
            !contains("a!xus.example!b")
                && !contains("a!.SEEN.us.example!b")
                && !contains("a!us.example")
        );
        assert!(!Path::parse(b"a!!b").unwrap().contains(b""));
    }

    #[test]
    fn our_own_names() {
        for name in [
            "news.example",
            "a-b.c-d.example",
            "oldsite",
            "old_site-1",
            "1.2.3.x4",
            "a.1-1",
        ] {
            assert!(identity_is_valid(name), "{name}");
        }
        for name in [
            "",
            ".",
            "a.",
            ".a",
            "a..b",
            "-a.b",
            "a-.b",
            "192.0.2.1",
            "a b",
            "a!b",
            "a_b.c",
            "\u{e9}.example",
        ] {
            assert!(!identity_is_valid(name), "{name}");
        }
        assert!(!identity_is_valid(&"a".repeat(IDENTITY_OCTETS_MAX + 1)));
    }

    proptest! {
        #[test]
        fn prop_what_we_write_is_read_back(name in "[a-z]{1,9}(\\.[a-z]{1,9}){0,2}", kind in 0u8..6, source in "[a-z0-9.:]{1,12}") {
            let diagnostic = match kind {
                0 => Diagnostic::None,
                1 => Diagnostic::Match,
                2 => Diagnostic::Seen(&source),
                3 => Diagnostic::Mismatch(&source),
                4 => Diagnostic::Posted(None),
                _ => Diagnostic::Posted(Some(&source)),
            };
            let mut out = Vec::new();
            write_prefix(&name, diagnostic, &mut out);
            out.extend_from_slice(b"old!tail");
            let path = Path::parse(&out).unwrap();
            let entries: Vec<_> = path.entries().collect();
            prop_assert_eq!(entries.first(), Some(&PathEntry { identity: name.as_bytes(), diagnostic }));
            prop_assert_eq!(entries.len(), 2);
            prop_assert!(path.contains(name.as_bytes()) && path.contains(b"OLD"));
        }

        #[test]
        fn prop_a_run_is_judged_as_each_of_its_spaces(content in "[ab! \t\r\n\x0c(]{1,16}|(a|!|  ?|\t|\r\n|\\()*") {
            if let Ok(path) = Path::parse(content.as_bytes()) {
                prop_assert_eq!(path.check(), check_each_space(path.content()));
            }
        }

        #[test]
        fn prop_any_octets_are_read_without_panic(content in proptest::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(path) = Path::parse(&content) {
                let _ = (path.check(), path.entries().count(), path.tail(), path.contains(b"a"));
            }
        }
    }
}
