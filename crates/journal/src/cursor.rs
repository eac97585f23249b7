//! Follows the log from a sequence on, beside the writer, up to what was published.
//!
//! Memory is one window, or one frame when that is larger.  A frame is handed out only when it was found whole, and
//! a segment that was recycled under the reader is told from damage: the table is asked after the octets were read.

use std::sync::Arc;

use newsreel_wire::Sequence;

use crate::error::{Damage, Error, Result};
use crate::format::{Frame, FrameHeader};
use crate::shared::Shared;
use crate::source::{FrameSource, is_medium};
use crate::table::Segment;
use crate::walk::{Place, Step, step};

/// A reader's place in the log.
#[derive(Debug)]
pub struct Cursor {
    shared: Arc<Shared>,
    /// What the reader has not seen begins here.
    wanted: Sequence,
    source: Option<FrameSource>,
    place: Place,
}

/// What was found for the reader.
enum Finding {
    Frame {
        offset: u64,
        header: FrameHeader,
    },
    Lost {
        offset: u64,
        first: Sequence,
        before: Sequence,
        why: &'static str,
    },
    NextSegment,
    Nothing,
}

impl Cursor {
    pub(crate) const fn new(shared: Arc<Shared>, from: Sequence) -> Self {
        let wanted = if from.0 == 0 { Sequence(1) } else { from };
        Self {
            shared,
            wanted,
            source: None,
            place: Place::start(Sequence::ZERO, 0),
        }
    }

    /// Where the next frame handed out begins, or what it contains: nothing before was left out but holes.
    #[must_use]
    pub const fn position(&self) -> Sequence {
        self.wanted
    }

    /// Goes elsewhere.
    pub fn seek(&mut self, to: Sequence) {
        self.wanted = to.max(Sequence(1));
        self.source = None;
    }

    /// The next committed frame with something at or behind the position; `None` when there is none yet.  The first
    /// frame may begin before the position: see `Records::since`.  After [`Error::Damaged`] the next call goes on
    /// behind the damage; after [`Error::Gone`] it takes a [`Cursor::seek`].
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>> {
        loop {
            if self.wanted >= self.shared.committed() || !self.refresh()? {
                return Ok(None);
            }
            match self.look()? {
                Finding::Frame { offset, header } => {
                    self.pass(offset, &header);
                    return self.frame(offset, header);
                }
                Finding::Lost {
                    offset,
                    first,
                    before,
                    why,
                } => {
                    let segment = self.check_kept()?;
                    let first = first.max(self.wanted);
                    self.wanted = self.wanted.max(before);
                    return Err(Error::Damaged(Damage {
                        segment,
                        offset,
                        first,
                        before,
                        why,
                    }));
                }
                Finding::NextSegment => {
                    let id = self.check_kept()?;
                    if !self.enter_behind(id)? {
                        return Ok(None);
                    }
                }
                Finding::Nothing => return Ok(None),
            }
        }
    }

    fn pass(&mut self, offset: u64, header: &FrameHeader) {
        self.place.pass(offset, header);
        self.wanted = self.wanted.max(header.end());
    }

    /// The frame that was found whole just before.
    fn frame(&mut self, offset: u64, header: FrameHeader) -> Result<Option<Frame<'_>>> {
        let Some(source) = &mut self.source else {
            return Ok(None);
        };
        let payload = source.payload(offset, &header)?;
        Ok(header.records_of(payload).map(|records| Frame {
            header,
            offset,
            vouched: true,
            lost: None,
            records,
        }))
    }

    /// Looks at frames until one concerns the reader.
    fn look(&mut self) -> Result<Finding> {
        let committed = self.shared.committed();
        loop {
            let Some(source) = &mut self.source else {
                return Ok(Finding::Nothing);
            };
            let limit = self
                .shared
                .table
                .lock()
                .find(source.segment())
                .map(|s| s.limit);
            let limit = limit.unwrap_or(Sequence(u64::MAX));
            let Step::Frame {
                offset,
                header,
                missing,
            } = step(source, &self.place, limit)?
            else {
                return Ok(Finding::NextSegment);
            };
            let Place {
                offset: expected_at,
                expected,
                ..
            } = self.place;
            if missing && expected < committed {
                self.place.expected = header.follows;
                if header.follows > self.wanted {
                    let (first, before) = (expected, header.follows.min(committed));
                    let why = "a frame is missing";
                    return Ok(Finding::Lost {
                        offset: expected_at,
                        first,
                        before,
                        why,
                    });
                }
            }
            if header.end() > committed {
                return Ok(Finding::Nothing);
            }
            if header.end() <= self.wanted {
                self.place.pass(offset, &header);
                continue;
            }
            let seed = source.seed();
            let checked = match source.payload(offset, &header) {
                Ok(payload) => header.check(payload, seed),
                Err(e) if is_medium(&e) => Err("a frame cannot be read"),
                Err(e) => return Err(e),
            };
            let Err(why) = checked else {
                return Ok(Finding::Frame { offset, header });
            };
            self.place.pass(offset, &header);
            let (first, before) = (header.first, header.end());
            return Ok(Finding::Lost {
                offset,
                first,
                before,
                why,
            });
        }
    }

    /// Learns how far the segment may be read; finds one when there is none.  False: there is nothing yet.
    fn refresh(&mut self) -> Result<bool> {
        let shared = Arc::clone(&self.shared);
        if let Some(source) = &mut self.source {
            if let Some(segment) = shared.table.lock().find(source.segment()) {
                source.extend_to(segment.end);
            }
            return Ok(true);
        }
        let table = shared.table.lock();
        let Some(segment) = table.holding(self.wanted) else {
            return table.oldest().map_or(Ok(false), |oldest| {
                Err(Error::Gone {
                    wanted: self.wanted,
                    oldest,
                })
            });
        };
        let place = match segment.nearest(self.wanted) {
            Some((expected, offset)) => Place {
                offset,
                expected,
                epoch: segment.epoch,
            },
            None => Place::start(segment.follows, segment.epoch),
        };
        let segment = segment.outline();
        drop(table);
        self.enter(&segment)?;
        self.place = place;
        Ok(true)
    }

    /// Goes to the segment behind `id`; false when there is none yet.
    fn enter_behind(&mut self, id: u64) -> Result<bool> {
        let next = self.shared.table.lock().after(id).map(Segment::outline);
        let Some(next) = next else { return Ok(false) };
        self.enter(&next)?;
        self.place.offset = Place::start(Sequence::ZERO, 0).offset;
        Ok(true)
    }

    fn enter(&mut self, segment: &Segment) -> Result<()> {
        let file = match self.shared.open(segment) {
            Ok(file) => file,
            Err(error) => {
                // Retired between the look at the table and now?
                let gone = self.shared.table.lock().find(segment.id).is_none();
                return Err(if gone { self.gone() } else { error });
            }
        };
        match &mut self.source {
            Some(source) => source.switch(file, segment.id, segment.end),
            None => {
                let seed = self.shared.seed;
                self.source = Some(FrameSource::new(file, segment.id, seed, segment.end));
            }
        }
        Ok(())
    }

    /// The segment's id, if it is still in use: then what was read from it is what was written.
    fn check_kept(&mut self) -> Result<u64> {
        let id = self.source.as_ref().map_or(0, FrameSource::segment);
        if self.shared.table.lock().find(id).is_some() {
            return Ok(id);
        }
        self.source = None;
        Err(self.gone())
    }

    fn gone(&self) -> Error {
        let oldest = self.shared.table.lock().oldest().unwrap_or_default();
        Error::Gone {
            wanted: self.wanted,
            oldest,
        }
    }
}
