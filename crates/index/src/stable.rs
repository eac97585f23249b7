//! A table that only grows, read without locks: entries never move, so readers keep plain references.
//!
//! One thread appends, readers may run at any time.  It frees nothing before it is dropped as a whole.

use std::sync::OnceLock;

/// Entries in a segment.
const SEGMENT: usize = 1 << 10;
/// Segments.
const SEGMENTS: usize = 1 << 12;

/// A growing table of up to four million entries.
#[derive(Debug)]
pub(crate) struct StableVec<T> {
    segments: Box<[OnceLock<Segment<T>>]>,
}

type Segment<T> = Box<[OnceLock<T>]>;

impl<T> Default for StableVec<T> {
    fn default() -> Self {
        Self {
            segments: (0..SEGMENTS).map(|_| OnceLock::new()).collect(),
        }
    }
}

impl<T> StableVec<T> {
    /// The entry, if it was set.
    pub(crate) fn get(&self, at: usize) -> Option<&T> {
        self.segments
            .get(at / SEGMENT)?
            .get()?
            .get(at % SEGMENT)?
            .get()
    }

    /// Sets an entry that was not set before; `false` when there is no such place or it was set already.
    pub(crate) fn set(&self, at: usize, value: T) -> bool {
        let Some(segment) = self.segments.get(at / SEGMENT) else {
            return false;
        };
        let segment = segment.get_or_init(|| (0..SEGMENT).map(|_| OnceLock::new()).collect());
        segment[at % SEGMENT].set(value).is_ok()
    }
}

impl<T> StableVec<T> {
    /// Takes out the entries from the start up to the first that was not set.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = T> {
        let segments = self.segments.iter_mut().map_while(OnceLock::get_mut);
        segments
            .flat_map(|segment| segment.iter_mut())
            .map_while(OnceLock::take)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_set_once_and_the_end_is_known() {
        let table = StableVec::default();
        assert!(table.set(5000, "a"));
        assert!(!table.set(5000, "b"), "set twice");
        assert!(!table.set(SEGMENT * SEGMENTS, "c"));
        assert_eq!(table.get(5000), Some(&"a"));
        assert_eq!((table.get(4999), table.get(9_999_999)), (None, None));
    }
}
