//! The log over a memory disk: what is written is read, what was synced survives, what was not is whole or gone.
//!
//! Every test checks records against what the test itself wrote, octet for octet; none looks at file contents.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod crash;
mod fault;
mod mutate;
mod read;
mod retain;
mod rot;
mod strange;
mod support;
