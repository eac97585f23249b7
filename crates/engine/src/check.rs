//! `check`: store, log and views say the same, article by article.
//!
//! Works at the sequence that is committed when it begins, so a running server may go on
//! meanwhile: what is overwritten during the check is not missed.  Reads only; memory is bounded.

use std::sync::Arc;

use newsreel_index::{Error as IndexError, Wait};
use newsreel_journal::Record;
use newsreel_store::{Blocking, ReadError, ScanRange, Scanned, Want};
use newsreel_wire::{ArticleNumber, IdHash, Token};

use crate::engine::Engine;
use crate::error::Error;
use crate::mend::describe;
use crate::record::{ArticleRecord, kind};
use crate::report::CheckReport;

/// So many problems are listed; more are only counted.
const PROBLEMS_MAX: usize = 100;

/// Numbers of a group compared at once.
const NUMBERS_STEP: usize = 4096;

impl CheckReport {
    /// What could be read; damage is a problem among others, and the check goes on.
    fn unless_damaged<T>(&mut self, read: Result<T, IndexError>) -> Result<Option<T>, Error> {
        match read {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.is_damage() || matches!(error, IndexError::Incomplete { .. }) => {
                self.problem(error.to_string());
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn problem(&mut self, text: String) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(text);
        } else {
            self.problems_omitted += 1;
        }
    }
}

impl Engine {
    /// Compares log, store and views; `progress` is told how many records are done, of how many.
    pub fn check(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<CheckReport, Error> {
        let mut report = CheckReport::default();
        for damaged in self.shared.views.damaged() {
            report.problem(describe(&damaged));
        }
        self.check_log(&mut report, progress)?;
        self.check_store(&mut report)?;
        self.check_groups(&mut report)?;
        Ok(report)
    }

    /// Every article of the log that is alive is in store, history and overview.
    fn check_log(
        &self,
        report: &mut CheckReport,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<(), Error> {
        let (oldest, last) = (self.shared.journal.oldest(), self.shared.committed());
        let total = last.0.saturating_sub(oldest.0) + 1;
        let mut cursor = self.shared.journal.read_from(oldest);
        let mut memory = Vec::new();
        loop {
            let frame = match cursor.next_frame() {
                Ok(Some(frame)) => frame,
                Ok(None) => return Ok(()),
                Err(newsreel_journal::Error::Damaged(damage)) => {
                    report.problem(damage.to_string());
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            for record in frame.records() {
                if record.sequence > last {
                    return Ok(());
                }
                report.records += 1;
                if record.kind == kind::ARTICLE {
                    self.check_article(&record, report, &mut memory)?;
                }
            }
            progress(frame.last().0.saturating_sub(oldest.0) + 1, total);
        }
    }

    fn check_article(
        &self,
        record: &Record<'_>,
        report: &mut CheckReport,
        memory: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let shared = &self.shared;
        let article = match ArticleRecord::decode(record.sequence, record.payload) {
            Ok(article) => article,
            Err(error) => {
                report.problem(error.to_string());
                return Ok(());
            }
        };
        let name = String::from_utf8_lossy(article.id).into_owned();
        let token = article.token;
        report.articles += 1;
        match shared
            .store
            .read(&token, Want::Whole, Blocking::Yes, memory)
        {
            Ok(stored)
                if stored.sequence == record.sequence && stored.id_hash == article.id_hash => {}
            Ok(_) => report.problem(format!(
                "{name}: the store has another article in its place"
            )),
            Err(ReadError::Gone) => {}
            Err(error) => report.problem(format!("{name}: {error}")),
        }
        let history = report.unless_damaged(shared.views.history().lookup(&article.id_hash))?;
        let mut rows = Vec::new();
        for (group, number) in &article.groups {
            let mut id = Vec::new();
            let overview = shared.views.overview();
            let column = overview.column(*group, *number, Wait::Yes, &mut id);
            if let Some(column) = report.unless_damaged(column)? {
                rows.push((column.map(|column| column.token), id, *group, *number));
            }
        }
        // Judged only now: what is alive at the end was alive all along.
        if !shared.store.is_live(&token) {
            report.overwritten += 1;
            return Ok(());
        }
        if history.is_some_and(|entry| entry.and_then(|entry| entry.token) != Some(token)) {
            report.problem(format!("{name}: the history does not lead to it"));
        }
        for (found, id, group, number) in rows {
            report.rows += 1;
            let is_removed = !shared.views.groups().exists(group);
            if !is_removed && (found != Some(token) || id != article.id) {
                report.problem(format!(
                    "{name}: the overview of group {} does not have it as number {}",
                    group.0, number.0
                ));
            }
        }
        Ok(())
    }

    /// Every record in the buffers that is alive is sound.  Records that no commit ever named
    /// (a crash came between buffer and log) are no fault.
    fn check_store(&self, report: &mut CheckReport) -> Result<(), Error> {
        for buffer in self.shared.store.buffers() {
            let mut scan = Arc::clone(buffer).scan(ScanRange::Live);
            while let Some(found) = scan.step()? {
                let text = match found {
                    Scanned::Record {
                        token,
                        sequence,
                        id_hash,
                        sound: false,
                        ..
                    } if self.is_wanted(&token, &id_hash) => {
                        format!(
                            "buffer {}: the article at {:#x} (sequence {sequence}) is damaged",
                            buffer.name(),
                            token.position().offset(),
                        )
                    }
                    Scanned::Damaged { from, to } => {
                        format!(
                            "buffer {}: no record can be read from {from:#x} to {to:#x}",
                            buffer.name()
                        )
                    }
                    Scanned::Record { .. } => continue,
                };
                report.problem(text);
            }
        }
        Ok(())
    }

    /// Whether the history leads to this record, as far as it can tell.
    fn is_wanted(&self, token: &Token, id_hash: &IdHash) -> bool {
        let known = self.shared.views.history().lookup(id_hash);
        let token_known = known.map(|entry| entry.and_then(|entry| entry.token));
        self.shared.store.is_live(token) && !token_known.is_ok_and(|known| known != Some(*token))
    }

    /// Counts and marks of every group agree with its numbers.
    fn check_groups(&self, report: &mut CheckReport) -> Result<(), Error> {
        let views = &self.shared.views;
        for id in views.groups().sorted().iter() {
            report.groups += 1;
            let epoch = (self.shared.store.epoch(), self.shared.committed());
            let facts = views.group_facts(*id, Wait::Yes);
            let Some(facts) = report.unless_damaged(facts)? else {
                continue;
            };
            let mut numbers = Vec::new();
            let (mut count, mut first, mut last) = (0, None, ArticleNumber(0));
            let mut from = ArticleNumber(1);
            loop {
                numbers.clear();
                let range = (from, facts.high);
                let overview = views.overview();
                let next = overview.numbers(*id, range, NUMBERS_STEP, Wait::Yes, &mut numbers);
                let next = report.unless_damaged(next)?.flatten();
                count += numbers.len() as u64;
                first = first.or_else(|| numbers.first().copied());
                last = numbers.last().copied().unwrap_or(last);
                match next {
                    Some(next) => from = next,
                    None => break,
                }
            }
            if epoch != (self.shared.store.epoch(), self.shared.committed()) {
                // The server went on meanwhile: these figures belong to two moments.
                continue;
            }
            let low = first.unwrap_or_else(|| facts.high.next());
            if count != facts.count || low != facts.low || last > facts.high {
                let name = views
                    .groups()
                    .by_id(*id)
                    .map(|group| group.name().to_owned());
                report.problem(format!(
                    "group {}: says {} articles from {} to {}, has {count} from {} to {}",
                    name.unwrap_or_default(),
                    facts.count,
                    facts.low.0,
                    facts.high.0,
                    low.0,
                    last.0
                ));
            }
        }
        Ok(())
    }
}
