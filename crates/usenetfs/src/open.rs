//! What is open: numbers given out for files and listings, until they are released.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use newsreel_host::node::{Errno, Outcome};
use parking_lot::RwLock;

/// A table of open things.
#[derive(Debug)]
pub(crate) struct Open<T> {
    next: AtomicU64,
    things: RwLock<HashMap<u64, Arc<T>>>,
}

impl<T> Default for Open<T> {
    fn default() -> Self {
        Self {
            next: AtomicU64::new(1),
            things: RwLock::default(),
        }
    }
}

impl<T> Open<T> {
    /// Gives a number for it.
    pub(crate) fn put(&self, thing: T) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.things.write().insert(number, Arc::new(thing));
        number
    }

    /// What has that number.
    pub(crate) fn get(&self, number: u64) -> Outcome<Arc<T>> {
        self.things.read().get(&number).cloned().ok_or(Errno::BADF)
    }

    /// Gives the number back.
    pub(crate) fn release(&self, number: u64) -> Option<Arc<T>> {
        self.things.write().remove(&number)
    }

    /// Whether there is one like that.
    pub(crate) fn any(&self, mut is_so: impl FnMut(&T) -> bool) -> bool {
        self.things.read().values().any(|thing| is_so(thing))
    }

    /// Does something with all of them.
    pub(crate) fn each(&self, act: impl FnMut(&T)) {
        self.things.read().values().map(Arc::as_ref).for_each(act);
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.things.read().len()
    }
}
