//! The connection itself: whole writes, several pieces at once, and what ends it while it waits.
//!
//! Replies leave in one write; a large piece is sent from where it lies, together with what was gathered before it.

use std::future::poll_fn;
use std::io::IoSlice;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use newsreel_net::access::Pace;
use newsreel_net::{Deflatable, DrainWatch};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, Sleep};

use crate::end::End;
use crate::input::{Input, READ_BYTES_MAX};
use crate::metrics::{Metrics, Tally};
use crate::pulse::{Pulse, Waiting};

/// What is still read, and thrown away, from a connection that we end, octets.
pub const LINGER_OCTETS_MAX: usize = 16 << 20;

/// Between two reads of what is thrown away, each of up to 64 KiB, of all connections from one network together.
pub const DROPPING_PAUSE: Duration = Duration::from_millis(1);

#[derive(Debug)]
pub(crate) struct Link<Io> {
    pub(crate) io: Deflatable<Io>,
    pub(crate) pulse: Pulse,
    pub(crate) drain: DrainWatch,
    /// How fast octets are sent and come, together.
    pub(crate) pace: Pace,
    /// Until what has come is paid for; nothing more is read before.
    pub(crate) unpaid: Option<Pin<Box<Sleep>>>,
    /// When something was sent last.
    pub(crate) sent_at: Instant,
}

impl<Io: AsyncRead + AsyncWrite + Unpin> Link<Io> {
    /// Sends all of `pieces`, one behind the other.
    pub(crate) async fn send(&mut self, metrics: &Metrics, pieces: &[&[u8]]) -> Result<(), End> {
        let all: usize = pieces.iter().map(|piece| piece.len()).sum();
        let mut sent = 0;
        self.pulse.sends();
        while sent < all {
            let len = poll_fn(|cx| self.poll_send(cx, pieces, sent)).await?;
            sent += len;
            let pause = self.pace.spend(len as u64);
            if !pause.is_zero() {
                self.pause(pause).await?;
            }
        }
        // What was encrypted may not have left yet.
        poll_fn(|cx| self.poll_flush(cx)).await?;
        self.sent_at = Instant::now();
        metrics.add(Tally::OctetsOut, all as u64);
        Ok(())
    }

    /// Until what was sent is paid for; the end, if it has to make room for others meanwhile.
    async fn pause(&self, pause: Duration) -> Result<(), End> {
        let mut paid = pin!(tokio::time::sleep(pause));
        poll_fn(|cx| match self.pulse.poll_out(cx) {
            Poll::Ready(end) => Poll::Ready(Err(end)),
            Poll::Pending => paid.as_mut().poll(cx).map(Ok),
        })
        .await
    }

    /// So much has come: what comes next waits until it is paid for.
    pub(crate) fn came(&mut self, len: usize) {
        let pause = self.pace.spend(len as u64);
        if !pause.is_zero() {
            self.unpaid = Some(Box::pin(tokio::time::sleep(pause)));
        }
    }

    /// Reads once, when what has come is paid for and no faster than that.
    pub(crate) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        input: &mut Input,
    ) -> Poll<std::io::Result<usize>> {
        if let Some(unpaid) = &mut self.unpaid {
            ready!(unpaid.as_mut().poll(cx));
            self.unpaid = None;
        }
        let most = self.pace.at_once_max().unwrap_or(usize::MAX);
        input.poll_read(cx, &mut self.io, most)
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        pieces: &[&[u8]],
        mut sent: usize,
    ) -> Poll<Result<usize, End>> {
        const SLICES: usize = 4;
        let mut slices = [IoSlice::new(&[]); SLICES];
        let mut filled = 0;
        for piece in pieces {
            if sent >= piece.len() {
                sent -= piece.len();
            } else if filled < SLICES {
                slices[filled] = IoSlice::new(&piece[sent..]);
                filled += 1;
                sent = 0;
            }
        }
        let io = Pin::new(&mut self.io);
        let written = match (&slices[..filled], self.pace.at_once_max()) {
            ([first, ..], Some(most)) => io.poll_write(cx, &first[..first.len().min(most)]),
            ([one], None) => io.poll_write(cx, one),
            (several, _) => io.poll_write_vectored(cx, several),
        };
        match written {
            Poll::Ready(Ok(0)) | Poll::Ready(Err(_)) => Poll::Ready(Err(End::Broken)),
            Poll::Ready(Ok(len)) => {
                self.pulse.moved(len);
                Poll::Ready(Ok(len))
            }
            Poll::Pending => self.poll_stalled(cx).map(Err),
        }
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), End>> {
        match Pin::new(&mut self.io).poll_flush(cx) {
            Poll::Ready(flushed) => Poll::Ready(flushed.map_err(|_| End::Broken)),
            Poll::Pending => self.poll_stalled(cx).map(Err),
        }
    }

    /// Ready when the other side has taken nothing for too long.
    fn poll_stalled(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        loop {
            match self.pulse.poll_beat(cx, Waiting::Writing) {
                Poll::Ready(Some(end)) => return Poll::Ready(end),
                Poll::Ready(None) => {}
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Closes our half, then takes what still comes, so that our last reply is not lost with a reset.  Also where the other side
    /// has closed its half: without an end of the streams of DEFLATE and TLS our answers would count as cut off.
    pub(crate) async fn linger(&mut self, input: &mut Input) {
        let lingering = async {
            let flushed = poll_fn(|cx| Pin::new(&mut self.io).poll_shutdown(cx)).await;
            let (mut dropped, mut paid) = (0, 0);
            while flushed.is_ok() && !input.is_eof() && dropped < LINGER_OCTETS_MAX {
                input.consume(input.octets().len());
                match poll_fn(|cx| input.poll_read(cx, &mut self.io, READ_BYTES_MAX)).await {
                    Ok(len @ 1..) => dropped += len,
                    _ => break,
                }
                if dropped - paid >= READ_BYTES_MAX {
                    paid = dropped;
                    tokio::time::sleep(DROPPING_PAUSE).await;
                }
            }
        };
        let _ = tokio::time::timeout(Duration::from_secs(2), lingering).await;
    }
}
