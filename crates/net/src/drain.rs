//! Stopping gently: everyone who watches learns of it at once, and watching costs one relaxed load.
//!
//! A watcher registers its waker once (a task's waker stays the same) and is woken once, when draining starts.  The
//! table has one entry per live watcher.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

/// The switch: clones share it.
#[derive(Debug, Clone, Default)]
pub struct Drain(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    started: AtomicBool,
    next: AtomicU64,
    wakers: Mutex<HashMap<u64, Waker>>,
}

impl Drain {
    /// Not started.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts draining; more than once is the same as once.
    pub fn start(&self) {
        self.0.started.store(true, Ordering::Release);
        let wakers = std::mem::take(&mut *self.0.wakers.lock());
        wakers.into_values().for_each(Waker::wake);
    }

    /// Whether it has started.
    #[must_use]
    pub fn is_started(&self) -> bool {
        self.0.started.load(Ordering::Acquire)
    }

    /// Someone who wants to know.
    #[must_use]
    pub fn watch(&self) -> DrainWatch {
        let key = self.0.next.fetch_add(1, Ordering::Relaxed);
        DrainWatch {
            shared: Arc::clone(&self.0),
            key,
            registered: None,
        }
    }
}

/// One watcher.
#[derive(Debug)]
pub struct DrainWatch {
    shared: Arc<Shared>,
    key: u64,
    registered: Option<Waker>,
}

impl DrainWatch {
    /// Ready once draining has started; until then the task is woken when it does.
    pub fn poll_started(&mut self, cx: &Context<'_>) -> Poll<()> {
        if self.is_started() {
            return Poll::Ready(());
        }
        if !self
            .registered
            .as_ref()
            .is_some_and(|waker| waker.will_wake(cx.waker()))
        {
            self.registered = Some(cx.waker().clone());
            self.shared
                .wakers
                .lock()
                .insert(self.key, cx.waker().clone());
            // It may have started between the look and the registration.
            if self.is_started() {
                return Poll::Ready(());
            }
        }
        Poll::Pending
    }

    /// Waits until draining starts.
    pub async fn started(&mut self) {
        std::future::poll_fn(|cx| self.poll_started(cx)).await;
    }

    /// Whether it has started.
    #[must_use]
    pub fn is_started(&self) -> bool {
        self.shared.started.load(Ordering::Acquire)
    }
}

impl Drop for DrainWatch {
    fn drop(&mut self) {
        if self.registered.is_some() {
            self.shared.wakers.lock().remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn watchers_are_woken_and_forgotten() {
        let drain = Drain::new();
        let mut watch = drain.watch();
        #[expect(
            clippy::disallowed_methods,
            reason = "a test's runtime ends all its tasks"
        )]
        let waiting = tokio::spawn(async move { watch.started().await });
        let mut other = drain.watch();
        assert!(
            other
                .poll_started(&Context::from_waker(Waker::noop()))
                .is_pending()
        );
        tokio::task::yield_now().await;
        assert_eq!(drain.0.wakers.lock().len(), 2);
        drop(other);
        assert_eq!(drain.0.wakers.lock().len(), 1);
        drain.start();
        waiting.await.unwrap();
        assert!(drain.watch().is_started());
    }
}
