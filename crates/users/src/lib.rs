//! The built-in store of users: their names, hashes of their passwords, and the groups they are in.
//!
//! It is one small file, looked at for each question, read whole when it was changed and replaced whole by each change, so a change
//! holds at once and there is nothing to reload.  A password is kept as its argon2id hash, and where SCRAM is wanted as its keys.  Whether a name is known cannot be told from an
//! answer or from the time it takes.  Knows nothing of NNTP.
#![deny(missing_docs)]

mod error;
mod file;
pub mod fuzz;
mod password;
mod scram;
mod store;

pub use error::Error;
pub use file::{FILE_OCTETS_MAX, NAME_OCTETS_MAX, User, is_name};
pub use password::PASSWORD_OCTETS_MAX;
pub use scram::ScramKeys;
pub use store::{Change, Users};

/// The file's name in a spool.
pub const FILE: &str = "users";
