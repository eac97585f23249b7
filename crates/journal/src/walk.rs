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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use newsreel_host::{Disk, MemoryDisk, OpenMode};

    use super::*;

    /// A segment with frames of (first, records, follows, epoch), one page each, `None` for a page of junk.
    fn walk(frames: &[Option<(u64, u32, u64, u64)>], place: Place, limit: u64) -> Vec<(u64, bool)> {
        let disk = MemoryDisk::new();
        let file = disk.open(Path::new("s"), OpenMode::CreateNew).unwrap();
        let mut end = PAGE_OCTETS;
        for frame in frames {
            if let Some((first, records, follows, epoch)) = *frame {
                let header = FrameHeader {
                    octets: records * 5,
                    records,
                    payload_crc: 0,
                    segment: 7,
                    epoch,
                    first: Sequence(first),
                    follows: Sequence(follows),
                    vouched_before: Sequence(first),
                };
                file.write_at(&header.encode(99), end).unwrap();
            }
            end += PAGE_OCTETS;
        }
        let mut source = FrameSource::new(file, 7, 99, end);
        let (mut place, mut seen) = (place, Vec::new());
        while let Step::Frame {
            offset,
            header,
            missing,
        } = step(&mut source, &place, Sequence(limit)).unwrap()
        {
            seen.push((header.first.0, missing));
            place.pass(offset, &header);
        }
        seen
    }

    #[test]
    fn the_chain_decides_which_frames_count() {
        let start = Place::start(Sequence(1), 1);
        let frames = [Some((1, 2, 1, 1)), Some((3, 2, 3, 1)), Some((5, 1, 5, 2))];
        assert_eq!(
            walk(&frames, start, 99),
            [(1, false), (3, false), (5, false)]
        );
        assert_eq!(
            walk(&frames, start, 5),
            [(1, false), (3, false)],
            "given up from 5 on"
        );
        let hole = [Some((1, 2, 1, 1)), Some((10, 2, 3, 1))];
        assert_eq!(
            walk(&hole, start, 99),
            [(1, false), (10, false)],
            "a hole is not damage"
        );
        let lost = [Some((1, 2, 1, 1)), None, Some((5, 1, 5, 1))];
        assert_eq!(
            walk(&lost, start, 99),
            [(1, false), (5, true)],
            "a lost frame is"
        );
        let stale = [
            Some((1, 2, 1, 2)),
            Some((3, 2, 3, 1)),
            Some((3, 3, 3, 2)),
            Some((6, 1, 6, 2)),
        ];
        let fresh = [(1, false), (3, false), (6, false)];
        assert_eq!(walk(&stale, start, 99), fresh, "an older epoch is stale");
        let again = [Some((1, 4, 1, 1)), Some((3, 2, 3, 1))];
        assert_eq!(
            walk(&again, start, 99),
            [(1, false)],
            "sequences never go back"
        );
    }
}
