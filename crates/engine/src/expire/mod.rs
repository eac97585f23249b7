//! Expiry: articles go when the rules of their groups say so, a few at a time, in the background or on request.
//!
//! Cyclic buffers and segments lose their oldest articles by themselves; this is for what should go earlier, and for articles
//! that are files, which stay otherwise.  Each group lets an article go by itself; its text goes with the last group.  Nothing
//! here reads an article: arrival, Expires, size and places are in the overview.

pub(crate) mod asked;
pub(crate) mod background;
pub(crate) mod config;
pub(crate) mod expires;
mod pass;
mod report;
pub(crate) mod rules;

pub use config::{ExpireConfig, ExpireRule, ExpiryConfig};
pub use report::{ExpireReport, ExpiryStatus, Going, LISTED_MAX, RuleCount};
