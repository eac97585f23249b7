//! `newsreel bench removal`: the oldest articles of large groups go.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use newsreel_bench::compare::make_directory;
use newsreel_bench::load::Machine;
use newsreel_bench::removal::{self, RemovalArgs};
use newsreel_bench::usenetfs::FileSystem;

use super::options::{GROUPS_MAX, count};
use super::storage::file_systems;
use crate::output;

/// Articles of a group.
const ARTICLES_MAX: u64 = 10_000_000;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// An empty or new directory for the image files
    #[arg(long, value_name = "DIR")]
    directory: PathBuf,
    /// File systems, separated by commas; ext2 is made without indexes of directories
    #[arg(long, value_delimiter = ',', default_value = "ext4", value_parser = file_systems())]
    file_systems: Vec<String>,
    /// Layouts of directories from which this program removes, separated by commas
    #[arg(long, value_delimiter = ',', default_value = "range1024,flat")]
    layouts: Vec<String>,
    /// INN's fastrm, from a flat directory; Debian has it as /usr/lib/news/bin/fastrm
    #[arg(long, value_name = "PROGRAM")]
    fastrm: Option<PathBuf>,
    /// Articles of a group
    #[arg(long, default_value_t = 100_000, value_parser = count(1, ARTICLES_MAX))]
    articles: u64,
    /// Groups
    #[arg(long, default_value_t = 2, value_parser = count(1, GROUPS_MAX))]
    groups: usize,
    /// How many of each group go
    #[arg(long, default_value_t = 1000, value_parser = count(1, ARTICLES_MAX))]
    oldest: u64,
    /// Where the server listens, on 127.0.0.1
    #[arg(long, default_value_t = 11_940)]
    port: u16,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(options: &Options, machine: Machine<'_>) -> Result<()> {
    make_directory(&options.directory, machine)?;
    let chosen = |file_system: &FileSystem| {
        let named = &options.file_systems;
        named.iter().any(|name| name == file_system.name())
    };
    let args = RemovalArgs {
        directory: options.directory.clone(),
        program: std::env::current_exe().context("where is this program?")?,
        fastrm: options.fastrm.clone(),
        file_systems: FileSystem::ALL.into_iter().filter(chosen).collect(),
        layouts: options.layouts.clone(),
        articles: options.articles,
        groups: options.groups,
        oldest: options.oldest,
        port: options.port,
        progress: true,
    };
    let mut told = Ok(());
    let rows = removal::run(&args, machine, &mut |row| {
        if !options.json && told.is_ok() {
            told = output::text(&format!("{}\n", row.human()));
        }
    })?;
    told?;
    if options.json {
        output::json(&serde_json::to_value(&rows)?)?;
    }
    Ok(())
}
