//! A card: what a catalogue has of one article.  Decoding trusts nothing.
//!
//! It lies behind the header of a record, which has sequence, arrival, the hash of the message-id and a checksum of the card.

use std::path::{Component, Path};

/// The version of this format.
const VERSION: u8 = 1;
/// Octets in front of the name.
const FRONT: usize = 24;
/// No name is longer: what the kernel takes for a path, the directory of the set included, is 4096.
pub const NAME_OCTETS_MAX: usize = 3072;

/// What is known of one article.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Card {
    /// Octets of the article in wire form.
    pub(crate) article_len: u32,
    /// Octets of its header block, empty line not included.
    pub(crate) head_len: u32,
    /// crc32c of the header block.
    pub(crate) crc_head: u32,
    /// crc32c of the rest of the article.
    pub(crate) crc_body: u32,
    /// Its file below the directory of the set, without what a collision appended.
    pub(crate) name: String,
}

impl Card {
    /// Of an article with this text and header block.
    pub(crate) fn of(text: &[u8], head_len: u32, name: String) -> Option<Self> {
        let (head, body) = text.split_at_checked(head_len as usize)?;
        Some(Self {
            article_len: u32::try_from(text.len()).ok()?,
            head_len,
            crc_head: crc32c::crc32c(head),
            crc_body: crc32c::crc32c(body),
            name,
        })
    }

    /// The stored form.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&[VERSION, 0]);
        let name_len = u16::try_from(self.name.len()).unwrap_or(u16::MAX);
        out.extend_from_slice(&name_len.to_le_bytes());
        for number in [
            self.article_len,
            self.head_len,
            self.crc_head,
            self.crc_body,
            0,
        ] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(self.name.as_bytes());
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// What does not agree.
    pub(crate) fn decode(octets: &[u8]) -> Result<Self, &'static str> {
        let Some((front, name)) = octets.split_at_checked(FRONT) else {
            return Err("card is cut off");
        };
        if front.first() != Some(&VERSION) {
            return Err("card of a version this newsreel does not know");
        }
        let number = |at: usize| {
            let four = front.get(at..at + 4).and_then(<[u8]>::first_chunk);
            four.map_or(0, |four: &[u8; 4]| u32::from_le_bytes(*four))
        };
        let name_len = number(0) >> 16;
        let name = std::str::from_utf8(name).ok();
        let card = Self {
            article_len: number(4),
            head_len: number(8),
            crc_head: number(12),
            crc_body: number(16),
            name: name.ok_or("name in a card")?.to_owned(),
        };
        if card.name.len() != name_len as usize || !is_inside(&card.name) {
            return Err("name in a card");
        }
        if card.head_len > card.article_len {
            return Err("header block is longer than the article");
        }
        Ok(card)
    }
}

/// Whether a name leads to a file below its directory and nowhere else.
pub(crate) fn is_inside(name: &str) -> bool {
    let mut components = Path::new(name).components();
    let is_plain = components.all(|component| matches!(component, Component::Normal(_)));
    is_plain && !name.is_empty() && name.len() <= NAME_OCTETS_MAX && !name.contains('\0')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn card() -> Card {
        Card::of(b"Subject: x\r\n\r\ntext\r\n.\r\n", 12, "a/b/7".to_owned()).unwrap()
    }

    #[test]
    fn the_layout_is_fixed() {
        let mut out = Vec::new();
        card().encode(&mut out);
        let (head, body) = (
            crc32c::crc32c(b"Subject: x\r\n"),
            crc32c::crc32c(b"\r\ntext\r\n.\r\n"),
        );
        let mut expected = vec![1, 0, 5, 0, 23, 0, 0, 0, 12, 0, 0, 0];
        expected.extend_from_slice(&head.to_le_bytes());
        expected.extend_from_slice(&body.to_le_bytes());
        expected.extend_from_slice(b"\0\0\0\0a/b/7");
        assert_eq!(out, expected);
        assert_eq!(Card::decode(&out), Ok(card()));
    }

    #[test]
    fn a_name_never_leads_out_of_its_directory() {
        for (name, is_right) in [
            ("a", true),
            ("a/b/7", true),
            ("a/7+", true),
            ("", false),
            ("/etc/passwd", false),
            ("../a", false),
            ("a/../../b", false),
            ("a\0b", false),
        ] {
            let mut out = Vec::new();
            let name = name.to_owned();
            Card { name, ..card() }.encode(&mut out);
            assert_eq!(Card::decode(&out).is_ok(), is_right, "{out:?}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let mut good = Vec::new();
        card().encode(&mut good);
        for at in 0..good.len() {
            assert!(Card::decode(&good[..at]).is_err(), "cut at {at}");
        }
        for (at, octet) in [(0, 2), (2, 4), (8, 24)] {
            let mut bad = good.clone();
            bad[at] = octet;
            assert!(Card::decode(&bad).is_err(), "octet {at}");
        }
        assert_eq!(Card::of(b"short", 6, "a".to_owned()), None);
    }

    proptest! {
        #[test]
        fn prop_any_octets_decode_without_panic(octets in proptest::collection::vec(any::<u8>(), 0..100)) {
            if let Ok(card) = Card::decode(&octets) {
                let mut out = Vec::new();
                card.encode(&mut out);
                prop_assert_eq!(Card::decode(&out), Ok(card));
            }
        }
    }
}
