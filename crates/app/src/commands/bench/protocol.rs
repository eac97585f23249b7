//! `newsreel bench protocol`: what is asked of the protocol in speed.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::builder::PossibleValuesParser;
use newsreel_bench::compare::make_directory;
use newsreel_bench::corpus::CorpusArgs;
use newsreel_bench::load::Machine;
use newsreel_bench::protocol::{self, ProtocolArgs};
use newsreel_host::replace_file;

use super::options::{GROUPS_MAX, above_zero, count};
use super::show;

/// Rounds.
const ROUNDS_MAX: usize = 1000;
/// Articles of a round.
const ARTICLES_MAX: u64 = 10_000_000;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// An empty or new directory for the server's files
    #[arg(long, value_name = "DIR")]
    directory: PathBuf,
    /// Rounds, each with a fresh server
    #[arg(long, default_value_t = 3, value_parser = count(1, ROUNDS_MAX))]
    rounds: usize,
    /// Articles that are there to be read, and as many that are posted
    #[arg(long, default_value_t = 20_000, value_parser = count(1, ARTICLES_MAX))]
    articles: u64,
    /// How long each reading takes
    #[arg(long, default_value_t = 3.0, value_parser = above_zero)]
    seconds: f64,
    /// Rows by name, separated by commas [default: all]
    #[arg(long, value_delimiter = ',', value_parser = PossibleValuesParser::new(protocol::row_names()))]
    rows: Vec<String>,
    /// Groups that the articles are posted to
    #[arg(long, default_value_t = 300, value_parser = count(1, GROUPS_MAX))]
    groups: usize,
    /// The server's port on 127.0.0.1; it takes TLS on the next. Another server, the control, has those of 127.0.1.1
    #[arg(long, default_value_t = 11_940, value_parser = clap::value_parser!(u16).range(1..65535))]
    port: u16,
    /// Write the table (Markdown) into this file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(options: &Options, machine: Machine<'_>) -> Result<()> {
    make_directory(&options.directory, machine)?;
    let args = ProtocolArgs {
        program: std::env::current_exe().context("where is this program?")?,
        directory: options.directory.clone(),
        rounds: options.rounds,
        articles: options.articles,
        seconds: options.seconds,
        rows: options.rows.clone(),
        corpus: CorpusArgs {
            groups: options.groups,
            ..CorpusArgs::default()
        },
        port: options.port,
        progress: true,
    };
    let report = protocol::run(&args, machine)?;
    if let Some(path) = &options.report {
        replace_file(machine.disk, path, report.markdown().as_bytes())?;
    }
    show(&report, &report.human(), options.json)
}
