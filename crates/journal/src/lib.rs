//! The log: one ordered, durable list of what happened.
