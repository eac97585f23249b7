//! Outgoing feeds: which articles go to which peer, how far each has come, and sending them.
//!
//! The log is the queue: a peer's backlog is a place in it, and a few articles in memory that are on their way.  Articles are read
//! from the news service and sent as they are stored; what is sent is settled only by the peer's word.  This crate never
//! changes an article; how connections are secured is the matter of `net`.
#![deny(missing_docs)]

mod backlog;
mod batching;
mod changing;
mod config;
mod conversation;
mod dial;
mod dispatch;
mod failures;
mod fate;
mod feed;
mod filter;
mod folders;
pub mod fuzz;
mod hashfeed;
mod hosts;
mod kept;
mod link;
mod noted;
mod outgoing;
mod peers;
mod place;
mod pull;
mod queue;
mod quota;
mod remembered;
mod sink;
mod text;

pub use backlog::{Backlog, LOOKS_MAX};
pub use batching::{Batch, Batched, Batching, Told};
pub use config::{
    FeedConfig, FeedContent, FeedKind, FeedsConfig, FileForm, Packing, PeerConfig, PeerTls,
    PeersConfig, problems,
};
pub use dial::{Dial, Dialled, Io, NetDial, SECRET_OCTETS_MAX};
pub use fate::{Fate, SEARCHED_MAX};
pub use feed::{FeedReport, LinkState};
pub use filter::{Filter, Refusal};
pub use folders::shared_places;
pub use hosts::Hosts;
pub use kept::KEPT_MAX;
pub use peers::{Explained, Peers, hold_log};
pub use pull::{
    GROUPS_MAX, NEWNEWS_MAX, PullConfig, PullReport, PullTls, PullTold, Pulled, Pulling, Pulls,
    PullsConfig, pull_problems,
};
pub use queue::{BLAMED_MAX, GONE_NAMED_MAX, Tally};
pub use remembered::REMEMBERED_MAX;
pub use text::KEPT_OCTETS_MAX;
