//! An article's syntax: header block, octets, and what a relaying agent checks.
//!
//! Everything reads articles in wire form (RFC 3977 section 3.1.1: CRLF lines, dot-stuffed, terminator at the end) and
//! borrows from it; nothing here changes an article or knows what the server's policy is.

mod content;
mod control;
mod from;
mod headers;
#[cfg(test)]
mod headers_tests;
mod known;
mod mailbox;
mod octets;
mod optional;
mod relay;

pub use content::Content;
pub use control::Control;
pub use headers::{Field, HeaderLimits, Headers};
pub(crate) use headers::{is_blank, trim};
pub use known::{Known, KnownSet};
pub use mailbox::{first_mailbox, is_address, is_address_list, is_one_mailbox};
pub use octets::{OctetFacts, octets};
pub use optional::odd_fields;
pub use relay::{ArticleFacts, ONCE, RelayFacts, check_octets, check_relay, expires};
