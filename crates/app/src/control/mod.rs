//! The control socket: how a command asks a running server, one JSON object a line in each direction.
//!
//! The same table of requests answers on the socket and offline, so both forms print the same.  Only the server's own
//! user and root may talk to it.

pub(crate) mod answers;
pub(crate) mod cache_request;
pub(crate) mod client;
mod groups;
pub(crate) mod request;
pub(crate) mod server;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The socket's name in the spool.
const SOCKET: &str = "control.sock";

/// The longest request, octets.
pub(crate) const REQUEST_OCTETS_MAX: u64 = 4 << 20;

/// The longest answer, octets: a list of a million groups.
pub(crate) const REPLY_OCTETS_MAX: u64 = 1 << 30;

/// What comes back: any number of progress lines, then one of the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Reply {
    /// How far a long request is.
    Progress(Progress),
    /// The answer.
    Ok(Value),
    /// Why there is none.
    Error(String),
}

/// How far something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Progress {
    /// Done so far.
    pub(crate) done: u64,
    /// In all, as far as known.
    pub(crate) total: u64,
}

/// The socket's path.
fn socket_path(spool: &Path) -> PathBuf {
    spool.join(SOCKET)
}

/// A path that fits into a socket address: a long one goes by an open directory.
///
/// A socket address holds 108 octets.  The directory stays open as long as the second part lives.
#[expect(
    clippy::disallowed_methods,
    reason = "a directory is opened for its number only"
)]
fn short_path(path: &Path) -> std::io::Result<(PathBuf, Option<std::fs::File>)> {
    use std::os::fd::AsRawFd as _;
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok((path.to_path_buf(), None));
    };
    if path.as_os_str().len() < 100 {
        return Ok((path.to_path_buf(), None));
    }
    let folder = std::fs::File::open(folder)?;
    let number = folder.as_raw_fd();
    Ok((
        Path::new("/proc/self/fd")
            .join(number.to_string())
            .join(name),
        Some(folder),
    ))
}
