//! A mail server that takes mails to moderators, spoken to in clear (RFC 5321).
//!
//! Whatever it says, an attempt ends within its limit, and costs no more memory than the mail and [`ANSWERS_OCTETS_MAX`].

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use lettre::address::Envelope;
use lettre::transport::smtp::Error;
use lettre::transport::smtp::client::{AsyncSmtpConnection, AsyncTokioStream};
use lettre::transport::smtp::extension::ClientId;
use newsreel_service::posting::Mail;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::time::timeout;

use crate::deliver::{Deliver, Undelivered};

/// More a mail server does not say about one mail.
pub const ANSWERS_OCTETS_MAX: usize = 64 << 10;

/// How long its goodbye is waited for.
const GOODBYE: Duration = Duration::from_secs(2);

/// A mail server.
#[derive(Debug)]
pub struct Smtp {
    /// Where it listens.
    pub server: SocketAddr,
    /// It has to have the mail within this.
    pub limit: Duration,
}

impl Deliver for Smtp {
    fn deliver(&self, mail: &Mail) -> Result<(), Undelivered> {
        let sender = mail.sender.parse().map_err(Undelivered::for_good)?;
        let to = mail.to.parse().map_err(Undelivered::for_good)?;
        let envelope = Envelope::new(Some(sender), vec![to]).map_err(Undelivered::for_good)?;
        // The last CRLF comes with the dot that ends it all.
        let text = mail.text.strip_suffix(b"\r\n").unwrap_or(&mail.text);
        let runtime = Builder::new_current_thread().enable_all().build();
        runtime.map_err(Undelivered::new)?.block_on(async {
            let sent = timeout(self.limit, send(self.server, &envelope, text)).await;
            let mut connection = sent.map_err(|_| {
                let seconds = self.limit.as_secs();
                Undelivered::new(format_args!("it is not done after {seconds} s"))
            })??;
            // It has the mail, whatever it says now.
            let _ = timeout(GOODBYE, connection.quit()).await;
            Ok(())
        })
    }
}

async fn send(
    server: SocketAddr,
    envelope: &Envelope,
    text: &[u8],
) -> Result<AsyncSmtpConnection, Undelivered> {
    let stream = TcpStream::connect(server).await.map_err(Undelivered::new)?;
    let stream = Box::new(Bounded {
        stream,
        left: ANSWERS_OCTETS_MAX,
    });
    let hello = ClientId::default();
    let greeted = AsyncSmtpConnection::connect_with_transport(stream, &hello).await;
    let mut connection = greeted.map_err(why)?;
    connection.send(envelope, text).await.map_err(why)?;
    Ok(connection)
}

fn why(error: Error) -> Undelivered {
    // Its last word (5yz), or it cannot take what the mail has at all.
    match error.is_permanent() || error.is_client() {
        true => Undelivered::for_good(error),
        false => Undelivered::new(error),
    }
}

/// A connection on which only so much is heard.
#[derive(Debug)]
struct Bounded {
    stream: TcpStream,
    /// Octets.
    left: usize,
}

impl AsyncTokioStream for Bounded {
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.stream.peer_addr()
    }
}

impl AsyncRead for Bounded {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(cx, buf))?;
        let read = buf.filled().len() - before;
        let left = this.left.checked_sub(read);
        this.left = left.ok_or_else(|| io::Error::other("the mail server talks without an end"))?;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Bounded {
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

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::TcpListener;

    use super::*;
    use crate::format::tests::mail;

    /// A server that says this again and again; what becomes of a mail, and that nobody listens any more.
    fn babble(octets: &[u8], pause: Duration, limit: Duration) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = listener.local_addr().unwrap();
        std::thread::scope(|scope| {
            let told = scope.spawn(move || Smtp { server, limit }.deliver(&mail("<1@a>")));
            let (mut stream, _) = listener.accept().unwrap();
            while stream.write_all(octets).is_ok() {
                std::thread::sleep(pause);
            }
            let error = told.join().unwrap().unwrap_err();
            assert!(!error.is_for_good);
            error.to_string()
        })
    }

    /// All memory went to a line without an end.
    #[test]
    fn a_server_that_talks_without_an_end_is_left() {
        let said = babble(&[b'2'; 4096], Duration::ZERO, Duration::from_secs(60));
        assert!(said.contains("without an end"), "{said}");
    }

    /// Each line came in time, and all mails waited.
    #[test]
    fn a_server_that_takes_its_time_is_left() {
        let said = babble(
            b"220-wait\r\n",
            Duration::from_millis(50),
            Duration::from_secs(1),
        );
        assert_eq!(said, "it is not done after 1 s");
    }
}
