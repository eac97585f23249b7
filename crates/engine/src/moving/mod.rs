//! Moving articles between sets while they are read, cancelled and expired (decision 0022).
//!
//! Copies first, which nobody is led to; then the pack with their rows, written anew beside the old one; then one frame of the
//! log, which is the move; behind the next checkpoint the old places are cleared.

mod cards;
mod copying;
pub(crate) mod mover;
pub(crate) mod room;
pub(crate) mod sequencing;
