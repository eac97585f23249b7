//! Sockets that whoever started the server made: systemd, or inetd.
//!
//! A listening one is served as if it had been bound here.  A connection is served alone, and then nothing more.

use std::os::fd::{AsFd, OwnedFd};

use socket2::{SockRef, Socket};

use crate::config::ListenConfig;
use crate::error::Error;

/// The usual port of TLS from the first octet on.
const TLS_PORT: u16 = 563;

/// A socket.
#[derive(Debug)]
pub(crate) enum Kind {
    Listening(std::net::TcpListener),
    Connected(std::net::TcpStream),
}

/// The sockets.
#[derive(Debug, Default)]
pub struct Inherited {
    /// Each with whether TLS is spoken there from the first octet on.
    pub(crate) sockets: Vec<(Kind, bool)>,
}

impl Inherited {
    /// Takes one more, which is called `what` in messages.  TLS is spoken from the first octet on where its name is `nntps`, and at
    /// port 563 and the addresses where the configuration says so.
    ///
    /// # Errors
    /// When it is no TCP socket, or neither listens nor is connected.
    pub fn take(
        &mut self,
        fd: OwnedFd,
        what: &str,
        name: Option<&str>,
        config: &ListenConfig,
    ) -> Result<(), Error> {
        let wrong = |why: String| Error::Inherited {
            what: what.to_owned(),
            why,
        };
        let socket = Socket::from(fd);
        let local = socket.local_addr().ok().and_then(|local| local.as_socket());
        let is_stream = socket.r#type().is_ok_and(|it| it == socket2::Type::STREAM);
        let Some(local) = local.filter(|_| is_stream) else {
            return Err(wrong("it is no TCP socket".to_owned()));
        };
        let is_tls = match name {
            Some("nntps") => true,
            _ => local.port() == TLS_PORT || config.tls_addresses.contains(&local),
        };
        let listens = socket.is_listener();
        let listens = listens.map_err(|error| wrong(error.to_string()))?;
        if !listens && socket.peer_addr().is_err() {
            return Err(wrong("it neither listens nor is connected".to_owned()));
        }
        let nonblocking = socket.set_nonblocking(true);
        nonblocking.map_err(|error| wrong(error.to_string()))?;
        let kind = match listens {
            true => Kind::Listening(socket.into()),
            false => Kind::Connected(socket.into()),
        };
        self.sockets.push((kind, is_tls));
        Ok(())
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.sockets.is_empty()
    }
}

/// Whether something is a TCP or UDP socket, as the standard error is under inetd.
#[must_use]
pub fn is_of_internet(fd: &impl AsFd) -> bool {
    let local = SockRef::from(fd).local_addr();
    local.is_ok_and(|local| local.as_socket().is_some())
}
