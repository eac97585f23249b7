//! Segments in which no article is left: their set is told, and drops them without waiting for its limits.
//!
//! What was withdrawn, by a cancel or by a rule, or moved elsewhere, is there as long as its file.  So the oldest article that the
//! history leads to is known for each set; when it is one of a later file, those before it go.  One article is looked up at
//! each step where nothing changed; what is read is read once.  Nothing is told while articles move: nobody is led to their copies
//! yet.

use std::sync::Arc;

use newsreel_store::{BufferReader, RecordScan, ScanRange, Scanned};
use newsreel_wire::{IdHash, Position, Token};

use crate::error::Error;
use crate::shared::Shared;

/// Records looked at in one step.
const STEP_RECORDS: usize = 64;
/// So many steps are passed over where something could not be read, or nothing is left.
const REST_STEPS: u32 = 600;

/// The oldest that is left of each set of segments.
#[derive(Debug)]
pub(crate) struct Vacating {
    shared: Arc<Shared>,
    fronts: Vec<Front>,
}

/// One set.
#[derive(Debug)]
struct Front {
    buffer: Arc<dyn BufferReader>,
    /// The walk, and the cycle that was the newest when it began.
    walk: Option<(Box<dyn RecordScan>, u32)>,
    /// Before this nothing is left.
    from: Position,
    /// The oldest article that is here.
    oldest: Option<(Token, IdHash)>,
    /// So many steps are passed over.
    rests: u32,
}

impl Vacating {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let buffers = shared.store.buffers().into_iter();
        let segments = buffers.filter(|buffer| buffer.vacatable().is_some());
        let fronts = segments.map(|buffer| Front {
            buffer: Arc::clone(buffer),
            walk: None,
            from: Position::ZERO,
            oldest: None,
            rests: 0,
        });
        Self {
            fronts: fronts.collect(),
            shared,
        }
    }

    /// Does one bounded piece of work.  `false`: there is nothing to do now.
    pub(crate) fn step(&mut self) -> bool {
        let Some(_nothing_moves) = self.shared.moving.rests() else {
            return false;
        };
        let mut has_more = false;
        for front in &mut self.fronts {
            has_more |= front.step(&self.shared).unwrap_or_else(|error| {
                let set = front.buffer.name();
                tracing::warn!(%error, set, "whether anything is left in a segment cannot be told");
                front.rests = REST_STEPS;
                false
            });
        }
        has_more
    }
}

impl Front {
    /// Says whether there is more to look at now.
    fn step(&mut self, shared: &Shared) -> Result<bool, Error> {
        let floor = self.buffer.floor();
        let is_above = |token: &Token| token.position() >= floor;
        if self.rests > 0 {
            self.rests -= 1;
            return Ok(false);
        }
        if let Some((token, id_hash)) = self.oldest.as_ref().filter(|(token, _)| is_above(token))
            && shared.leads_to(id_hash, token)?
        {
            return Ok(false);
        }
        self.oldest = None;
        let Some((mut scan, newest)) = self.walk.take().or_else(|| self.begin(floor)) else {
            return Ok(false);
        };
        // What comes behind this may be under way.
        let committed = shared.committed();
        for _ in 0..STEP_RECORDS {
            match scan.step()? {
                Some(Scanned::Passed) => {}
                Some(Scanned::Record {
                    token,
                    sequence,
                    id_hash,
                    ..
                }) => {
                    let at = token.position();
                    let is_here = shared.leads_to(&id_hash, &token)?;
                    if is_here || at.cycle() >= newest || sequence > committed {
                        self.oldest = Some((token, id_hash)).filter(|_| is_here);
                        self.told(at);
                        return Ok(false);
                    }
                }
                Some(Scanned::Damaged { cycle, from, .. }) => {
                    // Nobody knows whose that was: it goes with its turn.
                    let at = Position::checked(cycle.unwrap_or_default(), from);
                    self.told(at.unwrap_or_default());
                    self.rests = REST_STEPS;
                    return Ok(false);
                }
                None => {
                    self.buffer.vacated(newest);
                    self.rests = REST_STEPS;
                    return Ok(false);
                }
            }
        }
        self.walk = Some((scan, newest));
        Ok(true)
    }

    /// A walk over what is there now; `None`: no file can go.
    fn begin(&mut self, floor: Position) -> Option<(Box<dyn RecordScan>, u32)> {
        self.from = self.from.max(floor);
        // In this order: what comes while the walk is begun lies in no earlier cycle.
        let newest = self.buffer.vacatable()?;
        let can_go = self.from.cycle() < newest;
        let scan = || Arc::clone(&self.buffer).scan(ScanRange::LiveFrom(self.from));
        can_go.then(|| (scan(), newest))
    }

    /// Before this nothing is left.
    fn told(&mut self, at: Position) {
        self.from = self.from.max(at);
        self.buffer.vacated(at.cycle());
    }
}
