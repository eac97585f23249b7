//! Filters: what judges articles before they are taken, and may refuse them.
//!
//! Each of [`Filters`] is asked in turn; the first that does not take an article decides.  A filter is a program of its own
//! behind a line protocol (docs/filters.md), or a few checks that need none.  One that is slow, dead or talks nonsense costs each article its budget of time at
//! most, then what the configuration says holds.  Knows nothing of stores and groups.
#![deny(missing_docs)]

mod builtin;
mod chain;
mod config;
mod counts;
mod program;
mod protocol;

use newsreel_service::Texts;

pub use builtin::{BODY_OCTETS_MIN, REMEMBERED_MAX};
pub use chain::Filters;
pub use config::{Fallback, FilterConfig, FilterRule};
pub use program::WAITING_MAX;
pub use protocol::{ANSWER_OCTETS_MAX, Answer, GREETING, parse_answer};

/// What filters say: texts of refusals and names of classes.
static SAID: Texts = Texts::new();
