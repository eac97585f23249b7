//! Sessions over the memory service: transcripts, and what transcripts cannot say.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod behaviour;
mod driver;
mod properties;
mod selected;
mod states;
mod table;
mod tls;
mod transcripts;
