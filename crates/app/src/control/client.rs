//! Asks a running server through its control socket.
//!
//! Blocking, one request at a time; a server that is not there is not an error but `None`.  An answer may take long, but
//! one that stays out is waited for only while the server answers others.

use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::request::Request;
use super::{Progress, REPLY_OCTETS_MAX, Reply, short_path, socket_path};

/// After so long without a word it is asked whether the server is still at work, and for so long it may say nothing to
/// that.
const SILENCE: Duration = Duration::from_secs(10);

/// A connection to a running server.
#[derive(Debug)]
pub(crate) struct Client {
    stream: BufReader<UnixStream>,
    spool: PathBuf,
    silence: Duration,
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
                spool: spool.to_owned(),
                silence: SILENCE,
            })),
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::NotFound | ErrorKind::ConnectionRefused
                ) =>
            {
                Ok(None)
            }
            Err(error) => {
                let why = match error.kind() {
                    ErrorKind::PermissionDenied => format!("; {}", crate::access::ONLY_THE_OWNER),
                    ErrorKind::NotADirectory => "; a spool is a directory".to_owned(),
                    _ => String::new(),
                };
                Err(error).with_context(|| {
                    format!("cannot talk to the server at {}{why}", path.display())
                })
            }
        }
    }

    /// Whether the server answers: no when it has gone, and nothing is known when it has not answered after `patience`.
    pub(crate) fn is_alive(&mut self, patience: Duration) -> Result<Option<bool>> {
        self.set_patience(patience)?;
        let mut is_silent = false;
        let mut give_up = || {
            is_silent = true;
            bail!("nothing came")
        };
        match self.converse(&Request::Status, &mut |_| {}, &mut give_up) {
            Ok(_) => Ok(Some(true)),
            Err(_) => Ok((!is_silent).then_some(false)),
        }
    }

    /// Asks and waits for the answer, as long as the server is at work.
    pub(crate) fn ask(
        &mut self,
        request: &Request,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Value> {
        let (spool, silence) = (self.spool.clone(), self.silence);
        let mut look = || {
            let alive = match Self::connect(&spool)? {
                Some(mut other) => other.is_alive(silence)?,
                None => Some(false),
            };
            match alive {
                Some(true) => Ok(()),
                Some(false) => bail!("the server has gone away"),
                None => bail!(
                    "the server of {} does not answer: its process is stopped, or hangs, or as many programs as \
                     `server.control_connections_max` says ask it already; what was asked may still be done",
                    spool.display()
                ),
            }
        };
        self.set_patience(silence)?;
        self.converse(request, progress, &mut look)
    }

    fn set_patience(&self, patience: Duration) -> Result<()> {
        let stream = self.stream.get_ref();
        stream.set_read_timeout(Some(patience))?;
        Ok(stream.set_write_timeout(Some(patience))?)
    }

    /// Asks; `silent` is called whenever nothing has come or gone for a while, and says with an error that this is the
    /// end.
    fn converse(
        &mut self,
        request: &Request,
        progress: &mut dyn FnMut(Progress),
        silent: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Value> {
        let mut line = serde_json::to_vec(request)?;
        line.push(b'\n');
        let mut left = line.as_slice();
        while !left.is_empty() {
            match self.stream.get_mut().write(left) {
                Ok(sent) => left = left.get(sent..).unwrap_or_default(),
                Err(error) if is_silence(&error) => silent()?,
                Err(error) => return Err(error).context("the server has gone away"),
            }
        }
        loop {
            line.clear();
            loop {
                let room = REPLY_OCTETS_MAX - line.len() as u64;
                // What has come before a silence stays in the line.
                match (&mut self.stream).take(room).read_until(b'\n', &mut line) {
                    Ok(_) => break,
                    Err(error) if is_silence(&error) => silent()?,
                    Err(error) => return Err(error).context("the server has gone away"),
                }
            }
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

fn is_silence(error: &std::io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use serde_json::json;

    use super::super::SOCKET;
    use super::*;

    /// A server that keeps `silent` connections waiting and answers the later ones at once.
    fn ask(silent: usize) -> Result<Value> {
        let spool = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(spool.path().join(SOCKET)).unwrap();
        let mut client = Client::connect(spool.path()).unwrap().unwrap();
        client.silence = Duration::from_millis(50);
        let answering = std::thread::spawn(move || {
            let mut waiting: Vec<UnixStream> = Vec::new();
            let asked = || {
                let (stream, _) = listener.accept().unwrap();
                let mut line = String::new();
                BufReader::new(&stream).read_line(&mut line).unwrap();
                stream
            };
            for place in 0..=silent {
                let mut stream = asked();
                if place < silent {
                    waiting.push(stream);
                    continue;
                }
                stream.write_all(b"{\"ok\":null}\n").unwrap();
                // The first one gets its answer in two pieces, with a silence between them.
                if let Some(first) = waiting.first_mut() {
                    first.write_all(b"{\"ok\":").unwrap();
                    asked().write_all(b"{\"ok\":null}\n").unwrap();
                    first.write_all(b"7}\n").unwrap();
                }
            }
        });
        let answer = client.ask(&Request::Status, &mut |_| {});
        if answer.is_ok() {
            answering.join().unwrap();
        }
        answer
    }

    /// A server whose process is stopped takes connections, and never says a word.
    #[test]
    fn a_server_is_waited_for_only_while_it_answers_others() {
        assert_eq!(ask(1).unwrap(), json!(7));
        let error = ask(3).unwrap_err().to_string();
        assert!(
            error.contains("does not answer: its process is stopped")
                && error.contains("server.control_connections_max"),
            "{error}"
        );
    }
}
