//! The store as the engine uses it: every method's conformance, wrapping, crashes, faults, races, old formats.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

mod adding;
mod catalogue;
mod common;
mod conformance;
mod copies;
mod corpus;
mod crash;
mod cyclic;
mod enlarging;
mod faults;
mod formats;
mod formats_later;
mod largest;
mod mutations;
mod narrowing;
mod overtaken;
mod packing;
mod planning;
mod race;
mod removed;
mod retiring;
mod roots;
mod sequential;
mod sets;
