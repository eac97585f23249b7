//! The Cyclic News File System (Fritchie 1997): articles one behind the other in a few large
//! files that are overwritten from the start when their end is reached.
//!
//! Whether an article is still there is computed: a token names buffer, cycle and offset, and the
//! buffer's floor follows from the region that the log has reserved for overwriting.  Nothing is
//! written outside a durably reserved region, so what computes as alive is alive, also after a
//! crash.  The layout is in `docs/formats/cyclic-buffer.md`.

mod batch;
mod checkpoint;
mod file;
mod format;
mod placing;
mod reading;
mod scan;
mod set;

pub(crate) use file::path_of;
pub use file::{Buffer, CreateProgress};
pub use format::{FileHeader, RecordHeader, end_of};
pub use scan::{Scan, Scanned};
pub use set::Cnfs;

/// The first octet of its tokens.
pub const METHOD: u8 = 1;
