//! Articles as plain files, one each, and a catalogue of them: what the methods share whose articles any program can read.
//!
//! A file has no header that tells whose it is, where it stands in the log, or whether it is whole.  So for each article a
//! *card* is kept ([`card`]): lengths, checksums, the file's name.  Cards are the records of a set of segments, in the
//! directory `.catalogue` of the set, and the token of an article is the place of its card.  So recovery, liveness, walks and
//! the search for what a crash left are those of segments; a method brings nothing but the names of its files.
//! A commit writes and syncs the files first, then the cards, then comes the log: a card that the log knows has its file.
//! The layout is in `docs/formats/catalogue.md`.

pub(crate) mod batch;
pub(crate) mod card;
pub(crate) mod folder;
pub(crate) mod holes;
pub(crate) mod hollows;
pub(crate) mod lent;
pub(crate) mod loose;
pub(crate) mod lost;
pub(crate) mod lying;
pub(crate) mod reader;
mod reclaim;
pub(crate) mod removal;
pub(crate) mod restore;
pub(crate) mod roots;
pub(crate) mod scan;
pub(crate) mod set;

use std::fmt::Debug;

use newsreel_wire::{Token, TokenParts};

use crate::method::Place;

/// The catalogue's place in the directory of a set.
pub(crate) const CATALOGUE: &str = ".catalogue";
/// Size of one file of a catalogue: some thousand cards.
pub const CATALOGUE_OCTETS: u64 = 1 << 20;

/// How the files of a method are named.
pub(crate) trait Naming: Send + Sync + Debug {
    /// The names that an article's file gets (one at least), below the directory of its set: by the article alone, so that they are known
    /// before anything is written.  The first is the file's, the others are links to it.  Where another file has one
    /// already, a `+` is appended.
    fn names(&self, place: &Place<'_>) -> Vec<String>;

    /// Whether somebody may keep some of the directories on other disks.
    fn has_hierarchies(&self) -> bool {
        false
    }
}

/// The token of an article's card among the records of the catalogue.
pub(crate) fn card_token(token: &Token) -> Token {
    let [c0, c1, c2, c3, i0, i1, i2, i3] = token.tail();
    Token::new(TokenParts {
        len: u32::from_le_bytes([c0, c1, c2, c3]),
        // A card has no header block.
        tail: [0, 0, 0, 0, i0, i1, i2, i3],
        ..token.parts()
    })
}

/// The token of the article whose card this is.
pub(crate) fn article_token(card: &Token, article_len: u32) -> Token {
    let [c0, c1, c2, c3] = card.len().to_le_bytes();
    let [.., i0, i1, i2, i3] = card.tail();
    Token::new(TokenParts {
        len: article_len,
        tail: [c0, c1, c2, c3, i0, i1, i2, i3],
        ..card.parts()
    })
}
