//! Connections as they come in, whatever is served on them: access, TLS, session.
//!
//! An idle connection costs no more than its session.  Who is refused is told so in one line, and noted.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use newsreel_net::access::{Denied, Door, Who};
use newsreel_net::{Admission, Drain, LineLimit, Stream, Tls};
use newsreel_service::{Connection, ConnectionId, NewsService};
use newsreel_session::End;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::running::Settings;

/// What sessions need of a server.
pub(super) trait Front: Send + Sync + 'static {
    /// What is served.
    type Service: NewsService;

    /// It.
    fn service(&self) -> Arc<Self::Service>;

    /// What holds for sessions.
    fn settings(&self) -> &Settings;

    /// What tells them to end.
    fn drain(&self) -> &Drain;

    /// Lines about connections that are refused.
    fn strangers(&self) -> &LineLimit;
}

/// One connection, from its admission to its end.
pub(super) fn session<F: Front>(
    server: &Arc<F>,
    stream: TcpStream,
    admission: Admission,
) -> impl Future<Output = ()> + Send + use<F> {
    let server = Arc::clone(server);
    async move {
        let Some(mut door) = let_in(&*server, &stream, &admission) else {
            return;
        };
        let stream = Stream::Plain(stream);
        let stream = match door.tls().filter(|_| admission.is_tls()).map(Arc::clone) {
            None => Ok(Some(stream)),
            // Boxed: a handshake is short, and a connection's task is held for all its time.
            Some(tls) => {
                Box::pin(secured(&*server, stream, &tls, &mut door, admission.peer())).await
            }
        };
        let connection = admission.id();
        match stream {
            Ok(None) => {}
            Ok(Some(stream)) => {
                let end = serve(&*server, stream, &admission, door).await;
                tracing::debug!(target: "newsreel::net", connection, ?end, "ended");
            }
            Err(error) => {
                let shared = server.settings().session();
                shared.note_no_tls(Some(admission.peer().ip()), &error);
            }
        }
    }
}

/// How long somebody who is refused over TLS may take to be told so.
const TELLING: Duration = Duration::from_secs(2);

/// The handshake of a connection that is over TLS from the first octet on; none: what the other side showed is for no
/// entry, and it was told so.
async fn secured<F: Front>(
    server: &F,
    stream: Stream<TcpStream>,
    tls: &Tls,
    door: &mut Door,
    peer: SocketAddr,
) -> io::Result<Option<Stream<TcpStream>>> {
    let mut stream = stream.secure(tls).await?;
    let Err(denied) = door.secured(stream.certificate_names()) else {
        return Ok(Some(stream));
    };
    note_refused(server, peer, denied);
    let telling = async {
        stream.write_all(denied.reply().as_bytes()).await?;
        stream.shutdown().await
    };
    let _ = tokio::time::timeout(TELLING, telling).await;
    Ok(None)
}

fn note_refused<F: Front>(server: &F, peer: SocketAddr, denied: Denied) {
    if let Some(more) = server.strangers().admit() {
        let why = denied.why();
        tracing::info!(target: "newsreel::net", %peer, more, "refused: {why}");
    }
}

/// The connection's way in, or none: then it was told why not.
fn let_in<F: Front>(server: &F, stream: &TcpStream, admission: &Admission) -> Option<Door> {
    let peer = admission.peer();
    let who = Who {
        address: peer.ip(),
        listen: stream.local_addr().ok(),
        is_tls: admission.is_tls(),
        certificate: Vec::new(),
        user: None,
    };
    match server.settings().gate().enter(who) {
        Ok(door) => {
            let (connection, rule) = (admission.id(), &door.grant().name);
            tracing::debug!(target: "newsreel::net", connection, %peer, rule, "connected");
            Some(door)
        }
        Err(denied) => {
            note_refused(server, peer, denied);
            // A fresh socket has room for one line.
            if !admission.is_tls() {
                let _ = stream.try_write(denied.reply().as_bytes());
            }
            None
        }
    }
}

/// The session itself: no more than its own task, which is what an idle connection costs.
fn serve<F: Front>(
    server: &F,
    io: Stream<TcpStream>,
    admission: &Admission,
    door: Door,
) -> impl Future<Output = End> + Send + use<F> {
    let id = ConnectionId(admission.id());
    let connection = Connection::new(id, Some(admission.peer().ip()), None);
    let shared = server.settings().session();
    let watch = server.drain().watch();
    let service = server.service();
    newsreel_session::serve(io, service, shared, connection, door, watch)
}
