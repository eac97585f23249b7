//! `newsreel bench usenetfs parallel`: clients at the same time in one directory.

use std::path::PathBuf;

use anyhow::Result;
use newsreel_bench::compare::make_directory;
use newsreel_bench::load::Machine;
use newsreel_bench::usenetfs::{self, Layout, PARALLEL_TITLES, ParallelArgs};
use newsreel_host::replace_file;

use super::{ARTICLES_MAX, ROUNDS_MAX, chosen, file_systems, this_program};
use crate::commands::bench::options::{THREADS_MAX, count};
use crate::output;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// An empty or new directory for the image files
    #[arg(long, value_name = "DIR")]
    directory: PathBuf,
    /// File systems, separated by commas
    #[arg(long, value_delimiter = ',', default_value = "ext4,xfs", value_parser = file_systems())]
    file_systems: Vec<String>,
    /// Layouts, separated by commas: flat, or an algorithm (yyy, 34/56, 56/34, 456, range1024 or any other range)
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "flat,yyy,range1024",
        value_name = "LAYOUTS"
    )]
    layouts: Vec<Layout>,
    /// How many clients there are at a time, separated by commas
    #[arg(long, value_delimiter = ',', default_value = "1,2,4,8", value_parser = count(1, THREADS_MAX))]
    clients: Vec<usize>,
    /// How often each is measured
    #[arg(long, default_value_t = 3, value_parser = count(1, ROUNDS_MAX))]
    rounds: u32,
    /// Articles that are added and removed each time, by all clients together
    #[arg(long, default_value_t = 40_000, value_parser = count(1, ARTICLES_MAX))]
    articles: u64,
    /// Write the table into this file, as Markdown
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(options: &Options, machine: Machine<'_>) -> Result<()> {
    make_directory(&options.directory, machine)?;
    let args = ParallelArgs {
        directory: options.directory.clone(),
        program: this_program()?,
        file_systems: chosen(&options.file_systems),
        layouts: options.layouts.clone(),
        clients: options.clients.clone(),
        rounds: options.rounds,
        articles: options.articles,
        progress: true,
    };
    let mut told = Ok(());
    let rows = usenetfs::parallel(&args, machine, &mut |row| {
        if !options.json && told.is_ok() {
            told = output::text(&format!("{}\n", row.human()));
        }
    })?;
    told?;
    if let Some(report) = &options.report {
        let lines = rows.iter().map(|row| row.markdown());
        let table: String = [PARALLEL_TITLES.to_owned()]
            .into_iter()
            .chain(lines)
            .collect();
        replace_file(machine.disk, report, table.as_bytes())?;
    }
    if options.json {
        output::json(&serde_json::to_value(&rows)?)?;
    }
    Ok(())
}
