//! Expiry: articles go when the rules of their groups say so, a few at a time, in the background or on request.
//!
//! Cyclic buffers and segments lose their oldest articles by themselves; this is for what should go earlier, and for articles
//! that are files, which stay otherwise.  Each group lets an article go by itself; its text goes with the last group.  What
//! is in no group has nobody to let it go; files of such articles go by their age.  No article is read to find out what is due: arrival,
//! Expires, size and places are in the overview, or on the cards of the files.

pub(crate) mod asked;
pub(crate) mod background;
mod beyond;
pub(crate) mod config;
pub(crate) mod expires;
mod pass;
mod report;
pub(crate) mod rules;
mod ungrouped;

pub use config::{ExpireConfig, ExpireRule, ExpiryConfig};
pub use report::{ExpireReport, ExpiryStatus, Going, LISTED_MAX, RuleCount};
