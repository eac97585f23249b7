//! Which message-ids were taken: a bit for each, so that CHECK has something to say.
//!
//! Invariant: an id that was taken is known; one that was not is taken for known in about two
//! cases of a thousand when a hundred thousand were. Takes 8 MB, whatever happens.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::random::mix;

const BITS: u64 = 1 << 26;

#[derive(Debug)]
pub(super) struct Seen {
    words: Box<[AtomicU64]>,
}

impl Seen {
    pub(super) fn new() -> Self {
        Self {
            words: (0..BITS / 64).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    pub(super) fn add(&self, message_id: &[u8]) {
        let (word, bit) = self.place(message_id);
        if let Some(word) = word {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    pub(super) fn has(&self, message_id: &[u8]) -> bool {
        let (word, bit) = self.place(message_id);
        word.is_some_and(|word| word.load(Ordering::Relaxed) & bit != 0)
    }

    fn place(&self, message_id: &[u8]) -> (Option<&AtomicU64>, u64) {
        let hash = message_id.chunks(8).fold(0, |hash, chunk| {
            let octets = chunk
                .iter()
                .fold(0u64, |word, &octet| word << 8 | u64::from(octet));
            mix(hash ^ octets)
        });
        (
            self.words.get((hash % BITS / 64) as usize),
            1 << (hash % 64),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_is_known_and_hardly_anything_else() {
        let seen = Seen::new();
        let id = |n: u32| format!("<{n:x}.abc@host.example>").into_bytes();
        for n in 0..10_000 {
            seen.add(&id(n));
        }
        assert!((0..10_000).all(|n| seen.has(&id(n))));
        assert!((10_000..20_000).filter(|&n| seen.has(&id(n))).count() < 20);
    }
}
