//! The questions, one after the other, and what their rows say.
#![expect(
    clippy::disallowed_methods,
    reason = "the files of a measurement are no spool of ours"
)]

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use super::sink::{Neighbour, with_nothing};
use super::source::{Feeds, Source, Took, write_groups};
use super::{Report, Row, SendingArgs};
use crate::corpus::{Corpus, CorpusArgs};
use crate::error::Error;
use crate::feed::{self, FeedArgs};
use crate::load::{LoadArgs, Machine};
use crate::storage::Method;
use crate::usenetfs::Goal;

/// A question: its name, what it is in words, and what answers it.
pub(super) type Scene = (&'static str, &'static str, Asks);
type Asks = fn(&Stage<'_>) -> Result<Report, Error>;

/// All of them.
pub const SCENES: [Scene; 6] = [
    (
        "peers",
        "what comes goes on at once, to few neighbours and to many",
        |stage| stage.peers(),
    ),
    ("own", "what waits goes to a server like ours", |stage| {
        stage.own()
    }),
    ("inn", "what waits goes to INN", |stage| stage.inn()),
    (
        "cold",
        "what waits goes out of memory, and from a cold disk",
        |stage| stage.cold(),
    ),
    (
        "files",
        "what waits in files goes out in the order it came, and by group and number",
        |stage| stage.files(),
    ),
    ("cursor", "memory that waiting costs", |stage| {
        stage.cursor()
    }),
];

/// Bounds.
const OWN_PER_SECOND: f64 = 60_000.0;
const CPU_OF_MANY: f64 = 1.2;
const COLD_PERCENT: f64 = 60.0;
/// Octets of memory an article that waits: none, and what two processes differ by in any case.
const WAITING_OCTETS: f64 = 8.0;

/// Measures; every row is told when it is there.
///
/// # Errors
/// When something cannot be started, or not every article arrives.
pub fn run(
    args: &SendingArgs,
    machine: Machine<'_>,
    on_row: &mut dyn FnMut(&Row),
) -> Result<Report, Error> {
    let stage = Stage { args, machine };
    let mut report = Report::default();
    for (name, _, asks) in SCENES {
        if args.scenes.is_empty() || args.scenes.iter().any(|scene| scene == name) {
            let mut answer = asks(&stage)?;
            answer.rows.iter().for_each(&mut *on_row);
            report.rows.append(&mut answer.rows);
            report.goals.append(&mut answer.goals);
        }
    }
    Ok(report)
}

/// Where questions are asked.
#[derive(Debug)]
pub struct Stage<'a> {
    args: &'a SendingArgs,
    machine: Machine<'a>,
}

/// Where INN as a neighbour has its articles, below the directory of a round.
const SINK_FILES: &str = "sink/articles";

/// How what waits goes to servers that do nothing.
#[derive(Clone, Copy)]
struct Backlog {
    method: &'static str,
    is_cold: bool,
    by_group: bool,
}

const HOT: Backlog = Backlog {
    method: "cnfs",
    is_cold: false,
    by_group: false,
};

impl Stage<'_> {
    /// Generated articles, so many.
    fn corpus(&self, articles: u64) -> Result<Corpus, Error> {
        let args = CorpusArgs {
            articles: Some(articles),
            base_time_secs: Some(self.machine.clock.now().secs),
            ..CorpusArgs::default()
        };
        Corpus::new(&args, self.machine.disk, self.machine.clock)
    }

    /// The better of all rounds, each in a directory of its own that goes afterwards.
    fn rounds(
        &self,
        corpus: &Corpus,
        measure: &mut dyn FnMut(&Path, &Path) -> Result<Row, Error>,
    ) -> Result<Row, Error> {
        let mut best: Option<Row> = None;
        for _ in 0..self.args.rounds.max(1) {
            let home = self.home()?;
            let groups = home.join("groups");
            write_groups(corpus, &groups, self.machine)?;
            let row = measure(&home, &groups)?;
            best = Some(match best {
                Some(best) => best.or_better(&row),
                None => row,
            });
        }
        best.ok_or(Error::WorkerLost)
    }

    /// An empty directory.
    ///
    /// What a neighbour wrote as files stays until all is measured: ext4 gives no inode out again for minutes after it was freed, and
    /// looks at each of them whenever a file is made (`recently_deleted`), which made INN eight times slower.
    fn home(&self) -> Result<PathBuf, Error> {
        let home = self.args.directory.join("round");
        let disk = self.machine.disk;
        if disk.has_entries(&home.join(SINK_FILES)).unwrap_or(false) {
            let mut n = 0;
            let kept = |n| self.args.directory.join(format!("round-{n}"));
            while disk.exists(&kept(n))? {
                n += 1;
            }
            disk.rename(&home, &kept(n))?;
        }
        // Of the round before; what cannot be removed fails the next start.
        let _ = std::fs::remove_dir_all(&home);
        self.machine.disk.create_dir_all(&home)?;
        Ok(home)
    }

    /// A backlog goes to these neighbours in the order it came.
    fn feeds<'s>(&self, peers: &'s [SocketAddr]) -> Feeds<'s> {
        Feeds {
            peers,
            connections: self.args.connections,
            by_group: false,
        }
    }

    /// Starts the server that sends, by the name of its storage method.
    fn source<'s>(
        &'s self,
        method: &str,
        feeds: Feeds<'s>,
        place: (&Path, &Path, bool),
    ) -> Result<Source<'s>, Error> {
        let method = Method::named(method)?;
        Source::start(self.args, self.machine, method, feeds, place)
    }

    /// What comes goes on at once to so many servers that do nothing.
    fn fresh(&self, corpus: &Corpus, peers: usize) -> Result<Row, Error> {
        self.rounds(corpus, &mut |home, groups| {
            with_nothing(peers, |addresses, taken| {
                let feeds = Feeds {
                    connections: 1,
                    ..self.feeds(addresses)
                };
                let source = self.source("cnfs", feeds, (home, groups, false))?;
                source.rest();
                let (before, begin) = (source.look(), self.machine.clock.monotonic());
                source.take(corpus, Some(self.args.fresh.1))?;
                let sent = corpus.len() * peers as u64;
                let last = source.until(taken, sent)?;
                let took = Took {
                    seconds: last.saturating_sub(begin).as_secs_f64(),
                    cost: source.look().since(&before),
                };
                source.stop()?;
                let what = format!("{} articles/s as they come", self.args.fresh.1);
                Ok(row("peers", what, peers, sent, took))
            })
        })
    }

    fn peers(&self) -> Result<Report, Error> {
        let corpus = self.corpus(self.args.fresh.0)?;
        let alone = self.fresh(&corpus, 0)?;
        let mut report = Report::default();
        for &peers in &self.args.peers {
            let mut row = self.fresh(&corpus, peers)?;
            let sending = total_cpu_us(&row) - total_cpu_us(&alone);
            row.cpu_us = Some(sending.max(0.0) / row.sent.max(1) as f64);
            report.rows.push(row);
        }
        let few = report.rows.iter().min_by_key(|row| row.peers);
        let many = report.rows.iter().max_by_key(|row| row.peers);
        if let Some((few, many)) = few.zip(many)
            && few.peers < many.peers
            && let Some((one, other)) = few.cpu_us.zip(many.cpu_us)
        {
            let what = format!(
                "processor time an article sent to {} peers, of that to {}",
                many.peers, few.peers
            );
            let times = other / one.max(1e-9);
            report
                .goals
                .push(Goal::at_most(what, CPU_OF_MANY, times, "x"));
        }
        Ok(report)
    }

    /// What waits goes to a server that does nothing.
    fn backlog(&self, scene: &'static str, how: Backlog) -> Result<Row, Error> {
        let corpus = self.corpus(self.args.articles)?;
        self.rounds(&corpus, &mut |home, groups| {
            with_nothing(1, |addresses, taken| {
                let feeds = Feeds {
                    by_group: how.by_group,
                    ..self.feeds(addresses)
                };
                let mut source = self.source(how.method, feeds, (home, groups, true))?;
                source.take(&corpus, None)?;
                if how.is_cold {
                    source.cool(groups)?;
                }
                let took = source.release(taken, corpus.len())?;
                source.stop()?;
                let state = if how.is_cold { "cold" } else { "in memory" };
                let order = if how.by_group {
                    ", by group and number"
                } else {
                    ""
                };
                let what = format!(
                    "{}, {state}{order}, to a server that does nothing",
                    how.method
                );
                Ok(row(scene, what, 1, corpus.len(), took))
            })
        })
    }

    fn cold(&self) -> Result<Report, Error> {
        let hot = self.backlog("cold", HOT)?;
        let cold = Backlog {
            is_cold: true,
            ..HOT
        };
        let cold = self.backlog("cold", cold)?;
        let percent = 100.0 * cold.per_second() / hot.per_second().max(1e-9);
        let what = "cnfs: rate from a cold disk, of that out of memory".to_owned();
        Ok(Report {
            rows: vec![hot, cold],
            goals: vec![Goal::at_least(what, COLD_PERCENT, percent, " %")],
        })
    }

    fn files(&self) -> Result<Report, Error> {
        let orders = [false, true].into_iter().map(|by_group| {
            let how = Backlog {
                method: "tradspool-flat",
                is_cold: true,
                by_group,
            };
            self.backlog("files", how)
        });
        Ok(Report {
            rows: orders.collect::<Result<_, _>>()?,
            goals: Vec::new(),
        })
    }

    /// What waits goes to a real server.
    fn to(&self, scene: &'static str, neighbour: Neighbour<'_>) -> Result<Row, Error> {
        let corpus = self.corpus(self.args.articles)?;
        self.rounds(&corpus, &mut |home, groups| {
            let mut sink = neighbour.start(
                (self.args, self.machine),
                &self.of_sink(home)?,
                groups,
                self.second(),
            )?;
            let address = [self.second()];
            let source = self.source("cnfs", self.feeds(&address), (home, groups, true))?;
            source.take(&corpus, None)?;
            let took = source.release(&|| source.arrived(), corpus.len())?;
            source.stop()?;
            sink.stop()?;
            let what = format!("cnfs, in memory, to {}", neighbour.name());
            Ok(row(scene, what, 1, corpus.len(), took))
        })
    }

    /// The same articles come from a client that does nothing else.
    fn straight(&self, scene: &'static str, neighbour: Neighbour<'_>) -> Result<Row, Error> {
        let corpus = self.corpus(self.args.articles)?;
        self.rounds(&corpus, &mut |home, groups| {
            let mut sink = neighbour.start(
                (self.args, self.machine),
                &self.of_sink(home)?,
                groups,
                self.second(),
            )?;
            let load = LoadArgs {
                connections: self.args.connections,
                progress: self.args.progress,
                ..LoadArgs::new(self.second())
            };
            let fed = feed::run(&FeedArgs::new(load), &corpus, self.machine)?;
            sink.stop()?;
            Ok(Row {
                scene,
                what: format!("a client that does nothing else, to {}", neighbour.name()),
                peers: 1,
                sent: fed.accepted,
                seconds: fed.seconds,
                cpu_us: None,
                rss_octets: None,
            })
        })
    }

    fn of_sink(&self, home: &Path) -> Result<PathBuf, Error> {
        let directory = home.join("sink");
        self.machine.disk.create_dir_all(&home.join(SINK_FILES))?;
        Ok(directory)
    }

    /// Where the neighbour listens.
    fn second(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.args.port.saturating_add(1)).into()
    }

    fn own(&self) -> Result<Report, Error> {
        let straight = self.straight("own", Neighbour::Own)?;
        let sent = self.to("own", Neighbour::Own)?;
        let what = format!(
            "articles/s to newsreel on {} connections",
            self.args.connections
        );
        let goal = Goal::at_least(what, OWN_PER_SECOND, sent.per_second(), "");
        Ok(Report {
            rows: vec![straight, sent],
            goals: vec![goal],
        })
    }

    fn inn(&self) -> Result<Report, Error> {
        let Some(programs) = &self.args.inn else {
            return Ok(Report::default());
        };
        let straight = self.straight("inn", Neighbour::Inn(programs))?;
        let sent = self.to("inn", Neighbour::Inn(programs))?;
        let what = "articles/s to INN, of what it takes from a client".to_owned();
        let percent = 100.0 * sent.per_second() / straight.per_second().max(1e-9);
        Ok(Report {
            rows: vec![straight, sent],
            goals: vec![Goal::at_least(what, 100.0, percent, " %")],
        })
    }

    fn cursor(&self) -> Result<Report, Error> {
        let corpus = self.corpus(self.args.articles)?;
        let measure = |peers: usize| {
            self.rounds(&corpus, &mut |home, groups| {
                with_nothing(peers, |addresses, _| {
                    let place = (home, groups, true);
                    let source = self.source("cnfs", self.feeds(addresses), place)?;
                    let (before, begin) = (source.look(), self.machine.clock.monotonic());
                    source.take(&corpus, None)?;
                    let took = Took {
                        seconds: self
                            .machine
                            .clock
                            .monotonic()
                            .saturating_sub(begin)
                            .as_secs_f64(),
                        cost: source.look().since(&before),
                    };
                    source.stop()?;
                    let what = "taken, and waits for them".to_owned();
                    Ok(row("cursor", what, peers, corpus.len(), took))
                })
            })
        };
        let rows = vec![measure(0)?, measure(1)?];
        let octets = |row: Option<&Row>| row.and_then(|row| row.rss_octets).unwrap_or_default();
        let more = octets(rows.get(1)) as f64 - octets(rows.first()) as f64;
        let what = "octets of memory for an article that waits".to_owned();
        let each = more / corpus.len().max(1) as f64;
        Ok(Report {
            rows,
            goals: vec![Goal::at_most(what, WAITING_OCTETS, each, "")],
        })
    }
}

/// All of a row's processor time.
fn total_cpu_us(row: &Row) -> f64 {
    row.cpu_us.unwrap_or_default() * row.sent.max(1) as f64
}

fn row(scene: &'static str, what: String, peers: usize, sent: u64, took: Took) -> Row {
    Row {
        scene,
        what,
        peers,
        sent,
        seconds: took.seconds,
        cpu_us: Some(took.cost.cpu.as_secs_f64() * 1e6 / sent.max(1) as f64),
        rss_octets: Some(took.cost.rss_octets),
    }
}
