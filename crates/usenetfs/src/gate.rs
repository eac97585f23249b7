//! Who is in which directory, so that one that is to be converted can be closed: nobody is in it then, and who comes waits.
//!
//! A thread may be in several directories at once, and in one more than once: where it is already it need not wait.  One
//! directory is closed at a time.

use std::thread::{self, ThreadId};

use parking_lot::{Condvar, Mutex};

/// The gate of all directories.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// As many as threads serve, and a few more.
    inside: Vec<(u64, ThreadId)>,
    turn: Turn,
}

/// How often a directory was closed or opened again, and which one is closed now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Turn {
    count: u64,
    pub(crate) closed: Option<u64>,
}

/// Being in a directory.
#[derive(Debug)]
pub(crate) struct Inside<'a> {
    gate: &'a Gate,
    node: u64,
}

/// A directory is closed.
#[derive(Debug)]
pub(crate) struct Closed<'a>(&'a Gate);

impl Gate {
    /// Goes into a directory, as soon as it is not closed.
    pub(crate) fn enter(&self, node: u64) -> Inside<'_> {
        let own = (node, thread::current().id());
        let mut state = self.state.lock();
        while state.turn.closed == Some(node) && !state.inside.contains(&own) {
            self.changed.wait(&mut state);
        }
        state.inside.push(own);
        Inside { gate: self, node }
    }

    /// Closes a directory, as soon as no other is closed, and waits until nobody is in it.
    pub(crate) fn close(&self, node: u64) -> Closed<'_> {
        let mut state = self.state.lock();
        while state.turn.closed.is_some() {
            self.changed.wait(&mut state);
        }
        state.turn.to(Some(node));
        let closed = Closed(self);
        while state.inside.iter().any(|(at, _)| *at == node) {
            self.changed.wait(&mut state);
        }
        closed
    }

    /// What is closed now.
    pub(crate) fn turn(&self) -> Turn {
        self.state.lock().turn
    }
}

impl Turn {
    fn to(&mut self, closed: Option<u64>) {
        self.count += 1;
        self.closed = closed;
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let own = (self.node, thread::current().id());
        let mut state = self.gate.state.lock();
        if let Some(place) = state.inside.iter().position(|inside| *inside == own) {
            state.inside.swap_remove(place);
        }
        if state.turn.closed == Some(self.node) {
            self.gate.changed.notify_all();
        }
    }
}

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.0.state.lock().turn.to(None);
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{RecvTimeoutError, sync_channel};
    use std::time::Duration;

    use super::*;

    const SOON: Duration = Duration::from_millis(50);
    const LATE: Duration = Duration::from_secs(10);

    #[test]
    fn nobody_is_in_a_closed_directory_and_the_others_are_open() {
        let gate = Gate::default();
        let (said, heard) = sync_channel(9);
        thread::scope(|scope| {
            let inside = gate.enter(5);
            let other = gate.enter(6);
            let closing = said.clone();
            scope.spawn(|| {
                let closed = gate.close(5);
                closing.send("closed").unwrap();
                thread::sleep(2 * SOON);
                closing.send("opens").unwrap();
                drop((closed, closing));
            });
            assert_eq!(heard.recv_timeout(SOON), Err(RecvTimeoutError::Timeout));
            // Where it is already a thread need not wait.
            drop(gate.enter(5));
            assert_eq!(heard.recv_timeout(SOON), Err(RecvTimeoutError::Timeout));
            drop(inside);
            assert_eq!(heard.recv_timeout(LATE), Ok("closed"));
            let turn = gate.turn();
            assert_eq!(turn.closed, Some(5));
            drop(gate.enter(7));
            scope.spawn(|| {
                let _inside = gate.enter(5);
                said.send("inside").unwrap();
            });
            assert_eq!(heard.recv_timeout(LATE), Ok("opens"));
            assert_eq!(heard.recv_timeout(LATE), Ok("inside"));
            assert_ne!(gate.turn(), turn);
            assert_eq!(gate.turn().closed, None);
            drop(other);
        });
    }
}
