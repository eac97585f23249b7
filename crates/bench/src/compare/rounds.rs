//! Rounds of a comparison: fresh servers, every step on each of them in turn.
//!
//! Invariant: all servers of a round get the same articles and the same requests. A step that fails
//! on one server is reported with its complaints; servers are stopped whatever happens.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use newsreel_host::OpenMode;

use super::steps::{Pass, STEPS, Step};
use super::table::Comparison;
use crate::corpus::{self, Corpus, CorpusArgs, ListForm, Size};
use crate::error::Error;
use crate::feed::{self, FeedArgs};
use crate::load::{LoadArgs, Machine};
use crate::read::{self, Order, ReadArgs};
use crate::report::Report;
use crate::rivals::{Rival, Running};

/// Articles from this size on are large: what is measured is how they are copied.
const LARGE_OCTETS: u32 = 65_536;

/// What to compare, and how often.
#[derive(Debug, Clone, PartialEq)]
pub struct CompareArgs {
    /// Rounds, each with fresh servers.
    pub rounds: usize,
    /// Articles brought in each feeding step.
    pub articles: u64,
    /// How long each other step takes.
    pub seconds: f64,
    /// The steps by name; none for all.
    pub steps: Vec<String>,
    /// The articles: seed, groups, size.
    pub corpus: CorpusArgs,
    /// An empty or new directory for the servers' files.
    pub directory: PathBuf,
    /// The first server listens on this port of 127.0.0.1, the others on those after it.
    pub port: u16,
    /// Show a progress bar on standard error when that is a terminal.
    pub progress: bool,
}

impl CompareArgs {
    /// Three rounds of 20,000 articles a step and two seconds.
    pub fn new(directory: PathBuf) -> Self {
        Self {
            rounds: 3,
            articles: 20_000,
            seconds: 2.0,
            steps: Vec::new(),
            corpus: CorpusArgs::default(),
            directory,
            port: 11_900,
            progress: false,
        }
    }

    fn chosen(&self) -> Result<Vec<Step>, Error> {
        let known = |name: &String| STEPS.iter().any(|step| step.name == name);
        if let Some(unknown) = self.steps.iter().find(|name| !known(name)) {
            return Err(Error::Argument {
                name: "steps",
                value: unknown.clone(),
                why: format!(
                    "it must be one of {}",
                    feed::names(STEPS.iter().map(|s| s.name))
                ),
            });
        }
        let large = matches!(self.corpus.size, Size::Fixed(octets) if octets >= LARGE_OCTETS);
        let wanted = |step: &&Step| {
            let named = self.steps.iter().any(|name| name == step.name);
            named || (self.steps.is_empty() && !(large && step.small_only))
        };
        Ok(STEPS.iter().filter(wanted).copied().collect())
    }
}

/// Makes the directory of a comparison, before anything is put into it; one with files in it is refused.
pub fn make_directory(directory: &Path, machine: Machine<'_>) -> Result<(), Error> {
    machine.disk.create_dir_all(directory)?;
    if machine.disk.list(directory)?.is_empty() {
        return Ok(());
    }
    Err(Error::Argument {
        name: "directory",
        value: directory.display().to_string(),
        why: "it is not empty".to_owned(),
    })
}

/// Compares `rivals`; the first is the one that ratios are of, each against every other.
pub fn run(
    args: &CompareArgs,
    rivals: &mut [Box<dyn Rival>],
    machine: Machine<'_>,
) -> Result<Comparison, Error> {
    let steps = args.chosen()?;
    let last = usize::from(args.port) + rivals.len().saturating_sub(1);
    if args.port == 0 || last > usize::from(u16::MAX) {
        return Err(Error::Argument {
            name: "port",
            value: args.port.to_string(),
            why: format!(
                "{} servers need as many ports from there on, up to 65535",
                rivals.len()
            ),
        });
    }
    let names = rivals.iter().map(|rival| rival.name().to_owned()).collect();
    let mut comparison = Comparison::new(names, steps.iter().map(|step| step.name).collect());
    for round in 0..args.rounds {
        let place = args.directory.join(format!("round-{round}"));
        machine.disk.create_dir_all(&place)?;
        let done = run_round(
            args,
            &steps,
            rivals,
            machine,
            &place,
            round,
            &mut comparison,
        );
        let stopped: Result<Vec<()>, Error> = rivals.iter_mut().map(|rival| rival.stop()).collect();
        // The servers' files are of no use any more; what cannot be removed stays for a look.
        #[expect(
            clippy::disallowed_methods,
            reason = "the files of the servers that are compared are no spool of ours"
        )]
        let _ = std::fs::remove_dir_all(&place);
        done.and(stopped.map(|_| ()))?;
    }
    comparison.conclude();
    Ok(comparison)
}

fn run_round(
    args: &CompareArgs,
    steps: &[Step],
    rivals: &mut [Box<dyn Rival>],
    machine: Machine<'_>,
    place: &Path,
    round: usize,
    comparison: &mut Comparison,
) -> Result<(), Error> {
    let feeds = steps
        .iter()
        .filter(|step| matches!(step.pass, Pass::Feed(_)))
        .count() as u64;
    // Where no step feeds, there must be something to read all the same.
    let all = args.articles * feeds.max(1);
    let round_args = CorpusArgs {
        seed: args.corpus.seed + round as u64,
        articles: Some(all),
        base_time_secs: Some(machine.clock.now().secs),
        ..args.corpus.clone()
    };
    let whole = Corpus::new(&round_args, machine.disk, machine.clock)?;
    let groups = place.join("groups");
    let list = corpus::list(whole.groups().iter().map(String::as_str), ListForm::Names);
    machine
        .disk
        .open(&groups, OpenMode::CreateNew)?
        .write_at(list.as_bytes(), 0)?;
    let mut running = Vec::new();
    for (number, rival) in rivals.iter_mut().enumerate() {
        let directory = place.join(format!("{number}"));
        machine.disk.create_dir_all(&directory)?;
        let port = args.port + number as u16;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        running.push(rival.start(&directory, address, &groups)?);
    }
    if feeds == 0 {
        for server in &running {
            feed::run(
                &FeedArgs::new(LoadArgs::new(server.address)),
                &whole,
                machine,
            )?;
        }
    }
    let mut fed = 0;
    for (number, step) in steps.iter().enumerate() {
        let first = whole.first() + fed * args.articles;
        let feeds = matches!(step.pass, Pass::Feed(_));
        let fresh = feeds.then(|| whole.part(first, first + args.articles));
        fed += u64::from(fresh.is_some());
        for turn in 0..running.len() {
            let rival = (turn + round) % running.len();
            let Some(server) = running.get(rival) else {
                continue;
            };
            let report = measure(
                args,
                step,
                fresh.as_ref().unwrap_or(&whole),
                *server,
                machine,
            )?;
            comparison.add(number, rival, report);
        }
    }
    Ok(())
}

fn measure(
    args: &CompareArgs,
    step: &Step,
    corpus: &Corpus,
    server: Running,
    machine: Machine<'_>,
) -> Result<Report, Error> {
    let load = LoadArgs {
        connections: step.connections,
        server_pid: Some(server.pid),
        progress: args.progress,
        ..LoadArgs::new(server.address)
    };
    let timed = LoadArgs {
        duration_secs: Some(args.seconds),
        ..load.clone()
    };
    let feeding = |mode: &str, repeat, load| FeedArgs {
        mode: mode.to_owned(),
        window: step.depth,
        repeat,
        ..FeedArgs::new(load)
    };
    match step.pass {
        Pass::Feed(mode) => feed::run(&feeding(mode, false, load), corpus, machine),
        Pass::Offer(mode) => feed::run(&feeding(mode, true, timed), corpus, machine),
        Pass::Once => {
            let args = ReadArgs {
                order: Order::Sequential,
                depth: step.depth,
                load: LoadArgs {
                    quick_ack: true,
                    ..load.clone()
                },
                ..ReadArgs::new(load)
            };
            read::run(&args, corpus, machine)
        }
        Pass::Read {
            mode,
            by,
            groups,
            quick_ack,
        } => {
            let args = ReadArgs {
                mode: mode.to_owned(),
                by,
                groups,
                depth: step.depth,
                ..ReadArgs::new(LoadArgs { quick_ack, ..timed })
            };
            read::run(&args, corpus, machine)
        }
    }
}
