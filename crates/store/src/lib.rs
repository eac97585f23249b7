//! Articles by token: storage methods and storage rules.
//!
//! The sequencer places articles ([`Store`]), the commit thread writes batches ([`BatchWrite`]), readers read
//! ([`StoreReader`]).  What is acknowledged lies in a region that the log had reserved, behind a checksum; what
//! computes as alive is alive.  This crate knows nothing of groups' numbers.
#![deny(missing_docs)]
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

mod addition;
mod alone;
mod comparison;
mod config;
pub mod conformance;
mod error;
mod facts;
mod files;
pub mod fuzz;
mod mark;
mod method;
pub mod methods;
mod reader;
mod records;
mod register;
mod retirement;
mod rules;
mod store;

pub use addition::{Addition, NewBuffer};
pub use alone::{Alone, open_alone};
pub use comparison::{Comparison, is_withdrawn};
pub use config::{
    BUFFER_OCTETS_MIN, BufferConfig, FileFormat, GroupMatch, RuleConfig, RuleContent, SetConfig,
    SetOrder, StoreConfig, StoreProblem,
};
pub use error::{Error, PlaceError, ReadError, Result};
pub use facts::{BufferFacts, Oldest, PlannedBuffer};
pub use files::CATALOGUE_OCTETS;
pub use files::card::NAME_OCTETS_MAX;
pub use files::folder::LATER_MAX;
pub use files::holes::{HOLES_MAX, Hole};
pub use files::lent::Lent;
pub use files::loose::{LINKS_MAX, ORDERED_AT_ONCE, PassedOver, SORTED_AT_ONCE, TIMECAF_HELPS};
pub use files::lost::FRONTS_MAX;
pub use files::lying::FOLLOWED_MAX;
pub use files::removal::REFUSED_MAX;
pub use files::restore::{Cards, Written};
pub use method::{
    BatchWrite, Blocking, BufferReader, CheckpointWrite, FileOf, FileWalk, HeaderWrite,
    KeptArticle, LastKnown, Left, Lying, Marks, Missing, Place, RecordScan, Removed, Reservation,
    ScanRange, Scanned, StorageMethod, Stored, Want, Witness, WrongBits,
};
pub use methods::cnfs::{ARTICLE_OCTETS_MAX, CreateProgress, RUN_OCTETS, Resizing, STARTS_MAX};
pub use methods::segment::{OPEN_SEGMENTS_MAX, SEGMENTS_COMPARED_MAX};
pub use reader::StoreReader;
pub use records::packing::DICTIONARY_LOST;
pub use register::{OCTETS_MAX as REGISTER_OCTETS_MAX, register_damage};
pub use retirement::Retirement;
pub use rules::{Chosen, RuleNote, RuleSubject, Rules};
pub use store::{Access, Store};
