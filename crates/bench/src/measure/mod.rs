//! What is measured beside the replies: processes and progress. Contents only.

pub(crate) mod calls;
pub(crate) mod machine;
pub(crate) mod process;
pub(crate) mod progress;
