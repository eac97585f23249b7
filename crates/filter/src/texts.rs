//! Words that programs say, kept for ever: a verdict is a small value, and the same few are said again and again.
//!
//! How many are kept is limited; one beyond that becomes a word of ours.  What is kept can stand in a reply and in the log.

use std::collections::BTreeSet;

use newsreel_service::FILTER_TEXT_OCTETS_MAX;
use parking_lot::Mutex;

/// Different texts of refusals and names of classes that are kept, of all filters in the life of a server.
pub const TEXTS_MAX: usize = 1000;

static KEPT: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// A text that can be kept: printable, and not too long; none where too many are kept.
pub(crate) fn kept(text: &str) -> Option<&'static str> {
    let mut fitting: String = text
        .chars()
        .map(|one| if one.is_control() { '?' } else { one })
        .collect();
    let mut end = fitting.len().min(FILTER_TEXT_OCTETS_MAX);
    while !fitting.is_char_boundary(end) {
        end -= 1;
    }
    fitting.truncate(end);
    let mut kept = KEPT.lock();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_printable_short_and_few() {
        assert_eq!(kept("EMP (md5)"), Some("EMP (md5)"));
        assert_eq!(kept("a\r\n205 bye\u{7f}"), Some("a??205 bye?"));
        let long = "\u{e9}".repeat(FILTER_TEXT_OCTETS_MAX);
        assert_eq!(kept(&long).map(str::len), Some(FILTER_TEXT_OCTETS_MAX));
        for n in 0..2 * TEXTS_MAX {
            let _ = kept(&format!("text {n}"));
        }
        assert_eq!(KEPT.lock().len(), TEXTS_MAX);
        assert_eq!(kept("one more"), None);
        assert_eq!(kept("EMP (md5)"), Some("EMP (md5)"));
    }
}
