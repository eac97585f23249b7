//! Access: who may connect and what they may do there.
//!
//! `rules` says it, without a clock and without I/O; `places` and `pace` hold the numbers it sets; `door` lets a connection in
//! and somebody log in, when it is their turn (`turns` within a network, `checks` among all), by what has failed (`failures`).
//! Nothing here knows what a command is: sessions ask.

mod answers;
mod checks;
mod config;
mod counted;
mod door;
mod failures;
mod known;
mod login;
pub(crate) mod logins_file;
mod network;
pub(crate) mod pace;
mod places;
mod rules;
mod turns;

pub use checks::PROGRAMS_AT_ONCE;
pub use config::{AccessConfig, AccessRule, LIST_KEYWORDS};
pub use counted::Counted;
pub use door::{Denied, Door, Gate, Login};
pub use failures::{Ban, FAILURES_KEPT_MAX};
pub use known::{KNOWN_MAX, KNOWN_OF_ONE_MAX};
pub use login::{ClearText, Credentials, LoginConfig, Logins, ScramKeys, User};
pub use network::is_within;
pub use pace::Pace;
pub use rules::{Grant, Rules, Who};
pub use turns::TURN_WAIT_MAX;
