//! Tests of managed directories on the file system that holds temporary files.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

mod advise;
mod convert;
mod crash;
mod listing;
mod managed;
mod of_set;
mod verify;
mod world;
