//! Records one behind the other: what the methods share that keep many articles in a file.
//!
//! A *buffer* is an endless row of positions, cycle by cycle, of which a part is alive: everything from its floor on.  How it
//! is filled, written, read and walked is here.  Which file has a cycle, and what a method writes about itself, is the
//! method's own: its [`Home`].  A cyclic buffer has one file for all cycles and overwrites it, `segment` has a file for each.
//! The octets of a record are drawn in `docs/formats/cyclic-buffer.md`.

pub(crate) mod batch;
pub(crate) mod buffer;
pub(crate) mod due;
pub(crate) mod erase;
pub(crate) mod format;
pub(crate) mod geometry;
pub(crate) mod gone;
pub(crate) mod headers;
pub(crate) mod hollow;
pub(crate) mod home;
pub(crate) mod memory;
pub(crate) mod mend;
pub(crate) mod packing;
pub(crate) mod placing;
pub(crate) mod reading;
pub(crate) mod recent;
pub(crate) mod scan;
pub(crate) mod signed;
pub(crate) mod true_end;

pub(crate) use home::Home;
