//! Access: who may connect and what they may do there.
//!
//! `rules` says it, without a clock and without I/O; `places` and `pace` hold the numbers it sets; `door` lets a connection in
//! and somebody log in.  Nothing here knows what
//! a command is: sessions ask.

mod config;
mod door;
mod login;
mod network;
pub(crate) mod pace;
mod places;
mod rules;
mod turns;

pub use config::{AccessConfig, AccessRule, LIST_KEYWORDS};
pub use door::{Counted, Denied, Door, Gate, Login};
pub use login::{
    CHECKS_AT_ONCE, ClearText, Credentials, FAILURES_KEPT_MAX, LoginConfig, Logins, ScramKeys,
    TURN_WAIT_MAX, User,
};
pub use pace::Pace;
pub use rules::{Grant, Rules, Who};
