//! Message-ids for articles that come without (RFC 5536 section 3.1.3).
//!
//! No two are the same, and nobody can tell the next one, who could post an article of that id first.

use std::sync::atomic::{AtomicU64, Ordering};

use newsreel_wire::{MessageId, UnixTime};

use crate::transfer::OfferedId;

const DIGITS: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";
/// Of five bits each.
const DIGITS_OF_ID: usize = 25;

/// Makes them.
#[derive(Debug)]
pub struct IdMaker {
    start: blake3::Hasher,
    next: AtomicU64,
}

impl IdMaker {
    /// From this time on; `random` is another number at every start, which nobody is told.
    #[must_use]
    pub fn new(now: UnixTime, random: u64) -> Self {
        let mut start = blake3::Hasher::new_derive_key("newsreel 2026-11 message-id");
        start
            .update(&now.0.to_le_bytes())
            .update(&random.to_le_bytes());
        Self {
            start,
            next: AtomicU64::new(1),
        }
    }

    /// One that was never made before, of this host.
    #[must_use]
    pub fn make(&self, host: &str) -> OfferedId {
        let count = self.next.fetch_add(1, Ordering::Relaxed);
        let mut hash = self.start.clone();
        hash.update(&count.to_le_bytes());
        let hash = hash.finalize();
        let octets = hash.as_bytes().iter().take(DIGITS_OF_ID);
        let digits: String = octets
            .map(|octet| char::from(DIGITS[usize::from(octet % 32)]))
            .collect();
        let text = format!("<{digits}@{host}>");
        debug_assert!(MessageId::parse(text.as_bytes()).is_ok(), "{text}");
        OfferedId::made(text.as_bytes())
    }
}

/// The Message-ID of a mail about an article: the same whenever that mail is made or sent again, so that who gets it twice can tell.
#[must_use]
pub fn mail_id(article: &[u8], to: &str, host: &str) -> String {
    let mut hash = blake3::Hasher::new_derive_key("newsreel 2026-11 mail-message-id");
    hash.update(article).update(to.as_bytes());
    let hex = hash.finalize().to_hex();
    format!("<mail.{}@{host}>", hex.get(..32).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_well_formed_and_differ() {
        let host = format!("{}.example", "n".repeat(180));
        let maker = IdMaker::new(UnixTime(1_767_225_600), u64::MAX);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..1000 {
            let id = maker.make(&host);
            let parsed = MessageId::parse(id.as_bytes()).unwrap();
            assert!(parsed.has_two_parts());
            assert!(seen.insert(id.as_bytes().to_vec()));
        }
        let other = IdMaker::new(UnixTime(1_767_225_600), 7);
        assert!(seen.insert(other.make(&host).as_bytes().to_vec()));
    }

    /// They told when the server began and how many there had been: whoever posted could take the next ones.
    #[test]
    fn one_does_not_tell_the_next() {
        let maker = IdMaker::new(UnixTime(1_767_225_600), 7);
        let ids = [(); 100].map(|()| maker.make("h.example").as_bytes().to_vec());
        for two in ids.windows(2) {
            let same = two[0]
                .iter()
                .zip(&two[1])
                .filter(|(one, other)| one == other);
            // The brackets, the host, and what falls together.
            assert!(same.count() < 12 + 10, "{two:?}");
        }
    }
}
