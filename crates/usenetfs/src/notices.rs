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
    /// Whether it stayed managed.
    pub is_managed: bool,
}

/// The queue.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    listener: Mutex<Option<SyncSender<BitKept>>>,
    last: Mutex<Option<BitKept>>,
}

impl Notices {
    /// Everything that comes from now on, until the view ends.
    pub(crate) fn listen(&self) -> Receiver<BitKept> {
        let (sender, receiver) = sync_channel(WAITING_MAX);
        *self.listener.lock() = Some(sender);
        receiver
    }

    pub(crate) fn tell(&self, notice: BitKept) {
        if let Some(listener) = &*self.listener.lock() {
            // Whoever writes them is behind: the counter tells of all.
            let _ = listener.try_send(notice.clone());
        }
        *self.last.lock() = Some(notice);
    }

    /// The last one.
    pub(crate) fn last(&self) -> Option<BitKept> {
        self.last.lock().clone()
    }
}
