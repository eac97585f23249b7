//! A connection to a news server elsewhere, as its client: for the cache, which reads there, and for feeds.
//!
//! Nothing the other side says makes a connection grow: what comes goes through one buffer of fixed size, lines and answers
//! have their limits, and every wait has an end.  It knows how commands are answered, not what they mean.

mod account;
mod capabilities;
mod connection;
mod error;
mod incoming;
mod opening;
mod pool;
mod reach;
mod remote;
mod socket;
mod trust;

pub use account::Account;
pub use capabilities::{CAPABILITIES_OCTETS_MAX, Capabilities};
pub use connection::{Client, PIPELINED_MAX, Piece};
pub use error::{ClientError, Fault};
pub use incoming::{BLOCK_LINE_OCTETS_MAX, BUFFER_OCTETS, LINES_OCTETS_MAX, STATUS_OCTETS_MAX};
pub use pool::{Connect, Lent, Pool, PoolLimits};
pub use reach::{Reach, Secured};
pub use remote::{Login, Remote, Security, Times};
pub use socket::Socket;
pub use trust::Trust;
