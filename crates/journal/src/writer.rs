//! Writes frames, for one commit thread.
//!
//! A frame is one write in whole pages, around the page cache: nobody reads the log's end from disk soon.  It counts
//! once [`JournalWriter::sync`] returned well.  After a failed write or sync nothing more goes into that segment: the
//! pages may count as clean without being on disk, so the caller aborts what is not committed and the log goes on in
//! a new segment, whose header and first frame say which sequences were given up.

use std::sync::Arc;

use newsreel_host::{AlignedBuf, File};
use newsreel_wire::Sequence;

use crate::builder::FrameBuilder;
use crate::error::{Error, Result};
use crate::format::{FRAME_HEADER_OCTETS, FrameHeader, PAGE_OCTETS, SegmentHeader};
use crate::prepare::{Preparer, PreparerThread};
use crate::shared::{Journal, Shared};
use crate::table::Segment;

/// The segment being written.
#[derive(Debug)]
pub(crate) struct Current {
    pub(crate) id: u64,
    pub(crate) file: Arc<dyn File>,
    /// Where the next frame goes.
    pub(crate) offset: u64,
    /// Octets of the file.
    pub(crate) octets: u64,
    /// Whether its header says that it is in use.
    pub(crate) begun: bool,
    pub(crate) path: std::path::PathBuf,
}

impl Current {
    const fn room(&self) -> u64 {
        self.octets.saturating_sub(self.offset)
    }
}

/// Where a recovered log goes on.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) current: Option<Current>,
    pub(crate) next: Sequence,
    pub(crate) follows: Sequence,
    pub(crate) epoch: u64,
    pub(crate) next_id: u64,
}

/// The log's only writer.
#[derive(Debug)]
pub struct JournalWriter {
    shared: Arc<Shared>,
    preparer: Arc<Preparer>,
    current: Option<Current>,
    /// Earlier segments with frames that are not synced yet.
    unsynced: Vec<Arc<dyn File>>,
    /// The current segment has frames that are not synced yet.
    dirty: bool,
    /// A write or sync in the current segment failed.
    failed: bool,
    next: Sequence,
    /// What the next frame follows; less than `next` behind a hole.
    follows: Sequence,
    epoch: u64,
    next_id: u64,
    /// The frame as it goes to disk: aligned and padded, so that it can go around the page cache.
    staging: AlignedBuf,
    _thread: PreparerThread,
}

impl JournalWriter {
    pub(crate) fn new(shared: Arc<Shared>, preparer: Arc<Preparer>, start: Start) -> Result<Self> {
        let thread = PreparerThread::start(&preparer)?;
        preparer.set_here(start.current.as_ref().map_or(0, Current::room));
        preparer.request(start.next_id);
        Ok(Self {
            shared,
            preparer,
            current: start.current,
            unsynced: Vec::new(),
            dirty: false,
            failed: false,
            next: start.next,
            follows: start.follows,
            epoch: start.epoch,
            next_id: start.next_id,
            staging: AlignedBuf::new(),
            _thread: thread,
        })
    }

    /// The shared side.
    #[must_use]
    pub fn journal(&self) -> Journal {
        Journal {
            shared: Arc::clone(&self.shared),
            preparer: Some(Arc::clone(&self.preparer)),
        }
    }

    /// The epoch every frame of this opening has.
    #[must_use]
    pub const fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The smallest sequence the next frame may begin with.
    #[must_use]
    pub const fn next(&self) -> Sequence {
        self.next
    }

    /// The largest frame, in octets of records and their table (4 for each record).
    #[must_use]
    pub fn frame_octets_max(&self) -> u64 {
        self.preparer.segment_octets() - PAGE_OCTETS - FRAME_HEADER_OCTETS as u64
    }

    /// Octets of frames that can surely be written without taking new room from the disk.
    #[must_use]
    pub fn room(&self) -> u64 {
        let here = self.current.as_ref().map_or(0, Current::room);
        let ahead = self.preparer.segment_octets() - PAGE_OCTETS;
        if self.preparer.is_ready() {
            here + ahead
        } else {
            here
        }
    }

    /// Whether that is at least `octets`.
    #[must_use]
    pub fn has_room(&self, octets: u64) -> bool {
        self.room() >= octets
    }

    /// Writes a frame behind the last one.  It may skip sequences: those stay holes.
    pub fn write(&mut self, frame: &FrameBuilder) -> Result<()> {
        if frame.is_empty() {
            return Ok(());
        }
        let (header, disk_octets) = self.header_for(frame)?;
        self.make_room(disk_octets)?;
        let Some(current) = &mut self.current else {
            return Err(Error::Abandoned {
                segment: self.next_id,
            });
        };
        let header = FrameHeader {
            segment: current.id,
            ..header
        };
        let at = current.offset;
        self.staging.clear();
        if !current.begun {
            let first_page = SegmentHeader {
                spool: self.shared.spool,
                segment: current.id,
                first: header.first,
                follows: header.follows,
                epoch: self.epoch,
            };
            self.staging.extend_from_slice(&first_page.encode());
        }
        self.staging
            .extend_from_slice(&header.encode(self.shared.seed));
        self.staging.extend_from_slice(frame.bytes());
        self.staging.extend_from_slice(frame.table());
        self.staging.pad_to_multiple(PAGE_OCTETS as usize);
        let from = if current.begun { at } else { 0 };
        let written = current.file.write_direct_at(&self.staging, from);
        if let Err(error) = written {
            self.failed = true;
            return Err(error.into());
        }
        self.dirty = true;
        self.enter(&header, at);
        Ok(())
    }

    /// Makes every frame written so far durable.
    pub fn sync(&mut self) -> Result<()> {
        self.check_sound()?;
        while !self.unsynced.is_empty() {
            // Whether it works or not, it is not tried again.
            let file = self.unsynced.remove(0);
            self.sync_file(&*file)?;
        }
        let file = self
            .current
            .as_ref()
            .filter(|_| self.dirty)
            .map(|current| &current.file);
        if let Some(file) = file.map(Arc::clone) {
            self.dirty = false;
            self.sync_file(&*file)?;
        }
        Ok(())
    }

    fn sync_file(&mut self, file: &dyn File) -> Result<()> {
        let synced = file.sync_data();
        self.failed = synced.is_err();
        Ok(synced?)
    }

    /// Gives up the sequences from `first` to `last`, which are not committed and stay holes, and leaves the segment
    /// they may be in for a new one.  May be called again when the new segment could not be had.
    pub fn abort(&mut self, first: Sequence, last: Sequence) -> Result<()> {
        self.shared.table.lock().limit(first);
        self.failed = false;
        self.follows = self.follows.min(first);
        self.next = self.next.max(last.next());
        self.roll()
    }

    /// Before the first frame: what recovery found lost is written again, from this sequence on.
    pub fn found_again(&mut self, from: Sequence) {
        self.follows = self.follows.min(from);
        self.next = self.next.min(from);
    }

    /// As [`Journal::retire_before`].
    pub fn retire_before(&self, before: Sequence) -> Result<()> {
        self.journal().retire_before(before);
        Ok(())
    }

    /// Checks the frame and makes its header, all but the segment's id.
    fn header_for(&self, frame: &FrameBuilder) -> Result<(FrameHeader, u64)> {
        self.check_sound()?;
        if frame.first() < self.next || frame.epoch() != self.epoch || frame.first().0 == 0 {
            return Err(Error::OutOfOrder {
                first: frame.first(),
                epoch: frame.epoch(),
                next: self.next,
                own_epoch: self.epoch,
            });
        }
        let octets = frame.bytes().len() as u64 + frame.table().len() as u64;
        let too_large = Error::FrameTooLarge {
            octets,
            octets_max: self.frame_octets_max(),
        };
        if octets > self.frame_octets_max() {
            return Err(too_large);
        }
        let (Ok(octets), Ok(records)) =
            (u32::try_from(octets), u32::try_from(frame.record_count()))
        else {
            return Err(too_large);
        };
        if !frame.records().is_sound() {
            return Err(Error::Malformed {
                first: frame.first(),
            });
        }
        let header = FrameHeader {
            octets,
            records,
            payload_crc: FrameHeader::payload_crc(self.shared.seed, frame.bytes(), frame.table()),
            segment: 0,
            epoch: self.epoch,
            first: frame.first(),
            follows: self.follows,
            vouched_before: frame.vouched_before().min(frame.first()),
        };
        Ok((header, header.disk_octets()))
    }

    const fn check_sound(&self) -> Result<()> {
        if self.failed {
            let segment = match &self.current {
                Some(current) => current.id,
                None => self.next_id,
            };
            return Err(Error::Abandoned { segment });
        }
        Ok(())
    }

    /// Goes to the next segment when the frame does not fit.
    fn make_room(&mut self, disk_octets: u64) -> Result<()> {
        if self
            .current
            .as_ref()
            .is_some_and(|current| current.room() >= disk_octets)
        {
            return Ok(());
        }
        self.roll()
    }

    fn roll(&mut self) -> Result<()> {
        if let Some(left) = self.current.take()
            && self.dirty
        {
            self.unsynced.push(left.file);
        }
        self.dirty = false;
        self.preparer.set_here(0);
        let prepared = self.preparer.take(self.next_id)?;
        self.next_id += 1;
        self.preparer.request(self.next_id);
        self.current = Some(Current {
            id: prepared.id,
            file: prepared.file,
            offset: PAGE_OCTETS,
            octets: self.preparer.segment_octets(),
            begun: false,
            path: prepared.path,
        });
        self.preparer
            .set_here(self.preparer.segment_octets() - PAGE_OCTETS);
        Ok(())
    }

    /// The frame is written: readers may find it once it is published.
    fn enter(&mut self, header: &FrameHeader, at: u64) {
        let Some(current) = &mut self.current else {
            return;
        };
        let mut table = self.shared.table.lock();
        if !current.begun {
            current.begun = true;
            table.push(Segment {
                id: current.id,
                path: current.path.clone(),
                first: header.first,
                follows: header.follows,
                epoch: header.epoch,
                end: at,
                octets: current.octets,
                limit: Sequence(u64::MAX),
                index: Vec::new(),
            });
        }
        current.offset = at + header.disk_octets();
        if let Some(segment) = table.last_mut() {
            segment.end = current.offset;
            segment.note(header.first, at);
        }
        drop(table);
        self.preparer.set_here(current.room());
        self.next = header.end();
        self.follows = header.end();
    }
}
