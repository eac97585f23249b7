//! Reaching a server: its name's addresses one after the other, in a bounded time, from a given address.
//!
//! The kernel is told to acknowledge what has come as soon as more is waited for: servers that send an answer in two small writes
//! (INN) else wait for it with the second, 40 ms an article.  It is told once for what was read, not each time that there is no more:
//! what it was told before we sent something it has forgotten by then.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpSocket, TcpStream, lookup_host};
use tokio::time::Instant;

use super::error::Fault;
use super::remote::Remote;

/// Silence after which the kernel asks whether the server is still there.
const KEEPALIVE: Duration = Duration::from_secs(300);

/// A connection of TCP to a server.
#[derive(Debug)]
pub struct Socket {
    stream: TcpStream,
    /// Something was read that the kernel was not told to acknowledge.
    has_read: bool,
    /// See [`Client::reached_in`](super::connection::Client::reached_in).
    pub(super) reached_in: Duration,
}

impl Socket {
    /// Connects to the first of the server's addresses that takes it, until the time is up.
    pub(crate) async fn connect(remote: &Remote, until: Instant) -> Result<Self, Fault> {
        let within = remote.times.connect;
        let found = lookup_host((remote.host.as_str(), remote.port));
        let found = tokio::time::timeout_at(until, found).await;
        let found = found.map_err(|_| Fault::Silent(within))?;
        let found: Vec<SocketAddr> = found.map_err(Fault::Name)?.collect();
        let bind = remote.bind;
        let usable = |to: &SocketAddr| bind.is_none_or(|from| from.is_ipv4() == to.is_ipv4());
        let usable: Vec<SocketAddr> = found.into_iter().filter(usable).collect();
        let mut last = Fault::Name(io::Error::other("none that can be reached from here"));
        for (tried, &address) in usable.iter().enumerate() {
            // One that does not answer leaves the others their share of the time.
            let left = until.saturating_duration_since(Instant::now());
            let others = u32::try_from(usable.len() - tried).unwrap_or(u32::MAX);
            let asked = Instant::now();
            match tokio::time::timeout(left / others, connect(address, bind)).await {
                Ok(Ok(stream)) => {
                    return Ok(Self {
                        stream,
                        has_read: false,
                        reached_in: asked.elapsed(),
                    });
                }
                Ok(Err(source)) => last = Fault::Connect { source, bind },
                Err(_) => last = Fault::Silent(within),
            }
        }
        Err(last)
    }
}

async fn connect(to: SocketAddr, from: Option<IpAddr>) -> io::Result<TcpStream> {
    let socket = if to.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    if let Some(from) = from {
        socket.bind(SocketAddr::new(from, 0))?;
    }
    let stream = socket.connect(to).await?;
    stream.set_nodelay(true)?;
    SockRef::from(&stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE))?;
    Ok(stream)
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let socket = self.get_mut();
        let read = Pin::new(&mut socket.stream).poll_read(cx, buf);
        if read.is_pending() && socket.has_read {
            // Without it all is the same, only later.
            let _ = SockRef::from(&socket.stream).set_tcp_quickack(true);
        }
        socket.has_read = read.is_ready();
        read
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
