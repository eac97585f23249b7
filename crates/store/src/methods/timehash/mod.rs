//! A file for each article, in directories by the time of its arrival: a new one every 256 seconds.
//!
//! What arrived together lies together, and goes together.  What it has beside files is in `crate::files`; names are told in
//! `docs/formats/timehash.md`.

use std::sync::Arc;

use newsreel_wire::{Sequence, SetId, UnixTime};

use crate::config::SetConfig;
use crate::error::Result;
use crate::files::{Naming, set};
use crate::method::Place;
use crate::methods::{OpenedSet, Opening};
use crate::records::home::Kind;

/// The first octet of its tokens.
pub const METHOD: u8 = 4;
/// Its name in the configuration.
pub const NAME: &str = "timehash";

/// Opens a set.
pub(crate) fn open(opening: &mut Opening<'_>, set: SetId, config: &SetConfig) -> Result<OpenedSet> {
    let kind = Kind {
        number: METHOD,
        name: NAME,
        is_of_articles: false,
    };
    set::open((kind, Arc::new(ByTime)), opening, set, config)
}

/// Names by arrival.
#[derive(Debug)]
struct ByTime;

impl Naming for ByTime {
    fn names(&self, place: &Place<'_>) -> Vec<String> {
        vec![name(place.arrival, place.sequence)]
    }
}

/// The name of an article's file.  INN counts up to 65,535 where this has the place in the log, which is never given again.
fn name(arrival: UnixTime, sequence: Sequence) -> String {
    let seconds = arrival.0;
    let (b, c) = (seconds >> 16 & 0xff, seconds >> 8 & 0xff);
    let (a, d) = (seconds >> 24, seconds & 0xff);
    format!("{b:02x}/{c:02x}/{:04x}-{a:02x}{d:02x}", sequence.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_in_directory_and_name() {
        let named = |seconds, sequence| name(UnixTime(seconds), Sequence(sequence));
        assert_eq!(named(0x6a5b_4c3d, 7), "5b/4c/0007-6a3d");
        assert_eq!(named(0x6a5b_4c3d, 0x12_3456), "5b/4c/123456-6a3d");
        assert_eq!(named(0x1_6a5b_4c3d, 7), "5b/4c/0007-16a3d");
        assert_eq!(named(0, 0), "00/00/0000-0000");
    }
}
