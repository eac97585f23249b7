//! One peer's connection as the service sees it: who it is, and where answers to its transfers go.
//!
//! The service pushes a batch of completions under one lock and wakes the session once; the session swaps the
//! whole list out.  Both vectors keep their memory, so the steady state allocates nothing.  The list is bounded by
//! the transfers the session has under way: each is answered exactly once.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

use crate::neighbour::Neighbour;
use crate::transfer::Outcome;

/// A connection's number: never used twice while the process lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

impl fmt::Display for ConnectionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One transfer's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// The ticket of the transfer.
    pub ticket: u64,
    /// What became of it.
    pub outcome: Outcome,
}

/// A connection: made by the session (or a batch reader), shared with the service.
#[derive(Debug)]
pub struct Connection {
    id: ConnectionId,
    address: Option<IpAddr>,
    /// A login can change it.
    peer: Mutex<Option<Member>>,
    done: Mutex<Done>,
}

/// One connection of a peer, counted while it lasts.
#[derive(Debug)]
struct Member(Arc<Neighbour>);

impl Member {
    fn of(peer: Arc<Neighbour>) -> Self {
        peer.count_connection(true);
        Self(peer)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.0.count_connection(false);
    }
}

#[derive(Debug, Default)]
struct Done {
    list: Vec<Completion>,
    waker: Option<Waker>,
}

impl Connection {
    /// A connection from `address` (none: local, a batch file, the control socket), from the configured peer
    /// `peer` if it was recognised.
    #[must_use]
    pub fn new(id: ConnectionId, address: Option<IpAddr>, peer: Option<Arc<Neighbour>>) -> Self {
        Self {
            id,
            address,
            peer: Mutex::new(peer.map(Member::of)),
            done: Mutex::new(Done::default()),
        }
    }

    /// Its number.
    #[must_use]
    pub const fn id(&self) -> ConnectionId {
        self.id
    }

    /// Where it comes from.
    #[must_use]
    pub const fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// The configured peer it belongs to.
    #[must_use]
    pub fn peer(&self) -> Option<Arc<Neighbour>> {
        Some(Arc::clone(&self.peer.lock().as_ref()?.0))
    }

    /// Session side: from here on it is known to belong to this peer, or to none.
    pub fn belongs_to(&self, peer: Option<Arc<Neighbour>>) {
        *self.peer.lock() = peer.map(Member::of);
    }

    /// Service side: hands over answers, in any order, and wakes the session once.
    pub fn complete(&self, completions: impl IntoIterator<Item = Completion>) {
        let mut done = self.done.lock();
        done.list.extend(completions);
        let waker = if done.list.is_empty() {
            None
        } else {
            done.waker.take()
        };
        drop(done);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Session side: appends nothing and waits when there are no answers; else swaps them into `out`, which
    /// must be empty.
    pub fn poll_completions(&self, cx: &Context<'_>, out: &mut Vec<Completion>) -> Poll<()> {
        debug_assert!(out.is_empty());
        let mut done = self.done.lock();
        if !done.list.is_empty() {
            std::mem::swap(&mut done.list, out);
            return Poll::Ready(());
        }
        if !done
            .waker
            .as_ref()
            .is_some_and(|waker| waker.will_wake(cx.waker()))
        {
            done.waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Session side: swaps the answers there are into `out`, which must be empty.
    pub fn take_completions(&self, out: &mut Vec<Completion>) {
        debug_assert!(out.is_empty());
        std::mem::swap(&mut self.done.lock().list, out);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use newsreel_wire::Wildmat;

    use super::*;

    #[derive(Debug, Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_connection_is_its_peers_while_it_lasts() {
        let known = |name| Arc::new(Neighbour::new(name, &[], Wildmat::parse("*").unwrap()));
        let (first, other) = (known("a.example"), known("b.example"));
        let many = || (first.received().connections, other.received().connections);
        let connection = Connection::new(ConnectionId(1), None, Some(first.clone()));
        assert_eq!(many(), (1, 0));
        connection.belongs_to(Some(other.clone()));
        assert_eq!(many(), (0, 1));
        assert_eq!(connection.peer().unwrap().name(), "b.example");
        connection.belongs_to(None);
        assert_eq!(many(), (0, 0));
        connection.belongs_to(Some(first.clone()));
        drop(connection);
        assert_eq!(many(), (0, 0));
    }

    #[test]
    fn a_batch_wakes_once_and_only_a_waiting_session() {
        let connection = Connection::new(ConnectionId(1), None, None);
        let wakes = Arc::new(Wakes::default());
        let waker = Waker::from(wakes.clone());
        let cx = Context::from_waker(&waker);
        let batch = |from: u64| {
            (from..from + 3).map(|ticket| Completion {
                ticket,
                outcome: Outcome::Accepted,
            })
        };
        let mut out = Vec::new();
        assert!(connection.poll_completions(&cx, &mut out).is_pending());
        connection.complete([]);
        assert_eq!(wakes.0.load(Ordering::Relaxed), 0, "nothing to tell");
        connection.complete(batch(0));
        connection.complete(batch(3));
        assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
        assert!(connection.poll_completions(&cx, &mut out).is_ready());
        assert_eq!(
            out.iter().map(|done| done.ticket).collect::<Vec<_>>(),
            [0, 1, 2, 3, 4, 5]
        );
        out.clear();
        assert!(connection.poll_completions(&cx, &mut out).is_pending());
    }
}
