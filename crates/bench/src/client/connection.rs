//! One client connection of a pass: what is queued, what is under way, what comes back.
//!
//! Invariant: replies are matched to commands in order; never more than `depth` commands are under
//! way; a connection that breaks is counted and leaves the others alone.
//! Must not block: the socket is non-blocking and the event loop owns the waiting.

use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::net::TcpStream;

use super::channel::Channel;
use super::incoming::{Got, Incoming};
use super::outgoing::Outgoing;
use super::script::{Issue, Next, Op, Script, code};
use super::tally::Tally;

/// Octets put ahead of the socket: enough for one large write, little enough to stay in the cache.
const QUEUED_OCTETS_MAX: usize = 256 * 1024;

/// With so many commands under way, one reply more or less does not hold the server up.
const STREAMING_DEPTH: usize = 48;

/// What a server says before it closes a connection (RFC 3977 section 3.2.1).
const SERVICE_ENDS: u16 = 400;

/// When a paced connection may send.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    pub(crate) interval_ns: u64,
    pub(crate) due_ns: u64,
}

/// How a connection behaves beside what its script says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    /// Commands under way at most.
    pub(crate) depth: usize,
    /// Acknowledge at once whatever arrives, instead of waiting up to 40 ms for something to send.
    pub(crate) quick_ack: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Working,
    Finished,
    Lost,
}

#[derive(Debug, Clone, Copy)]
struct Pending {
    op: Op,
    at_ns: u64,
}

#[derive(Debug)]
pub(crate) struct Connection<'c> {
    channel: Channel,
    incoming: Incoming,
    outgoing: Outgoing<'c>,
    script: Box<dyn Script<'c> + 'c>,
    manner: Manner,
    pace: Option<Pace>,
    pending: VecDeque<Pending>,
    /// The block that is being received.
    block: Option<Next>,
    exhausted: bool,
    state: State,
}

impl<'c> Connection<'c> {
    pub(crate) fn new(
        channel: Channel,
        incoming: Incoming,
        script: Box<dyn Script<'c> + 'c>,
        manner: Manner,
        pace: Option<Pace>,
    ) -> Self {
        Self {
            channel,
            incoming,
            outgoing: Outgoing::default(),
            script,
            manner,
            pace,
            pending: VecDeque::new(),
            block: None,
            exhausted: false,
            state: State::Working,
        }
    }

    pub(crate) const fn stream(&self) -> &TcpStream {
        self.channel.stream()
    }

    pub(crate) fn into_stream(self) -> TcpStream {
        self.channel.into_stream()
    }

    /// Commands that are not answered.
    pub(crate) fn under_way(&self) -> usize {
        self.pending.len()
    }

    /// Whether, after `before` commands were under way, so few are answered that more replies are
    /// worth waiting for.
    pub(crate) fn dribbles(&self, before: usize) -> bool {
        let streaming = self.pace.is_none() && self.pending.len() >= STREAMING_DEPTH;
        streaming && before - self.pending.len() < before / 8
    }

    pub(crate) const fn state(&self) -> State {
        self.state
    }

    /// When it wants to send next, if it has to wait for the time.
    pub(crate) fn due_ns(&self) -> Option<u64> {
        let waits = self.state == State::Working
            && !self.exhausted
            && self.pending.len() < self.manner.depth;
        self.pace.filter(|_| waits).map(|pace| pace.due_ns)
    }

    pub(crate) fn stop(&mut self) {
        self.script.stop();
        self.pace = None;
    }

    /// What it is waiting for, in words.
    pub(crate) fn explain(&self, tally: &Tally) -> String {
        let kind = self
            .pending
            .front()
            .and_then(|first| tally.kinds.get(usize::from(first.op.kind)));
        format!(
            "waits for the reply to {} ({} under way, {} octets to send, {} octets received of it)",
            kind.map_or("nothing", |kind| kind.kind.name),
            self.pending.len(),
            self.outgoing.waiting(),
            self.incoming.waiting(),
        )
    }

    /// Sends what may be sent. `late` says that a paced command is late because of the server, so
    /// that its waiting counts from when it was due.
    pub(crate) fn send(&mut self, now_ns: u64, late: bool, tally: &mut Tally) {
        while self.state == State::Working {
            self.fill(now_ns, late);
            let before = self.outgoing.waiting();
            if before == 0 {
                match self.channel.flush() {
                    Err(error) if error.kind() != io::ErrorKind::WouldBlock => {
                        self.lose(tally, &format!("could not be written to: {error}"));
                    }
                    _ => {}
                }
                if self.exhausted && self.pending.is_empty() {
                    self.state = State::Finished;
                }
                return;
            }
            let drained = self.outgoing.write(&mut self.channel);
            tally.octets_out += (before - self.outgoing.waiting()) as u64;
            match drained {
                Ok(true) => self.quick_ack(),
                Ok(false) => return,
                Err(error) => self.lose(tally, &format!("could not be written to: {error}")),
            }
        }
    }

    /// Takes what has arrived; the number of answered commands that count.
    pub(crate) fn receive(&mut self, now_ns: u64, tally: &mut Tally) -> u64 {
        let mut counted = 0;
        while self.state == State::Working {
            let before = self.incoming.waiting();
            match self.incoming.read(&mut self.channel) {
                Ok(Got::End) => {
                    self.lose(tally, "was closed by the server");
                    break;
                }
                Err(error) => {
                    self.lose(tally, &format!("could not be read: {error}"));
                    break;
                }
                Ok(got) => {
                    tally.octets_in += (self.incoming.waiting() - before) as u64;
                    counted += self.parse(now_ns, tally);
                    if got == Got::All {
                        break;
                    }
                }
            }
        }
        if !self.pending.is_empty() {
            self.quick_ack();
        }
        counted
    }

    fn fill(&mut self, now_ns: u64, late: bool) {
        while !self.exhausted
            && self.pending.len() < self.manner.depth
            && self.outgoing.waiting() < QUEUED_OCTETS_MAX
        {
            let due_ns = self.pace.map(|pace| pace.due_ns);
            if due_ns.is_some_and(|due_ns| due_ns > now_ns) {
                return;
            }
            match self.script.issue(&mut self.outgoing) {
                Issue::Sent(op) => {
                    let at_ns = due_ns.filter(|_| late).unwrap_or(now_ns);
                    self.outgoing.end();
                    self.pending.push_back(Pending { op, at_ns });
                    if let Some(pace) = &mut self.pace {
                        pace.due_ns += pace.interval_ns;
                    }
                }
                Issue::Wait => return,
                Issue::Done => self.exhausted = true,
            }
        }
    }

    fn parse(&mut self, now_ns: u64, tally: &mut Tally) -> u64 {
        let mut counted = 0;
        loop {
            let complete = match self.block {
                None => {
                    let line = match self.incoming.line() {
                        Ok(Some(line)) => line,
                        Ok(None) => return counted,
                        Err(_) => {
                            self.lose(tally, "sent a status line without end");
                            return counted;
                        }
                    };
                    let text = self.incoming.get(line);
                    if code(text) == Some(SERVICE_ENDS) {
                        tally.refused(text);
                        let text = String::from_utf8_lossy(text).into_owned();
                        self.dismissed(tally, &text);
                        return counted;
                    }
                    let Some(first) = self.pending.front() else {
                        let text = String::from_utf8_lossy(text).into_owned();
                        self.lose(tally, &format!("said without being asked: {text}"));
                        return counted;
                    };
                    let next = self.script.status(first.op, text, tally);
                    self.block = (next != Next::Complete).then_some(next);
                    next == Next::Complete
                }
                Some(next) => {
                    let found = if next == Next::Whole {
                        self.incoming.whole_block().map(|span| (span, true))
                    } else {
                        self.incoming.part_of_block()
                    };
                    let (Some((span, last)), Some(first)) = (found, self.pending.front()) else {
                        return counted;
                    };
                    self.script
                        .block(first.op, self.incoming.get(span), last, tally);
                    if last {
                        self.block = None;
                    }
                    last
                }
            };
            if complete && let Some(first) = self.pending.pop_front() {
                let waited_ns = now_ns.saturating_sub(first.at_ns);
                counted += u64::from(tally.answered(first.op.kind, waited_ns));
            }
        }
    }

    fn quick_ack(&self) {
        if self.manner.quick_ack {
            // Only a hint to the kernel: where it is refused, the reply is waited for as usual.
            let _ = rustix::net::sockopt::set_tcp_quickack(self.channel.stream(), true);
        }
    }

    /// The server ends the connection of its own will: that is no damaged reply.
    fn dismissed(&mut self, tally: &mut Tally, text: &str) {
        self.state = State::Lost;
        tally.lost += 1;
        let explained = self.explain(tally);
        tally.remark(|| format!("the server said {text}; the connection {explained}"));
    }

    fn lose(&mut self, tally: &mut Tally, why: &str) {
        self.state = State::Lost;
        tally.lost += 1;
        let explained = self.explain(tally);
        tally.complain(|| format!("a connection {why}; it {explained}"));
    }
}
