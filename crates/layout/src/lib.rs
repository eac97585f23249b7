//! Large article directories kept as many small ones: Usenetfs without the file system in front.
//!
//! A *managed* directory shows one flat *view*, and every name of the view lies one or two levels down in a *bucket*
//! that follows from the name alone.  A mounted file system and a storage method both sit on this crate; neither is
//! known here, and no name is ever found by searching.

pub mod advise;
mod algorithm;
mod carry;
pub mod convert;
mod cookie;
mod error;
mod hash;
mod listing;
mod lost;
mod managed;
mod mappings;
mod mark;
mod name;
mod of_set;
pub mod verify;
mod walk;

pub use algorithm::{Algorithm, AlgorithmError, Bucket, OTHERS};
pub use cookie::Cookie;
pub use error::{Error, Result};
pub use listing::Listing;
pub use managed::Managed;
pub use mark::{ATTRIBUTE, Fingerprint, Layout, Mark, Opened, SET_UID, Step, UnderWay};
pub use name::{NAME_BYTES_MAX, NUMBER_END, Name, NameError};
pub use of_set::{SET_MARK, set_around, set_at_or_above};
