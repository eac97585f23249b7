//! Walks the records of a buffer, for `check`, scrubbing and taking in buffers from elsewhere.
//!
//! It trusts no length before the checksum over it, and behind damage it goes on at the next block where a sound
//! record of this file begins.  What the medium cannot read is damage as well, and costs the records it is in; but where
//! nothing can be read, for long or at all, the device fails, and nobody must take its articles for lost: that is an
//! error.  On a buffer that is being written it shows what was written when it began, and keeps quiet about what is
//! overwritten under it.
//!
//! It reads around the page cache: what it sees is what the medium has, and a walk over a whole buffer takes nothing out of
//! memory that readers want there.  It holds no lock from one read to the next.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use newsreel_host::{AlignedBuf, Error as HostError, ErrorKind, Op};
use newsreel_wire::Position;

use super::buffer::Buffer;
use super::format::{Mark, RECORD_HEADER, RecordHeader};
use super::geometry::{PAGE, PAGE_LEN, in_memory};
use super::placing::{ARTICLE_OCTETS_MAX, token_of};
use crate::error::{Error, Result};
use crate::method::{RecordScan, ScanRange, Scanned};

/// Octets read at once, about.
const WINDOW: usize = 1 << 20;

/// Octets in a row that cannot be read, at most (of a small buffer half its area): bad spots are smaller.
const UNREADABLE_MAX: u64 = 16 << 20;

/// A stretch of the data area, and the cycle whose records belong there.
#[derive(Debug, Clone, Copy)]
struct Part {
    /// Any cycle, when none is given.
    cycle: Option<u32>,
    from: u64,
    to: u64,
    /// It begins inside a record that is gone: what comes before the next one is no damage.
    is_cut: bool,
}

/// A walk over one buffer.
#[derive(Debug)]
pub(crate) struct CyclicScan {
    buffer: Arc<Buffer>,
    parts: std::vec::IntoIter<Part>,
    part: Part,
    offset: u64,
    /// Octets of the file from `window_at` on: whole pages, but around what cannot be read.
    window: AlignedBuf,
    window_at: u64,
    /// Octets that were read so far.
    octets_read: u64,
    /// Something before this cannot be read: what lies around it is read in small pieces.
    narrow_until: u64,
    /// Where the article of the last record, or what is left of one, lies in the window.
    article: Range<usize>,
    /// That article, if it was packed.
    unpacked: Option<Vec<u8>>,
    /// Where a record should have begun.
    damaged_from: Option<u64>,
    /// Octets before `offset` that could not be read.
    unreadable: u64,
    /// Something could be read, anywhere.
    is_readable: bool,
    /// A record of an older cycle was seen: from there on nothing was written in this one, up to the next that is ours.
    is_stale: bool,
    /// The part began inside a record that is gone, and nothing else has come since.
    is_cut: bool,
    /// What comes next should be a record: one has ended here, or the cycle begins.
    is_next: bool,
    /// From here on there was none, in whole pages.
    gap_from: Option<u64>,
    gaps: Vec<Range<Position>>,
}

/// What lies at a block.
enum Found {
    Article(RecordHeader),
    CycleEnd,
    /// An article that was withdrawn and overwritten, with so many octets.
    Erased(u64),
    /// A record of another cycle.
    Other,
    /// Zeros up to the end of the page.
    Padding,
    /// Zeros, which may fill a block.
    Fill,
    Nothing,
}

/// Whether the medium has a bad spot where was read.
fn is_medium(error: &Error) -> bool {
    matches!(error, Error::Host(error) if error.is_medium())
}

/// Whether the file ends before what was to be read.
fn is_cut(error: &Error) -> bool {
    matches!(error, Error::Host(error) if error.kind() == ErrorKind::ShortRead)
}

impl CyclicScan {
    pub(crate) fn new(buffer: Arc<Buffer>, range: ScanRange) -> Self {
        let parts = match range {
            ScanRange::All => all_parts(&buffer),
            ScanRange::Live => live_parts(&buffer, Position::ZERO),
            ScanRange::LiveFrom(position) => live_parts(&buffer, position),
        };
        let mut parts = parts.into_iter();
        let part = parts.next().unwrap_or(Part {
            cycle: None,
            from: 0,
            to: 0,
            is_cut: false,
        });
        Self {
            buffer,
            parts,
            part,
            offset: part.from,
            window: AlignedBuf::new(),
            window_at: 0,
            octets_read: 0,
            narrow_until: 0,
            article: 0..0,
            unpacked: None,
            damaged_from: None,
            unreadable: 0,
            is_readable: false,
            is_stale: false,
            is_cut: part.is_cut,
            is_next: false,
            gap_from: None,
            gaps: Vec::new(),
        }
        .beginning()
    }

    /// Where a cycle is read from its beginning on a record should be there.
    fn beginning(mut self) -> Self {
        self.begins();
        self
    }

    fn begins(&mut self) {
        let start = self.buffer.geometry().data_start;
        self.is_next = self.part.cycle.is_some() && self.part.from == start;
        self.gap_from = None;
    }

    /// Notes what lies in front of a record, or that nothing lies here.
    fn note_gap(&mut self, found: &Found) {
        match found {
            Found::Padding | Found::Fill | Found::Other if self.is_next => {
                // Behind a batch its page is left empty.
                let page = self.offset.next_multiple_of(PAGE);
                self.gap_from.get_or_insert(page);
            }
            Found::Padding | Found::Fill | Found::Other | Found::CycleEnd => {}
            Found::Nothing => (self.is_next, self.gap_from) = (false, None),
            Found::Article(_) | Found::Erased(_) => {
                self.is_next = true;
                let cycle = self.part.cycle.unwrap_or_default();
                let at = |offset| Position::checked(cycle, offset).unwrap_or_default();
                if let Some(from) = self.gap_from.take().filter(|from| *from < self.offset) {
                    self.gaps.push(at(from)..at(self.offset));
                }
            }
        }
    }

    /// Makes sure that `len` octets from `offset` on are in the window; `None` when the part ends before.
    fn fetch(&mut self, offset: u64, len: usize) -> Result<Option<usize>> {
        if len as u64 > self.part.to.saturating_sub(offset) {
            return Ok(None);
        }
        let inside = offset.checked_sub(self.window_at).map(in_memory);
        if let Some(at) = inside.filter(|at| at.saturating_add(len) <= self.window.len()) {
            return Ok(Some(at));
        }
        let file = match self.buffer.home.file(self.part.cycle.unwrap_or_default()) {
            // Somebody removed it: nothing is there.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let left = self.part.to - offset;
        let left = usize::try_from(left).unwrap_or(usize::MAX);
        let is_narrow = offset < self.narrow_until;
        let tries = [WINDOW, PAGE_LEN, 0].into_iter();
        for ahead in tries.skip(usize::from(is_narrow)) {
            if ahead == PAGE_LEN && len >= PAGE_LEN {
                continue;
            }
            let want = left.min(len.max(ahead));
            let (mut from, mut to) = (offset, offset + want as u64);
            if ahead > 0 {
                (from, to) = (from - from % PAGE, to.next_multiple_of(PAGE));
            }
            self.window.clear();
            self.octets_read += to - from;
            match file.read_exact_direct_at(self.window.append(in_memory(to - from)), from) {
                Ok(()) => {
                    self.window_at = from;
                    return Ok(Some(in_memory(offset - from)));
                }
                Err(error) => {
                    self.window.clear();
                    let is_here = error.is_medium() || error.kind() == ErrorKind::ShortRead;
                    if ahead == 0 || !is_here {
                        return Err(error.into());
                    }
                    self.narrow_until = self.narrow_until.max(to);
                }
            }
        }
        Ok(None)
    }

    fn look(&mut self, offset: u64) -> Result<Found> {
        let Some(at) = self.fetch(offset, RECORD_HEADER)? else {
            return Ok(Found::Padding);
        };
        let octets = &self.window[at..at + RECORD_HEADER];
        if RecordHeader::may_begin(octets)
            && let Ok(header) = RecordHeader::decode(octets, self.buffer.key)
            && header.position.offset() == offset
        {
            let is_ours = self
                .part
                .cycle
                .is_none_or(|cycle| cycle == header.position.cycle());
            let octets = self
                .buffer
                .geometry()
                .record_octets(u64::from(header.article_len));
            let fits = octets <= self.part.to - offset
                && u64::from(header.article_len) <= ARTICLE_OCTETS_MAX;
            return Ok(match header.mark {
                Mark::Article if is_ours && fits => Found::Article(header),
                Mark::CycleEnd if is_ours => Found::CycleEnd,
                Mark::Erased if is_ours && fits => Found::Erased(octets),
                _ => Found::Other,
            });
        }
        if octets.iter().any(|octet| *octet != 0) {
            return Ok(Found::Nothing);
        }
        let page_end = (offset + 1).next_multiple_of(PAGE).min(self.part.to);
        let len = in_memory(page_end - offset);
        let at = self.fetch(offset, len)?.unwrap_or(0);
        let is_zero = self.window[at..at + len].iter().all(|octet| *octet == 0);
        // Inside a damaged stretch zeros are a part of that.
        let is_fill = self.damaged_from.is_none() && self.buffer.has_fills.load(Ordering::Relaxed);
        Ok(match is_zero {
            true => Found::Padding,
            false if is_fill => Found::Fill,
            false => Found::Nothing,
        })
    }

    /// Ends a damaged stretch, if one is open and is not what an older cycle left.
    fn end_damage(&mut self) -> Option<Scanned> {
        let was_stale = std::mem::take(&mut self.is_cut) || self.is_stale;
        let from = self.damaged_from.take()?;
        self.article = self.in_window(from + RECORD_HEADER as u64..self.offset);
        self.unpacked = None;
        // What was overwritten since is no damage either, nor what is left of a record whose beginning was.
        let cycle = self.part.cycle.unwrap_or(u32::MAX);
        let is_first = from == self.buffer.geometry().data_start;
        let is_live = Position::checked(cycle, from).is_none_or(|position| {
            let before = Position(position.0 - u64::from(!is_first));
            self.buffer.should_be_sound(before)
        });
        let is_damage = !was_stale && is_live;
        if is_damage && self.article.is_empty() {
            self.article = self.left_of_text(from + RECORD_HEADER as u64);
        }
        is_damage.then_some(Scanned::Damaged {
            cycle: self.part.cycle,
            from,
            to: self.offset,
        })
    }

    /// What lies behind the header of a damaged record and is not in the window any more, as much as says whose it was.
    fn left_of_text(&mut self, from: u64) -> Range<usize> {
        let len = self.offset.saturating_sub(from).min(WINDOW as u64);
        match self.fetch(from, in_memory(len)) {
            Ok(Some(at)) if len > 0 => at..at + in_memory(len),
            _ => 0..0,
        }
    }

    /// Where these octets of the file lie in the window, as far as they do from the first on.
    fn in_window(&self, octets: Range<u64>) -> Range<usize> {
        let from = octets.start.checked_sub(self.window_at).map(in_memory);
        let Some(from) = from.filter(|from| *from < self.window.len()) else {
            return 0..0;
        };
        let len = in_memory(octets.end.saturating_sub(octets.start));
        from..from.saturating_add(len).min(self.window.len())
    }

    /// Reads the article behind a header and says what is to be said of it.
    fn record(&mut self, header: &RecordHeader) -> Result<Option<Scanned>> {
        let len = RECORD_HEADER + header.article_len as usize;
        let at = match self.fetch(self.offset, len) {
            Ok(Some(at)) => at,
            Err(error) if is_medium(&error) => {
                let octets = u64::from(header.article_len);
                self.damaged_from = Some(self.offset);
                self.offset += self.buffer.geometry().record_octets(octets);
                return Ok(self.end_damage());
            }
            Err(error) if is_cut(&error) => return Ok(self.cut_off()),
            // Its file was removed meanwhile, and nothing more of it is there.
            Ok(None) => {
                self.offset = self.part.to;
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        self.article = at + RECORD_HEADER..at + len;
        let sound = self.unpack(header) && header.signs(self.article());
        let live = if sound {
            self.buffer.is_live_after_reading(header.position)
        } else {
            self.buffer.should_be_sound(header.position)
        };
        // An old record may be overwritten in part by newer ones: only a sound one is left behind as a whole.
        self.offset += if sound || live {
            self.buffer
                .geometry()
                .record_octets(u64::from(header.article_len))
        } else {
            self.buffer.geometry().block
        };
        if !live && self.part.cycle.is_some() {
            return Ok(None);
        }
        Ok(Some(Scanned::Record {
            token: token_of(&self.buffer, header),
            head_len: header.head_len,
            sequence: header.sequence,
            arrival: header.arrival,
            id_hash: header.id_hash,
            sound,
            live,
        }))
    }

    /// Whether the article is as it is served: it is, or it could be unpacked.
    fn unpack(&mut self, header: &RecordHeader) -> bool {
        self.unpacked = None;
        if !header.is_packed {
            return true;
        }
        let (mut plain, stored) = (Vec::new(), &self.window[self.article.clone()]);
        let unpacked = self
            .buffer
            .unpack(header.position, stored, true, &mut plain);
        self.unpacked = Some(plain);
        unpacked.is_ok()
    }

    /// Nothing is known of the block that begins here.
    fn skip_unreadable(&mut self, error: Error) -> Result<Found> {
        let geometry = &self.buffer.geometry();
        let area = geometry.data_end - geometry.data_start;
        self.unreadable += geometry.block;
        if self.unreadable >= UNREADABLE_MAX.min(area / 2) {
            return Err(error);
        }
        Ok(Found::Nothing)
    }

    /// One block, record or gap further; what is to be said of it, if anything.
    fn advance(&mut self) -> Result<Option<Scanned>> {
        let block = self.buffer.geometry().block;
        let found = match self.look(self.offset) {
            Err(error) if is_cut(&error) => return Ok(self.cut_off()),
            Err(error) if is_medium(&error) => self.skip_unreadable(error)?,
            found => {
                self.unreadable = 0;
                self.is_readable = true;
                found?
            }
        };
        self.note_gap(&found);
        if !matches!(found, Found::Other | Found::Nothing) {
            let damage = self.end_damage();
            self.is_stale &= matches!(found, Found::Padding | Found::Fill);
            if damage.is_some() {
                return Ok(damage);
            }
        }
        match found {
            Found::Article(header) => return self.record(&header),
            Found::CycleEnd if self.part.cycle.is_some() => self.offset = self.part.to,
            Found::CycleEnd | Found::Fill => self.offset += block,
            Found::Erased(octets) => self.offset += octets,
            Found::Padding => {
                self.offset = (self.offset + 1).next_multiple_of(PAGE).min(self.part.to);
            }
            Found::Other => {
                self.is_stale = true;
                self.offset += block;
            }
            Found::Nothing => {
                self.damaged_from.get_or_insert(self.offset);
                self.offset += block;
            }
        }
        Ok(None)
    }
}

impl CyclicScan {
    /// Somebody cut the file here: what lay behind is lost, and what lies in the other parts is not.
    fn cut_off(&mut self) -> Option<Scanned> {
        let Part { cycle, to, .. } = self.part;
        let from = self.damaged_from.take().unwrap_or(self.offset);
        (self.offset, self.article, self.unpacked) = (to, 0..0, None);
        self.is_readable = true;
        let position = Position::checked(cycle.unwrap_or(u32::MAX), from);
        let is_missed = position.is_none_or(|position| self.buffer.should_be_sound(position));
        is_missed.then_some(Scanned::Damaged { cycle, from, to })
    }

    /// Where this part begins: a file that somebody removed has none of its articles.  One that was dropped is no loss.
    fn removed(&mut self) -> Option<Scanned> {
        let Part {
            cycle, from, to, ..
        } = self.part;
        if self.offset != from || from >= to {
            return None;
        }
        let file = self.buffer.home.file(cycle?);
        if !file.is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            return None;
        }
        (self.offset, self.article, self.unpacked) = (to, 0..0, None);
        let is_missed = Position::checked(cycle?, from)
            .is_none_or(|position| self.buffer.should_be_sound(position));
        is_missed.then_some(Scanned::Damaged { cycle, from, to })
    }
}

impl CyclicScan {
    /// Reads the pages of a stretch of the window anew; what cannot be is read when it is wanted.
    fn refresh(&mut self, stretch: Range<u64>) {
        let (from, to) = (
            stretch.start - stretch.start % PAGE,
            stretch.end.next_multiple_of(PAGE),
        );
        let window_end = self.window_at + self.window.len() as u64;
        let is_inside = self.window_at.is_multiple_of(PAGE)
            && self.window_at <= from
            && to <= window_end.next_multiple_of(PAGE);
        let to = to.min(window_end);
        let file = self.buffer.home.file(self.part.cycle.unwrap_or_default());
        let Some(file) = file.ok().filter(|_| is_inside && from < to) else {
            return self.window.clear();
        };
        let pages = in_memory(from - self.window_at)..in_memory(to - self.window_at);
        self.octets_read += to - from;
        let read = match self.window.get_mut(pages) {
            Some(pages) => file.read_exact_direct_at(pages, from).is_ok(),
            None => false,
        };
        if !read {
            self.window.clear();
        }
    }
}

impl RecordScan for CyclicScan {
    fn again_from(&mut self, at: Position) -> bool {
        let from = at.offset();
        let is_here = self.part.cycle == Some(at.cycle());
        if !is_here || from < self.part.from || from > self.offset {
            return false;
        }
        self.refresh(from..self.offset);
        (self.offset, self.damaged_from) = (from, None);
        (self.article, self.unpacked) = (0..0, None);
        (self.is_next, self.gap_from) = (false, None);
        true
    }

    fn take_gaps(&mut self, out: &mut Vec<Range<Position>>) {
        out.append(&mut self.gaps);
    }

    fn step(&mut self) -> Result<Option<Scanned>> {
        loop {
            if let Some(removed) = self.removed() {
                return Ok(Some(removed));
            }
            let before = self.octets_read;
            while self.offset < self.part.to {
                if let Some(scanned) = self.advance()? {
                    return Ok(Some(scanned));
                }
                if self.octets_read > before {
                    return Ok(Some(Scanned::Passed));
                }
            }
            let is_last = self.parts.as_slice().is_empty();
            if is_last && self.unreadable > 0 && !self.is_readable {
                let path = self.buffer.home.path();
                return Err(HostError::medium(Op::Read, path).into());
            }
            if let Some(damage) = self.end_damage() {
                return Ok(Some(damage));
            }
            let Some(part) = self.parts.next() else {
                return Ok(None);
            };
            self.part = part;
            (self.is_stale, self.is_cut) = (false, part.is_cut);
            self.begins();
            self.offset = part.from;
            self.window.clear();
        }
    }

    fn article(&self) -> &[u8] {
        match &self.unpacked {
            Some(unpacked) => unpacked,
            None => self.window.get(self.article.clone()).unwrap_or_default(),
        }
    }

    fn at(&self) -> Position {
        let offset = self.damaged_from.unwrap_or(self.offset);
        let (cycle, offset) = match self.parts.as_slice().first() {
            Some(next) if offset >= self.part.to => (next.cycle, next.from),
            _ => (self.part.cycle, offset),
        };
        Position::checked(cycle.unwrap_or_default(), offset).unwrap_or_default()
    }

    fn octets_read(&self) -> u64 {
        self.octets_read
    }
}

/// Everything that is there, in the order of the files.
fn all_parts(buffer: &Buffer) -> Vec<Part> {
    let part = |cycle| Part {
        cycle,
        from: buffer.geometry().data_start,
        to: buffer.geometry().data_end,
        is_cut: false,
    };
    if !buffer.home.is_endless() {
        return vec![part(None)];
    }
    let end = Position(buffer.written.load(Ordering::Acquire));
    let cycles = buffer.floor().cycle().max(1)..=end.cycle();
    cycles.map(|cycle| part(Some(cycle))).collect()
}

/// What is alive and written from a position on: the rest of the last cycle, then this one; of a buffer with a file for each,
/// all.
fn live_parts(buffer: &Buffer, position: Position) -> Vec<Part> {
    let geometry = buffer.geometry();
    let floor = buffer.floor();
    // A walk had come to the end of a record there; the floor lies inside one that is gone.
    let is_record = position > floor;
    let floor = floor.max(position);
    let end = Position(buffer.written.load(Ordering::Acquire));
    let part = |cycle: u32, from: u64, to: u64| Part {
        cycle: Some(cycle),
        from,
        to,
        is_cut: from != geometry.data_start && !is_record,
    };
    if floor >= end {
        return vec![part(end.cycle(), end.offset(), end.offset())];
    }
    let in_area = |offset: u64| offset.clamp(geometry.data_start, geometry.data_end);
    if floor.cycle() == end.cycle() {
        return vec![part(end.cycle(), in_area(floor.offset()), end.offset())];
    }
    let mut parts = Vec::new();
    if floor.cycle() > 0 && (floor.cycle() + 1 == end.cycle() || buffer.home.is_endless()) {
        parts.push(part(
            floor.cycle(),
            in_area(floor.offset()),
            geometry.data_end,
        ));
    }
    if buffer.home.is_endless() {
        let between = floor.cycle() + 1..end.cycle();
        parts.extend(between.map(|cycle| part(cycle, geometry.data_start, geometry.data_end)));
    }
    parts.push(part(end.cycle(), geometry.data_start, end.offset()));
    parts
}
