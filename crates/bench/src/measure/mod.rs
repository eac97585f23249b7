//! What is measured beside the replies: processes and progress. Contents only.

pub(crate) mod process;
pub(crate) mod progress;
