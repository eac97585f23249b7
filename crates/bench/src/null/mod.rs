//! A server that does nothing but answer: the floor of the machine that real ones are compared with.
//!
//! Invariant: replies have the right form and the usual size, name what was asked for, and cost as
//! little as possible. No article is stored; of one that was taken, a bit says that it was. Contents.

mod replies;
mod seen;
mod serve;

pub use self::serve::{NullArgs, NullServer};
