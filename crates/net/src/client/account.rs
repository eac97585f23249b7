//! An account with a provider that has several servers: how many connections there may be to all of them together.
//!
//! Each connection has a share from before it is made until after it has said goodbye, so the provider never counts more than there
//! may be.  Where none is free an idle connection to another of the servers is closed for who waits, or the next that comes back
//! there.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use super::pool::{Connect, Parked, Pool};

/// What a connection has of its account, if it has one.
pub(super) type Share = Option<OwnedSemaphorePermit>;

/// An account.
#[derive(Debug)]
pub struct Account<C: Connect> {
    pub(super) places: Arc<Semaphore>,
    /// Those who wait for a share, at all servers.
    waiting: AtomicUsize,
    pools: Mutex<Vec<Weak<Pool<C>>>>,
    /// Connections that came back while somebody waited elsewhere: no more are there than shares.
    leaving: Mutex<VecDeque<Parked<C::Io>>>,
    /// One more is leaving.
    pub(super) changed: Notify,
}

/// Somebody waits for a share.
pub(super) struct Waiting<'p> {
    all: &'p AtomicUsize,
    here: &'p AtomicUsize,
}

impl<C: Connect> Account<C> {
    /// An account with so many connections at the same time.
    #[must_use]
    pub fn new(connections_max: u16) -> Arc<Self> {
        Arc::new(Self {
            places: Arc::new(Semaphore::new(usize::from(connections_max))),
            waiting: AtomicUsize::new(0),
            pools: Mutex::default(),
            leaving: Mutex::default(),
            changed: Notify::new(),
        })
    }

    /// Connections of this pool count.
    pub(super) fn enter(&self, pool: &Arc<Pool<C>>) {
        self.pools.lock().push(Arc::downgrade(pool));
    }

    /// From now on what comes back elsewhere is for who waits here.
    pub(super) fn wait<'p>(&'p self, here: &'p AtomicUsize) -> Waiting<'p> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        here.fetch_add(1, Ordering::SeqCst);
        let all = &self.waiting;
        Waiting { all, here }
    }

    /// Whether somebody waits.
    pub(super) fn is_wanted(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }

    /// Whether somebody waits elsewhere for whom none is leaving yet.
    pub(super) fn is_wanted_elsewhere(&self, here: &AtomicUsize) -> bool {
        let here = here.load(Ordering::SeqCst) + self.leaving.lock().len();
        self.waiting.load(Ordering::SeqCst) > here
    }

    /// A connection has come back: it is for who waits elsewhere.
    pub(super) fn leaves(&self, parked: Parked<C::Io>) {
        self.leaving.lock().push_back(parked);
        self.changed.notify_one();
    }

    /// One that came back while somebody waited, and that nobody has taken.
    pub(super) fn left(&self) -> Option<Parked<C::Io>> {
        self.leaving.lock().pop_front()
    }

    /// The longest idle connection of another pool.
    pub(super) fn idle_elsewhere(&self, here: &Pool<C>) -> Option<Parked<C::Io>> {
        let pools: Vec<_> = self.pools.lock().iter().filter_map(Weak::upgrade).collect();
        let others = pools.iter().filter(|pool| !std::ptr::eq(&***pool, here));
        let longest = others.min_by_key(|pool| (pool.idle_since().is_none(), pool.idle_since()));
        longest?.take_idle()
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.here.fetch_sub(1, Ordering::SeqCst);
        self.all.fetch_sub(1, Ordering::SeqCst);
    }
}
