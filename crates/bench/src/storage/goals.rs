//! What is asked of storage, beside what was measured: a table of one run.
//!
//! Invariant: every line is there in every run; what a run has not measured is said to be so, and why. Nothing is taken from another run,
//! and a run with a part of what is asked for judges nothing.

use serde::Serialize;

use super::contenders::{BARE, BARE_UNSYNCED, REFERENCE};
use super::figures::Row;
use super::scenes::{CNFS, Cancels, IN_FILES, Opening, Reads, Scene, Scenes};
use crate::usenetfs::Goal;
use crate::{expiry, removal};

const OWN: &str = "newsreel";
const INN: &str = "inn";
const SEGMENT: &str = "segment";
const TIMEHASH: &str = "timehash";
const MD5SPOOL: &str = "md5spool";
/// Where all but the methods themselves are held against each other.
const EXT4: &str = "ext4";
/// Reading is next to nothing up to this part of what is fed.
const READ_PERCENT_MAX: f64 = 1.0;
const MB: f64 = 1e6;

/// A line of the table.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Line {
    /// Something that has a bound.
    Bound(Goal),
    /// The same of a run with one in so many of the articles that are asked for: it shows that all runs, and no more.
    OfAPart {
        /// The bound, and what was measured.
        goal: Goal,
        /// One in how many.
        part: u64,
    },
    /// Something that is to be told, and has none.
    Told {
        /// What.
        what: String,
        /// What was measured.
        measured: String,
    },
    /// What could not be said.
    NotMeasured {
        /// What.
        what: String,
        /// Why.
        why: String,
    },
}

impl Line {
    /// Below [`crate::usenetfs::GOAL_TITLES`].
    #[must_use]
    pub fn markdown(&self) -> String {
        match self {
            Self::Bound(goal) => goal.markdown(),
            Self::OfAPart { goal, part } => {
                goal.with_verdict(&format!("not judged: 1/{part} of the articles"))
            }
            Self::Told { what, measured } => format!("| {what} | to be told | {measured} | |\n"),
            Self::NotMeasured { what, why } => format!("| {what} | | {why} | not measured |\n"),
        }
    }

    fn of(what: String, goal: Option<Goal>) -> Self {
        goal.map_or_else(
            || Self::NotMeasured {
                what,
                why: "this run has no such rows (--methods, --inn)".to_owned(),
            },
            Self::Bound,
        )
    }

    fn failed(what: &str, why: &str) -> Self {
        Self::NotMeasured {
            what: what.to_owned(),
            why: why.to_owned(),
        }
    }
}

/// All that is asked, as a run with one in `part` of the articles has it.
#[must_use]
pub fn goals(rows: &[Row], scenes: &Scenes, part: u64) -> Vec<Line> {
    let lines = whole(rows, scenes).into_iter();
    let of_a_part = |line| match line {
        Line::Bound(goal) if part > 1 => Line::OfAPart { goal, part },
        other => other,
    };
    lines.map(of_a_part).collect()
}

fn whole(rows: &[Row], scenes: &Scenes) -> Vec<Line> {
    let figures = Rows(rows);
    let mut lines = figures.cyclic();
    lines.push(written(
        "of 2.65 KB articles in steady state",
        1.6,
        &scenes.steady,
    ));
    lines.push(written("of 700 KB articles", 1.05, &scenes.large));
    lines.extend(figures.beside_inn());
    lines.extend(expired(&scenes.expiry));
    lines.extend(removed(&scenes.removal));
    lines.push(cancelled(&scenes.cancels));
    lines.extend(read(&scenes.reads));
    lines.extend(opened(&scenes.opening));
    lines
}

/// What was written in all for an octet of articles: log and views are in it.
fn written(of: &str, asked: f64, scene: &Scene<Row>) -> Line {
    let what = format!("cnfs: octets written for an octet {of}, log and views included");
    match scene {
        Ok(row) => {
            let ratio = row.whole.written_ratio;
            Line::of(
                what.clone(),
                ratio.map(|ratio| Goal::at_most(what, asked, ratio, "")),
            )
        }
        Err(why) => Line::failed(&what, why),
    }
}

struct Rows<'a>(&'a [Row]);

impl Rows<'_> {
    fn find(&self, file_system: &str, server: &str, method: &str) -> Option<&Row> {
        let is_it = |row: &&Row| {
            (
                row.file_system.as_str(),
                row.server.as_str(),
                row.method.as_str(),
            ) == (file_system, server, method)
        };
        self.0.iter().find(is_it)
    }

    fn rate(&self, server: &str, method: &str) -> Option<f64> {
        Some(self.find(EXT4, server, method)?.per_second)
    }

    /// Cyclic buffers against files, on every file system of the run.
    fn cyclic(&self) -> Vec<Line> {
        let mut names: Vec<&str> = self.0.iter().map(|row| row.file_system.as_str()).collect();
        names.dedup();
        let on = |name: &&str| {
            let cnfs = self.find(name, OWN, CNFS);
            let both = cnfs.zip(self.find(name, OWN, REFERENCE));
            let operations = |row: &Row| Some(row.statistics.device?.operations().max(1) as f64);
            let rate = format!("cnfs: rate of articles, in that of {REFERENCE}, {name}");
            let fewer = format!("cnfs: disk operations, fewer than {REFERENCE}'s, {name}");
            let read =
                format!("cnfs: octets read while it is fed, of those of the articles, {name}");
            let faster = both.map(|(cnfs, files)| cnfs.per_second / files.per_second.max(1e-9));
            let less = both.and_then(|(cnfs, files)| Some(operations(files)? / operations(cnfs)?));
            let share = cnfs.and_then(|row| {
                let octets: u64 = row.batches.iter().map(|batch| batch.octets).sum();
                let read = row.statistics.device?.read_octets;
                Some(100.0 * read as f64 / octets.max(1) as f64)
            });
            [
                Line::of(
                    rate.clone(),
                    faster.map(|it| Goal::at_least(rate, 3.0, it, "x")),
                ),
                Line::of(
                    fewer.clone(),
                    less.map(|it| Goal::at_least(fewer, 8.0, it, "x")),
                ),
                Line::of(
                    read.clone(),
                    share.map(|it| Goal::at_most(read, READ_PERCENT_MAX, it, " %")),
                ),
            ]
        };
        names.iter().flat_map(on).collect()
    }

    fn beside_inn(&self) -> Vec<Line> {
        let what = format!("segment: rate, in that of INN's timehash, {EXT4}");
        let rates = self.rate(OWN, SEGMENT).zip(self.rate(INN, TIMEHASH));
        let segment = rates.map(|(own, inn)| Goal::at_least(what.clone(), 4.0, own / inn, "x"));
        let mut lines = vec![Line::of(what, segment)];
        lines.extend([REFERENCE, TIMEHASH].map(|method| self.files(method)));
        let what =
            format!("md5spool: disk operations, in those of {REFERENCE}, {EXT4} (about half)");
        let operations = |method| {
            let device = self.find(EXT4, OWN, method)?.statistics.device?;
            Some(device.operations() as f64)
        };
        let both = operations(MD5SPOOL).zip(operations(REFERENCE));
        let half =
            both.map(|(own, files)| Goal::at_most(what.clone(), 0.5, own / files.max(1.0), "x"));
        lines.push(Line::of(what, half));
        lines
    }

    /// Half as fast again as INN's, or not much dearer than the calls that files cannot do without: either will do.
    fn files(&self, method: &str) -> Line {
        let own = self.rate(OWN, method);
        let times = |server| Some(self.rate(server, method)? / own?);
        let (bare, unsynced) = (times(BARE), times(BARE_UNSYNCED));
        let inn = self.rate(INN, method);
        let faster = own.zip(inn).map(|(own, inn)| own / inn);
        let seen = |value: Option<f64>| {
            value.map_or_else(|| "not measured".to_owned(), |value| format!("{value:.2}x"))
        };
        if let Some(ratio) = faster.filter(|ratio| *ratio >= 1.5) {
            let what = format!(
                "{method}: rate, in that of INN's, {EXT4} (or: cost, in that of the bare calls, at most 1.3x: {})",
                seen(bare)
            );
            return Line::Bound(Goal::at_least(what, 1.5, ratio, "x"));
        }
        let what = format!(
            "{method}: cost, in that of the bare calls with their syncs, {EXT4} (without these: {}; or: rate, in that of INN's, \
             at least 1.5x: {})",
            seen(unsynced),
            seen(faster)
        );
        let cost = bare.map(|bare| Goal::at_most(what.clone(), 1.3, bare, "x"));
        Line::of(what, cost)
    }
}

fn expired(scene: &Scene<Vec<expiry::Row>>) -> Vec<Line> {
    let untouched =
        "a million articles expire: octets read and written on the device of the articles";
    let rows = match scene {
        Ok(rows) => rows,
        Err(why) => return vec![Line::failed(untouched, why)],
    };
    let of = |row: &expiry::Row| {
        let (method, articles) = (&row.method, row.expired);
        let what = format!(
            "{method}: octets read and written on the device of the articles while {articles} expire, {}",
            row.file_system
        );
        let touched = row.expiring.articles;
        let touched = touched.map(|cost| (cost.read_octets + cost.written_octets) as f64);
        let each = [&row.expiring, &row.reclaiming].map(|step| row.written_each(step));
        let noted = row
            .reclaiming
            .articles
            .map_or(0, |cost| cost.written_octets);
        let noted = noted as f64 / articles.max(1) as f64;
        [
            Line::of(
                what.clone(),
                touched.map(|it| Goal::at_most(what, 0.0, it, "")),
            ),
            Line::Told {
                what: format!(
                    "{method}: octets of log and views that are written for one that expires"
                ),
                measured: format!(
                    "{:.0} until it is gone, {:.0} when the views are reclaimed; {noted:.1} of headers, bitmap and notes then",
                    each[0], each[1]
                ),
            },
        ]
    };
    rows.iter().flat_map(of).collect()
}

fn removed(scene: &Scene<Vec<removal::Row>>) -> Vec<Line> {
    let what = "tradspool in range1024: the removal of the oldest of large groups, cold, faster than INN's fastrm on flat";
    let rows = match scene {
        Ok(rows) => rows,
        Err(why) => return vec![Line::failed(what, why)],
    };
    let of = |program: &str| rows.iter().find(|row| row.program == program);
    let Some(own) = of(OWN) else {
        return vec![Line::failed(what, "the run has no such row")];
    };
    let whole = Line::Told {
        what: "... with rules, history and overview".to_owned(),
        measured: format!("{:.1} us for one of {}", own.article_us, own.articles),
    };
    let bound = match of("fastrm") {
        Some(fastrm) => {
            let what = format!(
                "{what} ({:.1} us : {:.1} us)",
                fastrm.removal_us, own.removal_us
            );
            let ratio = fastrm.removal_us / own.removal_us.max(1e-9);
            Line::Bound(Goal::at_least(what, 3.0, ratio, "x"))
        }
        None => Line::failed(what, "fastrm was not named (--fastrm)"),
    };
    vec![bound, whole]
}

fn cancelled(scene: &Scene<Cancels>) -> Line {
    let what = "cancels in a second";
    match scene {
        Ok(done) => {
            let what = format!("{what}, {} of them", done.articles);
            Line::Bound(Goal::at_least(what, 50_000.0, done.per_second, ""))
        }
        Err(why) => Line::failed(what, why),
    }
}

fn read(scene: &Scene<Vec<Reads>>) -> Vec<Line> {
    let rows = match scene {
        Ok(rows) => rows,
        Err(why) => {
            let what = |method| format!("{method}: calls that read, for an article");
            return IN_FILES
                .map(|method| Line::failed(&what(method), why))
                .to_vec();
        }
    };
    let of = |row: &Reads| {
        let what = format!(
            "{}: calls that read, for an article {}",
            row.method, row.size
        );
        match &row.calls {
            Ok(calls) => {
                let each = *calls as f64 / row.articles.max(1) as f64;
                let what = format!("{what} ({calls} for {})", row.articles);
                Line::Bound(Goal::at_most(what, row.asked, each, ""))
            }
            Err(why) => Line::failed(&what, why),
        }
    };
    rows.iter().map(of).collect()
}

fn opened(scene: &Scene<Opening>) -> Vec<Line> {
    let done = match scene {
        Ok(done) => done,
        Err(why) => return vec![Line::failed("many large buffers open", why)],
    };
    let what = |what: &str| {
        format!(
            "{} buffers of {} octets (sparse): {what}",
            done.buffers, done.octets
        )
    };
    let memory = done.memory_octets as f64 / MB;
    vec![
        Line::Bound(Goal::at_most(
            what("from the start to the first answer"),
            1.0,
            done.seconds,
            " s",
        )),
        Line::Bound(Goal::at_most(what("memory"), 100.0, memory, " MB")),
    ]
}

#[cfg(test)]
mod tests;
