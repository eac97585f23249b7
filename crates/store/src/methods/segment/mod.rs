//! Segments: files made on demand, one behind the other, dropped whole (the CNFS paper's future work 5, Diablo's spool).
//!
//! A set of segments is a buffer whose every cycle has a file of its own: nothing is overwritten, and what is alive begins
//! where the oldest file does that was not dropped.  A drop is a reservation in the log like that of a cyclic buffer, so
//! that what lies one cycle before it is gone; only then is the file removed.  A set with an age and no other limit is
//! a guarantee: it drops nothing earlier, and a full disk puts new articles off.
//! Each file is laid out as in `docs/formats/segment.md`.

mod files;
mod names;
mod open;
mod set;
mod standing;

pub use files::{OPEN_SEGMENTS_MAX, SEGMENT_OCTETS_MIN};
pub(crate) use names::{files_in, is_name_of_one};
pub(crate) use open::{open, open_as};
pub(crate) use set::SegmentSet;
pub use standing::SEGMENTS_COMPARED_MAX;

use crate::records::format::RECORD_HEADER;
use crate::records::placing::ARTICLE_OCTETS_MAX;

/// The first octet of its tokens.
pub const METHOD: u8 = 2;
/// Its name in the configuration.
pub const NAME: &str = "segment";

/// The largest article of a set whose segments have so much room: it must fit into one.
pub(crate) fn article_octets_max(capacity: u64) -> u64 {
    capacity
        .saturating_sub(RECORD_HEADER as u64)
        .min(ARTICLE_OCTETS_MAX)
}
