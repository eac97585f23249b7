//! Which articles are still there, computed from the marks of their buffers and never stored.
//!
//! An article is live when its position is at or above its buffer's floor.  Everything sealed keeps, per buffer, how
//! many of its rows are there and between which positions ([`BufferFacts`]), so that what is wholly alive or wholly
//! dead is known without reading it.

use std::fmt::Debug;

use newsreel_wire::{BufferId, Position, Token};
use smallvec::SmallVec;

use crate::cursor::{Bad, Cursor};

/// The store's marks, as far as the views need them.
pub trait Liveness: Send + Sync + Debug {
    /// Positions below this are gone.  Never falls.
    fn floor(&self, buffer: BufferId) -> Position;

    /// Octets from one cycle's start to the next one's, about: for estimates only.
    fn cycle_octets(&self, buffer: BufferId) -> u64;

    /// Changes whenever any floor moves.
    fn epoch(&self) -> u64;
}

/// The floors as one reader sees them: each buffer is asked once, so one answer is consistent in itself.
#[derive(Debug)]
pub(crate) struct Floors<'a> {
    liveness: &'a dyn Liveness,
    known: SmallVec<[(BufferId, Position); 4]>,
    /// Where they stood at some time, in the order of the buffers; none: where they stand.
    past: Option<&'a [(BufferId, Position)]>,
}

impl<'a> Floors<'a> {
    pub(crate) fn new(liveness: &'a dyn Liveness) -> Self {
        Self {
            liveness,
            known: SmallVec::new(),
            past: None,
        }
    }

    /// The floors as they once were; of a buffer that is not there none had moved.
    pub(crate) fn past(liveness: &'a dyn Liveness, past: &'a [(BufferId, Position)]) -> Self {
        Self {
            past: Some(past),
            ..Self::new(liveness)
        }
    }

    /// The buffer's floor.
    pub(crate) fn floor(&mut self, buffer: BufferId) -> Position {
        if let Some((_, floor)) = self.known.iter().find(|(known, _)| *known == buffer) {
            return *floor;
        }
        let mut floor = self.liveness.floor(buffer);
        if let Some(past) = self.past {
            let known = past.binary_search_by_key(&buffer, |(known, _)| *known);
            // After a power cut a floor may be lower than it was when it was noted, and articles there that were to go.
            floor = floor.min(known.map_or(Position::ZERO, |at| past[at].1));
        }
        self.known.push((buffer, floor));
        floor
    }

    /// Whether the article is still there.
    pub(crate) fn is_live(&mut self, token: &Token) -> bool {
        token.position() >= self.floor(token.buffer())
    }
}

/// How much of something is alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    /// Nothing.
    None,
    /// Some rows, which ones only the rows tell.
    Some,
    /// Everything.
    All,
}

/// Rows that lie in one buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BufferFacts {
    /// Smallest position.
    pub(crate) first: Position,
    /// Largest position.
    pub(crate) last: Position,
    /// How many.
    pub(crate) rows: u32,
    /// Which buffer.
    pub(crate) buffer: BufferId,
}

impl BufferFacts {
    fn live(&self, floors: &mut Floors<'_>) -> Share {
        let floor = floors.floor(self.buffer);
        if self.first >= floor {
            Share::All
        } else if self.last < floor {
            Share::None
        } else {
            Share::Some
        }
    }

    /// Appends the stored form.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.buffer.0.to_le_bytes());
        out.extend_from_slice(&self.rows.to_le_bytes());
        out.extend_from_slice(&self.first.0.to_le_bytes());
        out.extend_from_slice(&self.last.0.to_le_bytes());
    }

    /// Reads the stored form.
    pub(crate) fn decode(cursor: &mut Cursor<'_>) -> Result<Self, Bad> {
        let facts = Self {
            buffer: BufferId(cursor.u16()?),
            rows: cursor.u32()?,
            first: Position(cursor.u64()?),
            last: Position(cursor.u64()?),
        };
        if facts.first > facts.last || facts.rows == 0 {
            return Err(Bad("facts about a buffer contradict themselves"));
        }
        Ok(facts)
    }
}

/// Facts of a set of rows, one per buffer.
pub(crate) type FactsList = SmallVec<[BufferFacts; 2]>;

/// Counts one row in.
pub(crate) fn count_in(list: &mut FactsList, token: &Token) {
    let (buffer, position) = (token.buffer(), token.position());
    if let Some(facts) = list.iter_mut().find(|facts| facts.buffer == buffer) {
        facts.rows = facts.rows.saturating_add(1);
        facts.first = facts.first.min(position);
        facts.last = facts.last.max(position);
        return;
    }
    list.push(BufferFacts {
        first: position,
        last: position,
        rows: 1,
        buffer,
    });
}

/// How many rows are alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Alive {
    /// Alive for sure.
    pub(crate) rows: u64,
    /// Whether that is all there are, so that counting needs no look at the rows.
    pub(crate) exact: bool,
    /// Whether all, none or some are alive.
    pub(crate) share: Share,
}

/// How many of these rows are alive, as far as it can be told without looking at them.
pub(crate) fn alive(list: impl IntoIterator<Item = BufferFacts>, floors: &mut Floors<'_>) -> Alive {
    let (mut rows, mut any_dead, mut any_open) = (0, false, false);
    for facts in list {
        match facts.live(floors) {
            Share::All => rows += u64::from(facts.rows),
            Share::None => any_dead = true,
            Share::Some => any_open = true,
        }
    }
    let share = if any_open || (rows > 0 && any_dead) {
        Share::Some
    } else if any_dead {
        Share::None
    } else {
        Share::All
    };
    Alive {
        rows,
        exact: !any_open,
        share,
    }
}

/// About how many rows are dead, supposing that they are spread evenly over the octets written between the first and
/// the last position.
pub(crate) fn dead_estimate(list: &[BufferFacts], floors: &mut Floors<'_>) -> u64 {
    let mut dead = |facts: &BufferFacts| {
        let cycle_octets = u128::from(floors.liveness.cycle_octets(facts.buffer));
        let written =
            |at: Position| u128::from(at.cycle()) * cycle_octets + u128::from(at.offset());
        let (first, last) = (written(facts.first), written(facts.last));
        let floor = written(floors.floor(facts.buffer));
        let (gone, span) = (
            floor.saturating_sub(first),
            (last + 1).saturating_sub(first),
        );
        let dead = u128::from(facts.rows) * gone.min(span) / span.max(1);
        u64::try_from(dead).unwrap_or(u64::MAX)
    };
    list.iter().map(&mut dead).sum()
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use newsreel_wire::TokenParts;

    use super::*;

    /// Floors that a test moves; one per buffer 0..8.
    #[derive(Debug, Default)]
    pub(crate) struct Marks {
        floors: [AtomicU64; 8],
        epoch: AtomicU64,
    }

    impl Marks {
        pub(crate) fn raise(&self, buffer: u16, floor: u64) {
            self.floors[usize::from(buffer)].fetch_max(floor, Ordering::SeqCst);
            self.epoch.fetch_add(1, Ordering::SeqCst);
        }
    }

    impl Liveness for Marks {
        fn floor(&self, buffer: BufferId) -> Position {
            Position(self.floors[usize::from(buffer.0)].load(Ordering::SeqCst))
        }

        fn cycle_octets(&self, _: BufferId) -> u64 {
            6400
        }

        fn epoch(&self) -> u64 {
            self.epoch.load(Ordering::SeqCst)
        }
    }

    pub(crate) fn token(buffer: u16, position: u64) -> Token {
        Token::new(TokenParts {
            method: 1,
            buffer: BufferId(buffer),
            len: 1000,
            position: Position(position),
            ..TokenParts::default()
        })
    }

    #[test]
    fn shares_follow_the_floors() {
        let marks = Marks::default();
        let mut list = FactsList::new();
        for position in [10, 20, 30] {
            count_in(&mut list, &token(0, position));
        }
        count_in(&mut list, &token(1, 100));
        let check = |rows: u64, exact: bool, share: Share, dead: u64| {
            let mut floors = Floors::new(&marks);
            let expect = Alive { rows, exact, share };
            assert_eq!(alive(list.iter().copied(), &mut floors), expect);
            assert_eq!(dead_estimate(&list, &mut floors), dead);
        };
        check(4, true, Share::All, 0);
        marks.raise(0, 20);
        check(1, false, Share::Some, 1);
        marks.raise(0, 31);
        check(1, true, Share::Some, 3);
        marks.raise(1, 101);
        check(0, true, Share::None, 4);
    }

    #[test]
    fn what_is_live_now_was_never_gone() {
        let marks = Marks::default();
        marks.raise(0, 20);
        let past = [0, 1].map(|buffer| (BufferId(buffer), Position(30)));
        let mut floors = Floors::past(&marks, &past[..1]);
        assert!(floors.is_live(&token(0, 20)), "it is so after a power cut");
        assert!(!floors.is_live(&token(0, 19)));
        marks.raise(0, 90);
        let mut floors = Floors::past(&marks, &past[..1]);
        assert!(floors.is_live(&token(0, 30)), "it went later");
        assert!(!floors.is_live(&token(0, 29)));
        marks.raise(1, 90);
        assert!(Floors::past(&marks, &past[..1]).is_live(&token(1, 10)));
    }

    #[test]
    fn a_cycle_that_ends_between_the_rows_is_as_long_as_its_octets() {
        let marks = Marks::default();
        let mut list = FactsList::new();
        for nth in 0..100 {
            let position = Position::new(nth / 50, u64::from(nth % 50) * 128);
            count_in(&mut list, &token(2, position.0));
        }
        for (cycle, offset, dead) in [(0, 3200, 25), (0, 6272, 49), (1, 0, 50), (1, 3200, 75)] {
            marks.raise(2, Position::new(cycle, offset).0);
            let estimate = dead_estimate(&list, &mut Floors::new(&marks));
            assert!(estimate.abs_diff(dead) <= 1, "{estimate} of {dead}");
        }
    }
}
