//! Articles that wait for a connection, in the order in which they go out.
//!
//! They go out window by window: what waits when the one before it was taken up is the next one.  A window is put in the order of groups and
//! numbers where that is wanted; while the log is read for it nothing of it goes, so that a backlog leaves in windows as large as may be,
//! and what comes to a feed that keeps up at once.

use std::collections::VecDeque;
use std::mem;

use super::Item;

/// A line of articles.
#[derive(Debug)]
pub(super) struct Line {
    by_group: bool,
    /// What goes out next.
    window: VecDeque<Item>,
    /// What goes out behind that.
    coming: VecDeque<Item>,
    /// The log is read for more of that.
    gathers: bool,
}

impl Line {
    /// One that gathers until somebody knows how far the log was read.
    pub(super) const fn new(by_group: bool) -> Self {
        Self {
            by_group,
            window: VecDeque::new(),
            coming: VecDeque::new(),
            gathers: by_group,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.window.len() + self.coming.len()
    }

    /// How many may go.
    pub(super) fn ready(&self) -> usize {
        match self.gathers {
            true => self.window.len(),
            false => self.len(),
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Item> {
        self.window.iter().chain(&self.coming)
    }

    /// Whether the log is read for more.
    pub(super) const fn gathers(&self) -> bool {
        self.gathers
    }

    /// Says whether the log is read for more; whether something may go now that could not.
    pub(super) fn gather(&mut self, is_read: bool) -> bool {
        let gathered = mem::replace(&mut self.gathers, self.by_group && is_read);
        gathered && !self.gathers && !self.coming.is_empty()
    }

    pub(super) fn push(&mut self, item: Item) {
        self.coming.push_back(item);
    }

    /// These go before all others, or at their places in the window.
    pub(super) fn give_back(&mut self, items: Vec<Item>) {
        for item in items.into_iter().rev() {
            self.window.push_front(item);
        }
        self.sort();
    }

    /// The next one that may go.
    pub(super) fn pop(&mut self) -> Option<Item> {
        if self.window.is_empty() && !self.gathers {
            mem::swap(&mut self.window, &mut self.coming);
            self.sort();
        }
        self.window.pop_front()
    }

    pub(super) fn clear(&mut self) {
        self.window.clear();
        self.coming.clear();
    }

    fn sort(&mut self) {
        if self.by_group {
            let filed = |item: &Item| (item.offered.filed, item.offered.sequence);
            self.window.make_contiguous().sort_by_key(filed);
        }
    }
}
