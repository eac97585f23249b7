//! Opening a connection: TLS, greeting, mode and compression, before anything is measured.
//!
//! Invariant: a connection handed out has said what was asked of it and has nothing under way.
//! Blocks, each step with a time limit.

use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use newsreel_host::{Clock as _, RealClock};

use super::channel::Channel;
use super::incoming::{Got, Incoming};
use super::script::code;
use crate::error::Error;

/// Opening a connection may take so long, and so may each status line, and each piece of a block.
const STEP: Duration = Duration::from_secs(30);

/// A blocking connection with its input.
#[derive(Debug)]
pub(crate) struct Opened {
    channel: Channel,
    incoming: Incoming,
    server: SocketAddr,
    step: Duration,
    clock: RealClock,
}

impl Opened {
    /// Connects, in TLS if that is wanted, and reads the greeting.
    pub(crate) fn open(server: SocketAddr, is_secure: bool) -> Result<Self, Error> {
        let stream = TcpStream::connect_timeout(&server, STEP);
        let stream = stream.map_err(|source| Error::Connect { server, source })?;
        Self::over(stream, server, is_secure)
    }

    /// The same over a connection that is made already.
    pub(crate) fn over(
        stream: TcpStream,
        server: SocketAddr,
        is_secure: bool,
    ) -> Result<Self, Error> {
        Self::within(STEP, stream, server, is_secure)
    }

    /// The same with a time limit for each step.
    fn within(
        step: Duration,
        stream: TcpStream,
        server: SocketAddr,
        is_secure: bool,
    ) -> Result<Self, Error> {
        let prepare = || -> io::Result<Channel> {
            stream.set_nodelay(true)?;
            stream.set_read_timeout(Some(step))?;
            stream.set_write_timeout(Some(step))?;
            let mut channel = Channel::new(stream);
            if is_secure {
                channel.secure()?;
            }
            Ok(channel)
        };
        let channel = prepare().map_err(|source| Error::Connect { server, source })?;
        let mut opened = Self {
            channel,
            incoming: Incoming::new(),
            server,
            step,
            clock: RealClock::new(),
        };
        opened.expect("the greeting", &[200, 201])?;
        Ok(opened)
    }

    /// Sends octets as they are.
    pub(crate) fn send(&mut self, octets: &[u8]) -> Result<(), Error> {
        let sent = self.channel.write_all(octets);
        let sent = sent.and_then(|()| self.channel.flush());
        sent.map_err(|source| self.broken("what was sent", source))
    }

    /// The socket once more, of a connection that is plain: for a thread that sends beside what is read here.
    pub(crate) fn sender(&self) -> Result<TcpStream, Error> {
        let stream = self.channel.stream().try_clone();
        stream.map_err(|source| self.broken("sending beside reading", source))
    }

    /// Sends `command` and wants one of `codes` back; the whole status line.
    pub(crate) fn command(&mut self, command: &str, codes: &[u16]) -> Result<Vec<u8>, Error> {
        let line = format!("{command}\r\n");
        let sent = self.channel.write_all(line.as_bytes());
        sent.and_then(|()| self.channel.flush())
            .map_err(|source| self.broken(command, source))?;
        self.expect(command, codes)
    }

    /// Sends `command` and gives the block that follows one of `codes`, without its last line.
    pub(crate) fn block(&mut self, command: &str, codes: &[u16]) -> Result<Vec<u8>, Error> {
        self.command(command, codes)?;
        self.rest(command)
    }

    /// The block that follows a status line, without its last line.
    pub(crate) fn rest(&mut self, asked: &str) -> Result<Vec<u8>, Error> {
        loop {
            if let Some(span) = self.incoming.whole_block() {
                return Ok(self.incoming.get(span).to_vec());
            }
            self.read(asked)?;
        }
    }

    /// Acknowledges at once what comes next, so that a server which sends an answer in two pieces does not wait between them.
    pub(crate) fn quick_ack(&self) {
        // Only a hint to the kernel: where it is refused, the answer is waited for as usual.
        let _ = rustix::net::sockopt::set_tcp_quickack(self.channel.stream(), true);
    }

    /// Whom it is connected to.
    pub(crate) const fn server(&self) -> SocketAddr {
        self.server
    }

    /// Has everything compressed from here on (RFC 8054).
    pub(crate) fn compress(&mut self) -> Result<(), Error> {
        self.command("COMPRESS DEFLATE", &[206])?;
        self.channel.compress();
        Ok(())
    }

    /// Makes it ready for the event loop.
    pub(crate) fn into_parts(mut self) -> Result<(Channel, Incoming), Error> {
        let switched = self.channel.no_longer_blocks();
        switched.map_err(|source| self.broken("switching to non-blocking", source))?;
        Ok((self.channel, self.incoming))
    }

    /// The next status line, which must have one of these codes.
    pub(crate) fn expect(&mut self, asked: &str, codes: &[u16]) -> Result<Vec<u8>, Error> {
        let until = self.clock.monotonic() + self.step;
        loop {
            let found = self.incoming.line();
            let line = found.map_err(|_| self.broken(asked, io::ErrorKind::InvalidData.into()))?;
            if let Some(span) = line {
                let line = self.incoming.get(span).to_vec();
                if code(&line).is_some_and(|code| codes.contains(&code)) {
                    return Ok(line);
                }
                return Err(Error::Refused {
                    server: self.server,
                    asked: asked.to_owned(),
                    reply: String::from_utf8_lossy(&line).into_owned(),
                });
            }
            // However it drips in.
            if self.clock.monotonic() >= until {
                return Err(self.broken(asked, io::ErrorKind::TimedOut.into()));
            }
            self.read(asked)?;
        }
    }

    /// Reads something, within the time limit.
    fn read(&mut self, asked: &str) -> Result<(), Error> {
        let before = self.incoming.waiting();
        match self.incoming.read(&mut self.channel) {
            Ok(Got::End) => Err(self.broken(asked, io::ErrorKind::UnexpectedEof.into())),
            // A blocking socket "would block" when its time limit has passed.
            Ok(Got::All) if self.incoming.waiting() == before => {
                Err(self.broken(asked, io::ErrorKind::TimedOut.into()))
            }
            Ok(_) => Ok(()),
            Err(source) => Err(self.broken(asked, source)),
        }
    }

    fn broken(&self, asked: &str, source: io::Error) -> Error {
        Error::Broken {
            server: self.server,
            asked: asked.to_owned(),
            source,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::sync::mpsc;

    use super::*;

    /// What comes of opening a connection to a server that begins its greeting, and drips on without an end or goes silent until it is
    /// given up.
    fn greeted(drips: bool) -> Result<Opened, io::ErrorKind> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        let (given_up, is_given_up) = mpsc::sync_channel::<()>(1);
        let serving = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(b"200 he").unwrap();
            let pause = Duration::from_millis(if drips { 5 } else { 10_000 });
            for _ in 0..if drips { 2000 } else { 1 } {
                if is_given_up.recv_timeout(pause) != Err(mpsc::RecvTimeoutError::Timeout) {
                    return;
                }
                let _ = stream.write_all(b"l");
            }
            let _ = stream.write_all(b"o\r\n");
        });
        let stream = TcpStream::connect(server).unwrap();
        let opened = Opened::within(Duration::from_millis(50), stream, server, false);
        drop(given_up);
        serving.join().unwrap();
        opened.map_err(|error| match error {
            Error::Broken { source, .. } => source.kind(),
            other => panic!("{other}"),
        })
    }

    /// One that went silent in the middle of a line was waited for without end.
    #[test]
    fn a_server_that_does_not_end_its_line_is_given_up() {
        for drips in [false, true] {
            let opened = greeted(drips).map(drop);
            assert_eq!(opened, Err(io::ErrorKind::TimedOut), "{drips}");
        }
    }
}
