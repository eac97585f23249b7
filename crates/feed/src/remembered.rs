//! The last words on the articles that a feed settled lately, so that who asks what became of one is told.
//!
//! In memory only, and of the newest: a message-id is kept as a hash, what was said only where the peer rejected or a batch has a name.

use std::collections::VecDeque;
use std::hash::{BuildHasher as _, RandomState};

use newsreel_wire::UnixTime;

use crate::queue::Settled;

/// Articles whose last word a feed remembers.
pub const REMEMBERED_MAX: usize = 4096;

/// Of a peer's words, or a batch's name, so much is kept.
const SAID_CHARS_MAX: usize = 160;

/// A last word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LastWord {
    hash: u64,
    pub(crate) how: Settled,
    pub(crate) at: UnixTime,
    /// Why, where it was rejected; the batch, where it is in one.
    pub(crate) said: Option<Box<str>>,
}

/// The newest of a feed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Remembered {
    hashing: RandomState,
    words: VecDeque<LastWord>,
    /// The last one that says why it was rejected, however many came behind it.
    rejection: Option<LastWord>,
}

impl Remembered {
    pub(crate) fn note(&mut self, id: &str, how: Settled, said: &str, at: UnixTime) {
        if self.words.len() >= REMEMBERED_MAX {
            self.words.pop_front();
        }
        let is_told = matches!(how, Settled::Rejected | Settled::Written) && !said.is_empty();
        let kept = |c: char| if c.is_control() { '?' } else { c };
        let said = is_told.then(|| said.chars().take(SAID_CHARS_MAX).map(kept).collect());
        let hash = self.hashing.hash_one(id);
        let word = LastWord {
            hash,
            how,
            at,
            said,
        };
        if how == Settled::Rejected && word.said.is_some() {
            self.rejection = Some(word.clone());
        }
        self.words.push_back(word);
    }

    /// When the peer rejected an article last, and what it said.
    pub(crate) fn rejection(&self) -> Option<(UnixTime, &str)> {
        let word = self.rejection.as_ref()?;
        Some((word.at, word.said.as_deref()?))
    }

    /// The last word on an article, if it is remembered.
    pub(crate) fn of(&self, id: &str) -> Option<&LastWord> {
        let hash = self.hashing.hash_one(id);
        self.words.iter().rev().find(|word| word.hash == hash)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_remembered_and_no_more() {
        let mut remembered = Remembered::default();
        for n in 0..=REMEMBERED_MAX as u64 {
            remembered.note(&format!("<{n}@x>"), Settled::Accepted, "239", UnixTime(n));
        }
        assert_eq!(remembered.of("<0@x>"), None);
        assert_eq!(remembered.of("<none@x>"), None);
        let first = remembered.of("<1@x>").unwrap();
        assert_eq!(
            (first.how, first.at, &first.said),
            (Settled::Accepted, UnixTime(1), &None)
        );
        let long = format!("439 <1@x>\x1b{}", "a".repeat(500));
        remembered.note("<1@x>", Settled::Rejected, &long, UnixTime(9));
        let last = remembered.of("<1@x>").unwrap();
        assert_eq!((last.how, last.at), (Settled::Rejected, UnixTime(9)));
        let said = last.said.as_deref().unwrap();
        assert!(
            said.starts_with("439 <1@x>?aaa") && said.len() == SAID_CHARS_MAX,
            "{said}"
        );
        assert_eq!(remembered.words.len(), REMEMBERED_MAX);
        for n in 0..=REMEMBERED_MAX as u64 {
            remembered.note(&format!("<{n}@y>"), Settled::Accepted, "239", UnixTime(n));
        }
        assert!(remembered.of("<1@x>").is_none());
        let (at, said) = remembered.rejection().unwrap();
        assert!(
            at == UnixTime(9) && said.starts_with("439 <1@x>?aaa"),
            "{said}"
        );
    }
}
