//! `newsreel bench expiry`: very many articles expire by a rule, and the devices tell what that touches.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::builder::PossibleValuesParser;
use newsreel_bench::compare::make_directory;
use newsreel_bench::expiry::{self, EXPIRING, ExpiryArgs};
use newsreel_bench::load::Machine;
use newsreel_bench::usenetfs::FileSystem;
use newsreel_host::replace_file;

use super::options::{GROUPS_MAX, count};
use super::storage::file_systems;
use crate::output;

/// Articles that expire.
const ARTICLES_MAX: u64 = 100_000_000;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// An empty or new directory for the image files
    #[arg(long, value_name = "DIR")]
    directory: PathBuf,
    /// The file system; ext2 is made without indexes of directories
    #[arg(long, default_value = "ext4", value_parser = file_systems())]
    file_system: String,
    /// Storage methods, separated by commas
    #[arg(long, value_delimiter = ',', default_value = "cnfs,segment", value_parser = PossibleValuesParser::new(EXPIRING))]
    methods: Vec<String>,
    /// Articles, of which all expire but the newest of each group
    #[arg(long, default_value_t = 1_000_000, value_parser = count(1, ARTICLES_MAX))]
    articles: u64,
    /// Groups
    #[arg(long, default_value_t = 100, value_parser = count(1, GROUPS_MAX))]
    groups: usize,
    /// Where the server listens, on 127.0.0.1
    #[arg(long, default_value_t = 11_950)]
    port: u16,
    /// Write a table (Markdown) into this file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(options: &Options, machine: Machine<'_>) -> Result<()> {
    make_directory(&options.directory, machine)?;
    let mut known = FileSystem::ALL.into_iter();
    let file_system = known.find(|one| one.name() == options.file_system);
    let args = ExpiryArgs {
        directory: options.directory.clone(),
        program: std::env::current_exe().context("where is this program?")?,
        file_system: file_system.context("there is no such file system")?,
        methods: options.methods.clone(),
        articles: options.articles,
        groups: options.groups,
        port: options.port,
        progress: true,
    };
    let mut told = Ok(());
    let rows = expiry::run(&args, machine, &mut |row| {
        if !options.json && told.is_ok() {
            told = output::text(&format!("{}\n", row.human()));
        }
    })?;
    told?;
    if let Some(report) = &options.report {
        replace_file(machine.disk, report, expiry::markdown(&rows).as_bytes())?;
    }
    if options.json {
        output::json(&serde_json::to_value(&rows)?)?;
    }
    Ok(())
}
