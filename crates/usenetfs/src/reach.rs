//! How the server gets from a node to its inode: by a handle, or, where only root may open those, by a name.
//!
//! By handle nothing has to be kept.  By name the last place where a node was seen is remembered, and a bounded number of
//! them stay pinned; a node whose place is not right any more is stale, and the kernel looks its name up again.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::mem;
use std::sync::Arc;

use newsreel_host::node::{Errno, HandleRoot, OpenFile, Outcome, Pin};
use parking_lot::Mutex;

use crate::folders::Dir;
use crate::graves::Graves;
use crate::nodes::Nodes;

/// So many nodes stay pinned for their next use, twice: young ones and old ones.
const PINNED_MAX: usize = 256;

/// The way to nodes.
#[derive(Debug)]
pub(crate) enum Reach {
    /// By the handle in the table.
    Handles(HandleRoot),
    /// By the name it was last seen under.
    Names(Mutex<Known>),
}

/// What is known of nodes that are reached by name.
#[derive(Debug, Default)]
pub(crate) struct Known {
    places: HashMap<u64, (u64, OsString)>,
    young: HashMap<u64, Arc<Pin>>,
    old: HashMap<u64, Arc<Pin>>,
}

impl Reach {
    /// A node was seen under a name.
    pub(crate) fn seen(&self, node: u64, dir: &Dir, name: &OsStr) {
        if let Self::Names(known) = self {
            let place = (dir.node, name.to_os_string());
            known.lock().places.insert(node, place);
        }
    }

    /// The kernel forgot a node.
    pub(crate) fn forget(&self, node: u64) {
        if let Self::Names(known) = self {
            let mut known = known.lock();
            known.places.remove(&node);
            known.young.remove(&node);
            known.old.remove(&node);
        }
    }

    /// Whether names have to be followed.
    pub(crate) const fn is_by_name(&self) -> bool {
        matches!(self, Self::Names(_))
    }

    /// Pins a node; `find` goes to an entry of a directory.
    pub(crate) fn pin(
        &self,
        node: u64,
        nodes: &Nodes,
        graves: &Graves,
        find: impl FnOnce(u64, &OsStr) -> Outcome<Pin>,
    ) -> Outcome<Arc<Pin>> {
        let handle = nodes.handle(node).ok_or(Errno::STALE)?;
        let known = match self {
            Self::Handles(root) => return Pin::by_handle(root, &handle).map(Arc::new),
            Self::Names(known) => known,
        };
        if let Some(pin) = graves.get(node) {
            return Ok(pin);
        }
        let (kept, place) = {
            let mut known = known.lock();
            (known.kept(node), known.places.get(&node).cloned())
        };
        if let Some(pin) = kept {
            return Ok(pin);
        }
        let (parent, name) = place.ok_or(Errno::STALE)?;
        let pin = find(parent, &name).map_err(|errno| match errno {
            Errno::NOENT => Errno::STALE,
            other => other,
        })?;
        if newsreel_host::node::Handle::of(&pin)? != handle {
            return Err(Errno::STALE);
        }
        let pin = Arc::new(pin);
        known.lock().keep(node, &pin);
        Ok(pin)
    }

    /// Opens the file of a node; `flags` as of `open(2)`.
    pub(crate) fn open(
        &self,
        node: u64,
        nodes: &Nodes,
        flags: i32,
        pin: impl FnOnce() -> Outcome<Arc<Pin>>,
    ) -> Outcome<OpenFile> {
        match self {
            Self::Handles(root) => {
                let handle = nodes.handle(node).ok_or(Errno::STALE)?;
                OpenFile::by_handle(root, &handle, flags)
            }
            Self::Names(_) => pin()?.open_file(flags),
        }
    }
}

impl Known {
    fn kept(&mut self, node: u64) -> Option<Arc<Pin>> {
        if let Some(pin) = self.young.get(&node) {
            return Some(Arc::clone(pin));
        }
        let pin = self.old.remove(&node)?;
        self.keep(node, &pin);
        Some(pin)
    }

    fn keep(&mut self, node: u64, pin: &Arc<Pin>) {
        if self.young.len() >= PINNED_MAX {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(node, Arc::clone(pin));
    }
}
