//! What can go wrong with users.

use std::path::PathBuf;

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The machine.
    #[error(transparent)]
    Host(#[from] newsreel_host::Error),
    /// The file is none of ours, or damaged.
    #[error("{}, line {line}: {why}; restore it from a copy, or remove it and add the users anew", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where, counted from 1.
        line: usize,
        /// What is wrong there.
        why: &'static str,
    },
    /// There is such a user already.
    #[error("there is a user {0} already; `newsreel user passwd` gives a new password")]
    Known(String),
    /// There is no such user.
    #[error("there is no user {0}; `newsreel user list` shows who there is")]
    Unknown(String),
    /// A name that no user or group can have.
    #[error(
        "{0:?} is no name of a user or group: give at most 64 octets without spaces, commas, colons or controls, and no @ in front"
    )]
    BadName(String),
    /// A password that cannot be taken.
    #[error(
        "the password is {0}: give 8 to 256 octets without spaces or controls, as commands of NNTP have no others"
    )]
    BadPassword(&'static str),
    /// The hash could not be made.
    #[error("the password's hash cannot be made: {0}")]
    Hash(String),
    /// The file is as large as it may be.
    #[error("there are as many users as the file may have octets: {0}")]
    Full(usize),
}
