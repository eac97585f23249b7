//! `newsreel bench sending`: what it costs to send articles on.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use clap::builder::PossibleValuesParser;
use newsreel_bench::compare::make_directory;
use newsreel_bench::load::Machine;
use newsreel_bench::rivals::Inn;
use newsreel_bench::sending::{self, SCENES, SendingArgs};
use newsreel_bench::usenetfs::GOAL_TITLES;
use newsreel_host::replace_file;

use super::options::{CONNECTIONS_MAX, count};
use crate::output;

/// Articles of a run.
const ARTICLES_MAX: u64 = 1_000_000_000;
const PEERS_MAX: usize = 1000;
const ROUNDS_MAX: u32 = 1000;
const RATE_MAX: u32 = 1_000_000;

pub(super) const HELP: &str = "Questions:\n  peers   what comes goes on at once, to few neighbours and to many\n  \
     own     what waits goes to a server like ours\n  inn     what waits goes to INN (with --inn)\n  \
     cold    what waits goes out of memory, and from a cold disk\n  \
     files   what waits in files goes out in the order it came, and by group and number\n  \
     cursor  memory that waiting costs\n\n\
     Neighbours that do nothing, servers and client are all on this machine and share its processors. For `cold` and `files` the caches of \
     the whole machine are emptied: root is needed. INN needs root, too.\n\n\
     Examples:\n  newsreel bench sending --directory /tmp/sending --inn /usr/lib/news/bin --report sending.md\n  \
     newsreel bench sending --directory /tmp/sending --scenes peers --peers 1,5,50";

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// An empty or new directory for the servers
    #[arg(long, value_name = "DIR")]
    directory: PathBuf,
    /// Questions, separated by commas [default: all]
    #[arg(long, value_delimiter = ',', value_parser = scenes())]
    scenes: Vec<String>,
    /// INN as a neighbour; where its programs are, in Debian /usr/lib/news/bin
    #[arg(long, value_name = "DIR")]
    inn: Option<PathBuf>,
    /// Articles that wait
    #[arg(long, default_value_t = 200_000, value_parser = count(1, ARTICLES_MAX))]
    articles: u64,
    /// Articles that go on as they come
    #[arg(long, default_value_t = 20_000, value_parser = count(1, ARTICLES_MAX))]
    fresh: u64,
    /// How many of those come in a second
    #[arg(long, default_value_t = 1000, value_parser = count(1, RATE_MAX))]
    rate: u32,
    /// How many neighbours get what comes, separated by commas
    #[arg(long, value_delimiter = ',', default_value = "5,50", value_parser = count(1, PEERS_MAX))]
    peers: Vec<usize>,
    /// Connections to a neighbour that gets what waits
    #[arg(long, default_value_t = 4, value_parser = count(1, CONNECTIONS_MAX))]
    connections: usize,
    /// How often each is measured; the best counts
    #[arg(long, default_value_t = 3, value_parser = count(1, ROUNDS_MAX))]
    rounds: u32,
    /// Where the server that sends listens, on 127.0.0.1; its neighbour has the next port
    #[arg(long, default_value_t = 11_970)]
    port: u16,
    /// Write the tables (Markdown) into this file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn scenes() -> PossibleValuesParser {
    PossibleValuesParser::new(SCENES.iter().map(|(name, ..)| name))
}

pub(super) fn run(options: &Options, machine: Machine<'_>) -> Result<()> {
    make_directory(&options.directory, machine)?;
    if let Some(programs) = &options.inn
        && !Inn::is_installed(programs)
    {
        bail!(
            "INN's programs are not in {}: install it, or leave --inn out",
            programs.display()
        );
    }
    let args = SendingArgs {
        directory: options.directory.clone(),
        program: std::env::current_exe().context("where is this program?")?,
        inn: options.inn.clone(),
        scenes: options.scenes.clone(),
        articles: options.articles,
        fresh: (options.fresh, options.rate.into()),
        peers: options.peers.clone(),
        connections: options.connections,
        rounds: options.rounds,
        port: options.port,
        progress: true,
    };
    let mut told = Ok(());
    let report = sending::run(&args, machine, &mut |row| {
        if !options.json && told.is_ok() {
            told = output::text(&format!("{}\n", sending::human(row)));
        }
    })?;
    told?;
    if let Some(file) = &options.report {
        replace_file(machine.disk, file, sending::markdown(&report).as_bytes())?;
    }
    if options.json {
        return output::json(&serde_json::to_value(&report)?);
    }
    let goals = report
        .goals
        .iter()
        .map(newsreel_bench::usenetfs::Goal::markdown);
    output::text(&format!("\n{GOAL_TITLES}{}", goals.collect::<String>()))
}
