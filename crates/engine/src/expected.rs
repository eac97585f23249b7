//! What should lie in a buffer: the places to which the history leads, in order, beside a walk over what lies there.
//!
//! A walk tells what it meets.  Zeros, and what an older cycle left, look like places where nothing was ever written: that an
//! article is missing there is known only from the history.  It is sorted by hashes, so all of it is asked once for as many places as
//! are kept in mind, a piece at a time.  Where it cannot be asked nothing is expected, and the walk is told so.

use std::sync::Arc;

use newsreel_index::TokenWalk;
use newsreel_store::BufferReader;
use newsreel_wire::Position;

use crate::lowest::Lowest;
use crate::shared::Shared;

/// So many places are kept in mind at once, 8 octets each: some gigabytes of a buffer.
pub const PLACES_AT_ONCE: usize = 1 << 22;
/// Behind all places.
const END: Position = Position(u64::MAX);

/// The places of one buffer.
#[derive(Debug)]
pub(crate) struct Expected<'a> {
    shared: &'a Shared,
    buffer: &'a Arc<dyn BufferReader>,
    /// In order; those before `at` are passed.
    places: Vec<Position>,
    at: usize,
    /// All before this are among them.
    known: Position,
    asking: Option<(TokenWalk, Lowest<Position>)>,
    /// Passed, and nothing was met there.
    missed: Vec<Position>,
    /// Something was missed since somebody asked.
    has_missed: bool,
    /// The history cannot be asked.
    is_blind: bool,
    octets_read: u64,
}

impl<'a> Expected<'a> {
    /// From a position on.
    pub(crate) fn new(
        shared: &'a Shared,
        buffer: &'a Arc<dyn BufferReader>,
        from: Position,
    ) -> Self {
        Self {
            shared,
            buffer,
            places: Vec::new(),
            at: 0,
            known: from,
            asking: None,
            missed: Vec::new(),
            has_missed: false,
            is_blind: false,
            octets_read: 0,
        }
    }

    /// Nobody is to ask.
    pub(crate) const fn ask_nothing(&mut self) {
        self.is_blind = true;
    }

    /// Nothing is known of what should be there.
    pub(crate) const fn is_blind(&self) -> bool {
        self.is_blind
    }

    /// Octets of the history that were read.
    pub(crate) const fn octets_read(&self) -> u64 {
        self.octets_read
    }

    /// Whether everything up to here, and at it, is known; if not, a piece more is asked for.
    pub(crate) fn is_known(&mut self, upto: Position) -> bool {
        if self.is_blind || upto < self.known || self.known == END {
            return true;
        }
        if let Err(error) = self.ask() {
            let buffer = self.buffer.name();
            tracing::warn!(%error, buffer, "what should lie in a buffer cannot be told: what is overwritten with zeros is not missed");
            self.is_blind = true;
            self.asking = None;
            self.places.clear();
            self.at = 0;
        }
        self.is_blind
    }

    fn ask(&mut self) -> Result<(), newsreel_index::Error> {
        let history = self.shared.views.history();
        let (mut walk, mut lowest) = match self.asking.take() {
            Some(asking) => asking,
            None => {
                // What is known was passed, or is now.
                self.passed(self.known);
                (self.places, self.at) = (Vec::new(), 0);
                let walk = history.newest_tokens_in(self.buffer.id(), self.known..END)?;
                (walk, Lowest::new(PLACES_AT_ONCE))
            }
        };
        let before = walk.octets_read();
        let has_more = walk.step(history, |led| {
            if !led.is_withdrawn {
                lowest.push(led.token.position());
            }
        });
        self.octets_read += walk.octets_read() - before;
        if has_more? {
            self.asking = Some((walk, lowest));
        } else {
            let (places, bound) = lowest.sorted();
            (self.places, self.known) = (places, bound.unwrap_or(END));
        }
        Ok(())
    }

    /// The walk has passed all before this.
    pub(crate) fn passed(&mut self, upto: Position) {
        let left = self.places.get(self.at..).unwrap_or_default();
        let passed = left.partition_point(|place| *place < upto);
        self.missed.extend(left.get(..passed).unwrap_or_default());
        self.at += passed;
        self.has_missed |= passed > 0;
    }

    /// Whether something was missed since this was asked last.
    pub(crate) const fn has_missed(&mut self) -> bool {
        std::mem::replace(&mut self.has_missed, false)
    }

    /// A record lies here; whether it is one that should.
    pub(crate) fn met(&mut self, at: Position) -> bool {
        self.passed(at);
        let is_it = self.places.get(self.at) == Some(&at);
        self.at += usize::from(is_it);
        is_it
    }

    /// Whether something should lie between two positions that are known.
    pub(crate) fn is_any(&self, from: Position, to: Position) -> bool {
        let left = self.places.get(self.at..).unwrap_or_default();
        let first = left.partition_point(|place| *place < from);
        left.get(first).is_some_and(|place| *place < to)
    }

    /// The walk looks at this once more.
    pub(crate) fn again_from(&mut self, at: Position) {
        self.at = self.places.partition_point(|place| *place < at);
        self.missed.retain(|place| *place < at);
    }

    /// The first place at which nothing was met, of those not taken yet.
    pub(crate) fn first_missed(&self) -> Option<Position> {
        self.missed.first().copied()
    }

    /// How many there are of them.
    pub(crate) const fn missed_len(&self) -> usize {
        self.missed.len()
    }

    /// All of them, in order.
    pub(crate) fn take_missed(&mut self) -> Vec<Position> {
        std::mem::take(&mut self.missed)
    }
}
