//! A path from elsewhere on its way through: its files one after the other, in each the articles in the order of their log.
//!
//! Comes to whole articles that are wanted, one at a time.  What it passes over (damage, what was withdrawn there, files with other names,
//! files that cannot be read) is counted and named, and ends nothing.

use std::fmt::Display;
use std::sync::Arc;

use newsreel_store::{
    Alone, Blocking, BufferReader, Comparison, PassedOver, ReadError, RecordScan, ScanRange,
    Scanned, TIMECAF_HELPS, Want,
};
use newsreel_wire::{Sequence, SetId, Token, TokenText, UnixTime};

use super::{ATTACHED_AT_ONCE_OCTETS, Attached};

/// So many damaged places are named.
const PLACES_NAMED_MAX: usize = 100;

/// A path on its way through, and the article it has come to.  The files of a directory follow each other, so one of them is
/// read at a time.
pub(super) struct Walk {
    pub(super) reader: Arc<dyn BufferReader>,
    pub(super) scan: Box<dyn RecordScan>,
    comparison: Comparison,
    /// So much had been left out before this file, as withdrawn.
    withdrawn_before: u64,
    pub(super) later: Alone,
    /// The set whose `file` it is, if its articles stay there.
    pub(super) lends_to: Option<SetId>,
    pub(super) here: Option<(Sequence, UnixTime, Token)>,
    /// Nothing comes any more.
    is_over: bool,
    /// Octets that were read of the files before this one.
    pub(super) before: u64,
    /// What was withdrawn comes, too.
    pub(super) takes_all: bool,
}

impl Walk {
    /// `None`: there is no file that can be opened.
    pub(super) fn new(
        (mut later, lends_to): (Alone, Option<SetId>),
        takes_all: bool,
        report: &mut Attached,
    ) -> Option<Self> {
        let mut opened = later.by_ref().filter_map(|file| {
            file.inspect_err(|error| report.unreadable.push(error.to_string()))
                .ok()
        });
        let reader = opened.next()?;
        complain(&reader, report);
        let scan = Arc::clone(&reader).scan(ScanRange::Live);
        Some(Self {
            comparison: Comparison::new(&reader, scan.at()),
            scan,
            withdrawn_before: 0,
            reader,
            later,
            lends_to,
            here: None,
            is_over: false,
            before: 0,
            takes_all,
        })
    }

    pub(super) fn octets_read(&self) -> u64 {
        self.before + self.scan.octets_read()
    }

    /// Counts a damaged place, and names it.
    fn damaged(&self, found: &Scanned, report: &mut Attached) {
        let cut_at = self.reader.cut_at();
        if matches!(found, Scanned::Damaged { to, .. } if cut_at.is_some_and(|at| at < *to)) {
            // It is told when the rest was read.
            return;
        }
        let what = match found {
            Scanned::Record { token, .. } => self.why(token),
            Scanned::Damaged { from, to, .. } => {
                format!("nothing can be read from {from:#x} to {to:#x}")
            }
            Scanned::Passed => return,
        };
        damage(&self.reader, &what, report);
    }

    /// Compares what a step found with what the file says of itself.
    fn compare(&mut self, found: Option<&Scanned>, report: &mut Attached) {
        let (reader, scan) = (&self.reader, self.scan.as_mut());
        let mut tell = |what: String| damage(reader, &what, report);
        if let Err(error) = self.comparison.look(scan, found, &mut tell) {
            report.unreadable.push(told_of(reader, &error));
        }
    }

    /// Whether the article here was withdrawn, as far as the file says it; where that cannot be read it may be.
    fn is_withdrawn(&mut self, token: &Token, report: &mut Attached) -> bool {
        let found = self.comparison.is_withdrawn(token);
        found.unwrap_or_else(|error| {
            report.unreadable.push(told_of(&self.reader, &error));
            true
        })
    }

    /// Tells of files that were not read, as their names are none of articles.
    fn passed_over(&self, report: &mut Attached) {
        let Some(passed) = self.reader.passed_over() else {
            return;
        };
        let PassedOver {
            files,
            first,
            timecaf,
        } = passed;
        let (dir, first) = (self.reader.facts().path, first.display());
        match timecaf {
            0 => report.passed_over.push(format!(
                "{dir}: files in it that have no names of articles were passed over: {files}, {first} the first"
            )),
            timecaf => report.unreadable.push(format!(
                "{dir}: files of INN's timecaf cannot be read: {timecaf}, {first} the first; {TIMECAF_HELPS}"
            )),
        }
    }

    /// Counts what was cut off a file, once it was read up to there, and what is damaged behind its articles.
    fn passed(&self, report: &mut Attached) {
        self.passed_over(report);
        self.tell_doubt(report);
        let cut = self.reader.cut_at();
        let cut = cut.map(|at| format!("nothing can be read from {at:#x} on: it was cut"));
        let noted = self.reader.notes_damaged_at().map(|at| {
            format!(
                "what is noted behind it of articles that were cancelled, expired or moved there is damaged at {at:#x}: some of those \
                 may be among what is taken in"
            )
        });
        for what in cut.into_iter().chain(noted) {
            damage(&self.reader, &what, report);
        }
    }

    /// Tells of articles that were left out and may be alive, and of a bitmap by which none is.
    fn tell_doubt(&self, report: &mut Attached) {
        let withdrawn = report.withdrawn - self.withdrawn_before;
        let is_unreadable = self.comparison.is_bitmap_unreadable();
        if (self.comparison.is_bitmap_damaged() || is_unreadable) && withdrawn > 0 {
            let how = match is_unreadable {
                true => "its bitmap cannot be read",
                false => "its bitmap is damaged",
            };
            let what = format!(
                "{how}, and articles that were left out as cancelled, expired or moved may be alive: {withdrawn}; --withdrawn takes them too"
            );
            report.doubtful.push(told_of(&self.reader, &what));
        } else if let Some(what) = self.comparison.nothing_alive() {
            report.warnings.push(told_of(&self.reader, &what));
        }
    }

    /// What is wrong with an article.
    fn why(&self, token: &Token) -> String {
        let (name, position) = (self.reader.name(), token.position());
        let text = TokenText { name, position };
        let mut memory = Vec::new();
        let read = self
            .reader
            .read(token, Want::Whole, Blocking::Yes, &mut memory);
        match (read, self.reader.file_of(token)) {
            (Err(ReadError::Corrupt { what, .. }), Some(file)) => {
                format!("{}: {what}", file.display())
            }
            (Ok(_), _) => format!("the article {text} is damaged"),
            (Err(why), _) => format!("the article {text}: {why}"),
        }
    }

    /// Goes on with the next file that can be opened; whether there is one.
    fn turn(&mut self, report: &mut Attached) -> bool {
        for next in self.later.by_ref() {
            match next {
                Ok(reader) => {
                    self.before += self.scan.octets_read();
                    complain(&reader, report);
                    self.scan = Arc::clone(&reader).scan(ScanRange::Live);
                    self.comparison = Comparison::new(&reader, self.scan.at());
                    self.withdrawn_before = report.withdrawn;
                    self.reader = reader;
                    return true;
                }
                Err(error) => report.unreadable.push(error.to_string()),
            }
        }
        false
    }

    /// Whether it is not known yet what it has next.
    pub(super) const fn is_under_way(&self) -> bool {
        self.here.is_none() && !self.is_over
    }

    /// Goes on to the next whole article, or the end, or, where it passes over much, a stretch of the way; how many octets it passed
    /// over.
    pub(super) fn advance(&mut self, report: &mut Attached) -> usize {
        let mut passed = 0;
        while self.is_under_way() && passed < ATTACHED_AT_ONCE_OCTETS {
            let before = self.octets_read();
            self.step(report);
            let read = self.octets_read() - before;
            if self.here.is_none() {
                passed = passed.saturating_add(usize::try_from(read).unwrap_or(usize::MAX));
            }
        }
        passed
    }

    fn step(&mut self, report: &mut Attached) {
        let step = self.scan.step();
        if let Ok(found) = &step {
            self.compare(found.as_ref(), report);
        }
        match step {
            Ok(None) => {
                self.passed(report);
                self.is_over = !self.turn(report);
            }
            Ok(Some(Scanned::Record {
                token,
                sequence,
                arrival,
                sound: true,
                ..
            })) => {
                if !self.takes_all && self.is_withdrawn(&token, report) {
                    report.withdrawn += 1;
                } else {
                    self.here = Some((sequence, arrival, token));
                }
            }
            Ok(Some(Scanned::Passed)) => {}
            Ok(Some(found)) => self.damaged(&found, report),
            Err(error) => {
                report.unreadable.push(told_of(&self.reader, &error));
                self.tell_doubt(report);
                self.is_over = !self.turn(report);
            }
        }
    }
}

/// Tells of what was wrong with a file when it was opened.
fn complain(reader: &Arc<dyn BufferReader>, report: &mut Attached) {
    if let Some(complaint) = reader.facts().complaint {
        report.warnings.push(told_of(reader, &complaint));
    }
}

/// Counts a damaged place, and names it.
fn damage(reader: &Arc<dyn BufferReader>, what: &str, report: &mut Attached) {
    report.damaged += 1;
    if report.places.len() < PLACES_NAMED_MAX {
        report.places.push(told_of(reader, &what));
    }
}

fn told_of(reader: &Arc<dyn BufferReader>, what: &dyn Display) -> String {
    format!("{}: {what}", reader.facts().path)
}
