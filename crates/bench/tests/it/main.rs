//! Whole runs: every pass against the do-nothing server, in one process.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod compare;
mod passes;
