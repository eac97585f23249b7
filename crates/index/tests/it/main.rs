//! History, overview and groups together against plain maps: over freezes, merges, restarts, crashes and damage.

mod checkpoints;
mod crash;
mod damage;
mod limits;
mod model;
mod readers;
mod world;
