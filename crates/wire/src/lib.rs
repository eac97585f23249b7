//! Pure syntax of articles and NNTP, and the value types all crates share: no I/O, no async.
//!
//! Everything here takes bytes and gives spans, values or typed reasons. No function panics on any input, none
//! reads a clock, none allocates on the hot path (header scan, octet facts, framing). What a value means (is the
//! group known, is the article too old) is policy and lives above.
#![deny(missing_docs)]
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

pub mod article;
pub mod batch;
pub mod date;
mod error;
mod group;
mod ids;
pub mod mbox;
mod message_id;
mod network;
pub mod newsgroups;
pub mod nntp;
pub mod overview;
pub mod path;
pub mod range;
mod token;
pub mod wildmat;
pub mod xref;

pub use error::{
    ArticleFault, BatchDamage, DateError, Error, FromError, GroupNameError, HeaderFault,
    MailboxError, MessageIdError, OverviewError, PathError, RangeError, TokenTextError,
    WildmatError,
};
pub use group::{GROUP_NAME_OCTETS_MAX, GroupName};
pub use ids::{ArticleNumber, BufferId, GroupId, IdHash, Sequence, SetId, UnixTime};
pub use message_id::{MESSAGE_ID_OCTETS_MAX, MESSAGE_ID_OCTETS_MIN, MessageId};
pub use network::{network_of, networks_around, site_of};
pub use range::NumberRange;
pub use token::{
    BUFFER_NAME_OCTETS_MAX, CYCLE_MAX, OFFSET_MAX, POSITION_UNIT, Position, TOKEN_OCTETS, Token,
    TokenParts, TokenText,
};
pub use wildmat::{Verdict, Wildmat};
