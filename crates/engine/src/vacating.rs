//! Segments in which no article is left: their set is told, and drops them without waiting for its limits.
//!
//! What was withdrawn, by a cancel or by a rule, or moved elsewhere, is there as long as its file.  So the oldest article that the
//! history leads to is known for each set; when it is one of a later file, those before it go.  One article is looked up at
//! each step where nothing changed; what is read is read once.  Nothing is told while articles move: nobody is led to their copies
//! yet.
//!
//! That a walk met nothing does not say that nothing is there: it may have been overwritten.  So before a file is told to be
//! empty the whole history, and then the overview, are asked whether they lead to anything in it: once, however many of its articles
//! were withdrawn.

use std::ops::Range;
use std::sync::Arc;

use newsreel_index::TokenWalk;
use newsreel_store::{BufferReader, RecordScan, ScanRange, Scanned};
use newsreel_wire::{BufferId, IdHash, MessageId, Position, Token};

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
    /// Before this neither history nor overview lead to anything.
    confirmed: Position,
    /// Whether they do in front of where the walk has come to.
    asking: Option<Asking>,
    /// The newest file of which it was told that its articles cannot be found.
    told_of: u32,
    /// So many steps are passed over.
    rests: u32,
}

/// What the history has in front of the beginning of a file.
#[derive(Debug)]
struct Asking {
    walk: TokenWalk,
    below: Position,
    /// The first that the history led to when the walk met it.
    first: Option<(Token, IdHash)>,
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
            confirmed: Position::ZERO,
            asking: None,
            told_of: 0,
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
                (front.rests, front.asking) = (REST_STEPS, None);
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
        if let Some(asking) = self.asking.take() {
            return self.ask(shared, asking);
        }
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
                        return self.come_to(shared, at);
                    }
                }
                Some(Scanned::Damaged { cycle, from, .. }) => {
                    // Nobody knows whose that was: it goes with its turn.
                    let at = Position::checked(cycle.unwrap_or_default(), from);
                    self.rests = REST_STEPS;
                    return self.come_to(shared, at.unwrap_or_default());
                }
                None => {
                    self.rests = REST_STEPS;
                    let end = Position::checked(newest, 0);
                    return self.come_to(shared, end.unwrap_or_default());
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

    /// Before this no record was met to which the history leads.
    fn come_to(&mut self, shared: &Shared, at: Position) -> Result<bool, Error> {
        self.from = self.from.max(at);
        self.confirmed = self.confirmed.max(self.buffer.floor());
        if at.cycle() <= self.confirmed.cycle() {
            self.buffer.vacated(at.cycle());
            return Ok(false);
        }
        let below = Position::checked(at.cycle(), 0).unwrap_or_default();
        self.asking = Some(self.question(shared, below)?);
        // Whatever was met last is looked up again behind this.
        (self.oldest, self.rests) = (None, 0);
        Ok(true)
    }

    fn question(&self, shared: &Shared, below: Position) -> Result<Asking, Error> {
        let (history, buffer) = (shared.views.history(), self.buffer.id());
        Ok(Asking {
            walk: history.tokens_in(buffer, self.confirmed..below)?,
            below,
            first: None,
        })
    }

    /// Asks the history a piece further, and the overview at the end.
    fn ask(&mut self, shared: &Shared, mut asking: Asking) -> Result<bool, Error> {
        let Asking { walk, first, .. } = &mut asking;
        let (floor, mut failed) = (self.buffer.floor(), None);
        let has_more = walk.step(shared.views.history(), |led| {
            let at = led.token.position();
            let is_lower = first
                .as_ref()
                .is_none_or(|(first, _)| at < first.position());
            if led.is_withdrawn || at < floor || !is_lower || failed.is_some() {
                return;
            }
            // An older bucket leads where a newer one says that it was withdrawn: there are as many of those as were withdrawn.
            match shared.leads_to(&led.hash, &led.token) {
                Ok(true) => *first = Some((led.token, led.hash)),
                Ok(false) => {}
                Err(error) => failed = Some(error),
            }
        })?;
        failed.map_or(Ok(()), Err)?;
        if has_more {
            self.asking = Some(asking);
            return Ok(true);
        }
        if let Some((token, hash)) = asking.first {
            self.confirmed = token.position();
            if !shared.leads_to(&hash, &token)? {
                // It was withdrawn meanwhile, and nobody looked at those behind it.
                self.asking = Some(self.question(shared, asking.below)?);
                return Ok(true);
            }
            self.keeps(&token);
            self.oldest = Some((token, hash));
            self.buffer.vacated(token.position().cycle());
            return Ok(false);
        }
        let stretch = self.confirmed..asking.below;
        if let Some(token) = only_listed(shared, self.buffer.id(), &stretch)? {
            self.keeps(&token);
            self.confirmed = token.position();
            self.buffer.vacated(token.position().cycle());
            self.rests = REST_STEPS;
            return Ok(false);
        }
        self.confirmed = asking.below;
        self.buffer.vacated(asking.below.cycle());
        Ok(true)
    }

    /// A file stays because something should be in it that was not met.
    fn keeps(&mut self, token: &Token) {
        let (set, segment) = (self.buffer.name(), token.position().cycle());
        if self.told_of < segment {
            self.told_of = segment;
            tracing::error!(
                set,
                segment,
                "the segment should have articles that cannot be read there any more: it stays until its turn comes; \
                 `newsreel store scrub {set}` says which they are"
            );
        }
    }
}

/// The first article that the overview has in a stretch of a buffer, and of which the history knows nothing: it may have lost it.
pub(crate) fn only_listed(
    shared: &Shared,
    buffer: BufferId,
    stretch: &Range<Position>,
) -> Result<Option<Token>, Error> {
    let (views, mut first): (_, Option<Token>) = (&shared.views, None);
    let mut failed = None;
    let listed = |_, column: &newsreel_index::Column, id: &[u8]| {
        let is_first = first.is_none_or(|first| column.token.position() < first.position());
        let hash = MessageId::parse(id).map(|id| shared.id_hash(id));
        let Some(hash) = hash.ok().filter(|_| is_first) else {
            return;
        };
        match views.history().lookup(&hash) {
            Ok(None) => first = Some(column.token),
            Ok(Some(_)) => {}
            Err(error) => failed = Some(error),
        }
    };
    views.overview().rows_within(buffer, stretch, listed)?;
    failed.map_or(Ok(first), |error| Err(error.into()))
}
