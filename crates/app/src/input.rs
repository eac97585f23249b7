//! Files that the user names: read whole, within a limit, from a pipe or the standard input as well.
//!
//! They are not the spool's, so a pipe is waited for; a server that reads a file again must not come here.

use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use newsreel_host::{Error, ErrorKind, Op};
use tokio::signal::unix::SignalKind;

/// The standard input, in a file's place.
pub(crate) const STANDARD_INPUT: &str = "-";

/// What a file has.
#[derive(Debug)]
pub(crate) struct Input {
    /// All of it.
    pub(crate) octets: Vec<u8>,
    /// Whether it came from a pipe, a device or the standard input, and cannot be read again.
    pub(crate) is_stream: bool,
}

/// Opens a file to be read as it comes, however long it is; whether it can be read again.
#[expect(
    clippy::disallowed_methods,
    reason = "it is read from where the user says, not from a spool"
)]
pub(crate) fn open(path: &Path) -> Result<(Box<dyn Read + Send>, bool)> {
    if path == Path::new(STANDARD_INPUT) {
        return Ok((reads(Path::new("the standard input"), io::stdin()), false));
    }
    let opened = std::fs::File::open(path).and_then(|file| {
        let is_file = file.metadata()?.is_file();
        Ok((file, is_file))
    });
    let (file, is_file) = opened.map_err(|error| Unread::new(path, error))?;
    Ok((reads(path, file), is_file))
}

/// The system does not let it be read: nothing follows for what is in it.
#[derive(Debug)]
pub(crate) struct Unread(Error);

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Unread {}

impl Unread {
    fn new(path: &Path, error: io::Error) -> Self {
        Self(Error::from_io(Op::Read, path, error))
    }

    /// Whether an error of a reader is one, however the reader unpacks what it reads.
    pub(crate) fn is(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.is::<Self>())
    }

    /// The one that an error has come of.
    pub(crate) fn of(error: &anyhow::Error) -> Option<&Self> {
        error.chain().find_map(|cause| {
            let within = || cause.downcast_ref::<io::Error>()?.get_ref()?.downcast_ref();
            cause.downcast_ref().or_else(within)
        })
    }
}

/// A reader whose errors say what was read.
struct Reads<R> {
    reader: R,
    path: PathBuf,
}

impl<R: Read> Read for Reads<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buf);
        read.map_err(|error| io::Error::new(error.kind(), Unread::new(&self.path, error)))
    }
}

fn reads(path: &Path, reader: impl Read + Send + 'static) -> Box<dyn Read + Send> {
    let path = path.to_owned();
    Box::new(Reads { reader, path })
}

/// The same of a file that somebody may remove; none: it is not there.
pub(crate) fn open_if_there(path: &Path) -> Result<Option<Box<dyn Read + Send>>> {
    match open(path) {
        Ok((file, _)) => Ok(Some(file)),
        Err(error) => match Unread::of(&error).map(|unread| unread.0.kind()) {
            Some(ErrorKind::NotFound) => Ok(None),
            _ => Err(error),
        },
    }
}

/// Has a limit on the size of files be an error of writing, and not the end of the process.
pub(crate) fn limits_are_errors() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_io().build()?;
    let _entered = runtime.enter();
    // The signal stays taken when nobody waits for it any more.
    let number = newsreel_host::process::file_size_signal();
    drop(tokio::signal::unix::signal(SignalKind::from_raw(number))?);
    Ok(())
}

/// Reads a file of at most so many octets.
#[expect(
    clippy::disallowed_methods,
    reason = "it is read from where the user says, not from a spool"
)]
pub(crate) fn read(path: &Path, octets_max: usize) -> Result<Input> {
    let mut octets = Vec::new();
    let limit = octets_max as u64 + 1;
    let is_stdin = path == Path::new(STANDARD_INPUT);
    let is_file = if is_stdin {
        let read = io::stdin().lock().take(limit).read_to_end(&mut octets);
        read.map(|_| false)
    } else {
        std::fs::File::open(path).and_then(|file| {
            let is_file = file.metadata()?.is_file();
            file.take(limit).read_to_end(&mut octets)?;
            Ok(is_file)
        })
    };
    let is_file = is_file.map_err(|error| Error::from_io(Op::Read, path, error))?;
    if octets.len() > octets_max {
        bail!(
            "cannot read {}: it is longer than {octets_max} octets",
            path.display()
        );
    }
    Ok(Input {
        octets,
        is_stream: !is_file,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// What can be read of a file up to a bad sector.
    pub(crate) fn ends_unread(path: &Path, octets: &[u8]) -> impl Read {
        struct Bad;
        impl Read for Bad {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::from_raw_os_error(5))
            }
        }
        reads(path, io::Cursor::new(octets.to_vec()).chain(Bad))
    }
}
