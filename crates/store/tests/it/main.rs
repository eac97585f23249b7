//! The store as the engine uses it: placing, wrapping, reading, restarting, failing.

mod cyclic;
mod race;
mod world;
