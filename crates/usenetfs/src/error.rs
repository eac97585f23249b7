//! The one error of this crate: why a directory is not mounted, or a mount ended.
//!
//! What single operations answer are the kernel's numbers (`newsreel_host::node::Errno`), not this.

use std::io;
use std::path::PathBuf;

/// This crate's result.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The machine said no.
    #[error(transparent)]
    Host(#[from] newsreel_host::Error),
    /// The directory's own mark is not understood.
    #[error(transparent)]
    Layout(#[from] newsreel_layout::Error),
    /// Another server, or a conversion, uses the directory.
    #[error("{} is in use by another mount or a conversion{}; end that first", path.display(), of_process(*pid))]
    InUse {
        /// The directory.
        path: PathBuf,
        /// The process that has locked it, where the kernel tells.
        pid: Option<u32>,
    },
    /// Its file system cannot find an inode again.
    #[error(
        "{}: its file system gives no handles for its files ({source}), so it cannot be served",
        path.display()
    )]
    NoHandles {
        /// The directory.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// The mount itself failed.
    #[error("cannot mount {} on {}: {source}", lower.display(), at.display())]
    Mount {
        /// What was to be mounted.
        lower: PathBuf,
        /// Where.
        at: PathBuf,
        /// What was said.
        source: io::Error,
    },
    /// The kernel's requests could not be read any more.
    #[error("the mount on {} broke: {source}", at.display())]
    Broken {
        /// Where.
        at: PathBuf,
        /// What was said.
        source: io::Error,
    },
}

fn of_process(pid: Option<u32>) -> String {
    pid.map_or_else(String::new, |pid| format!(" (process {pid})"))
}
