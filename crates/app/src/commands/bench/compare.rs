//! `newsreel bench compare` and `beside`: servers side by side, and a feed beside readers.

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use newsreel_bench::beside::{self, BesideArgs};
use newsreel_bench::compare::{self, CompareArgs};
use newsreel_bench::corpus::CorpusArgs;
use newsreel_bench::feed::FeedArgs;
use newsreel_bench::load::{LoadArgs, Machine};
use newsreel_bench::read::ReadArgs;
use newsreel_bench::rivals::{CommandRival, Rival, ScriptRival};
use newsreel_host::OpenMode;

use super::options::{self, ArticleArgs, ServerArgs, above_zero, count};
use super::show;

/// Rounds of a comparison.
const ROUNDS_MAX: usize = 1000;

/// How long readers go on at most; they stop when the feed beside them does.
const READERS_SECONDS: f64 = 3600.0;

#[derive(Debug, clap::Args)]
pub(crate) struct BesideOptions {
    /// Readers
    #[arg(long, default_value_t = 500, value_parser = count(1, options::CONNECTIONS_MAX))]
    readers: usize,
    /// Articles a second that all readers together ask for
    #[arg(long, default_value_t = 500.0, value_parser = above_zero)]
    read_rate: f64,
    #[command(flatten)]
    articles: ArticleArgs,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CompareOptions {
    /// An empty or new directory for the servers' files
    #[arg(long, value_name = "DIR")]
    directory: PathBuf,
    /// Rounds, each with fresh servers
    #[arg(long, default_value_t = 3, value_parser = count(1, ROUNDS_MAX))]
    rounds: usize,
    /// How long each step takes that is not a feed
    #[arg(long, default_value_t = 2.0, value_parser = above_zero)]
    seconds: f64,
    /// Steps by name, separated by commas [default: all]
    #[arg(long, value_delimiter = ',')]
    steps: Vec<String>,
    /// The first server's port on 127.0.0.1; the others take those after it
    #[arg(long, default_value_t = 11_900)]
    port: u16,
    /// Compare with a server that does nothing
    #[arg(long)]
    null: bool,
    /// Compare with another build of newsreel
    #[arg(long, value_name = "PROGRAM")]
    other: Option<PathBuf>,
    /// Compare with INN, which this script starts and stops (what it must do: docs/reports/beside-inn.md)
    #[arg(long, value_name = "SCRIPT")]
    inn: Option<PathBuf>,
    /// Entries that INN's history is made for
    #[arg(long, default_value_t = 1_000_000, value_name = "ENTRIES")]
    inn_history: u64,
    /// Compare as feeders only, which keep no numbers and no overview: the steps that feed and offer
    #[arg(long)]
    transit: bool,
    #[command(flatten)]
    articles: ArticleArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The configuration of a server that only passes articles on.
const TRANSIT: &str = "[engine]\nmode = \"transit\"\n";

pub(super) fn beside(options: &BesideOptions, machine: Machine<'_>) -> Result<()> {
    let feed = options.server.load();
    let read = LoadArgs {
        connections: options.readers,
        rate: Some(options.read_rate),
        duration_secs: Some(READERS_SECONDS),
        ..feed.clone()
    };
    let args = BesideArgs {
        feed: FeedArgs::new(feed),
        read: ReadArgs::new(read),
    };
    let report = beside::run(&args, &options.articles.corpus(machine)?, machine)?;
    show(&report, &report.human(), options.server.json)
}

pub(super) fn run(options: &CompareOptions, machine: Machine<'_>) -> Result<()> {
    if !options.null && options.other.is_none() && options.inn.is_none() {
        bail!("compare with whom? give --null, --other PROGRAM or --inn SCRIPT");
    }
    compare::make_directory(&options.directory, machine)?;
    let mut rivals = rivals(options, machine)?;
    let usual = CompareArgs::new(options.directory.clone());
    let corpus = CorpusArgs {
        articles: None,
        ..options.articles.args()
    };
    let args = CompareArgs {
        rounds: options.rounds,
        articles: options.articles.args().articles.unwrap_or(usual.articles),
        seconds: options.seconds,
        steps: match options.transit && options.steps.is_empty() {
            true => compare::feeding_steps(),
            false => options.steps.clone(),
        },
        corpus,
        port: options.port,
        progress: true,
        ..usual
    };
    let comparison = compare::run(&args, &mut rivals, machine)?;
    show(&comparison, &comparison.human(), options.json)
}

/// This program first: ratios are of it.
fn rivals(options: &CompareOptions, machine: Machine<'_>) -> Result<Vec<Box<dyn Rival>>> {
    let program = std::env::current_exe().context("where is this program?")?;
    let program = program.display().to_string();
    let transit = match options.transit {
        true => Some(transit_config(options, machine)?),
        false => None,
    };
    let newsreel = |program: &str| -> Box<dyn Rival> {
        let rival = CommandRival::newsreel(program);
        Box::new(match &transit {
            Some(config) => rival.with_words(&["--config", config]),
            None => rival,
        })
    };
    let mut rivals = vec![newsreel(&program)];
    if let Some(other) = &options.other {
        rivals.push(newsreel(&other.display().to_string()));
    }
    if options.null {
        let serve = [program.as_str(), "bench", "null", "--listen", "{address}"];
        rivals.push(Box::new(CommandRival::new("null", &serve, None)));
    }
    if let Some(script) = &options.inn {
        let inn = ScriptRival::inn(script.clone(), options.inn_history, 2048);
        rivals.push(Box::new(match options.transit {
            true => inn.without_overview(),
            false => inn,
        }));
    }
    Ok(rivals)
}

/// Writes the configuration; where it is.
fn transit_config(options: &CompareOptions, machine: Machine<'_>) -> Result<String> {
    let path = options.directory.join("transit.toml");
    let file = machine.disk.open(&path, OpenMode::CreateNew)?;
    file.write_at(TRANSIT.as_bytes(), 0)?;
    Ok(path.display().to_string())
}
