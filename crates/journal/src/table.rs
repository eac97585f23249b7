//! The segments there are: which sequences each holds and how far it may be read.
//!
//! Kept under one lock that is taken once per frame written and once per window read, never while the disk works.
//! The index is sparse, so that memory stays small however many frames there are.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use newsreel_wire::Sequence;

/// One index entry per so many octets of a segment.
const INDEX_STEP_OCTETS: u64 = 256 * 1024;

/// What `status` shows of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentFacts {
    /// Its id, never reused.
    pub id: u64,
    /// The first sequence in it.
    pub first: Sequence,
    /// Octets of its file.
    pub octets: u64,
}

/// A segment that holds frames.
#[derive(Debug, Clone)]
pub(crate) struct Segment {
    pub(crate) id: u64,
    pub(crate) path: PathBuf,
    pub(crate) first: Sequence,
    pub(crate) follows: Sequence,
    pub(crate) epoch: u64,
    /// Frames may be read up to here.
    pub(crate) end: u64,
    /// Octets of the file.
    pub(crate) octets: u64,
    /// Frames at or behind this sequence were given up.
    pub(crate) limit: Sequence,
    /// Some frames' first sequences and offsets, ascending.
    pub(crate) index: Vec<(Sequence, u64)>,
}

impl Segment {
    /// Remembers where a frame is, if none near it is remembered.
    pub(crate) fn note(&mut self, first: Sequence, offset: u64) {
        if self
            .index
            .last()
            .is_none_or(|(_, at)| offset >= at + INDEX_STEP_OCTETS)
        {
            self.index.push((first, offset));
        }
    }

    /// The last remembered frame that begins at or before `sequence`.
    pub(crate) fn nearest(&self, sequence: Sequence) -> Option<(Sequence, u64)> {
        let behind = self.index.partition_point(|(first, _)| *first <= sequence);
        self.index.get(behind.checked_sub(1)?).copied()
    }

    /// Without the index, for a reader on its way.
    pub(crate) fn outline(&self) -> Self {
        Self {
            path: self.path.clone(),
            index: Vec::new(),
            ..*self
        }
    }
}

/// The segments, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Table {
    segments: VecDeque<Segment>,
}

impl Table {
    pub(crate) fn push(&mut self, segment: Segment) {
        self.segments.push_back(segment);
    }

    pub(crate) fn last_mut(&mut self) -> Option<&mut Segment> {
        self.segments.back_mut()
    }

    pub(crate) fn find(&self, id: u64) -> Option<&Segment> {
        let at = self.segments.partition_point(|segment| segment.id < id);
        self.segments.get(at).filter(|segment| segment.id == id)
    }

    /// The segment behind `id`.
    pub(crate) fn after(&self, id: u64) -> Option<&Segment> {
        let at = self.segments.partition_point(|segment| segment.id <= id);
        self.segments.get(at)
    }

    /// The segment in which `sequence` is or would be.
    pub(crate) fn holding(&self, sequence: Sequence) -> Option<&Segment> {
        let live = |segment: &&Segment| segment.first < segment.limit;
        self.segments
            .iter()
            .rev()
            .filter(live)
            .find(|segment| segment.follows <= sequence)
    }

    /// The oldest sequence that can be read.
    pub(crate) fn oldest(&self) -> Option<Sequence> {
        self.segments.front().map(|segment| segment.follows)
    }

    /// Sequences from `first` on were given up: what is in the segments so far at or behind it counts no more.
    pub(crate) fn limit(&mut self, first: Sequence) {
        for segment in &mut self.segments {
            segment.limit = segment.limit.min(first);
        }
    }

    /// Takes out the segments that hold nothing at or behind `before`; the last one always stays.
    pub(crate) fn retire_before(&mut self, before: Sequence) -> Vec<Segment> {
        let mut retired = Vec::new();
        while self
            .segments
            .get(1)
            .is_some_and(|next| next.first <= before)
        {
            retired.extend(self.segments.pop_front());
        }
        retired
    }

    pub(crate) fn facts(&self) -> Vec<SegmentFacts> {
        let facts = |s: &Segment| SegmentFacts {
            id: s.id,
            first: s.first,
            octets: s.octets,
        };
        self.segments.iter().map(facts).collect()
    }
}

/// The path of a segment.
pub(crate) fn path_of(dir: &Path, id: u64) -> PathBuf {
    dir.join(format!("{id:016x}.log"))
}

/// The id in a segment's name.
pub(crate) fn id_of(name: &str) -> Option<u64> {
    let digits = name
        .strip_suffix(".log")
        .filter(|digits| digits.len() == 16)?;
    let plain = digits
        .bytes()
        .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    // Half of all numbers is never reached by counting: such a name is not ours.
    u64::from_str_radix(digits, 16)
        .ok()
        .filter(|id| plain && *id <= u64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(firsts: &[u64]) -> Table {
        let mut table = Table::default();
        for (id, first) in (1..).zip(firsts) {
            table.push(Segment {
                id,
                path: path_of(Path::new("log"), id),
                first: Sequence(*first),
                follows: Sequence(*first),
                epoch: 1,
                end: 0,
                octets: 10,
                limit: Sequence(u64::MAX),
                index: Vec::new(),
            });
        }
        table
    }

    #[test]
    fn names_round_trip_and_others_are_not_segments() {
        let path = path_of(Path::new("log"), 0xab);
        assert_eq!(path, Path::new("log/00000000000000ab.log"));
        assert_eq!(id_of("00000000000000ab.log"), Some(0xab));
        for other in [
            "00000000000000AB.log",
            "ab.log",
            "00000000000000ab",
            "ffffffffffffffff.log",
            "+0000000000000ab.log",
        ] {
            assert_eq!(id_of(other), None, "{other}");
        }
    }

    #[test]
    fn segments_are_found_by_sequence_and_retired_from_the_front() {
        let mut table = table(&[1, 10, 20]);
        let id = |segment: Option<&Segment>| segment.map(|segment| segment.id);
        assert_eq!(id(table.holding(Sequence(0))), None);
        assert_eq!(id(table.holding(Sequence(9))), Some(1));
        assert_eq!(id(table.holding(Sequence(10))), Some(2));
        assert_eq!(id(table.holding(Sequence(99))), Some(3));
        assert_eq!(
            (id(table.find(2)), id(table.after(2)), id(table.after(3))),
            (Some(2), Some(3), None)
        );
        assert_eq!(table.retire_before(Sequence(9)).len(), 0);
        assert_eq!(table.retire_before(Sequence(10)).len(), 1);
        assert_eq!(table.oldest(), Some(Sequence(10)));
        assert_eq!(
            table.retire_before(Sequence(1000)).len(),
            1,
            "the last one stays"
        );
        assert_eq!(
            table.facts(),
            [SegmentFacts {
                id: 3,
                first: Sequence(20),
                octets: 10
            }]
        );
    }

    #[test]
    fn the_index_is_sparse() {
        let mut table = table(&[1]);
        let segment = table.last_mut().unwrap();
        for n in 0..1000 {
            segment.note(Sequence(1 + n), 4096 + n * 4096);
        }
        assert_eq!(segment.index.len(), 16);
        assert_eq!(segment.nearest(Sequence(0)), None);
        assert_eq!(segment.nearest(Sequence(64)), Some((Sequence(1), 4096)));
        assert_eq!(
            segment.nearest(Sequence(65)),
            Some((Sequence(65), 4096 * 65))
        );
    }
}
