//! A connection's octets: as they are, or over TLS.
//!
//! One type for both, so that a connection can become the other (STARTTLS) and sessions need not know.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsStream;

use crate::certificate;
use crate::client::Trust;
use crate::tls::Tls;

/// A connection.
#[derive(Debug)]
pub enum Stream<Io> {
    /// As it came.
    Plain(Io),
    /// Over TLS; boxed, because most of a server's connections are not and TLS keeps much beside the octets.
    Secure(Box<TlsStream<Io>>),
}

impl<Io: AsyncRead + AsyncWrite + Unpin> Stream<Io> {
    /// The handshake of a server.
    ///
    /// # Errors
    /// When the other side speaks no TLS that we do, or takes too long; and when this is over TLS already.
    pub async fn secure(self, tls: &Tls) -> io::Result<Self> {
        match self {
            Self::Plain(io) => Ok(Self::Secure(Box::new(tls.accept(io).await?.into()))),
            Self::Secure(_) => Err(io::Error::other("this is over TLS already")),
        }
    }

    /// The names in the certificate that the other side showed; none where it showed none, or there is no TLS.
    #[must_use]
    pub fn certificate_names(&self) -> Vec<String> {
        let Self::Secure(io) = self else {
            return Vec::new();
        };
        let (_, session) = io.get_ref();
        let own = session.peer_certificates().and_then(<[_]>::first);
        own.map_or_else(Vec::new, |own| certificate::names_of(own))
    }

    /// The handshake of a client.
    ///
    /// # Errors
    /// When the other side speaks no TLS that we do, or is not whom it should be; and when this is over TLS already.  With the
    /// connection, which is still to be closed.
    pub(crate) async fn secure_to(self, trust: &Trust) -> Result<Self, (io::Error, Self)> {
        match self {
            Self::Plain(io) => match trust.connect(io).await {
                Ok(secure) => Ok(Self::Secure(Box::new(secure.into()))),
                Err((why, io)) => Err((why, Self::Plain(io))),
            },
            Self::Secure(_) => Err((io::Error::other("this is over TLS already"), self)),
        }
    }
}

/// The same call on whichever it is.
macro_rules! either {
    ($self:ident, $io:ident => $call:expr) => {
        match $self.get_mut() {
            Self::Plain(io) => {
                let $io = Pin::new(io);
                $call
            }
            Self::Secure(io) => {
                let $io = Pin::new(io);
                $call
            }
        }
    };
}

impl<Io: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<Io> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let io = match self.get_mut() {
            Self::Plain(io) => return Pin::new(io).poll_read(cx, buf),
            Self::Secure(io) => &mut **io,
        };
        let read = Pin::new(&mut *io).poll_read(cx, buf);
        // What TLS itself answers, as that nothing is negotiated anew, waits for no words of ours.
        let (_, session) = io.get_ref();
        if read.is_pending()
            && session.wants_write()
            && let Poll::Ready(Err(error)) = Pin::new(io).poll_flush(cx)
        {
            return Poll::Ready(Err(error));
        }
        read
    }
}

impl<Io: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<Io> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        either!(self, io => io.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        either!(self, io => io.poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(io) => io.is_write_vectored(),
            Self::Secure(io) => io.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, io => io.poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        either!(self, io => io.poll_shutdown(cx))
    }
}
