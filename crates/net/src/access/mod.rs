//! Access: who may connect and what they may do there.
//!
//! `rules` says it, without a clock and without I/O; `places` and `pace` hold the numbers it sets.  Nothing here knows what
//! a command is: sessions ask.

mod config;
mod network;
mod pace;
mod places;
mod rules;

pub use config::{AccessConfig, AccessRule};
pub use pace::Pace;
pub use places::{Place, Places};
pub use rules::{Grant, Rules, Who};
