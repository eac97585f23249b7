//! What a view did otherwise than it was asked to, for whoever keeps a log: a bounded queue, and the last of it for a status.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use parking_lot::Mutex;

/// So many wait for whoever writes them; what is beyond is counted only.
const WAITING_MAX: usize = 64;

/// The set-uid bit of a directory that is not empty was to be changed, and stayed as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BitKept {
    /// The real directory.
    pub directory: PathBuf,
    /// Its inode.
    pub inode: u64,
    /// Whether it stayed managed.
    pub is_managed: bool,
}

/// The queue.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    listener: Mutex<Option<SyncSender<BitKept>>>,
    last_inode: Mutex<Option<u64>>,
}

impl Notices {
    /// Everything that comes from now on, until the view ends.
    pub(crate) fn listen(&self) -> Receiver<BitKept> {
        let (sender, receiver) = sync_channel(WAITING_MAX);
        *self.listener.lock() = Some(sender);
        receiver
    }

    pub(crate) fn tell(&self, notice: BitKept) {
        *self.last_inode.lock() = Some(notice.inode);
        if let Some(listener) = &*self.listener.lock() {
            // Whoever writes them is behind: the counter tells of all.
            let _ = listener.try_send(notice);
        }
    }

    /// The inode of the last one.
    pub(crate) fn last_inode(&self) -> Option<u64> {
        *self.last_inode.lock()
    }
}
