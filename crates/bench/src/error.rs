//! What can keep a benchmark from being run; what a server answers wrongly is a result, not an error.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why a benchmark could not be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nobody listens there, or not for us.
    #[error("cannot connect to {server}: {source}{}", running(source))]
    Connect {
        /// The server's address.
        server: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The server answered a command of the preparation with another code than was needed.
    #[error("{server} answered {asked} with \"{reply}\"; it must let this client feed or read")]
    Refused {
        /// The server's address.
        server: SocketAddr,
        /// What was sent.
        asked: String,
        /// The whole status line.
        reply: String,
    },
    /// The connection failed during the preparation.
    #[error("the connection to {server} failed during {asked}: {source}")]
    Broken {
        /// The server's address.
        server: SocketAddr,
        /// What was being done.
        asked: String,
        /// What the system said.
        source: io::Error,
    },
    /// The server has no groups with articles to read.
    #[error("{server} has no group with articles; feed it first")]
    NothingToRead {
        /// The server's address.
        server: SocketAddr,
    },
    /// There is nothing to feed.
    #[error(
        "there are no articles to feed ({left_out} were left out: without a message-id, or with one seen before); ask \
         for at least one, from files that hold some"
    )]
    NothingToFeed {
        /// Articles that were found and cannot be used.
        left_out: u64,
    },
    /// A session ended before all its batches were answered.
    #[error("the session ended when {answered} of {batches} batches were answered: {complaints}")]
    Unanswered {
        /// Whole batches.
        answered: u64,
        /// Those that were sent.
        batches: u64,
        /// What was wrong.
        complaints: String,
    },
    /// An argument makes no sense.
    #[error("{name} is {value}: {why}")]
    Argument {
        /// Which argument.
        name: &'static str,
        /// What it was.
        value: String,
        /// What is wrong with it, and what would be right.
        why: String,
    },
    /// A file of the corpus or a list could not be read or written.
    #[error(transparent)]
    Disk(#[from] newsreel_host::Error),
    /// A batch is not what `rnews` takes.
    #[error("{path} at octet {at}: {why}")]
    Batch {
        /// The file.
        path: PathBuf,
        /// Where in the (unpacked) batch.
        at: u64,
        /// What is wrong.
        why: newsreel_wire::BatchDamage,
    },
    /// A compressed file could not be unpacked, or a corpus not be written.
    #[error("{what}: {source}")]
    Stream {
        /// Which stream.
        what: String,
        /// What the system or the decoder said.
        source: io::Error,
    },
    /// The event loop could not be set up.
    #[error("the event loop failed: {0}{hint}", hint = hint(.0))]
    EventLoop(io::Error),
    /// A worker thread ended before its work.
    #[error("a worker of the benchmark ended before its work")]
    WorkerLost,
    /// This machine has not got what it takes: a program, a right, a device, a part of the kernel.  What goes wrong where all is
    /// there is none of these.
    #[error("this machine lacks {what}: {why}")]
    Missing {
        /// What is not there.
        what: String,
        /// How that is known, and what would help.
        why: String,
    },
    /// A program that the comparison needs could not be run, or failed.
    #[error("{program}: {why}")]
    Program {
        /// The program.
        program: String,
        /// What happened.
        why: String,
    },
}

impl Error {
    /// Something is not there.
    pub(crate) fn missing(what: &str, why: impl Into<String>) -> Self {
        Self::Missing {
            what: what.to_owned(),
            why: why.into(),
        }
    }
}

fn running(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::ConnectionRefused => "; is the server running?",
        _ => "",
    }
}

/// What may help.
fn hint(error: &io::Error) -> &'static str {
    const TOO_MANY_FILES: [i32; 2] = [24, 23];
    match error.raw_os_error() {
        Some(number) if TOO_MANY_FILES.contains(&number) => {
            "; more open files have to be allowed (ulimit -n)"
        }
        _ => "",
    }
}
