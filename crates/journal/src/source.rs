//! Reads frames out of one segment through a bounded window.
//!
//! Only octets below `end` are looked at: what lies behind may be half written.  A frame that is not there is an
//! answer, not an error; errors are the disk's.

use std::ops::Range;
use std::sync::Arc;

use newsreel_host::File;

use crate::error::Result;
use crate::format::{FRAME_HEADER_OCTETS, FrameHeader, PAGE_OCTETS};

/// One read of a sequential pass; a larger frame is read whole.
const WINDOW_OCTETS: u64 = 256 * 1024;

/// One segment's octets.
#[derive(Debug)]
pub(crate) struct FrameSource {
    file: Arc<dyn File>,
    segment: u64,
    seed: u32,
    end: u64,
    window: Vec<u8>,
    window_at: u64,
}

impl FrameSource {
    pub(crate) fn new(file: Arc<dyn File>, segment: u64, seed: u32, end: u64) -> Self {
        Self {
            file,
            segment,
            seed,
            end,
            window: Vec::new(),
            window_at: 0,
        }
    }

    /// Goes on with another segment; the window's memory stays.
    pub(crate) fn switch(&mut self, file: Arc<dyn File>, segment: u64, end: u64) {
        (self.file, self.segment, self.end) = (file, segment, end);
        self.window.clear();
    }

    pub(crate) const fn segment(&self) -> u64 {
        self.segment
    }

    pub(crate) const fn end(&self) -> u64 {
        self.end
    }

    /// More of the segment may be read from now on.
    pub(crate) const fn extend_to(&mut self, end: u64) {
        self.end = end;
    }

    pub(crate) const fn seed(&self) -> u32 {
        self.seed
    }

    /// The header of the frame at `offset`, if there is one that fits.
    pub(crate) fn header_at(&mut self, offset: u64) -> Result<Option<FrameHeader>> {
        let (segment, seed, end) = (self.segment, self.seed, self.end);
        let bytes = self.bytes(offset, FRAME_HEADER_OCTETS as u64)?;
        let header = FrameHeader::decode(bytes, seed, segment);
        Ok(header.filter(|header| header.disk_octets() <= end.saturating_sub(offset)))
    }

    /// The payload of the frame at `offset`; shorter when the file is.
    pub(crate) fn payload(&mut self, offset: u64, header: &FrameHeader) -> Result<&[u8]> {
        let whole = self.bytes(
            offset,
            FRAME_HEADER_OCTETS as u64 + u64::from(header.octets),
        )?;
        Ok(whole.get(FRAME_HEADER_OCTETS..).unwrap_or_default())
    }

    /// The first page at or behind `from` with a frame header that `wanted` agrees to.  Pages that cannot be read
    /// are passed over.
    pub(crate) fn find(
        &mut self,
        from: u64,
        wanted: impl Fn(&FrameHeader) -> bool,
    ) -> Result<Option<(u64, FrameHeader)>> {
        let mut offset = from;
        while offset < self.end {
            match self.header_at(offset) {
                Ok(Some(header)) if wanted(&header) => return Ok(Some((offset, header))),
                Err(e) if !is_medium(&e) => return Err(e),
                _ => offset += PAGE_OCTETS,
            }
        }
        Ok(None)
    }

    /// `len` octets from `offset`, fewer where the segment ends.
    fn bytes(&mut self, offset: u64, len: u64) -> Result<&[u8]> {
        let len = len.min(self.end.saturating_sub(offset));
        if self.in_window(offset, len).is_none() {
            self.fill(offset, len)?;
        }
        let range = self.in_window(offset, len).unwrap_or(0..0);
        Ok(self.window.get(range).unwrap_or_default())
    }

    fn in_window(&self, offset: u64, len: u64) -> Option<Range<usize>> {
        let from = usize::try_from(offset.checked_sub(self.window_at)?).ok()?;
        let to = from.checked_add(usize::try_from(len).ok()?)?;
        (to <= self.window.len()).then_some(from..to)
    }

    /// Reads a window from `offset`; one bad page must not hide its neighbours, so that a failed read is tried again
    /// for just what is needed.
    fn fill(&mut self, offset: u64, len: u64) -> Result<()> {
        let ahead = len.max(WINDOW_OCTETS).min(self.end.saturating_sub(offset));
        if self.read(offset, ahead).is_ok() {
            return Ok(());
        }
        self.read(offset, len)
    }

    fn read(&mut self, offset: u64, len: u64) -> Result<()> {
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        self.window.resize(len, 0);
        self.window_at = offset;
        let got = self.file.read_at(&mut self.window, offset);
        self.window.truncate(*got.as_ref().unwrap_or(&0));
        got?;
        Ok(())
    }
}

/// Whether the error is the medium's, so that reading elsewhere may still work.
pub(crate) fn is_medium(error: &crate::Error) -> bool {
    matches!(error, crate::Error::Disk(disk) if disk.is_medium())
}
