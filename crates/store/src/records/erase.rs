//! Overwriting the text of withdrawn articles, where the set wants that, or only marking their records, where no bit of a
//! bitmap tells of them.
//!
//! It goes the way of batches, on their thread, and after the log has told of the withdrawal durably: so nobody writes
//! to the same pages meanwhile, and what is erased is never missed.  The record stays, marked, so that who walks the
//! buffer steps over it.

use std::collections::BTreeSet;
use std::sync::Arc;

use newsreel_host::{AlignedBuf, ErrorKind};
use newsreel_wire::{BufferId, Position};

use super::buffer::Buffer;
use super::format::{Mark, RECORD_HEADER, RecordHeader};
use super::geometry::{PAGE, in_memory};
use super::home::FileRef;
use super::true_end::is_nothing;
use crate::error::Result;
use crate::method::BatchWrite;

/// Pages that have so many octets are written before others are looked at.
const AT_ONCE: usize = 1 << 20;

/// Articles to be overwritten in one buffer.
#[derive(Debug)]
pub(crate) struct Erasure {
    buffer: Arc<Buffer>,
    /// In their order, so that those next to each other are written together.
    starts: Vec<Position>,
    /// Their text stays as it is.
    keeps_text: bool,
    /// The cycles in which something was written.
    written: BTreeSet<u32>,
}

impl Erasure {
    pub(crate) fn new(buffer: Arc<Buffer>, mut starts: Vec<Position>, keeps_text: bool) -> Self {
        starts.sort_unstable();
        Self {
            buffer,
            starts,
            keeps_text,
            written: BTreeSet::new(),
        }
    }

    /// Overwrites the article here, if it is still this one and nobody may begin to write there; whether it was.  It is
    /// written with its neighbours, when `pages` are.
    fn erase(&self, start: Position, pages: &mut Pages<'_>) -> newsreel_host::Result<bool> {
        let buffer = &self.buffer;
        if start < buffer.floor() || !buffer.geometry().holds(start, RECORD_HEADER as u64) {
            return Ok(false);
        }
        let Some(octets) = pages.octets(start, RECORD_HEADER as u64)? else {
            return Ok(false);
        };
        let Ok(header) = RecordHeader::decode(octets, buffer.key) else {
            return Ok(false);
        };
        let len = RECORD_HEADER as u64 + u64::from(header.article_len);
        let is_it = header.position == start && header.mark == Mark::Article;
        if !is_it || !buffer.geometry().holds(start, len) {
            return Ok(false);
        }
        let written = match self.keeps_text {
            true => RECORD_HEADER as u64,
            false => len,
        };
        let Some(record) = pages.octets(start, written)? else {
            return Ok(false);
        };
        let (front, text) = record.split_at_mut(RECORD_HEADER);
        let erased = RecordHeader {
            mark: Mark::Erased,
            ..header
        };
        front.copy_from_slice(&erased.encode(buffer.key));
        text.fill(0);
        pages.is_changed = true;
        Ok(true)
    }

    fn erase_all(&mut self) -> newsreel_host::Result<()> {
        let buffer = Arc::clone(&self.buffer);
        let mut pages = Pages::new(&buffer);
        for at in 0..self.starts.len() {
            let start = self.starts[at];
            if self.erase(start, &mut pages)? {
                self.written.insert(start.cycle());
            }
        }
        pages.write()
    }
}

/// Whole pages of one cycle, one behind the other, as they will be: neighbours' octets in them are written back as they are.
struct Pages<'a> {
    buffer: &'a Buffer,
    file: Option<(u32, FileRef<'a>)>,
    octets: AlignedBuf,
    /// Where they lie.
    from: u64,
    is_changed: bool,
}

impl<'a> Pages<'a> {
    const fn new(buffer: &'a Buffer) -> Self {
        Self {
            buffer,
            file: None,
            octets: AlignedBuf::new(),
            from: 0,
            is_changed: false,
        }
    }

    /// So many octets from here on; none where there is no file any more.
    fn octets(&mut self, start: Position, len: u64) -> newsreel_host::Result<Option<&mut [u8]>> {
        let offset = start.offset();
        let first = offset - offset % PAGE;
        let here = self.from..=self.from + self.octets.len() as u64;
        let is_open = self.file.as_ref().map(|(cycle, _)| *cycle) == Some(start.cycle());
        if !is_open || !here.contains(&first) || self.octets.len() > AT_ONCE {
            self.write()?;
            self.octets.clear();
            self.from = first;
            self.file = match self.buffer.home.file(start.cycle()) {
                // It was dropped meanwhile, or somebody removed it: there is nothing to overwrite.
                Err(error) if error.kind() == ErrorKind::NotFound => None,
                file => Some((start.cycle(), file?)),
            };
        }
        let Some((_, file)) = &self.file else {
            return Ok(None);
        };
        let (known, wanted) = (
            self.octets.len() as u64,
            (offset + len).next_multiple_of(PAGE) - self.from,
        );
        if known < wanted {
            let behind = self.octets.append(in_memory(wanted - known));
            let read = file.read_exact_at(behind, self.from + known);
            if let Err(error) = read {
                self.octets.truncate(in_memory(known));
                // What cannot be read is no text any more; it is no reason to take nothing.
                return if is_nothing(&error) {
                    Ok(None)
                } else {
                    Err(error)
                };
            }
        }
        let at = in_memory(offset - self.from);
        Ok(self.octets.get_mut(at..at + in_memory(len)))
    }

    /// Writes what was changed.
    fn write(&mut self) -> newsreel_host::Result<()> {
        let Some((_, file)) = self.file.as_ref().filter(|_| self.is_changed) else {
            return Ok(());
        };
        self.is_changed = false;
        match self.buffer.is_cached {
            true => file.write_at(&self.octets, self.from),
            false => file.write_direct_at(&self.octets, self.from),
        }
    }
}

impl BatchWrite for Erasure {
    fn buffer(&self) -> BufferId {
        self.buffer.id
    }

    fn write(&mut self) -> Result<()> {
        if let Some(error) = self.buffer.suspended_error() {
            return Err(error);
        }
        self.written.clear();
        let erased = self.erase_all();
        let buffer = Arc::clone(&self.buffer);
        buffer.unless_failed(erased)
    }

    fn sync(&mut self) -> Result<()> {
        if let Some(error) = self.buffer.suspended_error() {
            return Err(error);
        }
        let (Some(first), Some(last)) = (self.written.first(), self.written.last()) else {
            return Ok(());
        };
        let buffer = &self.buffer;
        let given_up = buffer.given_up();
        // Each cycle has a file of its own, or all have one.
        match buffer.home.is_endless() {
            true => {
                let mut cycles = self.written.iter();
                cycles.try_for_each(|cycle| buffer.sync(*cycle..=*cycle, given_up))
            }
            false => buffer.sync(*first..=*last, given_up),
        }
    }
}
