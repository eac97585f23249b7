//! From nothing to a connection that is ready for commands: greeting, STARTTLS, MODE READER, login, compression.
//!
//! The order is the RFCs': nothing is said before TLS that has to be believed, a password goes over TLS unless it may go in
//! clear, and compression begins last (RFC 8054 section 2.2.2).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout_at};

use super::capabilities::{CAPABILITIES_OCTETS_MAX, Capabilities};
use super::connection::Client;
use super::error::{ClientError, Fault};
use super::remote::{Login, Remote, Security};
use super::socket::Socket;
use crate::stream::Stream;

impl Client<Socket> {
    /// Connects to a server.
    ///
    /// # Errors
    /// When it cannot be reached, does not let us in, or is not ready in time.
    pub async fn connect(remote: &Remote) -> Result<Self, ClientError> {
        let until = Instant::now() + remote.times.connect;
        let socket = Socket::connect(remote, until).await;
        let socket = socket.map_err(|fault| ClientError {
            server: remote.name().into(),
            doing: "connecting",
            fault,
        })?;
        let reached_in = socket.reached_in;
        let mut client = Self::open_until(socket, remote, until).await?;
        client.reached_in = reached_in;
        Ok(client)
    }
}

impl<Io: AsyncRead + AsyncWrite + Unpin> Client<Io> {
    /// Begins a conversation on a connection that is made.
    ///
    /// # Errors
    /// When the server does not let us in, or is not ready in time.
    pub async fn open(io: Io, remote: &Remote) -> Result<Self, ClientError> {
        let until = Instant::now() + remote.times.connect;
        Self::open_until(io, remote, until).await
    }

    async fn open_until(io: Io, remote: &Remote, until: Instant) -> Result<Self, ClientError> {
        let mut client = Self::new(Stream::Plain(io), remote);
        if let Security::Implicit(trust) = &remote.security {
            client = client.secured(trust, until).await?;
        }
        let greeted = timeout_at(until, client.greeted(remote)).await;
        client = client.gone_on(greeted, remote).await?;
        if let Security::Starttls(trust) = &remote.security {
            client = client.secured(trust, until).await?;
        }
        let entered = timeout_at(until, client.entered(remote)).await;
        client.gone_on(entered, remote).await
    }

    /// Goes on where a step went well.  Where it did not the server may count the connection until it has closed it.
    async fn gone_on(
        self,
        step: Result<Result<(), ClientError>, Elapsed>,
        remote: &Remote,
    ) -> Result<Self, ClientError> {
        let slow = Fault::Slow(remote.times.connect);
        let step = step.unwrap_or_else(|_| Err(self.error("opening the connection", slow)));
        match step {
            Ok(()) => Ok(self),
            Err(error) => {
                self.closed().await;
                Err(error)
            }
        }
    }

    /// All that is said before TLS.
    async fn greeted(&mut self, remote: &Remote) -> Result<(), ClientError> {
        self.owe();
        match self.reply("the greeting").await? {
            code @ (200 | 201) => self.may_post = code == 200,
            code => return Err(self.refused("the greeting", code)),
        }
        self.ask_capabilities().await?;
        match remote.security {
            Security::Starttls(_) => self.starttls().await,
            _ => Ok(()),
        }
    }

    /// All that is said behind it.
    async fn entered(&mut self, remote: &Remote) -> Result<(), ClientError> {
        if matches!(remote.security, Security::Starttls(_)) {
            self.ask_capabilities().await?;
        }
        let is_secure = !matches!(remote.security, Security::None);
        let login = remote.login.as_ref();
        let mut is_logged_in = false;
        if remote.reads && !self.capabilities.has("READER") {
            while let Some(wanted) = self.mode_reader().await? {
                // A server that wants the login first is asked once more after it.
                let Some(login) = login.filter(|_| !is_logged_in) else {
                    return Err(self.refused("MODE READER", wanted));
                };
                self.log_in(login, is_secure).await?;
                is_logged_in = true;
            }
            self.ask_capabilities().await?;
        }
        if let Some(login) = login.filter(|_| !is_logged_in) {
            self.log_in(login, is_secure).await?;
            self.ask_capabilities().await?;
        }
        if remote.compress && self.capabilities.has_with("COMPRESS", "DEFLATE") {
            self.compress().await?;
        }
        Ok(())
    }

    async fn ask_capabilities(&mut self) -> Result<(), ClientError> {
        const DOING: &str = "CAPABILITIES";
        self.command(&[b"CAPABILITIES"])?;
        let mut list = Capabilities::default();
        if self.reply(DOING).await? == 101 {
            list = Capabilities::listed();
            let mut octets = 0;
            while let Some(line) = self.line(DOING).await? {
                octets += line.len();
                if octets > CAPABILITIES_OCTETS_MAX {
                    return Err(self.error(DOING, Fault::TooLarge(CAPABILITIES_OCTETS_MAX)));
                }
                list.add(line);
            }
        }
        self.capabilities = list;
        Ok(())
    }

    async fn starttls(&mut self) -> Result<(), ClientError> {
        if self.capabilities.is_known() && !self.capabilities.has("STARTTLS") {
            return Err(self.error("STARTTLS", Fault::Missing("STARTTLS")));
        }
        self.command(&[b"STARTTLS"])?;
        match self.reply("STARTTLS").await? {
            382 => Ok(()),
            code => Err(self.refused("STARTTLS", code)),
        }
    }

    /// The code of a server that wants a login first.
    async fn mode_reader(&mut self) -> Result<Option<u16>, ClientError> {
        self.command(&[b"MODE", b"READER"])?;
        match self.reply("MODE READER").await? {
            code @ (200 | 201) => self.may_post = code == 200,
            code @ (480 | 450 | 502) => return Ok(Some(code)),
            // What does not know it needs no switching.
            500 | 501 | 503 if !self.capabilities.is_known() => {}
            code => return Err(self.refused("MODE READER", code)),
        }
        Ok(None)
    }

    async fn log_in(&mut self, login: &Login, is_secure: bool) -> Result<(), ClientError> {
        if !is_secure && !login.in_clear {
            return Err(self.error("the login", Fault::InClear));
        }
        let offers = |word| self.capabilities.has_with("AUTHINFO", word);
        let is_plain = !offers("USER") && self.capabilities.has_with("SASL", "PLAIN");
        if is_plain {
            return self.log_in_plain(login).await;
        }
        self.command(&[b"AUTHINFO", b"USER", login.user.as_bytes()])?;
        match self.reply("AUTHINFO USER").await? {
            281 => return Ok(()),
            381 => {}
            code => return Err(self.refused("AUTHINFO USER", code)),
        }
        self.command(&[b"AUTHINFO", b"PASS", login.password.as_bytes()])?;
        match self.reply("AUTHINFO PASS").await? {
            281 => Ok(()),
            code => Err(self.refused("AUTHINFO PASS", code)),
        }
    }

    /// SASL PLAIN (RFC 4616) with its one message in the command.
    async fn log_in_plain(&mut self, login: &Login) -> Result<(), ClientError> {
        let message = STANDARD.encode(format!("\0{}\0{}", login.user, login.password));
        self.command(&[b"AUTHINFO", b"SASL", b"PLAIN", message.as_bytes()])?;
        match self.reply("AUTHINFO SASL PLAIN").await? {
            281 => Ok(()),
            code => Err(self.refused("AUTHINFO SASL PLAIN", code)),
        }
    }

    async fn compress(&mut self) -> Result<(), ClientError> {
        self.command(&[b"COMPRESS", b"DEFLATE"])?;
        match self.reply("COMPRESS DEFLATE").await? {
            206 if self.incoming.is_empty() => self.io.deflate(),
            // It is an offer; who takes it back is spoken to without.
            403 | 502 | 503 => {}
            code => return Err(self.refused("COMPRESS DEFLATE", code)),
        }
        Ok(())
    }
}
