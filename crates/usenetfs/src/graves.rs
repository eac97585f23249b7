//! Inodes whose last name is gone while the kernel still knows of them: held, so that their numbers are not used again.
//!
//! Somebody may have found the name just before it went, and be about to open what it named: that works, as it does
//! natively.  If the number had come to another inode meanwhile, the kernel would answer EIO.  The kernel forgets such
//! inodes soon, unless they are open, and then their descriptor here is one more.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use newsreel_host::node::{Errno, Outcome, Pin};
use parking_lot::Mutex;

/// So many are held; beyond that the oldest are let go.
const HELD_MAX: usize = 4096;

/// The inodes that are held.
#[derive(Debug, Default)]
pub(crate) struct Graves(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    next: u64,
    by_node: HashMap<u64, (u64, Arc<Pin>)>,
    by_age: BTreeMap<u64, u64>,
}

impl Graves {
    /// Holds an inode that has no name any more.
    pub(crate) fn hold(&self, node: u64, pin: Pin) {
        let mut held = self.0.lock();
        let age = held.next;
        held.next += 1;
        if let Some((age, _)) = held.by_node.insert(node, (age, Arc::new(pin))) {
            held.by_age.remove(&age);
        }
        held.by_age.insert(age, node);
        if held.by_age.len() > HELD_MAX
            && let Some((_, oldest)) = held.by_age.pop_first()
        {
            held.by_node.remove(&oldest);
        }
    }

    /// Does something that takes room; when there is none, once more with what is held here let go.
    pub(crate) fn make_room<T>(&self, mut act: impl FnMut() -> Outcome<T>) -> Outcome<T> {
        match act() {
            Err(Errno::NOSPC | Errno::DQUOT) if self.open() => act(),
            other => other,
        }
    }

    /// An inode that is held.
    pub(crate) fn get(&self, node: u64) -> Option<Arc<Pin>> {
        let held = self.0.lock();
        held.by_node.get(&node).map(|(_, pin)| Arc::clone(pin))
    }

    /// The kernel forgot it.
    pub(crate) fn release(&self, node: u64) {
        let mut held = self.0.lock();
        if let Some((age, _)) = held.by_node.remove(&node) {
            held.by_age.remove(&age);
        }
    }

    /// Lets all of them go; says whether there were any.
    pub(crate) fn open(&self) -> bool {
        let held = std::mem::take(&mut *self.0.lock());
        !held.by_node.is_empty()
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.lock().by_node.len()
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use newsreel_host::Folder;

    use super::*;

    #[test]
    fn a_bounded_number_is_held() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::open(dir.path()).unwrap();
        let graves = Graves::default();
        let most = 300;
        for node in 0..most {
            graves.hold(node % 200, Pin::at(&folder, OsStr::new(".")).unwrap());
        }
        assert_eq!(graves.len(), 200);
        (0..100).for_each(|node| graves.release(node));
        let mut tried = 0;
        let made = graves.make_room(|| {
            tried += 1;
            Err::<(), _>(Errno::NOSPC)
        });
        assert_eq!((made, tried), (Err(Errno::NOSPC), 2));
        assert_eq!((graves.len(), graves.0.lock().by_age.len()), (0, 0));
    }
}
