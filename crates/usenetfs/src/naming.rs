//! Whether names changed while something was looked at without being held: then it is looked at again, and held.
//!
//! Counts what this server does; it says nothing about what others do to the real directory.

use std::sync::atomic::{AtomicU64, Ordering};

/// Changes of names that have begun, and those that have ended.
#[derive(Debug, Default)]
pub(crate) struct Naming {
    begun: AtomicU64,
    ended: AtomicU64,
}

/// A change of names, for as long as it lives.
#[derive(Debug)]
pub(crate) struct Change<'a>(&'a Naming);

impl Naming {
    /// Names change from now on.
    pub(crate) fn change(&self) -> Change<'_> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        Change(self)
    }

    /// Looks at something; nothing is said of it if names changed meanwhile.
    pub(crate) fn unless_changed<T>(&self, look: impl FnOnce() -> T) -> Option<T> {
        let ended = self.ended.load(Ordering::SeqCst);
        let begun = self.begun.load(Ordering::SeqCst);
        if begun != ended {
            return None;
        }
        let seen = look();
        (self.begun.load(Ordering::SeqCst) == begun).then_some(seen)
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_seen_while_names_changed_is_not_told() {
        let naming = Naming::default();
        assert_eq!(naming.unless_changed(|| 1), Some(1));
        let change = naming.change();
        assert_eq!(naming.unless_changed(|| 1), None);
        drop(change);
        assert_eq!(naming.unless_changed(|| 1), Some(1));
        assert_eq!(naming.unless_changed(|| drop(naming.change())), None);
        let mut begun = None;
        let seen = naming.unless_changed(|| begun = Some(naming.change()));
        assert_eq!(seen, None);
    }
}
