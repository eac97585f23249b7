//! Listening on several addresses, admitting, and joining every connection at the end.
//!
//! The accept loop owns the tasks it spawns.  Who floods it is shut out for a while ([`crate::shut`]).  An error of accept, "too many open files" among them, makes it wait a
//! moment and go on: connections stay in the kernel's backlog meanwhile.  When draining starts the sockets are
//! closed first, connections get `drain_s` to end by themselves, and the rest are cut.

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use newsreel_wire::network_of;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinSet, yield_now};
use tokio::time::Instant;

use crate::config::ListenConfig;
use crate::drain::{Drain, DrainWatch};
use crate::error::Error;
use crate::inherited::{Inherited, Kind};
use crate::limits::{Admission, Limits, Refusal};
use crate::lines::LineLimit;
use crate::shut::{SHUT_FOR, Shut};

/// How long accept pauses when the system has no room for another connection.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Bound sockets, not yet accepting.
#[derive(Debug)]
pub struct Listeners {
    /// Each with whether TLS is spoken there.
    sockets: Vec<(TcpListener, bool)>,
    /// Connections that are there already; with one nothing else is served.
    connected: Vec<(TcpStream, bool)>,
    limits: Arc<Limits>,
    drain: Drain,
    drain_for: Duration,
    keepalive: Duration,
}

/// Sockets that listen, and connections that are there, each with whether TLS is spoken from the first octet on.
#[derive(Debug, Default)]
struct Sockets {
    listening: Vec<(TcpListener, bool)>,
    connected: Vec<(TcpStream, bool)>,
}

enum Event {
    Accepted(io::Result<(TcpStream, SocketAddr)>, bool),
    Ended,
    Drain,
    /// The time of one that was shut out is over.
    Opens,
}

impl Listeners {
    /// Binds every address, or none.
    ///
    /// # Errors
    /// When there is no address, or one cannot be listened on.
    pub fn bind(config: &ListenConfig, limits: Arc<Limits>, drain: Drain) -> Result<Self, Error> {
        let plain = config.addresses.iter().map(|&address| (address, false));
        let tls = config.tls_addresses.iter().map(|&address| (address, true));
        let bind = |(address, is_tls): (SocketAddr, bool)| {
            let socket = listen(address, config.backlog);
            let socket = socket.map_err(|source| Error::Listen { address, source })?;
            Ok((socket, is_tls))
        };
        let sockets: Vec<_> = plain.chain(tls).map(bind).collect::<Result<_, _>>()?;
        if sockets.is_empty() {
            return Err(Error::NoAddress);
        }
        let sockets = Sockets {
            listening: sockets,
            connected: Vec::new(),
        };
        Ok(Self::of(config, sockets, limits, drain))
    }

    /// Serves on sockets that are there already, and on no address of the configuration; within the runtime.
    ///
    /// # Errors
    /// When there is none, or the runtime cannot use one.
    pub fn inherited(
        config: &ListenConfig,
        inherited: Inherited,
        limits: Arc<Limits>,
        drain: Drain,
    ) -> Result<Self, Error> {
        let mut sockets = Sockets::default();
        for (kind, is_tls) in inherited.sockets {
            let taken = match kind {
                Kind::Listening(socket) => TcpListener::from_std(socket)
                    .map(|socket| sockets.listening.push((socket, is_tls))),
                Kind::Connected(stream) => TcpStream::from_std(stream)
                    .map(|stream| sockets.connected.push((stream, is_tls))),
            };
            taken.map_err(|error| Error::Inherited {
                what: "a socket of whoever started the server".to_owned(),
                why: error.to_string(),
            })?;
        }
        if sockets.listening.is_empty() && sockets.connected.is_empty() {
            return Err(Error::NoAddress);
        }
        Ok(Self::of(config, sockets, limits, drain))
    }

    fn of(config: &ListenConfig, sockets: Sockets, limits: Arc<Limits>, drain: Drain) -> Self {
        Self {
            sockets: sockets.listening,
            connected: sockets.connected,
            limits,
            drain,
            drain_for: Duration::from_secs(config.drain_s),
            keepalive: Duration::from_secs(config.keepalive_s),
        }
    }

    /// The addresses really bound (port 0 has become a number), those with TLS last.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.sockets
            .iter()
            .filter_map(|(socket, _)| socket.local_addr().ok())
            .collect()
    }

    /// Accepts until draining starts, or all connections that were there already have ended, which starts it; then waits for the
    /// connections to end; returns how many had to be cut.
    ///
    /// A task among those of the connections: many that come at once take turns with those that are there.
    pub async fn run<S, F>(self, serve: S) -> usize
    where
        S: FnMut(TcpStream, Admission) -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let mut accepting = JoinSet::new();
        accepting.spawn(self.accept(serve));
        match accepting.join_next().await {
            Some(Ok(cut)) => cut,
            // Nobody could come any more, and nothing would end the server.
            Some(Err(error)) if error.is_panic() => resume_unwind(error.into_panic()),
            Some(Err(_)) | None => 0,
        }
    }

    async fn accept<S, F>(self, mut serve: S) -> usize
    where
        S: FnMut(TcpStream, Admission) -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let Self {
            sockets,
            connected,
            limits,
            drain,
            drain_for,
            keepalive,
        } = self;
        let mut watch = drain.watch();
        let (lines, shut_lines) = (LineLimit::default(), LineLimit::default());
        let mut connections = JoinSet::new();
        let mut shut = Shut::default();
        let mut first = 0;
        let admit = |stream, peer, is_tls| {
            let admitted = limits.admit(peer);
            settled(admitted, (stream, peer, is_tls), keepalive, &lines)
        };
        // Whoever had a socket before us, and was killed, may have shut somebody out.
        apply(&shut, &sockets);
        for (stream, is_tls) in connected {
            let peer = stream.peer_addr().ok();
            if let Some((stream, admission)) =
                peer.and_then(|peer| admit(stream, peer, is_tls).ok())
            {
                connections.spawn(serve(stream, admission));
            }
        }
        loop {
            if sockets.is_empty() && connections.is_empty() {
                drain.start();
            }
            let event =
                poll_fn(|cx| next_event(cx, &sockets, &mut first, &mut connections, &mut watch));
            match unless_one_opens(&shut, event).await {
                Event::Opens => {
                    shut.open(Instant::now());
                    apply(&shut, &sockets);
                }
                Event::Accepted(Ok((stream, peer)), is_tls) => {
                    match admit(stream, peer, is_tls) {
                        Ok((stream, admission)) => {
                            connections.spawn(serve(stream, admission));
                        }
                        Err(Refusal::Flood) => shut_out(peer, &mut shut, &sockets, &shut_lines),
                        Err(_) => {}
                    }
                    yield_now().await;
                }
                Event::Accepted(Err(error), _) => {
                    limits.count_accept_error();
                    pause_after(&error).await;
                }
                Event::Ended => {}
                Event::Drain => break,
            }
        }
        // Who has the socket beside us, as systemd, has nobody shut out.
        apply(&Shut::default(), &sockets);
        drop(sockets);
        join_all(connections, drain_for).await
    }
}

/// What comes first: an event, or that somebody is let in again.
async fn unless_one_opens(shut: &Shut, event: impl Future<Output = Event>) -> Event {
    match shut.opens_at() {
        None => event.await,
        Some(at) => tokio::select! {
            biased;
            () = tokio::time::sleep_until(at) => Event::Opens,
            event = event => event,
        },
    }
}

/// Waits a moment where the system has no room for another connection.
async fn pause_after(error: &io::Error) {
    if !is_the_peers_fault(error) {
        tracing::error!(target: "newsreel::net", %error,
            "cannot accept: trying on (is the limit of open files too low?)");
        tokio::time::sleep(ACCEPT_PAUSE).await;
    }
}

/// Shuts out who floods.
fn shut_out(peer: SocketAddr, shut: &mut Shut, sockets: &[(TcpListener, bool)], lines: &LineLimit) {
    let network = network_of(peer.ip());
    if shut.add(network, Instant::now()) {
        if let Some(more) = lines.admit() {
            tracing::warn!(target: "newsreel::net", %network, for_s = SHUT_FOR.as_secs(), more,
                "floods with connections: shut out");
        }
        apply(shut, sockets);
    }
}

/// Has the kernel know who is shut out; where it takes no filter they are refused one by one.
fn apply(shut: &Shut, sockets: &[(TcpListener, bool)]) {
    for (socket, _) in sockets {
        if let Err(error) = shut.apply(SockRef::from(socket)) {
            tracing::debug!(target: "newsreel::net", %error, "cannot shut out who floods");
        }
    }
}

fn listen(address: SocketAddr, backlog: u32) -> io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
    TcpListener::from_std(socket.into())
}

/// Makes a connection ready that is let in, and tells who is not.
fn settled(
    admitted: Result<Admission, Refusal>,
    (stream, peer, is_tls): (TcpStream, SocketAddr, bool),
    keepalive: Duration,
    lines: &LineLimit,
) -> Result<(TcpStream, Admission), Refusal> {
    match admitted {
        Ok(mut admission) => {
            admission.is_tls = is_tls;
            prepare(&stream, keepalive);
            Ok((stream, admission))
        }
        Err(refusal) => {
            refuse(&stream, peer, is_tls, refusal, lines);
            Err(refusal)
        }
    }
}

/// Tells somebody who is not let in why.
fn refuse(stream: &TcpStream, peer: SocketAddr, is_tls: bool, refusal: Refusal, lines: &LineLimit) {
    if let Some(more) = lines.admit() {
        tracing::info!(target: "newsreel::net", %peer, why = refusal.why(), more, "refused");
    }
    // A fresh socket has room for one line; whoever cannot take it is cut.
    if !is_tls {
        let _ = stream.try_write(refusal.reply().as_bytes());
    }
}

/// Options every connection gets; a peer that is gone already shows at the first read.
fn prepare(stream: &TcpStream, keepalive: Duration) {
    let _ = stream.set_nodelay(true);
    let _ = SockRef::from(stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(keepalive));
}

fn next_event(
    cx: &mut Context<'_>,
    sockets: &[(TcpListener, bool)],
    first: &mut usize,
    connections: &mut JoinSet<()>,
    watch: &mut DrainWatch,
) -> Poll<Event> {
    if watch.poll_started(cx).is_ready() {
        return Poll::Ready(Event::Drain);
    }
    if let Poll::Ready(Some(ended)) = connections.poll_join_next(cx) {
        if let Err(error) = ended {
            tracing::error!(target: "newsreel::net", %error, "a connection's task failed");
        }
        return Poll::Ready(Event::Ended);
    }
    // Begin with another socket each time, so that a flood on one does not starve the others.
    for step in 0..sockets.len() {
        let at = (*first + step) % sockets.len();
        let Some((socket, is_tls)) = sockets.get(at) else {
            continue;
        };
        if let Poll::Ready(accepted) = socket.poll_accept(cx) {
            *first = at + 1;
            return Poll::Ready(Event::Accepted(accepted, *is_tls));
        }
    }
    Poll::Pending
}

/// Errors that concern one connection that was about to come, not this server.
fn is_the_peers_fault(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
            | io::ErrorKind::PermissionDenied
    )
}

async fn join_all(mut connections: JoinSet<()>, drain_for: Duration) -> usize {
    let all = async { while connections.join_next().await.is_some() {} };
    let in_time = tokio::time::timeout(drain_for, all).await.is_ok();
    if in_time {
        return 0;
    }
    let cut = connections.len();
    tracing::warn!(target: "newsreel::net", cut, "connections did not end in time and are cut");
    connections.shutdown().await;
    cut
}
