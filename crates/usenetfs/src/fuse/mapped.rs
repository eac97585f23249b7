//! Files that may be written through memory: nothing tells the server, nor the kernel's front, when that changes their times.
//!
//! A mapping outlives the descriptor it was made with, so a file that was ever opened for it stays one until the kernel
//! forgets its inode.  Only what is open for reading and writing can be mapped to be written.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use fuser::{INodeNo, Notifier, OpenAccMode, OpenFlags};
use parking_lot::Mutex;

/// The inodes whose times may change by themselves.
#[derive(Debug, Default, Clone)]
pub(crate) struct Mapped(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    nodes: Mutex<HashSet<u64>>,
    kernel: OnceLock<Notifier>,
}

impl Mapped {
    /// From now on the kernel can be told something.
    pub(crate) fn listen(&self, kernel: Notifier) {
        // There is one session.
        let _ = self.0.kernel.set(kernel);
    }

    /// A node is opened.
    pub(super) fn open(&self, node: u64, flags: OpenFlags) {
        if flags.acc_mode() == OpenAccMode::O_RDWR {
            self.0.nodes.lock().insert(node);
        }
    }

    /// Whether a node's times may change at any moment.
    pub(super) fn has(&self, node: u64) -> bool {
        self.0.nodes.lock().contains(&node)
    }

    /// An open of a node ends: what the kernel knows of it from before may be wrong.
    pub(super) fn release(&self, node: u64) {
        if let Some(kernel) = self.0.kernel.get().filter(|_| self.has(node)) {
            // Attributes only.  One that the kernel has forgotten meanwhile is as well.
            let _ = kernel.inval_inode(INodeNo(node), -1, 0);
        }
    }

    /// The kernel knows a node no longer.
    pub(super) fn forget(&self, node: u64) {
        self.0.nodes.lock().remove(&node);
    }
}
