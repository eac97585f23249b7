//! Targets of cancels that are on their way to the sequencer: whether one of them was filed meanwhile.
//!
//! A cancel takes effect when its own message is filed and no earlier, as that may be refused.  Its target is looked up before, on a
//! thread that may wait for the disk; a target that is filed between the two is noted here, with what the log has to say
//! when it goes again.  There are as many as there are cancels under way.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use newsreel_service::cancel_lock::LockPrints;
use newsreel_wire::{IdHash, UnixTime};
use parking_lot::Mutex;

use crate::places::Places;

/// What is known of a target that was filed.
#[derive(Debug, Clone)]
pub(crate) struct Filed {
    pub(crate) arrival: UnixTime,
    pub(crate) places: Places,
    /// None: it has no Cancel-Lock.
    pub(crate) locks: Option<LockPrints>,
}

/// A target that somebody watches.
#[derive(Debug, Default)]
struct Target {
    watches: usize,
    filed: Option<Filed>,
}

/// All targets that are watched.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    targets: Mutex<HashMap<IdHash, Target>>,
    /// How many there are, for who need not look then.
    count: AtomicUsize,
}

impl Watched {
    /// From now on it is noted when this is filed, until the watch ends.
    pub(crate) fn watch(self: &Arc<Self>, target: IdHash) -> Watch {
        let mut targets = self.targets.lock();
        targets.entry(target).or_default().watches += 1;
        self.count.store(targets.len(), Ordering::Release);
        Watch {
            watched: Arc::clone(self),
            target,
        }
    }

    /// This was filed.
    pub(crate) fn note(&self, id: &IdHash, filed: impl FnOnce() -> Filed) {
        if self.count.load(Ordering::Acquire) > 0
            && let Some(target) = self.targets.lock().get_mut(id)
        {
            target.filed = Some(filed());
        }
    }
}

/// One target is watched; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    watched: Arc<Watched>,
    target: IdHash,
}

impl Watch {
    /// The target, if it was filed since somebody watches it.
    pub(crate) fn filed(&self) -> Option<Filed> {
        let targets = self.watched.targets.lock();
        targets.get(&self.target)?.filed.clone()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut targets = self.watched.targets.lock();
        if let Some(target) = targets.get_mut(&self.target) {
            target.watches -= 1;
            if target.watches == 0 {
                targets.remove(&self.target);
            }
        }
        self.watched.count.store(targets.len(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_filed_is_noted_as_long_as_somebody_watches() {
        let watched = Arc::new(Watched::default());
        let (one, other) = (IdHash([1; 16]), IdHash([2; 16]));
        let filed = |arrival| {
            move || Filed {
                arrival: UnixTime(arrival),
                places: Places::new(),
                locks: None,
            }
        };
        let arrival = |watch: &Watch| watch.filed().map(|filed| filed.arrival.0);
        watched.note(&one, filed(1));
        let (first, second) = (watched.watch(one), watched.watch(one));
        assert_eq!(arrival(&first), None, "nobody watched then");
        watched.note(&other, filed(2));
        watched.note(&one, filed(3));
        assert_eq!((arrival(&first), arrival(&second)), (Some(3), Some(3)));
        drop(first);
        assert_eq!(arrival(&second), Some(3));
        drop(second);
        assert!(watched.targets.lock().is_empty());
        assert_eq!(watched.count.load(Ordering::Acquire), 0);
        assert_eq!(arrival(&watched.watch(one)), None);
    }
}
