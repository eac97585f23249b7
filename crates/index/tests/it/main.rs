//! History, overview and groups together against plain maps: over freezes, merges, restarts, crashes and damage.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

mod checkpoints;
mod crash;
mod damage;
mod limits;
mod manifest;
mod model;
mod moving;
mod places;
mod readers;
mod world;
