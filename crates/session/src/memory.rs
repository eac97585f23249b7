//! The memory that large articles take, on their way in and out, of all connections together.
//!
//! Small ones are bounded by what a connection has under way.  A large one needs room for all of it before its fate is
//! known, or until its reader has taken it, and many slow connections at once would need more than a machine has.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Octets that may be held, and how many are.
#[derive(Debug)]
pub(crate) struct Budget {
    octets_max: usize,
    held: AtomicUsize,
}

impl Budget {
    pub(crate) const fn new(octets_max: usize) -> Self {
        Self {
            octets_max,
            held: AtomicUsize::new(0),
        }
    }

    /// Holds so many octets until the hold is dropped; `None`: too many are held.
    pub(crate) fn hold(self: &Arc<Self>, octets: usize) -> Option<Hold> {
        let within = |held: usize| {
            held.checked_add(octets)
                .filter(|all| *all <= self.octets_max)
        };
        self.held
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, within)
            .ok()?;
        Some(Hold {
            budget: Arc::clone(self),
            octets,
        })
    }
}

/// Large articles take too much already.
#[derive(Debug)]
pub(crate) struct NoRoom;

/// Octets held.
#[derive(Debug)]
pub(crate) struct Hold {
    budget: Arc<Budget>,
    octets: usize,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.budget.held.fetch_sub(self.octets, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_can_be_held_again() {
        let budget = Arc::new(Budget::new(100));
        let first = budget.hold(60);
        assert!(first.is_some() && budget.hold(41).is_none());
        let second = budget.hold(40);
        assert!(second.is_some() && budget.hold(1).is_none());
        drop(first);
        assert!(budget.hold(60).is_some());
        assert!(budget.hold(usize::MAX).is_none());
    }
}
