//! Shares of the articles by the hash of their message-ids, as Diablo and INN make them (newsfeeds(5), flag `Q`).
//!
//! `begin-end/of:offset`: the MD5 hash of the message-id, brackets included, has 128 bits; the 32 of them that end `offset` octets
//! before its last one, taken as a number, modulo `of`, plus 1, must lie from `begin` to `end`.  Servers that split a feed so agree
//! on who sends what without talking to each other.

use md5::{Digest as _, Md5};

/// The furthest that 32 of 128 bits can be moved, octets.
const OFFSET_MAX: u8 = 12;

/// One share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Share {
    begin: u32,
    end: u32,
    of: u32,
    offset: u8,
}

/// Shares, of which any will do; none lets everything through.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Hashfeed(Vec<Share>);

impl Hashfeed {
    /// Reads what a configuration says.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Self::default());
        }
        let shares = text.split(',').map(|one| {
            Share::parse(one.trim()).ok_or_else(|| {
                format!(
                    "{one:?} is no share: 1/4 is the first of four, 2-3/4 the second and third, and 1/4:8 the first of four by \
                     other bits (0 to {OFFSET_MAX})"
                )
            })
        });
        Ok(Self(shares.collect::<Result<_, _>>()?))
    }

    /// Whether an article of this id goes out.
    #[expect(
        clippy::big_endian_bytes,
        reason = "Diablo and INN read the hash so; nothing is stored"
    )]
    pub(crate) fn takes(&self, id: &[u8]) -> bool {
        if self.0.is_empty() {
            return true;
        }
        let digest = Md5::digest(id);
        let number = |offset: u8| {
            let from = usize::from(OFFSET_MAX - offset);
            let octets = digest.get(from..).and_then(<[u8]>::first_chunk);
            octets.map_or(0, |octets| u32::from_be_bytes(*octets))
        };
        self.0.iter().any(|share| {
            let part = number(share.offset) % share.of + 1;
            (share.begin..=share.end).contains(&part)
        })
    }
}

impl Share {
    fn parse(text: &str) -> Option<Self> {
        let (parts, of) = text.split_once('/')?;
        let (of, offset) = of.split_once(':').unwrap_or((of, "0"));
        let (begin, end) = parts.split_once('-').unwrap_or((parts, parts));
        let share = Self {
            begin: begin.parse().ok()?,
            end: end.parse().ok()?,
            of: of.parse().ok()?,
            offset: offset.parse().ok()?,
        };
        let is_sound = 1 <= share.begin
            && share.begin <= share.end
            && share.end <= share.of
            && share.offset <= OFFSET_MAX;
        is_sound.then_some(share)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Worked out with another program's MD5.
    #[test]
    fn shares_are_those_of_other_servers() {
        for (offset, part) in [(0, 43), (4, 901), (8, 559), (12, 723), (1, 87)] {
            for (begin, takes) in [(part, true), (part + 1, false), (part - 1, false)] {
                let share = Hashfeed::parse(&format!("{begin}/1000:{offset}")).unwrap();
                assert_eq!(share.takes(b"<1@example.org>"), takes, "{begin} :{offset}");
            }
        }
    }

    #[test]
    fn what_is_no_share_is_refused() {
        for bad in [
            "1", "0/4", "5/4", "3-2/4", "1/4:13", "1/0", "a/b", "1/4,", "-/2", "1/4:",
        ] {
            assert!(Hashfeed::parse(bad).is_err(), "{bad}");
        }
        assert!(Hashfeed::parse(" ").unwrap().takes(b"<any@x>"));
    }

    proptest! {
        /// Shares that make up the whole send each article once.
        #[test]
        fn prop_shares_are_disjoint_and_whole(id in "<[a-z0-9]{1,20}@[a-z]{1,9}>", of in 1u32..20, offset in 0u8..=12) {
            let shares: Vec<Hashfeed> = (1..=of).map(|n| Hashfeed::parse(&format!("{n}/{of}:{offset}")).unwrap()).collect();
            prop_assert_eq!(shares.iter().filter(|share| share.takes(id.as_bytes())).count(), 1);
            let all = Hashfeed::parse(&format!("1-{of}/{of}:{offset}")).unwrap();
            prop_assert!(all.takes(id.as_bytes()));
        }
    }
}
