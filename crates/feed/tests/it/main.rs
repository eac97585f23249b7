//! Feeds against peers that are programs of the test: everything arrives once, whatever breaks.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

mod batches;
mod peer;
mod pulling;
mod sending;
mod sinks;
mod site;
