//! leafnode and sn beside the cache: what a reader waits for at a server that has fetched all of it before.
//!
//! Invariant: one that is not there, fails, or lacks a command is told with the reason, and never keeps the rest from being measured.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use super::fixture::{BUSY, Fixture, QUIET, busy};
use super::operations::{Operation, first_and_count};
use super::page::digits;
use super::run::HITS;
use crate::client::connect::Opened;
use crate::error::Error;
use crate::load::Machine;
use crate::rivals::inetd::Limit;
use crate::rivals::leaf::{Leaf, Prepared, Wanted};

/// Whether and how they are measured.
#[derive(Debug, Clone)]
pub struct LeavesArgs {
    /// Where they are installed: the root of the file system, or where their packages were unpacked.
    pub root: PathBuf,
    /// Each may take so long in all; none: they are left out.
    pub limit: Option<Duration>,
}

/// What was found of one.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LeafReport {
    /// Its name.
    pub name: String,
    /// The program that fetches.
    pub fetcher: String,
    /// Why it was not measured.
    pub why_not: Option<String>,
    /// Seconds in which it fetched all.
    pub fetch_s: Option<f64>,
    /// Articles of the busy groups that it has then.
    pub articles: u64,
    /// Groups that it lists.
    pub groups: usize,
    /// What a reader waited for.
    pub hits: Vec<LeafHit>,
}

/// An operation at one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LeafHit {
    /// For what.
    pub operation: Operation,
    /// Milliseconds.
    pub ms: Option<f64>,
    /// Why there are none.
    pub why_not: Option<String>,
}

/// Measures each in a directory of its own below this one.
pub(super) fn measure(
    args: &LeavesArgs,
    machine: Machine<'_>,
    directory: &Path,
    (origin, has): (SocketAddr, Fixture),
) -> Vec<LeafReport> {
    let one = |leaf: Leaf| {
        let mut report = LeafReport {
            name: leaf.name().to_owned(),
            fetcher: leaf.fetcher().to_owned(),
            ..LeafReport::default()
        };
        report.why_not = match (args.limit, leaf.missing(&args.root)) {
            (None, _) => Some("left out (--rival-seconds 0)".to_owned()),
            (_, Some(missing)) => Some(missing),
            (Some(limit), None) => {
                let place = directory.join(leaf.name());
                let at = Place {
                    root: &args.root,
                    place: &place,
                    machine,
                    has,
                };
                let done = at.run(leaf, origin, limit, &mut report);
                done.err().map(|error| why(&error))
            }
        };
        report
    };
    Leaf::ALL.into_iter().map(one).collect()
}

/// Where one is measured, and what it is to have.
struct Place<'p> {
    root: &'p Path,
    place: &'p Path,
    machine: Machine<'p>,
    has: Fixture,
}

impl Place<'_> {
    fn run(
        &self,
        leaf: Leaf,
        origin: SocketAddr,
        limit: Duration,
        report: &mut LeafReport,
    ) -> Result<(), Error> {
        let groups: Vec<String> = self.has.names().take(BUSY + QUIET).collect();
        let mut has = self.has;
        if !leaf.lists_all() {
            has.groups = groups.len();
        }
        report.groups = has.groups;
        let wanted = Wanted {
            origin,
            groups: &groups,
            articles: has.articles,
        };
        leaf.prepared((self.root, self.place), &wanted, |leaf| {
            self.served(leaf, has, limit, report)
        })
    }

    fn served(
        &self,
        leaf: &Prepared<'_>,
        has: Fixture,
        limit: Duration,
        report: &mut LeafReport,
    ) -> Result<(), Error> {
        let limit = Limit::new(limit);
        let took = self.timed(|| leaf.fetch(&limit))?;
        report.fetch_s = Some(took.as_secs_f64());
        let server = leaf.serve(&limit)?;
        report.articles = articles(server.address())?;
        for operation in Operation::ALL {
            let fastest = (0..HITS).try_fold(Duration::MAX, |least, _| {
                let took = self.timed(|| operation.run(server.address(), &has))?;
                Ok::<_, Error>(least.min(took))
            });
            report.hits.push(LeafHit {
                operation,
                ms: fastest.as_ref().ok().map(|it| it.as_secs_f64() * 1000.0),
                why_not: match fastest {
                    Err(_) if limit.is_over() => Some("its time was over".to_owned()),
                    fastest => fastest.err().map(|error| why(&error)),
                },
            });
        }
        Ok(())
    }

    fn timed(&self, work: impl FnOnce() -> Result<(), Error>) -> Result<Duration, Error> {
        let begin = self.machine.clock.monotonic();
        work()?;
        Ok(self.machine.clock.monotonic().saturating_sub(begin))
    }
}

/// Why there is no figure.
fn why(error: &Error) -> String {
    match error {
        Error::Refused { asked, reply, .. } => format!("{asked} was answered \"{}\"", reply.trim()),
        other => other.to_string(),
    }
}

/// Articles that a server says it has in the busy groups.
fn articles(server: SocketAddr) -> Result<u64, Error> {
    let mut to = Opened::open(server, false)?;
    to.command("MODE READER", &[200, 201])?;
    let counts = (0..BUSY).map(|group| {
        let line = to.command(&format!("GROUP {}", busy(group)), &[211])?;
        Ok(first_and_count(&line).1)
    });
    counts.sum()
}

/// They beside the cache's hits, in Markdown.
pub(super) fn markdown(
    leaves: &[LeafReport],
    hit_ms: impl Fn(Operation) -> Option<f64>,
    text: &mut String,
) {
    // Writing to a text cannot fail.
    if leaves.is_empty() {
        return;
    }
    *text += "\n## Small servers that fetch in batches\n";
    let measured = || leaves.iter().filter(|it| !it.hits.is_empty());
    if measured().count() > 0 {
        *text += "\n| ms | newsreel, hit |";
        measured().for_each(|it| {
            let _ = write!(text, " {0}, miss | {0}, hit |", it.name);
        });
        *text += "\n|---|---|";
        measured().for_each(|_| *text += "---|---|");
        text.push('\n');
        for operation in Operation::ALL {
            let shown = |ms: Option<f64>| ms.map_or_else(|| "-".to_owned(), digits);
            let _ = write!(
                text,
                "| {} | {} |",
                operation.name(),
                shown(hit_ms(operation))
            );
            for leaf in measured() {
                let hit = leaf.hits.iter().find(|it| it.operation == operation);
                let _ = write!(text, " - | {} |", shown(hit.and_then(|it| it.ms)));
            }
            text.push('\n');
        }
        *text += "\nThey have what was fetched before and nothing else, so that there is no miss. A program is started for each reader, which is \
                  in each figure.\n";
    }
    text.push('\n');
    leaves.iter().for_each(|leaf| leaf.lines(text));
}

impl LeafReport {
    /// What a table has no room for.
    fn lines(&self, text: &mut String) {
        let name = &self.name;
        if let Some(seconds) = self.fetch_s {
            let _ = writeln!(
                text,
                "- {name}: `{}` fetched the set in {seconds:.1} s, {} articles of the five groups in it; it lists {} groups.",
                self.fetcher, self.articles, self.groups
            );
        }
        if let Some(why) = &self.why_not {
            let _ = writeln!(text, "- {name}: {}", one_line(why));
        }
        for hit in &self.hits {
            if let Some(why) = &hit.why_not {
                let what = hit.operation.name();
                let _ = writeln!(text, "- {name}, {what}: {}", one_line(why));
            }
        }
    }
}

/// What others said may have lines of its own.
fn one_line(said: &str) -> String {
    said.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_not_there_or_lacks_a_command_is_a_dash_with_the_reason() {
        let hit = |operation, ms, why: Option<&str>| LeafHit {
            operation,
            ms,
            why_not: why.map(str::to_owned),
        };
        let sn = LeafReport {
            name: "sn".to_owned(),
            fetcher: "snget".to_owned(),
            fetch_s: Some(33.04),
            articles: 10_000,
            groups: 350,
            hits: vec![
                hit(Operation::Articles, Some(76.4), None),
                hit(Operation::Overview, None, Some("500 What?\r\n")),
            ],
            why_not: None,
        };
        let leafnode = LeafReport {
            name: "leafnode".to_owned(),
            why_not: Some("not installed".to_owned()),
            ..LeafReport::default()
        };
        let mut text = String::new();
        let hits = |operation| (operation == Operation::Articles).then_some(11.3);
        markdown(&[leafnode.clone(), sn], hits, &mut text);
        for line in [
            "| ms | newsreel, hit | sn, miss | sn, hit |\n",
            "| articles by number, one by one | 11.3 | - | 76.4 |\n",
            "| overview of 5 groups (OVER) | - | - | - |\n",
            "- leafnode: not installed\n- sn: `snget` fetched the set in 33.0 s, 10000 articles",
            "- sn, overview of 5 groups (OVER): 500 What?\n",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
        let mut text = String::new();
        markdown(&[leafnode], hits, &mut text);
        assert!(!text.contains('|') && text.contains("- leafnode: not installed"));
    }
}
