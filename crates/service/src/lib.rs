//! The one trait behind every session: [`NewsService`], its types, a memory implementation, its conformance suite.
//!
//! Sessions and web pages know a news database only through this crate, so they build and are tested without any
//! store.  Everything is generic and statically dispatched; a local implementation answers ready futures and costs
//! no allocation where the caller brings a buffer that is used again.  This crate knows no implementation but the
//! one in memory, speaks no protocol and does no I/O.
#![deny(missing_docs)]

mod arriving;
mod article;
mod beside;
pub mod cancel_lock;
mod changes;
pub mod conformance;
mod connection;
mod error;
mod filter;
mod group;
pub mod memory;
mod neighbour;
mod overview;
mod places;
pub mod posting;
mod reads;
mod reject;
mod service;
mod texts;
mod transfer;

pub use arriving::{Arriving, PORTION_OCTETS_MAX};
pub use article::{ArticleBuf, ArticleQuery, Found, Part};
pub use beside::{Beside, BesideNewnews};
pub use changes::{LastChange, LastChanges};
pub use connection::{Completion, Connection, ConnectionId};
pub use error::ServiceError;
pub use filter::{ArticleFilter, FilterCounts, Subject, Verdict, Verdicts};
pub use group::{GroupCursor, GroupInfo, GroupRow, GroupSelect, GroupStatus, HeldRow};
pub use neighbour::{Brought, Neighbour, Neighbours, Received, Terms};
pub use overview::OverviewRows;
pub use places::{NoPlace, Place, Places};
pub use reads::{Reads, says_in};
pub use reject::Reject;
pub use service::{Direction, Features, NewsService};
pub use texts::{TEXT_OCTETS_MAX, TEXTS_MAX, Texts};
pub use transfer::{
    Defer, FieldName, OFFERED_INLINE_OCTETS, Offer, OfferedId, Outcome, Transfer, TransferKind,
};
