//! The server's side of NNTP: one connection from greeting to its end (RFC 3977, RFC 4644).
//!
//! `framer` says where commands and articles begin and end, without I/O; `commands` is the one table of verbs, from
//! which dispatch, HELP, CAPABILITIES and argument checks follow; `session` is the loop that moves octets.  A session
//! knows news only through `NewsService`.  Nothing a peer sends makes it panic, grow without bound, or run a command
//! that was hidden in an article.
#![deny(missing_docs)]

mod answers;
pub mod commands;
mod config;
mod core;
mod dispatch;
mod end;
mod framer;
pub mod fuzz;
mod header;
mod input;
mod link;
mod listing;
mod lists;
mod memory;
mod metrics;
mod overview;
mod pool;
mod pulse;
mod retrieve;
mod sasl;
mod session;
mod slots;
mod spec;

pub use config::SessionConfig;
pub use end::End;
pub use framer::RESPONSE_OCTETS_MAX;
pub use link::{DROPPING_PAUSE, LINGER_OCTETS_MAX};
pub use lists::{Lists, ListsConfig};
pub use metrics::{Metrics, MetricsSnapshot};
pub use session::{Shared, serve};
