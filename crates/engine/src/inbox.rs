//! What waits for the sequencer: article batches, requests of administrators, the end of a commit.
//!
//! One lock, one condition variable.  Articles are bounded in octets by permits that their
//! batches hold until the sequencer has copied them; the other kinds are bounded by their makers
//! (one commit and one checkpoint under way, one request a caller, who waits).

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// The queue in front of the sequencer.
#[derive(Debug)]
pub(crate) struct Inbox<B, E> {
    state: Mutex<State<B, E>>,
    wake: Condvar,
}

#[derive(Debug)]
struct State<B, E> {
    batches: VecDeque<B>,
    events: VecDeque<E>,
    waiting: bool,
    closed: bool,
}

impl<B, E> Inbox<B, E> {
    /// An empty one.
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                batches: VecDeque::new(),
                events: VecDeque::new(),
                waiting: false,
                closed: false,
            }),
            wake: Condvar::new(),
        }
    }

    /// Puts an article batch behind the others; gives it back when nobody takes any more.
    pub(crate) fn push_batch(&self, batch: B) -> Result<(), B> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(batch);
        }
        state.batches.push_back(batch);
        self.wake_if_waiting(state);
        Ok(())
    }

    /// Puts an event in; events are taken before batches.  When nobody takes any more it is dropped.
    pub(crate) fn push_event(&self, event: E) {
        let mut state = self.state.lock();
        if state.closed {
            return;
        }
        state.events.push_back(event);
        self.wake_if_waiting(state);
    }

    fn wake_if_waiting(&self, state: parking_lot::MutexGuard<'_, State<B, E>>) {
        let waiting = state.waiting;
        drop(state);
        if waiting {
            self.wake.notify_one();
        }
    }

    /// Takes the events that are there, without waiting.
    pub(crate) fn take_events(&self, events: &mut VecDeque<E>) {
        let mut state = self.state.lock();
        events.append(&mut state.events);
    }

    /// Takes what is there; waits up to `timeout` when nothing is.  Batches are taken only into
    /// `batches` when given: a sequencer whose commit is full leaves them, and so their senders,
    /// waiting.
    pub(crate) fn take(
        &self,
        mut batches: Option<&mut VecDeque<B>>,
        events: &mut VecDeque<E>,
        timeout: Duration,
    ) {
        let mut state = self.state.lock();
        loop {
            events.append(&mut state.events);
            let mut found = !events.is_empty();
            if let Some(batches) = &mut batches {
                batches.append(&mut state.batches);
                found |= !batches.is_empty();
            }
            if found {
                return;
            }
            state.waiting = true;
            let timed_out = self.wake.wait_for(&mut state, timeout).timed_out();
            state.waiting = false;
            if timed_out {
                events.append(&mut state.events);
                return;
            }
        }
    }

    /// Takes nothing from now on, and hands out what was not taken up.
    pub(crate) fn close(&self) -> VecDeque<B> {
        let mut state = self.state.lock();
        state.closed = true;
        state.events.clear();
        std::mem::take(&mut state.batches)
    }

    /// True when an event waits.
    pub(crate) fn has_events(&self) -> bool {
        !self.state.lock().events.is_empty()
    }

    /// Batches waiting now.
    pub(crate) fn waiting_batches(&self) -> usize {
        self.state.lock().batches.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_stay_when_not_wanted() {
        let inbox = Inbox::new();
        inbox.push_batch("b").unwrap();
        inbox.push_event("e");
        let (mut batches, mut events) = (VecDeque::new(), VecDeque::new());
        inbox.take(None, &mut events, Duration::ZERO);
        assert_eq!((batches.len(), events.len()), (0, 1));
        events.clear();
        inbox.take(Some(&mut batches), &mut events, Duration::ZERO);
        assert_eq!((batches.len(), events.len()), (1, 0));
        assert_eq!(inbox.waiting_batches(), 0);
    }

    #[test]
    fn what_comes_too_late_is_given_back() {
        let inbox = Inbox::<_, ()>::new();
        inbox.push_batch("early").unwrap();
        assert_eq!(inbox.close(), ["early"]);
        assert_eq!(inbox.push_batch("late"), Err("late"));
    }
}
