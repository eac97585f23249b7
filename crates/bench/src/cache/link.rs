//! A link with a pace of its own: octets come out behind it half a round trip after they went in, and no more of them in a second than
//! it carries, in either direction.
//!
//! It counts round trips as a client pays for them: how often something was said after an answer.  Invariant: it changes no octet, and
//! whatever ends at one side ends at the other.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

use newsreel_host::{Clock as _, RealClock};

use crate::error::Error;

/// Pieces that are on their way at once.
const PIECES_MAX: usize = 4096;

/// Whether something goes over it is looked at so often ...
const SETTLING_LOOK: Duration = Duration::from_millis(20);

/// ... and after so many looks without anything new nothing does.
const SETTLED_LOOKS: u32 = 15;

/// What goes on for longer is not waited for.
const SETTLING_LOOKS_MAX: u32 = 500;

/// Octets that are read at once where any number fits through in no time.
const PIECE_OCTETS: usize = 64 << 10;

/// ... and where it takes its time: what a packet carries.
const PACKET_OCTETS: usize = 1460;

/// What a link is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pace {
    /// From an octet to the answer to it, at least.
    pub round_trip: Duration,
    /// Octets that it carries in a second in each direction; none: any number.
    pub octets_per_s: Option<u64>,
}

/// What went over it.
#[derive(Debug, Default)]
struct Seen {
    round_trips: AtomicU64,
    octets: AtomicU64,
    is_closed: AtomicBool,
    streams: Mutex<Vec<TcpStream>>,
}

/// The link.
#[derive(Debug)]
pub struct Link {
    address: SocketAddr,
    seen: Arc<Seen>,
    accepting: Option<JoinHandle<()>>,
}

/// One direction, for all connections.
#[derive(Debug)]
struct Way {
    pace: Pace,
    clock: RealClock,
    /// When all that went in so far is through.
    free: Mutex<Duration>,
}

impl Way {
    /// Waits until so many octets are through; when they come out.
    fn pass(&self, octets: usize) -> Duration {
        let now = self.clock.monotonic();
        let mut through = now;
        if let Some(rate) = self.pace.octets_per_s {
            let takes = Duration::from_secs_f64(octets as f64 / rate.max(1) as f64);
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            through = now.max(*free) + takes;
            *free = through;
        }
        sleep(through.saturating_sub(now));
        through + self.pace.round_trip / 2
    }
}

impl Link {
    /// A link to a server.
    pub fn to(server: SocketAddr, pace: Pace) -> Result<Self, Error> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(Error::EventLoop)?;
        let address = listener.local_addr().map_err(Error::EventLoop)?;
        let seen = Arc::new(Seen::default());
        let clock = RealClock::new();
        let ways = [(); 2].map(|()| {
            Arc::new(Way {
                pace,
                clock: clock.clone(),
                free: Mutex::default(),
            })
        });
        let seen_there = Arc::clone(&seen);
        let accepting = spawn(move || {
            for client in listener.incoming() {
                if seen_there.is_closed.load(Ordering::Acquire) {
                    return;
                }
                if let (Ok(client), Ok(server)) = (client, TcpStream::connect(server)) {
                    // One that cannot be joined is closed, as a link that is cut.
                    let _ = join(client, server, &ways, &seen_there);
                }
            }
        });
        Ok(Self {
            address,
            seen,
            accepting: Some(accepting),
        })
    }

    /// Where it begins.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until something has gone over it, and then nothing for a while; for a bounded time.
    pub fn settled(&self) {
        let (mut seen, mut looks_without) = (0, 0);
        for _ in 0..SETTLING_LOOKS_MAX {
            sleep(SETTLING_LOOK);
            let now = self.seen.octets.load(Ordering::Acquire);
            looks_without = if now > seen { 0 } else { looks_without + 1 };
            seen = now;
            if seen > 0 && looks_without >= SETTLED_LOOKS {
                return;
            }
        }
    }

    /// Cuts what goes over it now; who comes again gets through.
    pub fn cut(&self) {
        let mut streams = self
            .seen
            .streams
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for stream in streams.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Round trips since the last time.
    #[must_use]
    pub fn round_trips(&self) -> u64 {
        self.seen.round_trips.swap(0, Ordering::AcqRel)
    }

    /// Octets in both directions since the last time.
    #[must_use]
    pub fn octets(&self) -> u64 {
        self.seen.octets.swap(0, Ordering::AcqRel)
    }
}

impl Drop for Link {
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
fn join(
    client: TcpStream,
    server: TcpStream,
    ways: &[Arc<Way>; 2],
    seen: &Arc<Seen>,
) -> std::io::Result<()> {
    for stream in [&client, &server] {
        stream.set_nodelay(true)?;
        let mut streams = seen.streams.lock().unwrap_or_else(PoisonError::into_inner);
        streams.push(stream.try_clone()?);
    }
    let [asking, answering] = ways;
    let is_answered = Arc::new(AtomicBool::new(true));
    let directions = [
        (client.try_clone()?, server.try_clone()?, asking, true),
        (server, client, answering, false),
    ];
    for (mut from, to, way, is_asking) in directions {
        let (put, take) = sync_channel(PIECES_MAX);
        let clock = way.clock.clone();
        spawn(move || deliver(take, to, &clock));
        let (seen, is_answered, way) =
            (Arc::clone(seen), Arc::clone(&is_answered), Arc::clone(way));
        spawn(move || {
            let most = match way.pace.octets_per_s {
                Some(_) => PACKET_OCTETS,
                None => PIECE_OCTETS,
            };
            let mut piece = vec![0; most];
            while let Ok(len @ 1..) = acknowledged(&mut from, &mut piece) {
                if !is_asking {
                    is_answered.store(true, Ordering::Release);
                } else if is_answered.swap(false, Ordering::AcqRel) {
                    seen.round_trips.fetch_add(1, Ordering::AcqRel);
                }
                seen.octets.fetch_add(len as u64, Ordering::AcqRel);
                let due = way.pass(len);
                let octets = piece.get(..len).unwrap_or_default().to_vec();
                if put.send((due, octets)).is_err() {
                    return;
                }
            }
        });
    }
    Ok(())
}

/// Reads what comes, of which the kernel acknowledges each packet at once, as the cache has it do with what comes straight from a
/// server: one that sends an answer in two small writes (INN) would else wait for the link with the second, 40 ms for each.
fn acknowledged(from: &mut TcpStream, piece: &mut [u8]) -> std::io::Result<usize> {
    // It forgets it after a while; without it all is the same, only later.
    let _ = rustix::net::sockopt::set_tcp_quickack(&*from, true);
    from.read(piece)
}

/// Lets each piece out when its time has come.
fn deliver(pieces: Receiver<(Duration, Vec<u8>)>, mut to: TcpStream, clock: &RealClock) {
    for (due, piece) in pieces {
        sleep(due.saturating_sub(clock.monotonic()));
        if to.write_all(&piece).is_err() {
            return;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that gives back what it is sent, in one piece.
    fn echo(octets: usize) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut all = vec![0; octets];
            while stream.read_exact(&mut all).is_ok() {
                stream.write_all(&all).unwrap();
            }
        });
        address
    }

    /// The link had the kernel acknowledge late, and so a server that sends an answer in two small writes waited for it with the second:
    /// what was measured in front of INN was the link.
    #[test]
    fn a_server_that_sends_in_two_small_writes_does_not_wait_for_it() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let link = Link::to(listener.local_addr().unwrap(), Pace::default()).unwrap();
        spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = [0];
            while stream.read_exact(&mut asked).is_ok() {
                for octet in [b"a", b"b"] {
                    stream.write_all(octet).unwrap();
                }
            }
        });
        let clock = RealClock::new();
        let mut stream = TcpStream::connect(link.address()).unwrap();
        stream.set_nodelay(true).unwrap();
        for _ in 0..100 {
            stream.write_all(b"?").unwrap();
            let mut back = [0; 2];
            let _ = rustix::net::sockopt::set_tcp_quickack(&stream, true);
            stream.read_exact(&mut back).unwrap();
        }
        // Forty milliseconds each were four seconds.
        let took = clock.monotonic();
        assert!(took < Duration::from_secs(2), "{took:?}");
    }

    #[test]
    fn it_takes_as_long_as_it_says_and_counts_what_went_over_it() {
        let pace = Pace {
            round_trip: Duration::from_millis(50),
            octets_per_s: Some(40_000),
        };
        let link = Link::to(echo(10_000), pace).unwrap();
        let clock = RealClock::new();
        let mut stream = TcpStream::connect(link.address()).unwrap();
        let mut back = vec![0; 10_000];
        stream.write_all(&back).unwrap();
        stream.read_exact(&mut back).unwrap();
        // A quarter of a second in each direction, and the round trip.
        let took = clock.monotonic();
        assert!(took >= Duration::from_millis(550), "{took:?}");
        assert_eq!((link.octets(), link.round_trips()), (20_000, 1));
        assert_eq!((link.octets(), link.round_trips()), (0, 0));
        link.cut();
        assert_eq!(stream.read(&mut back).unwrap_or(0), 0);
    }
}
