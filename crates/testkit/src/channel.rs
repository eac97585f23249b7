//! One connection of a play: lines in and out, never blocked by writing alone.
//!
//! While octets wait to be sent, what comes is read, so that a long pipeline cannot lock both sides.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use async_compression::tokio::bufread::DeflateDecoder;
use async_compression::tokio::write::DeflateEncoder;
use tokio::io::{AsyncRead, AsyncWrite, BufReader, ReadBuf};

use crate::tls;

/// What came.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Came {
    /// A line, without its CRLF.
    Line(Vec<u8>),
    /// The other side closed; these octets were left.
    Closed(Vec<u8>),
    /// Nothing for too long; these octets are there without a line's end.
    Nothing(Vec<u8>),
}

/// What octets go over, whatever it is.
trait Octets: AsyncRead + AsyncWrite + Unpin {}

impl<Io: AsyncRead + AsyncWrite + Unpin> Octets for Io {}

pub(crate) struct Channel {
    io: Box<dyn Octets>,
    pub(crate) outgoing: Vec<u8>,
    incoming: Vec<u8>,
    taken: usize,
    closed: bool,
    pub(crate) half_closed: bool,
    /// Commands sent and not answered yet, for `bless`.
    pub(crate) commands: VecDeque<Vec<u8>>,
    wait: Duration,
}

impl Channel {
    pub(crate) fn new<Io>(io: Io, wait: Duration) -> Self
    where
        Io: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        Self {
            io: Box::new(io),
            outgoing: Vec::new(),
            incoming: Vec::new(),
            taken: 0,
            closed: false,
            half_closed: false,
            commands: VecDeque::new(),
            wait,
        }
    }

    /// Sends what was collected, in as few writes as the other side takes.
    pub(crate) async fn flush(&mut self) -> io::Result<()> {
        let outgoing = std::mem::take(&mut self.outgoing);
        let wait = self.wait;
        let mut sent = 0;
        let writing = poll_fn(|cx| self.poll_send(cx, &outgoing, &mut sent));
        match tokio::time::timeout(wait, writing).await {
            Ok(result) => result,
            Err(_) => Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the other side stopped reading",
            )),
        }
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        out: &[u8],
        sent: &mut usize,
    ) -> Poll<io::Result<()>> {
        loop {
            while !self.closed && self.poll_fill(cx)?.is_ready() {}
            if *sent == out.len() {
                return Pin::new(&mut self.io).poll_flush(cx);
            }
            match Pin::new(&mut self.io).poll_write(cx, &out[*sent..]) {
                Poll::Ready(Ok(len)) => *sent += len,
                // Who has closed will never take it: what it said before is what counts.
                Poll::Ready(Err(_)) => return Poll::Ready(Ok(())),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut chunk = [0; 4096];
        let mut buf = ReadBuf::new(&mut chunk);
        match Pin::new(&mut self.io).poll_read(cx, &mut buf) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Err(_)) => self.closed = true,
            Poll::Ready(Ok(())) if buf.filled().is_empty() => self.closed = true,
            Poll::Ready(Ok(())) => self.incoming.extend_from_slice(buf.filled()),
        }
        Poll::Ready(Ok(()))
    }

    /// Reads until there are `want` octets, the other side closes, or the time is up (false).
    async fn fill_until(&mut self, mut enough: impl FnMut(&[u8]) -> bool) -> bool {
        let wait = self.wait;
        let reading = poll_fn(|cx| {
            loop {
                if self.closed || enough(&self.incoming[self.taken..]) {
                    return Poll::Ready(());
                }
                if self.poll_fill(cx).is_pending() {
                    return Poll::Pending;
                }
            }
        });
        tokio::time::timeout(wait, reading).await.is_ok()
    }

    /// The next line.
    pub(crate) async fn line(&mut self) -> Came {
        let mut scanned = 0;
        let in_time = self
            .fill_until(|octets| {
                let found = find_crlf(octets, scanned);
                scanned = octets.len().saturating_sub(1);
                found.is_some()
            })
            .await;
        let octets = &self.incoming[self.taken..];
        if let Some(end) = find_crlf(octets, 0) {
            let line = octets[..end].to_vec();
            self.taken += end + 2;
            if self.taken == self.incoming.len() {
                self.incoming.clear();
                self.taken = 0;
            }
            return Came::Line(line);
        }
        let left = octets.to_vec();
        if in_time {
            Came::Closed(left)
        } else {
            Came::Nothing(left)
        }
    }

    /// Exactly so many octets, or fewer when no more come.
    pub(crate) async fn octets(&mut self, len: usize) -> Vec<u8> {
        self.fill_until(|octets| octets.len() >= len).await;
        let there = &self.incoming[self.taken..];
        let octets = there[..len.min(there.len())].to_vec();
        self.taken += octets.len();
        octets
    }

    /// From here on over TLS, as the client, which may show a certificate, or as the server; an error if the handshake fails or something came that it does
    /// not belong to.
    pub(crate) async fn secure(&mut self, is_server: bool, shown: Option<&str>) -> io::Result<()> {
        if self.taken < self.incoming.len() {
            return Err(io::Error::other("octets came in front of the handshake"));
        }
        let io = std::mem::replace(&mut self.io, Box::new(tokio::io::empty()));
        let handshake = async {
            if is_server {
                tls::accept(io).await
            } else {
                tls::secure(io, shown).await
            }
        };
        match tokio::time::timeout(self.wait, handshake).await {
            Ok(secured) => self.io = Box::new(secured?),
            Err(_) => return Err(io::ErrorKind::TimedOut.into()),
        }
        Ok(())
    }

    /// From here on compressed in both directions; an error if something came that it does not belong to.
    pub(crate) fn deflate(&mut self) -> io::Result<()> {
        if self.taken < self.incoming.len() {
            return Err(io::Error::other(
                "octets came in front of what is compressed",
            ));
        }
        let io = std::mem::replace(&mut self.io, Box::new(tokio::io::empty()));
        let (from, to) = tokio::io::split(io);
        let from = DeflateDecoder::new(BufReader::new(from));
        self.io = Box::new(tokio::io::join(from, DeflateEncoder::new(to)));
        Ok(())
    }

    /// Closes our half.
    pub(crate) async fn shutdown(&mut self) -> io::Result<()> {
        self.half_closed = true;
        poll_fn(|cx| Pin::new(&mut self.io).poll_shutdown(cx)).await
    }
}

fn find_crlf(octets: &[u8], from: usize) -> Option<usize> {
    octets
        .get(from..)?
        .windows(2)
        .position(|pair| pair == b"\r\n")
        .map(|at| from + at)
}
