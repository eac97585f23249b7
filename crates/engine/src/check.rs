//! `check`: store, log and views say the same, article by article.
//!
//! What the log still names is compared from there; older articles from the store (`check_stored`).
//! Works at the sequence that is committed when it begins, so a running server may go on
//! meanwhile: what is overwritten during the check is not missed.  Reads only; memory is bounded.

use std::collections::{HashMap, HashSet};
use std::ops::RangeInclusive;

use newsreel_index::{Error as IndexError, Wait};
use newsreel_journal::Record;
use newsreel_store::{Blocking, ReadError, Want};
use newsreel_wire::{ArticleNumber, BufferId, GroupId, IdHash, Position, Sequence, Token};

use crate::check_stored::MOVED;
use crate::engine::Engine;
use crate::error::Error;
use crate::mend::describe;
use crate::record::{ArticleRecord, MovedRecord, WithdrawnRecord, kind};
use crate::report::CheckReport;
use crate::shared::Shared;

/// So many problems are listed; more are only counted.
pub const PROBLEMS_MAX: usize = 100;

/// Numbers of a group compared at once.
const NUMBERS_STEP: usize = 4096;

/// So many gaps of the log are kept apart; more become one.
pub const GAPS_MAX: usize = 1000;

/// So many articles that moved from places that were overwritten are compared; more are counted.
pub const MOVED_MAX: usize = 1 << 20;

/// Sequences that the log has no frame of (any more).
#[derive(Debug, Default)]
pub(crate) struct Untold {
    gaps: Vec<RangeInclusive<u64>>,
    /// Where articles moved to of which it tells no more that can be compared: their first places were overwritten, or it has their moves only.
    moved: HashSet<(BufferId, Position)>,
    /// The first sequence that nothing is known of yet.
    next: u64,
}

impl Untold {
    /// The log tells of these, and of nothing between them and what it told before.
    fn told(&mut self, first: Sequence, last: Sequence) {
        if first.0 > self.next {
            let from = match self.gaps.len() < GAPS_MAX {
                true => self.next,
                false => self.gaps.pop().map_or(self.next, |gap| *gap.start()),
            };
            self.gaps.push(from..=first.0 - 1);
        }
        self.next = self.next.max(last.0.saturating_add(1));
    }

    /// Whether it is older than everything the log has.
    pub(crate) fn is_retired(&self, sequence: Sequence) -> bool {
        let oldest = self.gaps.first().filter(|gap| *gap.start() == 0);
        oldest.is_some_and(|gap| gap.contains(&sequence.0))
    }

    pub(crate) fn contains(&self, sequence: Sequence) -> bool {
        let at = self.gaps.partition_point(|gap| *gap.end() < sequence.0);
        self.gaps
            .get(at)
            .is_some_and(|gap| gap.contains(&sequence.0))
    }

    /// It tells of the article in this place by its move alone, unless there are too many of these.
    fn moved_to(&mut self, token: &Token) -> bool {
        let is_kept = self.moved.len() < MOVED_MAX;
        if is_kept {
            self.moved.insert((token.buffer(), token.position()));
        }
        is_kept
    }

    /// Whether it tells of the article in this place by its move alone.
    pub(crate) fn tells_of_move(&self, token: &Token) -> bool {
        self.moved.contains(&(token.buffer(), token.position()))
    }
}

impl CheckReport {
    /// What could be read; damage is a problem among others, and the check goes on.
    pub(crate) fn unless_damaged<T>(
        &mut self,
        read: Result<T, IndexError>,
    ) -> Result<Option<T>, Error> {
        match read {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.is_damage() || matches!(error, IndexError::Incomplete { .. }) => {
                self.problem(error.to_string());
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn problem(&mut self, text: String) {
        if self.problems.len() < PROBLEMS_MAX {
            self.problems.push(text);
        } else {
            self.problems_omitted += 1;
        }
    }
}

/// Articles that are not where the log had them first, until a record of it says why.
#[derive(Default)]
struct Unexplained {
    /// The views say that they were withdrawn (no token), or lie elsewhere.
    known: HashMap<IdHash, (String, Option<Token>)>,
    /// They were overwritten there, and the views say that they were withdrawn, or lie elsewhere.
    overwritten: HashSet<IdHash>,
}

impl Unexplained {
    fn clear(&mut self) {
        *self = Self::default();
    }

    /// No record said why.
    fn tell(self, report: &mut CheckReport) {
        for (name, token) in self.known.into_values() {
            let became = match token {
                None => "was withdrawn",
                Some(_) => "lies elsewhere",
            };
            report.problem(format!(
                "{name}: the history says it {became}, the log does not"
            ));
        }
    }
}

/// A record says that an article was withdrawn, or moved; a token: it is to be compared there, as the store has it.
fn explain(
    shared: &Shared,
    record: &Record<'_>,
    report: &mut CheckReport,
    gone: &mut Unexplained,
) -> Result<Option<Token>, Error> {
    let (sequence, payload) = (record.sequence, record.payload);
    let said = match record.kind {
        kind::WITHDRAWN => WithdrawnRecord::decode(sequence, payload).map(|it| (it.id_hash, None)),
        kind::MOVED => MovedRecord::decode(sequence, payload).map(|it| {
            let token = Some(it.token).filter(|_| !it.is_withdrawn);
            (it.id_hash, token)
        }),
        _ => return Ok(None),
    };
    match said {
        Ok((id_hash, token)) => {
            let place = |token: Token| (token.buffer(), token.position());
            // Where it moved to is overwritten.
            let is_over = token.is_some_and(|token| !shared.store.is_live(&token));
            let is_it = |known: Option<Token>| {
                known.map(place) == token.map(place) || (is_over && known.is_none())
            };
            match gone.known.get(&id_hash) {
                Some((_, known)) if is_it(*known) => {
                    gone.known.remove(&id_hash);
                    report.withdrawn += u64::from(token.is_none());
                    return Ok(None);
                }
                None if token.is_some() || gone.overwritten.contains(&id_hash) => {}
                _ => return Ok(None),
            }
            let entry = report.unless_damaged(shared.views.history().lookup(&id_hash))?;
            let leads_to = entry.flatten().map(|entry| entry.token);
            let is_last = leads_to.is_some_and(|known| known.map(place) == token.map(place));
            if !is_last || is_over {
                return Ok(None);
            }
            if gone.overwritten.remove(&id_hash) {
                report.overwritten -= 1;
                report.withdrawn += u64::from(token.is_none());
                // Where it moved to it is counted again.
                report.articles -= u64::from(token.is_some());
            }
            Ok(token)
        }
        Err(error) => {
            report.problem(error.to_string());
            Ok(None)
        }
    }
}

/// What the overview has in one place: a token, a message-id; which place that is.
type Row = (Option<Token>, Vec<u8>, GroupId, ArticleNumber);

impl Engine {
    /// Compares log, store and views; `progress` is told how many records of the log are done, of how many, and then how
    /// many octets of the buffers.
    pub fn check(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<CheckReport, Error> {
        let mut report = CheckReport::default();
        let looked = self.shared.views.check_files();
        if let Some(Some(manifest)) = report.unless_damaged(looked)? {
            report.problem(manifest);
        }
        let disk = &self.shared.disk;
        let buffers = self.spool.buffers();
        let register = newsreel_store::register_damage(disk.as_ref(), &buffers)?;
        for damage in self.spool.damage(disk).into_iter().chain(register) {
            report.problem(damage);
        }
        for damaged in self.shared.views.damaged() {
            report.problem(describe(&damaged));
        }
        if let Some(doubt) = self.doubt.as_ref().filter(|_| self.is_at_rest) {
            report.problem(format!(
                "{doubt}; a start takes in again what is whole in the buffers"
            ));
        }
        let last = self.shared.committed();
        let untold = self.check_log(&mut report, last, progress)?;
        self.check_store(&mut report, &untold, last, progress)?;
        self.check_groups(&mut report)?;
        Ok(report)
    }

    /// Every article of the log that is alive is in store, history and overview.  Returns what the log does not tell
    /// of: segments that were retired, frames that are damaged.
    fn check_log(
        &self,
        report: &mut CheckReport,
        last: Sequence,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Untold, Error> {
        let oldest = self.shared.journal.oldest();
        let mut untold = Untold::default();
        let total = last.0.saturating_sub(oldest.0) + 1;
        let mut cursor = self.shared.journal.read_from(oldest);
        let mut memory = Vec::new();
        let mut gone = Unexplained::default();
        loop {
            let frame = match cursor.next_frame() {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(newsreel_journal::Error::Damaged(damage)) => {
                    report.problem(damage.to_string());
                    continue;
                }
                // Retired before it was read: what it told is compared from the store.
                Err(newsreel_journal::Error::Gone { oldest, .. }) => {
                    gone.clear();
                    cursor.seek(oldest);
                    continue;
                }
                Err(error) => {
                    let error = Error::from(error);
                    if !self.only_looks() || error.missing().is_none() {
                        return Err(error);
                    }
                    // It was there: the server retired it, and what it told is compared from the store.
                    untold.told(oldest, Sequence(oldest.0.saturating_sub(1)));
                    gone.clear();
                    break;
                }
            };
            untold.told(frame.first().min(last.next()), frame.last());
            for record in frame.records() {
                // Also what was withdrawn or moved while the check was running.
                let moved = explain(&self.shared, &record, report, &mut gone)?;
                if record.sequence > last {
                    continue;
                }
                if let Some(to) = moved
                    && !untold.moved_to(&to)
                {
                    report.uncompared(MOVED);
                }
                report.records += 1;
                if record.kind == kind::ARTICLE {
                    self.check_article(&record, report, &mut gone, &mut memory)?;
                }
            }
            if frame.last() >= last && gone.known.is_empty() {
                return Ok(untold);
            }
            progress(
                (frame.last().0.saturating_sub(oldest.0) + 1).min(total),
                total,
            );
        }
        gone.tell(report);
        untold.told(last.next(), last);
        Ok(untold)
    }

    fn check_article(
        &self,
        record: &Record<'_>,
        report: &mut CheckReport,
        gone: &mut Unexplained,
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
        let mut text = self.check_text((&article, Some(record.sequence)), &token, memory);
        let history = report.unless_damaged(shared.views.history().lookup(&article.id_hash))?;
        let mut rows = self.rows_of(&article, report)?;
        // The number of the set may have changed since.
        let leads_to =
            |found: Option<Token>, token: &Token| found.is_some_and(|it| it.same_place(token));
        // Judged only now: what is alive at the end was alive all along.
        if !shared.store.is_live(&token) {
            report.overwritten += 1;
            let known = history.flatten().map(|entry| entry.token);
            if known.is_some_and(|known| !leads_to(known, &token)) {
                gone.overwritten.insert(article.id_hash);
            }
            return Ok(());
        }
        let is_it = |found| leads_to(found, &token);
        let known = history.flatten().map(|entry| entry.token);
        let mut here = token;
        if let Some(elsewhere) = known.filter(|known| !is_it(*known))
            && rows.iter().all(|(found, ..)| !is_it(*found))
        {
            gone.known
                .insert(article.id_hash, (name.clone(), elsewhere));
            let Some(moved) = elsewhere else {
                return Ok(());
            };
            // It has the sequence of its move.
            text = self.check_text((&article, None), &moved, memory);
            rows = self.rows_of(&article, report)?;
            let now = report.unless_damaged(shared.views.history().lookup(&article.id_hash))?;
            let stays = now
                .flatten()
                .is_some_and(|entry| leads_to(entry.token, &moved));
            if !stays || !shared.store.is_live(&moved) {
                // It went on meanwhile: what is said of it now concerns another moment.
                return Ok(());
            }
            here = moved;
        } else if history.is_some_and(|entry| !is_it(entry.and_then(|entry| entry.token))) {
            report.problem(format!("{name}: the history does not lead to it"));
        }
        // Of what was withdrawn nothing need be left; and whoever removed its file may have been seen meanwhile.
        if let Some(why) = text {
            report.problem(format!("{name}: {why}"));
        }
        self.check_rows(&name, article.id, &here, rows, report);
        Ok(())
    }

    /// The overview has an article in its places, and leads to where it is.
    fn check_rows(
        &self,
        name: &str,
        id: &[u8],
        here: &Token,
        rows: Vec<Row>,
        report: &mut CheckReport,
    ) {
        let views = &self.shared.views;
        for (found, known_id, group, number) in rows {
            report.rows += 1;
            let is_removed =
                !views.groups().exists(group) || views.overview().is_withdrawn(group, number);
            let is_it = found.is_some_and(|found| found.same_place(here)) && known_id == id;
            if !is_removed && !is_it {
                report.problem(format!(
                    "{name}: the overview of group {} does not have it as number {}",
                    group.0, number.0
                ));
            }
        }
    }

    /// What is wrong with the article that the store has in this place.
    fn check_text(
        &self,
        (article, sequence): (&ArticleRecord<'_>, Option<Sequence>),
        token: &Token,
        memory: &mut Vec<u8>,
    ) -> Option<String> {
        let store = &self.shared.store;
        match store.read(token, Want::Whole, Blocking::Yes, memory) {
            Ok(stored)
                if sequence.is_none_or(|sequence| stored.sequence == sequence)
                    && stored.id_hash == article.id_hash =>
            {
                None
            }
            Ok(_) => Some("the store has another article in its place".to_owned()),
            Err(ReadError::Gone) => None,
            Err(error) => Some(error.to_string()),
        }
    }

    /// What the overview has in the places of an article: its token and message-id there.
    fn rows_of(
        &self,
        article: &ArticleRecord<'_>,
        report: &mut CheckReport,
    ) -> Result<Vec<Row>, Error> {
        let (views, mut rows) = (&self.shared.views, Vec::new());
        for (group, number) in &article.groups {
            if !views.groups().exists(*group) {
                // It was removed: nobody is shown its rows.
                continue;
            }
            let mut id = Vec::new();
            let overview = views.overview();
            let column = overview.column(*group, *number, Wait::Yes, &mut id);
            if let Some(column) = report.unless_damaged(column)? {
                rows.push((column.map(|column| column.token), id, *group, *number));
            }
        }
        Ok(rows)
    }

    /// Tells of an alias that leads nowhere.
    fn check_alias(&self, id: GroupId, report: &mut CheckReport) {
        let Some(group) = self.shared.views.groups().by_id(id) else {
            return;
        };
        if let Some(why) = self.leads_nowhere(group.status()) {
            report.aliases.push(format!("{}: {why}", group.name()));
        }
    }

    /// Counts and marks of every group agree with its numbers.
    fn check_groups(&self, report: &mut CheckReport) -> Result<(), Error> {
        let views = &self.shared.views;
        for id in views.groups().sorted().iter() {
            report.groups += 1;
            self.check_alias(*id, report);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_of_the_log_are_known() {
        let mut untold = Untold::default();
        for (first, last) in [(10, 12), (13, 20), (25, 30), (31, 30)] {
            untold.told(Sequence(first), Sequence(last));
        }
        let within: Vec<u64> = (0..40)
            .filter(|at| untold.contains(Sequence(*at)))
            .collect();
        let expect: Vec<u64> = (0..10).chain(21..25).collect();
        assert_eq!(within, expect);
        assert!(untold.is_retired(Sequence(9)) && !untold.is_retired(Sequence(21)));
        for at in 100..100 + 2 * GAPS_MAX as u64 {
            untold.told(Sequence(2 * at), Sequence(2 * at));
        }
        assert!(untold.gaps.len() <= GAPS_MAX && untold.contains(Sequence(31)));
        assert!(untold.contains(Sequence(3001)) && !untold.contains(Sequence(10)));
    }
}
