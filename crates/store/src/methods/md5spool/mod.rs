//! The CNFS paper's "Solution #1": a file for each article in 64 times 64 directories, named by the MD5 of its message-id.
//!
//! What is hashed is the message-id with its angle brackets and nothing behind it.  No number of a group is needed, so it
//! suits a feeder.  What it has beside files is in `crate::files`; names are told in `docs/formats/md5spool.md`.

use std::sync::Arc;

use md5::{Digest as _, Md5};
use newsreel_wire::SetId;

use crate::config::SetConfig;
use crate::error::Result;
use crate::files::{Naming, set};
use crate::method::Place;
use crate::methods::{OpenedSet, Opening};
use crate::records::home::Kind;

/// The first octet of its tokens.
pub const METHOD: u8 = 3;
/// Its name in the configuration.
pub const NAME: &str = "md5spool";

/// Opens a set.
pub(crate) fn open(opening: &mut Opening<'_>, set: SetId, config: &SetConfig) -> Result<OpenedSet> {
    let kind = Kind {
        number: METHOD,
        name: NAME,
        is_of_articles: false,
    };
    set::open((kind, Arc::new(ByHash)), opening, set, config)
}

/// Names by message-id.
#[derive(Debug)]
struct ByHash;

impl Naming for ByHash {
    fn names(&self, place: &Place<'_>) -> Vec<String> {
        vec![name(place.id)]
    }
}

/// The name of an article's file: six bits each of the first two octets, then the next four.
fn name(id: &[u8]) -> String {
    let [a, b, c, d, e, f, ..] = <[u8; 16]>::from(Md5::digest(id));
    format!(
        "{:02x}/{:02x}/{c:02x}{d:02x}{e:02x}{f:02x}",
        a & 0x3f,
        b & 0x3f
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The paper's figure 3 is of the message-id and a newline: whoever made it had piped one into a program.
    #[test]
    fn figure_3_is_of_an_id_with_a_newline() {
        let id = "<foo87692.bar85-97@no.where>";
        let with_newline = format!("{id}\n");
        assert_eq!(name(with_newline.as_bytes()), "20/02/77ebdad1");
        assert_eq!(name(id.as_bytes()), "09/1d/745fd631");
    }
}
