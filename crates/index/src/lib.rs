//! Names to tokens: history (message-id to token), overview (group and number to line) and groups, as views of the log.
//!
//! A view keeps its newest part in memory, covered by the log, and its older parts in immutable sealed files.  Replaying
//! the log from the last checkpoint brings it up to date, so there is no repair tool.  What is alive is computed from
//! the buffers' marks ([`Liveness`]) and never stored.  The crate reads no article, no clock and no configuration file.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

mod apply;
mod checkpoint;
mod compact;
mod config;
mod cursor;
mod error;
pub mod fuzz;
mod groups;
mod hash;
mod history;
mod layers;
mod liveness;
mod lost;
mod narrow;
mod overview;
mod past;
mod rebuild;
mod repack;
mod sealed;
mod stable;
mod views;

pub use apply::{Applier, ArticleRow};
pub use checkpoint::Frozen;
pub use config::IndexConfig;
pub use error::{Error, Result};
pub use groups::{GROUPS_MAX, Group, GroupChange, GroupRow, Groups, REBUILT};
pub use hash::id_hash;
pub use history::census::{CENSUS_ROWS_MAX, Census, Population};
pub use history::tokens::{Led, TokenWalk};
pub use history::{History, HistoryEntry, HistoryFacts};
pub use liveness::Liveness;
pub use overview::{Column, LiveFacts, Overview, OverviewFacts};
pub use rebuild::Rebuild;
pub use repack::{Moves, PackFacts, Repack, Repacked, Rest};
pub use sealed::RunKind;
pub use sealed::manifest::OCTETS_MAX as MANIFEST_OCTETS_MAX;
pub use sealed::reader::Wait;
pub use sealed::set::DamagedRun;
pub use views::{GroupFacts, Views, ViewsFacts};
