//! Where a buffer goes on after a start: what the log says of it, and what lies behind that.

use std::sync::atomic::Ordering;

use newsreel_host::said_octets;
use newsreel_wire::{Position, Sequence};

use super::{Filling, region};
use crate::error::{Error, Result};
use crate::method::{LastKnown, Left, Marks, Missing};
use crate::records::buffer::Buffer;
use crate::records::format::Hints;
use crate::records::geometry::PAGE;
use crate::records::true_end::{self, Search, TrueEnd};

/// So many regions may lie between two records, or behind what the header says, and no more.
const QUIET_REGIONS: u64 = 4;
/// So far behind the end of the log a record is looked for after every crash: a start stays short, and what a bad sector
/// took of the first article there hides no other.
const FIRST_LOOK_OCTETS: u64 = 1 << 20;
/// So much the last commits may leave in any buffer: two of several times the usual size.
const LEFT_OCTETS_USUAL: u64 = 16 << 20;

/// Behind the end of what the last commits may have left it is looked so far whether there is more.
const MORE_OCTETS: u64 = 1 << 20;

/// The end of all that was written, when this much of it is known, in a file that is looked at alone, where damage may be most of it.
pub(crate) fn true_end(buffer: &Buffer, known: Position) -> Result<TrueEnd> {
    find_end(buffer, (known, 0), true)
}

fn find_end(
    buffer: &Buffer,
    (known, passed): (Position, u64),
    is_thorough: bool,
) -> Result<TrueEnd> {
    let region = region(buffer);
    let search = Search {
        known,
        passed,
        // What is known may lie in the middle of a large article of a later cycle.
        quiet: (QUIET_REGIONS * region).max(buffer.article_octets_max() + 2 * PAGE),
        step: region,
        is_thorough,
    };
    true_end::find(buffer, search)
}

impl Filling {
    /// The same, looked for once.
    fn true_end(&self, known: Position) -> Result<TrueEnd> {
        if let Some((from, found)) = self.found.get()
            && (known == *from || (known > *from && known <= found.end))
        {
            return Ok(*found);
        }
        let passed = self.passed.get().filter(|(end, _)| *end == known);
        let passed = passed.map_or(0, |(_, octets)| *octets);
        let found = find_end(&self.buffer, (known, passed), false)?;
        Ok(self.found.get_or_init(|| (known, found)).1.max(found))
    }

    /// Where the log says that the next article goes, and up to where it may be written.
    fn by_the_log(&self, marks: Option<&Marks>) -> Result<(Position, Position)> {
        let geometry = self.buffer.geometry();
        let start = self.start()?;
        let (end, reserved) = marks.map_or((start, start), |marks| {
            (marks.end.max(start), marks.reserved.max(start))
        });
        let end = match self.known(marks) {
            Some(known) => end.max(true_end::behind(&self.buffer, known)?.unwrap_or(known)),
            None => end,
        };
        let (end, reserved) = match self.buffer.was_larger {
            true => (geometry.normal(end), geometry.normal(reserved)),
            false => (end, reserved),
        };
        let next = if self.buffer.home.is_endless() {
            // What was dropped is below the mark by a cycle: the end may be there, or further on.
            let page = geometry.page_up(end);
            page.map(|page| page.max(reserved.one_cycle_before()))
        } else if let Some(page) = geometry.page_up(end)
            && geometry.distance(page, reserved) <= geometry.capacity()
        {
            // As far as one cycle ahead: then it was drained.
            Some(page)
        } else {
            // It had begun another cycle in which no article was committed yet.
            geometry.start_of(reserved.cycle())
        };
        // The end may be behind the last block, or in the middle of one: it is brought to a page.
        let area = geometry.data_start..=geometry.data_end;
        let is_possible = area.contains(&end.offset()) && geometry.holds(reserved, 0);
        let Some(next) = next.filter(|_| is_possible) else {
            return Err(self.wrong(format!(
                "the log says it stood at {end} and was reserved up to {reserved}, which cannot be in a file of this \
                 size; put the right file there"
            )));
        };
        Ok((next, reserved))
    }

    /// Where an article begins of which others know than the log, when the log knows of none there or behind it.
    fn known(&self, marks: Option<&Marks>) -> Option<Position> {
        let marks = marks?;
        marks.known.filter(|known| *known >= marks.end)
    }

    /// Whether it is known where the article ends behind which the next one goes.
    fn is_end_known(&self, marks: Option<&Marks>) -> Result<bool> {
        match self.known(marks) {
            Some(known) => Ok(true_end::behind(&self.buffer, known)?.is_some()),
            None => Ok(true),
        }
    }

    /// Whether it knows of more than the log does: its header, or what lies in it.
    pub(crate) fn is_ahead(&self, marks: Option<&Marks>, log_end: Sequence) -> Result<bool> {
        let (next, reserved) = self.by_the_log(marks)?;
        let hints = self.buffer.home.opened();
        if self.buffer.is_rescued {
            // This header says nothing: what lies anywhere in it must do.
            return Ok(self.true_end(next)?.sequence > log_end);
        }
        Ok(hints.sequence > log_end
            || (hints.reserved > reserved && !self.is_one_reservation(next, hints.reserved))
            || true_end::has_batches(&self.buffer, next, log_end)?)
    }

    /// Whether one reservation reaches as far: the log may have lost the frame that told of it, and no article with it.
    fn is_one_reservation(&self, next: Position, reserved: Position) -> bool {
        let octets = 2 * self.region() + self.article_octets_max() + PAGE;
        let furthest = self.buffer.geometry().advance(next, octets);
        // Where nothing is overwritten the mark says only what was dropped.
        !self.buffer.home.is_endless() && furthest.is_some_and(|furthest| reserved <= furthest)
    }

    /// Whether a commit that the log does not have may have left something here.
    pub(crate) fn may_have_left(&self, marks: Option<&Marks>, missing: Missing) -> Result<bool> {
        let (next, _) = self.by_the_log(marks)?;
        let octets = FIRST_LOOK_OCTETS.max(self.longest(missing));
        true_end::has_any(&self.buffer, next, missing, octets)
    }

    /// So far behind the beginning of a damaged record the next may begin.
    fn longest(&self, missing: Missing) -> u64 {
        missing.article_octets_max.min(self.article_octets_max()) + 2 * PAGE
    }

    /// What lies behind these marks that the log does not have; `None` when at its end that is more than the last commits
    /// can leave.  There what is torn is cleared away.
    pub(crate) fn left_over(
        &self,
        marks: Option<&Marks>,
        missing: Missing,
    ) -> Result<Option<Left>> {
        let (next, _) = self.by_the_log(marks)?;
        let is_end = missing.before.is_none();
        let regions = QUIET_REGIONS * self.region();
        let commits = 2 * (missing.commit_octets_max + self.longest(missing));
        let (mut from, mut octets_max) = (next, regions.max(commits).max(LEFT_OCTETS_USUAL));
        if is_end && self.has_more(next, octets_max, missing)? {
            return Ok(None);
        }
        if !is_end {
            // What lay in front of these was overwritten since, or dropped.
            let oldest = self.buffer.home.oldest_cycle();
            let oldest = self.buffer.geometry().start_of(oldest).unwrap_or_default();
            from = next.max(self.buffer.floor()).max(oldest);
            octets_max = u64::MAX;
        }
        // A start that does not trust its log goes on two regions further on.
        let quiet = if missing.is_hurt {
            regions
        } else {
            regions / 2
        };
        let quiet = quiet.max(self.longest(missing));
        let found = true_end::left(&self.buffer, from, missing, (quiet, octets_max))?;
        let Some((mut left, gaps)) = found else {
            return Ok(None);
        };
        if is_end {
            // The next batch begins on a page.
            let end = self.buffer.geometry().page_up(left.end);
            let _ = self
                .passed
                .set((end.unwrap_or_default(), quiet.saturating_sub(PAGE)));
        }
        if is_end && left.end > next && self.buffer.is_usable() {
            let is_end_known = self.is_end_known(marks)?;
            // Else the first gap is the text of an article whose header cannot be read: a scrub may still mend that.
            for gap in gaps.iter().filter(|gap| is_end_known || gap.from != next) {
                true_end::close(&self.buffer, gap)?;
            }
            left.has_remains = true_end::clear_page(&self.buffer, left.end)?;
        }
        Ok(Some(left))
    }

    /// Whether something that the log does not have lies so far behind its end: none of what lies between need be read.
    fn has_more(&self, next: Position, octets: u64, missing: Missing) -> Result<bool> {
        let behind = self.buffer.geometry().advance(next, octets);
        behind.map_or(Ok(false), |behind| {
            true_end::has_one_behind(&self.buffer, behind, missing.last, MORE_OCTETS)
        })
    }

    /// After recovery: goes on behind the last committed article.  Where the log is known to be too old it goes on
    /// behind everything that was ever written or reserved in it, so that nothing is overwritten before its turn; the
    /// complaint says so.
    pub(crate) fn resume(
        &mut self,
        marks: Option<&Marks>,
        log_end: Sequence,
    ) -> Result<Option<String>> {
        let (next, reserved) = self.by_the_log(marks)?;
        let hints = self.buffer.home.opened();
        if self.buffer.read_only {
            // Beside a server the header is newer than the log as it was read.
            let next = next.max(hints.end);
            self.go_on(next, reserved.max(hints.reserved), hints.sequence);
            return Ok(None);
        }
        if std::mem::take(&mut self.is_distrusted) {
            return self.resume_ahead(next.max(hints.end), reserved, log_end);
        }
        self.go_on(next, reserved.max(hints.reserved), hints.sequence);
        Ok(None)
    }

    /// Goes on behind what the buffer itself knows; says what that means, if anything was ever written in it.
    fn resume_ahead(
        &mut self,
        known: Position,
        reserved: Position,
        log_end: Sequence,
    ) -> Result<Option<String>> {
        let geometry = self.buffer.geometry();
        let hints = self.buffer.home.opened();
        tracing::warn!(
            buffer = self.buffer.name,
            %known,
            "the log is older than the buffer, whose last record is looked for"
        );
        // The header is only a hint: it may never have been written since the buffer was made.
        let found = self.true_end(known)?;
        let is_endless = self.buffer.home.is_endless();
        let (by_the_log, reserved) = (reserved, hints.reserved.max(reserved));
        let last = if is_endless {
            found.end
        } else {
            found.end.max(reserved)
        };
        if last <= self.start()? {
            self.go_on(last, reserved, log_end);
            return Ok(None);
        }
        let next = geometry.page_up(last);
        // As far as that somebody may have begun to write, without a sound record to show for it.
        let begun = next.and_then(|next| geometry.advance(next, 2 * self.region()));
        let (Some(next), Some(begun)) = (next, begun) else {
            return Err(self.wrong("its cycle numbers are used up; make a new buffer"));
        };
        let sequence = found.sequence.max(hints.sequence).max(log_end);
        if is_endless {
            self.go_on(next, reserved, sequence);
        } else {
            self.go_on(next, next, sequence);
            self.needed = begun;
            self.buffer.reset_floor(begun.one_cycle_before());
        }
        self.buffer.home.know(self.placed);
        Ok(Some(format!(
            "it has articles up to sequence {sequence} and {}, and was reserved up to {reserved}; the log ends at \
             sequence {log_end} with {by_the_log}: an old log was put back, or the file comes from elsewhere; it goes on \
             at {next}, and nothing in it is overwritten before its turn",
            found.end
        )))
    }

    /// Whether it does not have any more what the log knows of, and how that is told: its header, which is written with each
    /// region and at checkpoints, is older, and its records end before the last article.
    pub(crate) fn find_lack(&self, known: &LastKnown) -> Result<Option<String>> {
        let (buffer, geometry) = (&self.buffer, self.buffer.geometry());
        let (hints, last) = (buffer.home.opened(), geometry.normal(known.last));
        let is_older = hints.end <= known.sealed || hints.reserved <= last;
        if !is_older || buffer.is_rescued || buffer.home.is_endless() || last < buffer.floor() {
            return Ok(None);
        }
        let found = self.true_end(hints.end)?;
        if found.end > last {
            return Ok(None);
        }
        buffer.lacks.lock().push(found.end..self.next);
        let octets = match geometry.distance(found.end, self.next) {
            u64::MAX => "more than a whole round of it".to_owned(),
            octets => said_octets(octets),
        };
        let sequence = found.sequence.max(hints.sequence);
        Ok(Some(format!(
            "it is behind the log: its articles end with sequence {sequence} at {}, the log knows of one at {last}: an older copy of it \
             was put back, or its disk lost what it had acknowledged. What came between, {octets}, is gone: readers are told that \
             it is not there, and each article goes from groups and counts when it is asked for, or with a scrub",
            found.end
        )))
    }

    /// Where a buffer begins that the log has never heard of.
    fn start(&self) -> Result<Position> {
        let start = self.buffer.geometry().start_of(1);
        start.ok_or_else(|| self.wrong("it has no room for articles"))
    }

    fn go_on(&mut self, next: Position, reserved: Position, sequence: Sequence) {
        // What is overwritten was reserved; where nothing is, the mark says only what was dropped.
        let reserved = match self.buffer.home.is_endless() {
            true => reserved,
            false => reserved.max(next),
        };
        self.next = next;
        self.reserved = reserved;
        self.needed = Position::ZERO;
        self.open = None;
        self.turn_cycle = next.cycle();
        self.placed = Hints {
            end: next,
            reserved,
            sequence,
            ..self.buffer.home.opened()
        };
        (self.sealed, self.durable) = (self.placed, self.placed);
        self.buffer.home.go_on(next);
        self.buffer.home.placed(&mut self.starts);
        self.buffer.recent.clear();
        self.buffer.reset_floor(reserved.one_cycle_before());
        self.buffer.end.store(next.0, Ordering::Relaxed);
        self.buffer.written.store(next.0, Ordering::Release);
        self.buffer.synced.store(next.0, Ordering::Release);
        self.buffer.reserved.store(reserved.0, Ordering::Relaxed);
    }

    fn wrong(&self, why: impl Into<String>) -> Error {
        Error::Buffer {
            name: self.buffer.name.clone(),
            path: self.buffer.home.path().to_path_buf(),
            why: why.into(),
        }
    }
}
