//! Words that others say, kept for ever: a verdict and an outcome are small values, and the same few words are said again and again.
//!
//! How many are kept is limited; one beyond that becomes a word of ours.  What is kept can stand in a reply and in the log.

use std::collections::BTreeSet;

use parking_lot::Mutex;

/// Different texts that one place keeps in the life of a server.
pub const TEXTS_MAX: usize = 1000;

/// The longest of them: with code and message-id it fits a reply line.
pub const TEXT_OCTETS_MAX: usize = 200;

/// The texts that one place keeps.
#[derive(Debug, Default)]
pub struct Texts(Mutex<BTreeSet<&'static str>>);

impl Texts {
    /// None yet.
    #[must_use]
    pub const fn new() -> Self {
        Self(Mutex::new(BTreeSet::new()))
    }

    /// A text as it is kept: printable, and cut where it is too long; none where too many are kept.
    pub fn kept(&self, text: &str) -> Option<&'static str> {
        let mut fitting: String = text
            .chars()
            .map(|one| if one.is_control() { '?' } else { one })
            .collect();
        let mut end = fitting.len().min(TEXT_OCTETS_MAX);
        while !fitting.is_char_boundary(end) {
            end -= 1;
        }
        fitting.truncate(end);
        let mut kept = self.0.lock();
        if let Some(found) = kept.get(fitting.as_str()) {
            return Some(found);
        }
        if kept.len() >= TEXTS_MAX {
            return None;
        }
        let leaked: &'static str = fitting.leak();
        kept.insert(leaked);
        Some(leaked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_printable_short_and_few() {
        let texts = Texts::new();
        assert_eq!(texts.kept("EMP (md5)"), Some("EMP (md5)"));
        assert_eq!(texts.kept("a\r\n205 bye\u{7f}"), Some("a??205 bye?"));
        let long = "\u{e9}".repeat(TEXT_OCTETS_MAX);
        assert_eq!(texts.kept(&long).map(str::len), Some(TEXT_OCTETS_MAX));
        for n in 0..2 * TEXTS_MAX {
            let _ = texts.kept(&format!("text {n}"));
        }
        assert_eq!(texts.0.lock().len(), TEXTS_MAX);
        assert_eq!(texts.kept("one more"), None);
        assert_eq!(texts.kept("EMP (md5)"), Some("EMP (md5)"));
    }
}
