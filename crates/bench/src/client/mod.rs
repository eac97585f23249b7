//! The NNTP client: connections in an event loop, driven by scripts. Contents only.
//!
//! It is made to cost little beside the server it measures on the same machine: bodies are lent to
//! `writev`, replies are found in place, and one thread serves many connections.

mod channel;
pub(crate) mod connect;
pub(crate) mod connection;
pub(crate) mod incoming;
pub(crate) mod outgoing;
pub(crate) mod script;
pub(crate) mod tally;
pub(crate) mod worker;
