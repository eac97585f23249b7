//! An article that is still coming from elsewhere: one brings it, and any number are given what has come.
//!
//! What is given is always a beginning of the article; that it has all come is known only at its end.  It holds what came, so
//! who brings it sets its size a limit.

use std::fmt;

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::error::ServiceError;

/// Given at once at most, octets.
pub const PORTION_OCTETS_MAX: usize = 64 << 10;

/// An article that is still coming.
#[derive(Default)]
pub struct Arriving {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    octets: Vec<u8>,
    /// How it ended; none: more may come.
    end: Option<Result<(), ServiceError>>,
}

impl fmt::Debug for Arriving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        f.debug_struct("Arriving")
            .field("octets", &state.octets.len())
            .field("end", &state.end)
            .finish()
    }
}

impl Arriving {
    /// One of which this has come.
    #[must_use]
    pub fn new(octets: Vec<u8>) -> Self {
        let state = State { octets, end: None };
        Self {
            state: Mutex::new(state),
            changed: Notify::new(),
        }
    }

    /// More came.
    pub fn came(&self, octets: &[u8]) {
        let mut state = self.state.lock();
        if state.end.is_none() {
            state.octets.extend_from_slice(octets);
            drop(state);
            self.changed.notify_waiters();
        }
    }

    /// All of it has come, or the rest never will; only the first time.
    pub fn ended(&self, end: Result<(), ServiceError>) {
        self.state.lock().end.get_or_insert(end);
        self.changed.notify_waiters();
    }

    /// Looks at what has come.
    pub fn seen<T>(&self, look: impl FnOnce(&[u8]) -> T) -> T {
        look(&self.state.lock().octets)
    }

    /// What it takes of memory, octets.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.state.lock().octets.capacity()
    }

    /// The same, when it is more than this; never, where it does not become more.
    pub async fn grown(&self, beyond: usize) -> usize {
        loop {
            let changed = self.changed.notified();
            let memory = self.memory();
            if memory > beyond {
                return memory;
            }
            changed.await;
        }
    }

    /// Whether the rest of it will never come.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        matches!(self.state.lock().end, Some(Err(_)))
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// When it does not come to it.
    pub async fn whole(&self) -> Result<(), ServiceError> {
        loop {
            let changed = self.changed.notified();
            if let Some(end) = &self.state.lock().end {
                return end.clone();
            }
            changed.await;
        }
    }

    /// Appends what has come from a place on, a portion at most; whether more is to be had.
    pub(crate) fn take(&self, from: usize, out: &mut Vec<u8>) -> Result<bool, ServiceError> {
        let state = self.state.lock();
        let rest = state.octets.get(from..).unwrap_or_default();
        let portion = rest.get(..PORTION_OCTETS_MAX).unwrap_or(rest);
        out.extend_from_slice(portion);
        let is_all = portion.len() == rest.len();
        match &state.end {
            // What came before is given first.
            Some(Err(error)) if portion.is_empty() => Err(error.clone()),
            Some(Ok(())) => Ok(!is_all),
            _ => Ok(true),
        }
    }

    /// The same, when there is something.
    pub(crate) async fn next(&self, from: usize, out: &mut Vec<u8>) -> Result<bool, ServiceError> {
        loop {
            let changed = self.changed.notified();
            let had = out.len();
            let has_more = self.take(from, out)?;
            if out.len() > had || !has_more {
                return Ok(has_more);
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::article::ArticleBuf;

    const GONE: ServiceError = ServiceError::Fault("gone");

    #[tokio::test]
    async fn who_reads_is_given_what_has_come_and_then_the_rest() {
        let arriving = Arc::new(Arriving::new(b"Subject: a\r\n\r\n".to_vec()));
        let mut out = ArticleBuf::new();
        out.set_rest(&arriving, 9);
        assert_eq!((out.content(), out.has_more()), (&b"a\r\n\r\n"[..], true));
        let reading = async {
            out.more().await.unwrap();
            (out.content().to_vec(), out.has_more())
        };
        let coming = async { arriving.came(b"text\r\n") };
        let (read, ()) = tokio::join!(reading, coming);
        assert_eq!(read, (b"text\r\n".to_vec(), true));
        arriving.came(b".\r\n");
        arriving.ended(Ok(()));
        arriving.ended(Err(GONE));
        arriving.came(b"nothing");
        out.more().await.unwrap();
        assert_eq!((out.content(), out.has_more()), (&b".\r\n"[..], false));
        arriving.whole().await.unwrap();
        // Who comes later has all of it, in portions.
        let large = Arc::new(Arriving::new(vec![b'x'; PORTION_OCTETS_MAX + 1]));
        large.ended(Ok(()));
        out.set_rest(&large, 0);
        assert_eq!(
            (out.content().len(), out.has_more()),
            (PORTION_OCTETS_MAX, true)
        );
        out.more().await.unwrap();
        assert_eq!((out.content().len(), out.has_more()), (1, false));
    }

    #[tokio::test]
    async fn what_never_comes_is_told_to_all_behind_what_came() {
        let arriving = Arc::new(Arriving::new(b"Sub".to_vec()));
        let mut out = ArticleBuf::new();
        out.set_rest(&arriving, 3);
        let reading = async {
            out.more().await.unwrap();
            let read = out.content().to_vec();
            (read, out.more().await, arriving.whole().await)
        };
        let coming = async {
            arriving.came(b"ject");
            arriving.ended(Err(GONE));
        };
        let (read, ()) = tokio::join!(reading, coming);
        assert_eq!(read, (b"ject".to_vec(), Err(GONE), Err(GONE)));
        out.clear();
        assert!(!out.has_more());
    }
}
