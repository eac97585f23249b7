//! The file system as programs see it, through a mount, and its core without one.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]
#![expect(clippy::print_stdout, reason = "a test that is skipped says why")]
#![expect(
    clippy::disallowed_methods,
    reason = "what is mounted is used as any program would use it"
)]

mod attributes;
mod calls;
mod converting;
mod files;
mod listing;
mod model;
mod names;
mod neighbours;
mod programs;
mod soak;
mod users;
mod world;
