//! Asks a running server through its control socket.
//!
//! Blocking, one request at a time; a server that is not there is not an error but `None`.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::request::Request;
use super::{Progress, REPLY_OCTETS_MAX, Reply, short_path, socket_path};

/// A connection to a running server.
#[derive(Debug)]
pub(crate) struct Client {
    stream: BufReader<UnixStream>,
}

impl Client {
    /// Connects to the server of this spool, if one is running.
    pub(crate) fn connect(spool: &Path) -> Result<Option<Self>> {
        let path = socket_path(spool);
        let (short, _folder) = match short_path(&path) {
            Ok(found) => found,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).context("cannot look for the server"),
        };
        match UnixStream::connect(short) {
            Ok(stream) => Ok(Some(Self {
                stream: BufReader::new(stream),
            })),
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::NotFound | ErrorKind::ConnectionRefused
                ) =>
            {
                Ok(None)
            }
            Err(error) => Err(error)
                .with_context(|| format!("cannot talk to the server at {}", path.display())),
        }
    }

    /// Whether the server answers: no when it has gone, and nothing is known when it has not answered after `patience`.
    pub(crate) fn is_alive(&mut self, patience: Duration) -> Result<Option<bool>> {
        self.stream.get_ref().set_read_timeout(Some(patience))?;
        let answer = self.ask(&Request::Status, &mut |_| {});
        self.stream.get_ref().set_read_timeout(None)?;
        let Err(error) = answer else {
            return Ok(Some(true));
        };
        let kind = error
            .downcast_ref::<std::io::Error>()
            .map(std::io::Error::kind);
        let is_silent = matches!(kind, Some(ErrorKind::WouldBlock | ErrorKind::TimedOut));
        Ok((!is_silent).then_some(false))
    }

    /// Asks and waits for the answer.
    pub(crate) fn ask(
        &mut self,
        request: &Request,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Value> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        self.stream
            .get_mut()
            .write_all(&line)
            .context("the server has gone away")?;
        loop {
            line.clear();
            let mut limited = (&mut self.stream).take(REPLY_OCTETS_MAX);
            limited
                .read_until(b'\n', &mut line)
                .context("the server has gone away")?;
            if line.last() != Some(&b'\n') {
                bail!("the server ended the conversation without an answer");
            }
            match serde_json::from_slice(&line).context("the server's answer is not understood")? {
                Reply::Progress(at) => progress(at),
                Reply::Ok(value) => return Ok(value),
                Reply::Error(error) => bail!(error),
            }
        }
    }
}
