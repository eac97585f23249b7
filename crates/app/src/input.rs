//! Files that the user names: read whole, within a limit, from a pipe or the standard input as well.
//!
//! They are not the spool's, so a pipe is waited for; a server that reads a file again must not come here.

use std::io::{self, Read};
use std::path::Path;

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
        return Ok((Box::new(io::stdin()), false));
    }
    let opened = std::fs::File::open(path).and_then(|file| {
        let is_file = file.metadata()?.is_file();
        Ok((file, is_file))
    });
    let (file, is_file) = opened.map_err(|error| Error::from_io(Op::Read, path, error))?;
    Ok((Box::new(file), is_file))
}

/// The same of a file that somebody may remove; none: it is not there.
pub(crate) fn open_if_there(path: &Path) -> Result<Option<Box<dyn Read + Send>>> {
    match open(path) {
        Ok((file, _)) => Ok(Some(file)),
        Err(error) => match error.downcast_ref::<Error>().map(Error::kind) {
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
