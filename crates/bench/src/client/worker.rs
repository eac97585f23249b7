//! The event loop: one thread that drives its share of the connections until their work is done.
//!
//! Invariant: it ends. Either every connection is finished or lost, or the time is up and what is
//! under way has had its grace, or nothing has moved for the stall limit.
//! Must not print; progress goes through a counter that anybody may read.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use newsreel_host::Clock;
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;

use super::connection::{Connection, State};
use super::tally::Tally;

/// Work begun before the time was up may take so long to finish.
const GRACE: Duration = Duration::from_secs(20);
/// The longest sleep, so that a time limit is noticed.
const NAP: Duration = Duration::from_millis(100);

/// Being woken for every single reply costs more than all the rest, for client and server alike, so
/// the loop pauses this long when a stream of replies comes in drops.
const PAUSE: Duration = Duration::from_micros(40);

/// What the workers of a pass share.
#[derive(Debug)]
pub(crate) struct Shared<'a> {
    pub(crate) clock: &'a dyn Clock,
    /// Answered commands that count, so far.
    pub(crate) answered: AtomicU64,
    /// When each so many of them were, if that is asked for.
    pub(crate) laps: Option<Laps>,
    /// When to stop, if the work has not ended before.
    pub(crate) deadline: Option<Duration>,
    /// Set when it is to stop before that.
    pub(crate) stop: Option<&'a AtomicBool>,
    /// Without any movement for so long the pass is given up.
    pub(crate) stall: Duration,
}

/// When each so many operations of a pass were answered.
#[derive(Debug)]
pub(crate) struct Laps {
    every: u64,
    ends: Mutex<Vec<Duration>>,
}

impl Laps {
    pub(crate) const fn new(every: u64) -> Self {
        Self {
            every,
            ends: Mutex::new(Vec::new()),
        }
    }

    /// So many more are answered now than `before`.
    fn note(&self, before: u64, counted: u64, now: Duration) {
        let laps = |answered: u64| answered.checked_div(self.every).unwrap_or_default();
        for _ in laps(before)..laps(before + counted) {
            let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
            ends.push(now);
        }
    }

    /// When they ended, one after the other.
    pub(crate) fn ends(&self) -> Vec<Duration> {
        let ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        let mut ends = ends.clone();
        ends.sort_unstable();
        ends
    }
}

/// What a worker hands back.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) tally: Tally,
    /// When the last reply came.
    pub(crate) ended: Duration,
    /// The sockets, still open, so that the server can be looked at as it was at work.
    pub(crate) streams: Vec<std::net::TcpStream>,
}

struct Worker<'a, 'c> {
    shared: &'a Shared<'a>,
    connections: Vec<Connection<'c>>,
    tally: Tally,
    working: usize,
    /// Paced connections by when they are due.
    due: BinaryHeap<Reverse<(u64, usize)>>,
    moved: Duration,
    /// Whether all that came in this round was a few replies of many.
    dribbling: bool,
    stopped: Option<Duration>,
}

/// Drives `connections` to their end.
pub(crate) fn run(
    shared: &Shared<'_>,
    connections: Vec<Connection<'_>>,
    tally: Tally,
) -> rustix::io::Result<Finished> {
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    for (place, connection) in connections.iter().enumerate() {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(
            &epoll,
            connection.stream(),
            EventData::new_u64(place as u64),
            flags,
        )?;
    }
    let now = shared.clock.monotonic();
    let mut worker = Worker {
        shared,
        working: connections.len(),
        connections,
        tally,
        due: BinaryHeap::new(),
        moved: now,
        dribbling: false,
        stopped: None,
    };
    for place in 0..worker.connections.len() {
        worker.attend(place, now, false, false);
    }
    let mut events = Vec::with_capacity(256);
    while worker.working > 0 && !worker.expired() {
        events.clear();
        let timeout = worker.timeout();
        match epoll::wait(&epoll, spare_capacity(&mut events), Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
        let now = shared.clock.monotonic();
        worker.dribbling = !events.is_empty();
        for event in &events {
            let (place, flags) = (event.data.u64() as usize, event.flags);
            worker.attend(place, now, flags != EventFlags::OUT, true);
        }
        worker.attend_due(now);
        worker.stop_when_due(now);
        if worker.dribbling {
            std::thread::sleep(PAUSE);
        }
    }
    Ok(Finished {
        tally: worker.tally,
        ended: worker.moved,
        streams: worker
            .connections
            .into_iter()
            .map(Connection::into_stream)
            .collect(),
    })
}

impl Worker<'_, '_> {
    /// Lets one connection read and send.
    fn attend(&mut self, place: usize, now: Duration, readable: bool, late: bool) {
        let Some(connection) = self.connections.get_mut(place) else {
            return;
        };
        if connection.state() != State::Working {
            return;
        }
        let now_ns = nanos(now);
        let before = (self.tally.octets_in, self.tally.octets_out);
        if readable {
            let under_way = connection.under_way();
            let counted = connection.receive(now_ns, &mut self.tally);
            self.dribbling &= connection.dribbles(under_way);
            if counted > 0 {
                let before = self.shared.answered.fetch_add(counted, Ordering::Relaxed);
                if let Some(laps) = &self.shared.laps {
                    laps.note(before, counted, self.shared.clock.monotonic());
                }
            }
        }
        self.dribbling &= readable;
        connection.send(now_ns, late, &mut self.tally);
        if before != (self.tally.octets_in, self.tally.octets_out) {
            self.moved = now;
        }
        match connection.state() {
            State::Working => {
                // A stale entry in the heap does no harm: an early look finds nothing due.
                if let Some(due_ns) = connection.due_ns() {
                    self.due.push(Reverse((due_ns, place)));
                }
            }
            State::Finished | State::Lost => self.working -= 1,
        }
    }

    fn attend_due(&mut self, now: Duration) {
        while let Some(Reverse((due_ns, place))) = self.due.peek().copied() {
            if due_ns > nanos(now) {
                break;
            }
            self.due.pop();
            // Another entry of this connection may have served it already.
            if self.connections.get(place).and_then(Connection::due_ns) == Some(due_ns) {
                self.attend(place, now, false, false);
            }
        }
    }

    fn stop_when_due(&mut self, now: Duration) {
        let late = self.shared.deadline.is_some_and(|deadline| now >= deadline);
        let told = self
            .shared
            .stop
            .is_some_and(|stop| stop.load(Ordering::Relaxed));
        if self.stopped.is_some() || !(late || told) {
            return;
        }
        self.stopped = Some(now);
        self.due.clear();
        for place in 0..self.connections.len() {
            if let Some(connection) = self.connections.get_mut(place) {
                connection.stop();
            }
            self.attend(place, now, false, false);
        }
    }

    /// Whether to give up on what is still under way.
    fn expired(&mut self) -> bool {
        let now = self.shared.clock.monotonic();
        let paced = !self.due.is_empty();
        let stalled = !paced && now.saturating_sub(self.moved) > self.shared.stall;
        let overdue = self
            .stopped
            .is_some_and(|stopped| now.saturating_sub(stopped) > GRACE);
        if !stalled && !overdue {
            return false;
        }
        for connection in &self.connections {
            if connection.state() == State::Working {
                let explained = connection.explain(&self.tally);
                self.tally.lost += 1;
                self.tally
                    .complain(|| format!("given up: a connection {explained}"));
            }
        }
        true
    }

    fn timeout(&self) -> Timespec {
        let now_ns = nanos(self.shared.clock.monotonic());
        let nap_ns = nanos(NAP);
        let wait_ns = match self.due.peek() {
            Some(Reverse((due_ns, _))) => due_ns.saturating_sub(now_ns).min(nap_ns),
            None => nap_ns,
        };
        Timespec {
            tv_sec: 0,
            tv_nsec: wait_ns.min(999_999_999) as _,
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Replies come in lumps; each lap ends with the one in which its last is.
    #[test]
    fn laps_end_with_the_last_of_their_operations() {
        let laps = Laps::new(10);
        let mut answered = 0;
        for (counted, ms) in [(4, 1), (5, 2), (1, 3), (9, 4), (22, 5), (8, 6), (1, 7)] {
            laps.note(answered, counted, Duration::from_millis(ms));
            answered += counted;
        }
        let ends = laps.ends().into_iter().map(|end| end.as_millis());
        assert_eq!(ends.collect::<Vec<_>>(), [3, 5, 5, 5, 7]);
    }
}
