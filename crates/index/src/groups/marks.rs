//! The high marks: the largest number each group ever gave, as atomics that never move.
//!
//! Marks only rise.  They cover removed groups too: their numbers stay taken.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use newsreel_wire::{ArticleNumber, GroupId};

const SEGMENT: usize = 1 << 10;
const SEGMENTS: usize = 1 << 12;

/// Groups there can be in the life of a spool.
pub const GROUPS_MAX: usize = SEGMENT * SEGMENTS;

/// The marks, by group id.
#[derive(Debug)]
pub(crate) struct HighMarks {
    segments: Box<[OnceLock<Box<[AtomicU64]>>]>,
}

impl Default for HighMarks {
    fn default() -> Self {
        Self {
            segments: (0..SEGMENTS).map(|_| OnceLock::new()).collect(),
        }
    }
}

impl HighMarks {
    /// The largest number given.
    pub(crate) fn get(&self, group: GroupId) -> ArticleNumber {
        let at = group.0 as usize;
        let segment = self.segments.get(at / SEGMENT).and_then(OnceLock::get);
        let mark = segment.and_then(|segment| segment.get(at % SEGMENT));
        ArticleNumber(mark.map_or(0, |mark| mark.load(Ordering::Acquire)))
    }

    /// Raises a mark; `false` when it was there already (or there is no such group).
    pub(crate) fn raise(&self, group: GroupId, number: ArticleNumber) -> bool {
        let at = group.0 as usize;
        let Some(segment) = self.segments.get(at / SEGMENT) else {
            return false;
        };
        let segment = segment.get_or_init(|| (0..SEGMENT).map(|_| AtomicU64::new(0)).collect());
        let Some(mark) = segment.get(at % SEGMENT) else {
            return false;
        };
        // One thread raises marks, so this needs no exchange.
        if mark.load(Ordering::Relaxed) >= number.0 {
            return false;
        }
        mark.store(number.0, Ordering::Release);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_only_rise() {
        let marks = HighMarks::default();
        assert!(marks.raise(GroupId(70_000), ArticleNumber(5)));
        assert!(!marks.raise(GroupId(70_000), ArticleNumber(5)));
        assert!(
            !marks.raise(GroupId(u32::MAX), ArticleNumber(5)),
            "no place"
        );
        assert_eq!(marks.get(GroupId(70_000)), ArticleNumber(5));
        assert_eq!(marks.get(GroupId(70_001)), ArticleNumber(0));
    }
}
