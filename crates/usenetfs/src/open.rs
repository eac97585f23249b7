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
    /// Each with the node it is open on.
    things: RwLock<HashMap<u64, (u64, Arc<T>)>>,
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
    pub(crate) fn put(&self, node: u64, thing: T) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.things.write().insert(number, (node, Arc::new(thing)));
        number
    }

    /// What has that number.
    pub(crate) fn get(&self, number: u64) -> Outcome<Arc<T>> {
        let things = self.things.read();
        let (_, thing) = things.get(&number).ok_or(Errno::BADF)?;
        Ok(Arc::clone(thing))
    }

    /// One that is open on a node.
    pub(crate) fn on(&self, node: u64) -> Option<Arc<T>> {
        let things = self.things.read();
        let (_, thing) = things.values().find(|(of, _)| *of == node)?;
        Some(Arc::clone(thing))
    }

    /// Gives the number back.
    pub(crate) fn release(&self, number: u64) -> Option<Arc<T>> {
        let (_, thing) = self.things.write().remove(&number)?;
        Some(thing)
    }

    /// Whether there is one like that.
    pub(crate) fn any(&self, mut is_so: impl FnMut(&T) -> bool) -> bool {
        self.things.read().values().any(|(_, thing)| is_so(thing))
    }

    /// Does something with all of them.
    pub(crate) fn each(&self, act: impl FnMut(&T)) {
        let things = self.things.read();
        things.values().map(|(_, thing)| &**thing).for_each(act);
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.things.read().len()
    }
}
