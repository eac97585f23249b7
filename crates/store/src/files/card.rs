//! A card: what a catalogue has of one article.  Decoding trusts nothing.
//!
//! It lies behind the header of a record, which has sequence, arrival, the hash of the message-id and a checksum of the card.

use std::path::{Component, Path};

/// The version of this format.
const VERSION: u8 = 3;
/// The version that did not say how long the file is.
const VERSION_2: u8 = 2;
/// The version that had one name and no Xref, either.
const VERSION_1: u8 = 1;
/// Octets in front of the names.
const FRONT: usize = 28;
/// ... in the versions before.
const FRONT_2: usize = 24;
/// No name is longer: what the kernel takes for a path, the directory of the set included, is 4096.
pub const NAME_OCTETS_MAX: usize = 3072;

/// What is known of one article.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Card {
    /// Octets of the article in wire form.
    pub(crate) article_len: u32,
    /// Octets of its header block, empty line not included.
    pub(crate) head_len: u32,
    /// Octets of its file; not known of older cards.
    pub(crate) file_len: Option<u32>,
    /// crc32c of the header block.
    pub(crate) crc_head: u32,
    /// crc32c of the rest of the article.
    pub(crate) crc_body: u32,
    /// Its file below the directory of the set, without what a collision appended.
    pub(crate) name: String,
    /// Further names of that file.
    pub(crate) links: Vec<String>,
    /// What its Xref says: where it is filed, also when the file is gone.
    pub(crate) xref: Vec<u8>,
}

impl Card {
    /// Of an article with this text and header block, its names and its Xref, whose file has the wire form; none where a name
    /// is no right one.
    pub(crate) fn of(text: &[u8], head_len: u32, names: Vec<String>, xref: &[u8]) -> Option<Self> {
        let (head, body) = text.split_at_checked(head_len as usize)?;
        let is_right = names.iter().all(|name| is_inside(name));
        let mut links = names.into_iter();
        let name = links.next().filter(|_| is_right)?;
        let article_len = u32::try_from(text.len()).ok()?;
        Some(Self {
            article_len,
            head_len,
            file_len: Some(article_len),
            crc_head: crc32c::crc32c(head),
            crc_body: crc32c::crc32c(body),
            name,
            links: links.collect(),
            xref: xref.to_vec(),
        })
    }

    /// All its names.
    pub(crate) fn names(&self) -> impl DoubleEndedIterator<Item = &str> {
        std::iter::once(&self.name)
            .chain(&self.links)
            .map(String::as_str)
    }

    /// The stored form.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let version = self.file_len.map_or(VERSION_2, |_| VERSION);
        out.extend_from_slice(&[version, 0]);
        let name_len = u16::try_from(self.name.len()).unwrap_or(u16::MAX);
        out.extend_from_slice(&name_len.to_le_bytes());
        let links_len: usize = self.links.iter().map(|link| 1 + link.len()).sum();
        for number in [
            self.article_len,
            self.head_len,
            self.crc_head,
            self.crc_body,
            u32::try_from(links_len).unwrap_or(u32::MAX),
        ]
        .into_iter()
        .chain(self.file_len)
        {
            out.extend_from_slice(&number.to_le_bytes());
        }
        out.extend_from_slice(self.name.as_bytes());
        for link in &self.links {
            out.push(0);
            out.extend_from_slice(link.as_bytes());
        }
        out.extend_from_slice(&self.xref);
    }

    /// Whether one in this stored form says where its article is filed.
    pub(crate) fn has_xref(octets: &[u8]) -> bool {
        octets.first().is_some_and(|version| *version > VERSION_1)
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// What does not agree.
    pub(crate) fn decode(octets: &[u8]) -> Result<Self, &'static str> {
        let version = octets.first().copied().ok_or("card is cut off")?;
        let front_len = match version {
            VERSION_1 | VERSION_2 => FRONT_2,
            VERSION => FRONT,
            _ => return Err("card of a version this newsreel does not know"),
        };
        let split = octets.split_at_checked(front_len);
        let (front, rest) = split.ok_or("card is cut off")?;
        let number = |at: usize| {
            let four = front.get(at..at + 4).and_then(<[u8]>::first_chunk);
            four.map_or(0, |four: &[u8; 4]| u32::from_le_bytes(*four))
        };
        let name_len = (number(0) >> 16) as usize;
        if version == VERSION_1 && rest.len() != name_len {
            return Err("name in a card");
        }
        let links_len = match version {
            VERSION_1 => 0,
            _ => number(20) as usize,
        };
        let split = rest.split_at_checked(name_len);
        let split = split.and_then(|(name, rest)| Some((name, rest.split_at_checked(links_len)?)));
        let (name, (links, xref)) = split.ok_or("card is cut off")?;
        let mut links = links.split(|octet| *octet == 0).map(name_of);
        // In front of each is a NUL.
        if links.next() != Some(Some(String::new())) {
            return Err("name in a card");
        }
        let links: Option<Vec<String>> = links.collect();
        let card = Self {
            article_len: number(4),
            head_len: number(8),
            file_len: (version == VERSION).then(|| number(24)),
            crc_head: number(12),
            crc_body: number(16),
            name: name_of(name).ok_or("name in a card")?,
            links: links.ok_or("name in a card")?,
            xref: xref.to_vec(),
        };
        if !card.names().all(is_inside) {
            return Err("name in a card");
        }
        if card.head_len > card.article_len {
            return Err("header block is longer than the article");
        }
        if card.file_len > Some(card.article_len) {
            return Err("the file is longer than its article");
        }
        Ok(card)
    }
}

fn name_of(octets: &[u8]) -> Option<String> {
    std::str::from_utf8(octets).ok().map(str::to_owned)
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
        let names = ["a/b/7", "c/8", "d/9"].map(str::to_owned).to_vec();
        let text = b"Subject: x\r\n\r\ntext\r\n.\r\n";
        Card::of(text, 12, names, b"us a.b:7").unwrap()
    }

    fn of_version_2() -> Card {
        Card {
            file_len: None,
            ..card()
        }
    }

    #[test]
    fn the_layout_is_fixed() {
        let mut out = Vec::new();
        card().encode(&mut out);
        let (head, body) = (
            crc32c::crc32c(b"Subject: x\r\n"),
            crc32c::crc32c(b"\r\ntext\r\n.\r\n"),
        );
        let mut expected = vec![3, 0, 5, 0, 23, 0, 0, 0, 12, 0, 0, 0];
        expected.extend_from_slice(&head.to_le_bytes());
        expected.extend_from_slice(&body.to_le_bytes());
        expected.extend_from_slice(b"\x08\0\0\0\x17\0\0\0a/b/7\0c/8\0d/9us a.b:7");
        assert_eq!(out, expected);
        assert_eq!(Card::decode(&out), Ok(card()));
        // How long its file is, version 2 did not say.
        expected[0] = 2;
        expected.drain(24..28);
        assert_eq!(Card::decode(&expected), Ok(of_version_2()));
        out.clear();
        of_version_2().encode(&mut out);
        assert_eq!(out, expected);
    }

    #[test]
    fn version_1_had_one_name_and_nothing_behind_it() {
        let mut old = Vec::new();
        of_version_2().encode(&mut old);
        assert!(Card::has_xref(&old));
        old[0] = 1;
        // Not that it is filed nowhere.
        assert!(!Card::has_xref(&old));
        old[20..24].fill(0);
        assert_eq!(Card::decode(&old), Err("name in a card"));
        old.truncate(FRONT_2 + 5);
        let expected = Card {
            links: Vec::new(),
            xref: Vec::new(),
            ..of_version_2()
        };
        assert_eq!(Card::decode(&old), Ok(expected));
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
            let card_of = |name: &String| Card {
                name: name.clone(),
                ..card()
            };
            card_of(&name).encode(&mut out);
            assert_eq!(Card::decode(&out).is_ok(), is_right, "{out:?}");
            let names = vec!["a".to_owned(), name];
            assert_eq!(Card::of(b"", 0, names.clone(), b"").is_some(), is_right);
            if !names[1].contains('\0') {
                let mut out = Vec::new();
                let links = names[1..].to_vec();
                Card { links, ..card() }.encode(&mut out);
                assert_eq!(Card::decode(&out).is_ok(), is_right, "{out:?}");
            }
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let mut good = Vec::new();
        card().encode(&mut good);
        // Behind the names is what says where it is filed, and how much of that is for the record to tell.
        for at in 0..good.len() - 8 {
            assert!(Card::decode(&good[..at]).is_err(), "cut at {at}");
        }
        for (at, octet) in [
            (0, 4),
            (0, 0),
            (2, 4),
            (2, 6),
            (8, 24),
            (20, 1),
            (20, 200),
            (24, 24),
        ] {
            let mut bad = good.clone();
            bad[at] = octet;
            assert!(Card::decode(&bad).is_err(), "octet {at}");
        }
        assert_eq!(Card::of(b"short", 6, vec!["a".to_owned()], b""), None);
        assert_eq!(Card::of(b"short", 5, Vec::new(), b""), None);
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
