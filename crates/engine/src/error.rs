//! What can go wrong in the engine, told to the person who reads it.

use std::path::{Path, PathBuf};

use newsreel_host::{Error as HostError, ErrorKind};
use newsreel_wire::Sequence;

/// An error of the engine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another process has the spool.
    #[error(
        "the spool {} is in use by {}: stop that server, or give another --spool",
        path.display(),
        pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
    )]
    Locked {
        /// The spool.
        path: PathBuf,
        /// Who holds it.
        pid: Option<u32>,
    },
    /// The log is not there, or not its beginning, beside views that were made from it.
    #[error(
        "the log of this spool, {}, is lost or damaged: it does not hold the key of the spool's hashes; nothing was \
         touched; restore it from a copy, an older one will do",
        path.display()
    )]
    LogLost {
        /// The log's directory.
        path: PathBuf,
    },
    /// There is no log and no checkpoint, but articles.
    #[error(
        "the log of this spool, {}, is gone, and {} has no checkpoint: the views are gone, too, or none had been made yet. Nothing \
         tells which groups there were and which numbers were given; nothing was touched; restore the log from a copy, and the \
         views if there were any, or begin anew with another spool: `newsreel store attach` takes the articles of this one in",
        path.display(),
        views.display()
    )]
    NothingButArticles {
        /// The log's directory.
        path: PathBuf,
        /// The views' directory.
        views: PathBuf,
    },
    /// The spool was made by a newer newsreel, or is none.
    #[error("{} is no spool of this version: {why}", path.display())]
    NotASpool {
        /// The file that says so.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The views are older than what is left of the log.
    #[error(
        "the views in {} hold everything before sequence {wanted}, but what is left of the log begins at {oldest}: \
         their manifest is missing, an old one was put back, or segments of the log are lost; restore from a copy what \
         is missing, all of the spool if in doubt",
        path.display()
    )]
    ViewsTooOld {
        /// The views' directory.
        path: PathBuf,
        /// What they need next.
        wanted: Sequence,
        /// The oldest that is there.
        oldest: Sequence,
    },
    /// A record of the log cannot be read.
    #[error(
        "log record {sequence:?} (kind {kind}) is damaged: {what}; run `newsreel check` to see what it concerns"
    )]
    Record {
        /// Its place in the log.
        sequence: Sequence,
        /// Its kind octet.
        kind: u8,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The open commit has no room for what is asked.
    #[error("the log's open frame is full; try again")]
    FrameFull,
    /// Articles were moved since they were looked up.
    #[error("articles were moved meanwhile; try again")]
    Moved,
    /// There is no place for an article.
    #[error("an article cannot be placed: {0}")]
    Place(newsreel_store::PlaceError),
    /// The storage layer failed.
    #[error(transparent)]
    Store(#[from] newsreel_store::Error),
    /// The log failed.
    #[error(transparent)]
    Journal(#[from] newsreel_journal::Error),
    /// A view failed.
    #[error(transparent)]
    Index(#[from] newsreel_index::Error),
    /// The machine failed.
    #[error(transparent)]
    Host(#[from] newsreel_host::Error),
    /// A thread of the engine could not be started.
    #[error("cannot start the {name} thread: {source}")]
    Thread {
        /// Which one.
        name: &'static str,
        /// Why.
        source: std::io::Error,
    },
    /// The engine is stopping or has failed; nothing can be changed any more.
    #[error("the server is stopping; nothing was changed")]
    Stopping,
    /// The log cannot be written, so nothing new is taken until the cause is mended.
    #[error("the log cannot be written ({why}); nothing was changed")]
    LogFailed {
        /// What failed.
        why: String,
    },
    /// A setting that cannot be used.
    #[error("{0}")]
    Setting(String),
    /// An article is there and cannot be read.
    #[error(transparent)]
    Read(#[from] newsreel_store::ReadError),
    /// A request that makes no sense.
    #[error("{0}")]
    Request(String),
    /// A request about groups that cannot be done.
    #[error("{0}")]
    Group(String),
}

impl Error {
    /// The file that is not there, if that is what is wrong.
    pub(crate) fn missing(&self) -> Option<&Path> {
        let error: &HostError = match self {
            Self::Host(error)
            | Self::Store(newsreel_store::Error::Host(error))
            | Self::Journal(newsreel_journal::Error::Disk(error))
            | Self::Index(newsreel_index::Error::Host(error)) => error,
            _ => return None,
        };
        (error.kind() == ErrorKind::NotFound).then(|| error.path())
    }
}
