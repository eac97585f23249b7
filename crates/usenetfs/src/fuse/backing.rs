//! Which open files the kernel reads and writes itself.
//!
//! The kernel takes one backing per inode, and all opens of an inode at one time must be of one kind; otherwise it
//! answers EIO.  So the first open of an inode decides, until the last one is closed.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Weak};

use fuser::BackingId;
use newsreel_host::node::OpenFile;
use parking_lot::Mutex;

#[derive(Debug)]
struct Used {
    backing: Option<Arc<BackingId>>,
    /// The file that was opened first, for as long as it is.
    file: Weak<OpenFile>,
    opens: u64,
}

/// The inodes that are open.
#[derive(Debug, Default)]
pub(super) struct Backings(Mutex<HashMap<u64, Used>>);

impl Backings {
    /// One more open of a node; the first one may register a backing.
    pub(super) fn open(
        &self,
        node: u64,
        file: &Arc<OpenFile>,
        register: impl FnOnce() -> Option<io::Result<BackingId>>,
    ) -> Option<Arc<BackingId>> {
        let mut all = self.0.lock();
        let used = all.entry(node).or_insert_with(|| Used {
            // A backing that the kernel does not take (a stacked file system, say) is none.
            backing: register().and_then(Result::ok).map(Arc::new),
            file: Arc::downgrade(file),
            opens: 0,
        });
        used.opens += 1;
        used.backing.clone()
    }

    /// A file that is open on a node: the shortest way to it.
    pub(super) fn file(&self, node: u64) -> Option<Arc<OpenFile>> {
        self.0.lock().get(&node)?.file.upgrade()
    }

    /// One open less.
    pub(super) fn release(&self, node: u64) {
        let mut all = self.0.lock();
        let Some(used) = all.get_mut(&node) else {
            return;
        };
        used.opens -= 1;
        if used.opens == 0 {
            all.remove(&node);
        }
    }
}
