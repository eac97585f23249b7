//! Message-ids for articles that come without (RFC 5536 section 3.1.3).
//!
//! No two are the same: a start's time and random number, then a counter.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use newsreel_wire::{MessageId, UnixTime};

use crate::transfer::OfferedId;

/// Makes them.
#[derive(Debug)]
pub struct IdMaker {
    start: String,
    next: AtomicU64,
}

impl IdMaker {
    /// From this time on; `random` is another number at every start.
    #[must_use]
    pub fn new(now: UnixTime, random: u64) -> Self {
        let mut start = String::new();
        digits(now.0, &mut start);
        start.push('.');
        digits(random, &mut start);
        Self {
            start,
            next: AtomicU64::new(1),
        }
    }

    /// One that was never made before, of this host.
    #[must_use]
    pub fn make(&self, host: &str) -> OfferedId {
        let mut text = String::with_capacity(72);
        let _ = write!(text, "<{}.", self.start);
        digits(self.next.fetch_add(1, Ordering::Relaxed), &mut text);
        let _ = write!(text, "@{host}>");
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

/// A number in base 32.
fn digits(mut number: u64, out: &mut String) {
    const DIGITS: &[u8; 32] = b"0123456789abcdefghijklmnopqrstuv";
    let from = out.len();
    loop {
        out.insert(from, char::from(DIGITS[(number % 32) as usize]));
        number /= 32;
        if number == 0 {
            return;
        }
    }
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
        let text = |number| {
            let mut out = String::new();
            digits(number, &mut out);
            out
        };
        assert_eq!([text(0), text(31), text(32)], ["0", "v", "10"]);
    }
}
