//! One step through a segment: the next frame, a damaged stretch, or the segment's end.
//!
//! The chain decides: a frame is next when its epoch is not older than the one before, it follows nothing that was
//! not seen, and it lies before what a later segment says was given up.  A frame that follows more than was seen
//! means that something is missing.  Recovery and readers share this, so that they cannot disagree.

use newsreel_wire::Sequence;

use crate::error::Result;
use crate::format::{FrameHeader, PAGE_OCTETS};
use crate::source::{FrameSource, is_medium};

/// How far a walk has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Where in the segment the next frame should be.
    pub(crate) offset: u64,
    /// The sequence behind the last frame seen.
    pub(crate) expected: Sequence,
    /// The epoch of the last frame seen.
    pub(crate) epoch: u64,
}

impl Place {
    /// A segment's beginning.
    pub(crate) const fn start(expected: Sequence, epoch: u64) -> Self {
        Self {
            offset: PAGE_OCTETS,
            expected,
            epoch,
        }
    }

    /// Behind a frame.
    pub(crate) fn pass(&mut self, offset: u64, header: &FrameHeader) {
        self.offset = offset + header.disk_octets();
        self.expected = header.end();
        self.epoch = header.epoch;
    }
}

/// What is at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// A frame header at an offset; its payload has not been looked at.
    Frame {
        offset: u64,
        header: FrameHeader,
        /// Where the walk expected it; another offset, or sequences missing before it, mean damage.
        missing: bool,
    },
    /// No further frame in this segment.
    End,
}

/// What is at `place`, for a segment whose frames at or behind `limit` were given up.
pub(crate) fn step(source: &mut FrameSource, place: &Place, limit: Sequence) -> Result<Step> {
    let Place {
        offset,
        expected,
        epoch,
    } = *place;
    let fits = |header: &FrameHeader| {
        header.epoch >= epoch && header.first >= expected && header.first < limit
    };
    if offset >= source.end() {
        return Ok(Step::End);
    }
    match source.header_at(offset) {
        Ok(Some(header)) if fits(&header) => {
            let missing = header.follows > expected;
            return Ok(Step::Frame {
                offset,
                header,
                missing,
            });
        }
        Err(e) if !is_medium(&e) => return Err(e),
        _ => {}
    }
    match source.find(offset + PAGE_OCTETS, fits)? {
        // Nothing may be missing although an unreadable page lies between: stale octets are not looked at again.
        Some((offset, header)) => {
            let missing = header.follows > expected;
            Ok(Step::Frame {
                offset,
                header,
                missing,
            })
        }
        None => Ok(Step::End),
    }
}
