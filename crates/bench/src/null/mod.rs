//! A server that does nothing but answer: the floor of the machine that real ones are compared with.
//!
//! Invariant: replies have the right form and the usual size, name what was asked for, and cost as
//! little as possible. Nothing is stored: an article that was taken is not there. Contents only.

mod replies;
mod serve;

pub use self::serve::{NullArgs, NullServer};
