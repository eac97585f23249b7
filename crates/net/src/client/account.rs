//! An account with a provider that has several servers: how many connections there may be to all of them together.
//!
//! Each connection has a share from before it is made until its server has closed it, or has not for two seconds behind the last
//! word: so the provider does not count more than there may be.  Where none is free an idle connection to another of the servers is
//! closed for who waits, or the next that comes back there.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

use super::pool::{Connect, Pool};

/// What a connection has of its account, if it has one.
pub(super) type Share = Option<OwnedSemaphorePermit>;

/// A place in the queue of those who wait for a share; none: nobody waits there yet.
pub(super) type Queued =
    Option<Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send>>>;

/// An account.
#[derive(Debug)]
pub struct Account<C: Connect> {
    pub(super) places: Arc<Semaphore>,
    /// Those who wait for a share, at all servers.
    waiting: AtomicUsize,
    pools: Mutex<Vec<Weak<Pool<C>>>>,
    /// Connections that are being closed, each with its share.
    leaving: AtomicUsize,
}

/// The share of a connection that is being closed.
#[derive(Debug)]
pub(super) struct Leaving<C: Connect> {
    account: Arc<Account<C>>,
    share: Share,
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
            leaving: AtomicUsize::new(0),
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

    /// Whether somebody waits elsewhere for whom none is leaving yet.
    pub(super) fn is_wanted_elsewhere(&self, here: &AtomicUsize) -> bool {
        let here = here.load(Ordering::SeqCst) + self.leaving.load(Ordering::SeqCst);
        self.waiting.load(Ordering::SeqCst) > here
    }

    /// A connection is being closed: its share is for who waits.
    pub(super) fn leaves(self: &Arc<Self>, share: Share) -> Leaving<C> {
        self.leaving.fetch_add(1, Ordering::SeqCst);
        let account = Arc::clone(self);
        Leaving { account, share }
    }

    /// Closes the longest idle connection of another pool, if more wait than are leaving.
    pub(super) fn make_room(&self, here: &Pool<C>) {
        if self.waiting.load(Ordering::SeqCst) <= self.leaving.load(Ordering::SeqCst) {
            return;
        }
        let pools: Vec<_> = self.pools.lock().iter().filter_map(Weak::upgrade).collect();
        let others = pools.iter().filter(|pool| !std::ptr::eq(&***pool, here));
        let mut idle: Vec<_> = others
            .filter_map(|pool| Some((pool.idle_since()?, pool)))
            .collect();
        idle.sort_by_key(|(since, _)| *since);
        let _ = idle.iter().any(|(_, pool)| pool.closes_idle());
    }
}

impl<C: Connect> Drop for Leaving<C> {
    fn drop(&mut self) {
        // Who still waits until then has one that is leaving.
        drop(self.share.take());
        self.account.leaving.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.here.fetch_sub(1, Ordering::SeqCst);
        self.all.fetch_sub(1, Ordering::SeqCst);
    }
}
