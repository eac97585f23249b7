//! The binary as users run it: real processes, real sockets, a spool in a temporary directory.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod access;
mod adding;
mod bench;
mod bench_storage;
mod block_device;
mod cancel;
mod cli;
mod client;
mod control;
mod control_messages;
mod corpus;
mod docs;
mod edge_cases;
mod expire;
mod explain;
mod failing_reads;
mod foreign;
mod formats;
mod fuzz;
mod groups;
mod kills;
mod lifecycle;
mod many_groups;
mod path;
mod posting;
mod reload;
mod retiring;
mod scale;
mod soak;
mod spool;
mod store_files;
mod store_tools;
mod tls;
mod transcripts;
mod usenetfs;
