//! The load generator: corpus, feed and read passes, reports.
//!
//! It stands beside the server as any client would: it knows NNTP and nothing of the engine, and
//! the server never needs it. Two promises: what it sends follows from a seed, so that two servers
//! are measured with the same work; and what it receives is verified, so that a wrong answer is
//! never a fast one. It prints nothing and reads no configuration; callers give argument structs.

pub mod attack;
pub mod beside;
pub mod cache;
mod client;
pub mod compare;
mod comparison;
pub mod corpus;
mod error;
pub mod expiry;
pub mod feed;
pub mod fuzz;
pub mod idle;
pub mod load;
mod measure;
pub mod null;
pub mod passes;
pub mod plot;
pub mod protocol;
mod random;
pub mod read;
pub mod removal;
pub mod report;
pub mod rivals;
pub mod sending;
pub mod storage;
pub mod toaster;
pub mod usenetfs;
mod verify;

pub use error::Error;
