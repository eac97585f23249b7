//! A link that takes its time: octets come out behind it half a round trip after they went in, in either direction.
//!
//! It may lose pieces, as a connection feels that: what is lost comes after the time in which it is sent again, and all behind it waits.
//! (The kernel's netem does this to packets, where it has that; not all have.)
//!
//! It counts round trips as a client pays for them: how often something was said after an answer.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

use tokio::time::Instant;

/// Pieces that are on their way at once.
const PIECES_MAX: usize = 4096;

/// In so much time TCP sends a piece again at the earliest (RFC 6298 as Linux has it).
const SENT_AGAIN: Duration = Duration::from_millis(200);

/// What it does to what goes over it.
#[derive(Debug, Clone, Copy)]
struct Weather {
    /// One way.
    delay: Duration,
    /// One in so many pieces is lost.
    loss: Option<u64>,
}

/// What went over it.
#[derive(Debug, Default)]
struct Seen {
    round_trips: AtomicU64,
    is_closed: AtomicBool,
    streams: Mutex<Vec<TcpStream>>,
}

/// The link.
pub(crate) struct SlowLink {
    pub(crate) address: SocketAddr,
    seen: Arc<Seen>,
    accepting: Option<JoinHandle<()>>,
}

impl SlowLink {
    /// A link to a server.
    pub(crate) fn to(server: SocketAddr, round_trip: Duration) -> Self {
        Self::of(server, round_trip, None)
    }

    /// The same that loses one in so many pieces.
    pub(crate) fn with_loss(server: SocketAddr, round_trip: Duration, one_in: u64) -> Self {
        Self::of(server, round_trip, Some(one_in))
    }

    fn of(server: SocketAddr, round_trip: Duration, loss: Option<u64>) -> Self {
        let weather = Weather {
            delay: round_trip / 2,
            loss,
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Seen::default());
        let seen_there = Arc::clone(&seen);
        let accepting = spawn(move || {
            for client in listener.incoming() {
                if seen_there.is_closed.load(Ordering::Acquire) {
                    return;
                }
                let (Ok(client), Ok(server)) = (client, TcpStream::connect(server)) else {
                    continue;
                };
                connect(client, server, weather, &seen_there);
            }
        });
        Self {
            address,
            seen,
            accepting: Some(accepting),
        }
    }

    /// Cuts what goes over it now; who comes again gets through.
    pub(crate) fn cut(&self) {
        for stream in self.seen.streams.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Round trips since the last time.
    pub(crate) fn round_trips(&self) -> u64 {
        self.seen.round_trips.swap(0, Ordering::AcqRel)
    }
}

impl Drop for SlowLink {
    fn drop(&mut self) {
        self.seen.is_closed.store(true, Ordering::Release);
        self.cut();
        // It looks up from waiting for the next connection.
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

/// Joins two connections; its threads end with them.
fn connect(client: TcpStream, server: TcpStream, weather: Weather, seen: &Arc<Seen>) {
    for stream in [&client, &server] {
        stream.set_nodelay(true).unwrap();
        let other = stream.try_clone().unwrap();
        seen.streams.lock().unwrap().push(other);
    }
    let is_answered = Arc::new(AtomicBool::new(true));
    let ways = [
        (
            client.try_clone().unwrap(),
            server.try_clone().unwrap(),
            true,
        ),
        (server, client, false),
    ];
    for (mut from, to, is_asking) in ways {
        let (put, take) = sync_channel(PIECES_MAX);
        spawn(move || deliver(take, to));
        let (seen, is_answered) = (Arc::clone(seen), Arc::clone(&is_answered));
        spawn(move || {
            let mut piece = vec![0; 64 << 10];
            let mut pieces = 0_u64;
            while let Ok(len @ 1..) = from.read(&mut piece) {
                if !is_asking {
                    is_answered.store(true, Ordering::Release);
                } else if is_answered.swap(false, Ordering::AcqRel) {
                    seen.round_trips.fetch_add(1, Ordering::AcqRel);
                }
                pieces += 1;
                let is_lost = weather
                    .loss
                    .is_some_and(|one_in| pieces.is_multiple_of(one_in));
                let again = if is_lost { SENT_AGAIN } else { Duration::ZERO };
                let due = Instant::now() + weather.delay + again;
                if put.send((due, piece[..len].to_vec())).is_err() {
                    return;
                }
            }
        });
    }
}

/// Lets each piece out when its time has come.
fn deliver(pieces: Receiver<(Instant, Vec<u8>)>, mut to: TcpStream) {
    for (due, piece) in pieces {
        sleep(due.saturating_duration_since(Instant::now()));
        if to.write_all(&piece).is_err() {
            return;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}
