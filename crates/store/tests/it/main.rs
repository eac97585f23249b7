//! The store as the engine uses it: placing, wrapping, reading, restarting, failing.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

mod cyclic;
mod race;
mod world;
