//! What a file says of itself, compared with what a walk through it meets: articles of which its bitmap tells, bits of that where
//! no article can begin, and whole pages between articles in which nothing is.

use std::ops::Range;
use std::sync::Arc;

use newsreel_wire::{OFFSET_MAX, POSITION_UNIT, Position, Token, TokenText};

use crate::error::Result;
use crate::method::{BufferReader, RecordScan, Scanned};

/// So many records are compared with the bitmap at once.
const COMPARED_AT_ONCE: usize = 1024;

/// A walk through one file, from beginning to end, and what it has met.
#[derive(Debug)]
pub struct Comparison {
    reader: Arc<dyn BufferReader>,
    /// All before this was compared.
    from: Position,
    /// What was met since: where it begins and ends, and whether it is a record.
    met: Vec<(Range<Position>, bool)>,
    gaps: Vec<Range<Position>>,
    /// Bits in the midst of records.
    inside: u64,
    /// Bits for what lies in front of all articles.
    in_front: u64,
    has_bitmap: bool,
    /// Articles, and those of which it is told that they were withdrawn.
    articles: u64,
    withdrawn: u64,
    /// The bitmap could not be read: nothing more is asked of it.
    is_unreadable: bool,
}

impl Comparison {
    /// Of a walk that begins here.
    #[must_use]
    pub fn new(reader: &Arc<dyn BufferReader>, from: Position) -> Self {
        Self {
            reader: Arc::clone(reader),
            from,
            met: Vec::new(),
            gaps: Vec::new(),
            inside: 0,
            in_front: 0,
            has_bitmap: false,
            articles: 0,
            withdrawn: 0,
            is_unreadable: false,
        }
    }

    /// Notes what a step found (`None`: the end), and tells of what is missing; it compares now and then, where a cycle ends, and at the
    /// end.
    ///
    /// # Errors
    /// When the bitmap cannot be read, which is told once.
    pub fn look(
        &mut self,
        scan: &mut dyn RecordScan,
        scanned: Option<&Scanned>,
        tell: &mut dyn FnMut(String),
    ) -> Result<()> {
        if self.is_unreadable {
            return Ok(());
        }
        let compared = self.compare_with(scan, scanned, tell);
        if compared.is_err() {
            self.is_unreadable = true;
            (self.met, self.gaps) = (Vec::new(), Vec::new());
        }
        compared
    }

    fn compare_with(
        &mut self,
        scan: &mut dyn RecordScan,
        scanned: Option<&Scanned>,
        tell: &mut dyn FnMut(String),
    ) -> Result<()> {
        if let Some((stretch, is_record)) = scanned.and_then(|it| self.stretch_of(it)) {
            self.turn_to(stretch.start.cycle(), tell)?;
            self.met.push((stretch, is_record));
        }
        scan.take_gaps(&mut self.gaps);
        if self.met.len() >= COMPARED_AT_ONCE || scanned.is_none() {
            self.turn_to(scan.at().cycle(), tell)?;
            self.compare(scan.at(), tell)?;
        }
        for gap in std::mem::take(&mut self.gaps) {
            // Where a bitmap tells what lay there it was told.
            let last = Position(gap.end.0.saturating_sub(1))..gap.end;
            if self.reader.bits(last)?.is_none() && self.reader.is_lost(gap.start) {
                let (from, to) = (gap.start.offset(), gap.end.offset());
                tell(format!(
                    "nothing is written from {from:#x} to {to:#x}, between articles: what lay there is lost"
                ));
            }
        }
        match scanned {
            Some(_) => Ok(()),
            None => self.tell_of_bits(tell),
        }
    }

    /// Where what was found lies, and whether that is a record.
    fn stretch_of(&self, scanned: &Scanned) -> Option<(Range<Position>, bool)> {
        match scanned {
            Scanned::Record { token, .. } => {
                let (start, len) = (token.position(), u64::from(token.len()));
                let end = start.offset() + self.reader.octets_for(len);
                Some((start..Position::checked(start.cycle(), end)?, true))
            }
            Scanned::Damaged { cycle, from, to } => {
                let at = |offset| Position::checked(cycle.unwrap_or_default(), offset);
                Some((at(*from)?..at(*to)?, false))
            }
            Scanned::Passed => None,
        }
    }

    /// Tells of bits where no article can begin.
    fn tell_of_bits(&mut self, tell: &mut dyn FnMut(String)) -> Result<()> {
        let facts = self.reader.facts();
        // These are no cycle's own, and of the first one a bitmap tells wherever it ends.
        let [from, to] = [0, facts.data_offset].map(|at| Position::checked(1, at));
        if let (Some(from), Some(to)) = (from, to) {
            self.in_front = self.reader.bits(from..to)?.map_or(0, |bits| bits.len()) as u64;
        }
        if self.in_front > 0 {
            tell(format!(
                "its bitmap is damaged: it has bits for octets in front of {:#x}, where header and bitmap lie and no \
                 article can begin: {}",
                facts.data_offset, self.in_front
            ));
        }
        if self.inside > 0 {
            tell(format!(
                "its bitmap is damaged: it has bits in the midst of articles: {}",
                self.inside
            ));
        }
        Ok(())
    }

    /// Goes on in this cycle, from its start, if it is another.
    fn turn_to(&mut self, cycle: u32, tell: &mut dyn FnMut(String)) -> Result<()> {
        if cycle == self.from.cycle() {
            return Ok(());
        }
        let end = Position::checked(self.from.cycle(), self.from.offset().max(OFFSET_MAX));
        self.compare(end.unwrap_or(self.from), tell)?;
        let start = Position::checked(cycle, self.reader.facts().data_offset);
        self.from = start.unwrap_or(self.from);
        Ok(())
    }

    /// Tells of the articles of the bitmap that were not met up to here.
    fn compare(&mut self, to: Position, tell: &mut dyn FnMut(String)) -> Result<()> {
        let bits = self.reader.bits(self.from..to)?;
        self.has_bitmap |= bits.is_some();
        for at in bits.unwrap_or_default() {
            let nth = self.met.partition_point(|(met, _)| met.end <= at);
            let met = self.met.get(nth).filter(|(met, _)| met.contains(&at));
            match met {
                Some((met, true)) if met.start != at && self.reader.is_lost(at) => self.inside += 1,
                Some(_) => {}
                None if self.reader.is_lost(at) => {
                    let name = self.reader.name();
                    let text = TokenText { name, position: at };
                    tell(format!(
                        "the article {text} is not there, and by the bitmap it should be"
                    ));
                }
                None => {}
            }
        }
        self.from = to;
        self.met.clear();
        Ok(())
    }

    /// Whether a bitmap, or what is noted behind a segment, tells of an article that was met that it is not wanted any more.  What happened
    /// behind the last checkpoint is not told, and of a bitmap that could not be read nothing is believed: then all may be.
    ///
    /// # Errors
    /// When the bitmap cannot be read, which is told once.
    pub fn is_withdrawn(&mut self, token: &Token) -> Result<bool> {
        if self.is_unreadable {
            return Ok(true);
        }
        let is_withdrawn = is_withdrawn(self.reader.as_ref(), token);
        let is_withdrawn = is_withdrawn.inspect_err(|_| self.is_unreadable = true)?;
        self.articles += 1;
        self.withdrawn += u64::from(is_withdrawn);
        Ok(is_withdrawn)
    }

    /// Whether the bitmap has bits where no article can begin: then it says nothing of any.
    #[must_use]
    pub const fn is_bitmap_damaged(&self) -> bool {
        self.inside > 0 || self.in_front > 0
    }

    /// Whether the bitmap could not be read, all of it or a part.
    #[must_use]
    pub const fn is_bitmap_unreadable(&self) -> bool {
        self.is_unreadable
    }

    /// What is to be said of a bitmap by which no article of a file is wanted any more.
    #[must_use]
    pub fn nothing_alive(&self) -> Option<String> {
        let is_nothing = !self.is_unreadable
            && self.has_bitmap
            && self.withdrawn > 0
            && self.articles == self.withdrawn;
        is_nothing.then(|| {
            format!(
                "its bitmap says that nothing in it is alive, and it has articles: {}; all of them were cancelled, expired or moved, or \
                 the bitmap is damaged",
                self.articles
            )
        })
    }
}

/// Whether a bitmap, or what is noted behind a segment, tells of an article that it is not wanted any more.  What happened behind the last
/// checkpoint is not told.
///
/// # Errors
/// When the bitmap cannot be read.
pub fn is_withdrawn(reader: &dyn BufferReader, token: &Token) -> Result<bool> {
    let start = token.position();
    let end = Position::checked(start.cycle(), start.offset().saturating_add(POSITION_UNIT));
    let Some(end) = end else { return Ok(false) };
    Ok(!reader.wrong_bits(start..end, &[start])?.missing.is_empty())
}
