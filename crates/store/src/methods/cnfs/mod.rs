//! The Cyclic News File System (Fritchie 1997): articles one behind the other in a few large files that are
//! overwritten from the start when their end is reached.
//!
//! Whether an article is still there is computed: a token names buffer, cycle and offset, and the buffer's floor
//! follows from the region that the log has reserved for overwriting.  Nothing is written outside a durably reserved
//! region, so what computes as alive is alive, also after a crash.  The layout is in `docs/formats/cyclic-buffer.md`.

mod alone;
mod bitmap;
mod checkpoint;
mod create;
mod enlarge;
mod file;
mod narrow;
mod open;
mod rescue;
mod room;
mod set;

pub(crate) use alone::open_file;
pub use bitmap::STARTS_MAX;
pub use create::CreateProgress;
pub use enlarge::Resizing;
pub(crate) use file::Cyclic;
pub(crate) use open::{check_size, create, make_room, open, open_one, planned, refusals, resize};
pub(crate) use room::Room;
pub use set::RUN_OCTETS;

pub use crate::records::format::{FileHeader, FileKey, Hints, Mark, RECORD_HEADER, RecordHeader};
pub use crate::records::geometry::{BLOCK_MAX, BLOCK_MIN, BUFFER_OCTETS_MAX, Geometry, PAGE};
pub use crate::records::placing::ARTICLE_OCTETS_MAX;
pub(crate) use crate::records::placing::article_octets_max;

/// The first octet of its tokens.
pub const METHOD: u8 = 1;
/// Its name in the configuration.
pub const NAME: &str = "cnfs";
