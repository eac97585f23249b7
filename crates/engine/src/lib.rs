//! The local news database: accept path, sequencer, commits, views derived from the log, recovery.
//!
//! Data goes one way: a session hands articles to the [`LocalService`], which judges them; the
//! sequencer gives each its place in one order; a commit makes buffers and then the log durable;
//! the views follow from the log; then, and only then, the peer is told.  This crate speaks no
//! NNTP and opens no socket.
#![deny(missing_docs)]

mod accept;
mod active;
mod admin;
mod applier;
mod ask;
mod attach;
mod by_id;
mod check;
mod check_stored;
mod checkpoint;
mod checkpointing;
mod commit;
mod config;
mod control;
mod counters;
mod create;
mod emptied;
mod engine;
mod error;
mod expected;
mod expire;
mod feeds;
mod filing;
mod filtering;
mod finish;
pub mod fuzz;
mod holds;
mod in_order;
mod inbox;
mod last_changes;
mod local;
mod lost;
mod lost_groups;
mod lowest;
mod mend;
mod moving;
mod newnews;
mod offers;
mod pace;
mod places;
mod post;
mod record;
mod recover;
mod replay;
mod report;
mod requests;
mod roll_forward;
mod room;
mod scrub;
mod scrub_bits;
mod scrub_cards;
mod scrub_left;
mod scrub_looked;
mod scrub_packed;
mod scrub_state;
mod scrub_strays;
mod scrub_walk;
mod sequencer;
mod shared;
mod spool;
mod start;
mod taking;
mod timekeeper;
mod timing;
mod unreadable;
mod vacating;
mod vouching;
mod walk;
mod withdraw;
mod withdrawn;

pub use admin::{GROUP_HIGH_END, GROUP_TEXT_OCTETS_MAX};
pub use attach::{ATTACHED_AT_ONCE_OCTETS, Attached, Attaching, THOUGHT_OF_MAX};
pub use check::{GAPS_MAX, MOVED_MAX, PROBLEMS_MAX};
pub use config::{
    ArticlesConfig, Durability, EngineConfig, Mode, NumberOverflow, ScrubConfig, SequencerConfig,
    UnknownGroups,
};
pub use control::config::{Cancels, ControlConfig};
pub use control::forgotten::{Forgotten, ForgottenList};
pub use control::groups::CHECKGROUPS_LINES_MAX;
pub use control::heeded::{
    HEEDED_LISTS_MAX, HEEDED_LISTS_OF_ONE_MAX, HEEDED_OCTETS_MAX, HEEDED_RECORD_OCTETS_MAX,
};
pub use control::judged::ASKS_COUNTED_MAX;
pub use control::keyring::{Imported, KEYRING_FILE, KEYRING_OCTETS_MAX, Keyring};
pub use control::meaning::GroupAsked;
pub use control::newer::NEWER_TOLD_MAX;
pub use control::pending::PENDING_KEYS_MAX;
pub use control::shown::{ASKS_LISTED_MAX, AskedByRule, ControlReport};
pub use control::signed::SIGNED_FIELDS_MAX;
pub use control::told::CONTROL_MAILS_PER_HOUR_MAX;
pub use counters::{CounterValues, Counters};
pub use create::Refusal;
pub use engine::{Engine, Progress};
pub use error::Error;
pub use expected::PLACES_AT_ONCE;
pub use expire::{
    ExpireConfig, ExpireReport, ExpireRule, ExpiryConfig, ExpiryStatus, Going,
    LISTED_MAX as EXPIRED_LISTED_MAX, RuleCount,
};
pub use feeds::{FedArticle, FedGroups, FeedCursor, FeedRead};
pub use in_order::HELD_MAX;
pub use last_changes::CHANGES_OCTETS_MAX;
pub use local::LocalService;
pub use moving::mover::{MOVED_AT_ONCE_OCTETS, Relocated, Relocation};
pub use moving::room::TargetRoom;
pub use newnews::NewnewsCursor;
pub use record::Reason;
pub use report::{
    ArticleRef, ArticleReport, BufferReport, BufferStatus, CheckReport, Damage, GroupReport,
    HistoryStatus, LogStatus, OverviewStatus, ScrubReport, ScrubStatus, ScrubbedBuffer, Status,
    Uncompared, is_well,
};
pub use requests::{GroupChange, GroupSpec};
pub use room::{DiskRoom, MEMORY_TIMES_MAX};
pub use scrub_cards::PLACES_MAX as CARDS_BESIDE_MAX;
pub use scrub_state::KNOWN_MAX as DAMAGED_KNOWN_MAX;
pub use scrub_strays::{EMPTY_AT_ONCE, STRAYS_AT_ONCE};
pub use spool::SPOOL_FILE;
pub use timekeeper::JUMP_S_MAX;
pub use withdraw::Withdrawal;
