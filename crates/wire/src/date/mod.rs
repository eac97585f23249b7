//! Dates: the calendar, article dates (RFC 5322 section 3.3), NNTP dates (RFC 3977 sections 7.1 and 7.3).
//!
//! Everything is UTC and proleptic Gregorian; no time zone database, no clock: callers pass the time in.  Instants
//! before 1970 exist only as [`UnixTime`] zero, which every age check refuses.

mod civil;
mod nntp;
mod parse;
mod print;

pub use civil::CivilTime;
pub use nntp::{is_gmt, parse_nntp};
pub use parse::{has_right_weekday, is_in_new_form, parse_relaxed, parse_rfc5322};
pub use print::{print_nntp, print_rfc5322};

pub use crate::ids::UnixTime;
