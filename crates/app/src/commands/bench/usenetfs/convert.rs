//! `newsreel bench usenetfs convert`: a full directory is converted, and back.

use std::path::PathBuf;

use anyhow::Result;
use newsreel_bench::compare::make_directory;
use newsreel_bench::load::Machine;
use newsreel_bench::usenetfs::{self, ConvertArgs};
use newsreel_host::replace_file;
use newsreel_layout::Algorithm;

use super::{EXPONENT_MAX, ROUNDS_MAX, chosen_one, file_systems, goal_table, this_program};
use crate::commands::bench::options::count;
use crate::commands::usenetfs::algorithm;
use crate::output;

/// More kills than this say nothing new.
const KILLS_MAX: u32 = 1000;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// An empty or new directory for the image file
    #[arg(long, value_name = "DIR")]
    directory: PathBuf,
    /// The file system
    #[arg(long, default_value = "ext4", value_parser = file_systems())]
    file_system: String,
    /// What the directory is managed by
    #[arg(long, default_value = "range1024", value_name = "NAME", value_parser = algorithm)]
    algorithm: Algorithm,
    /// Files in the directory
    #[arg(long, default_value_t = 524_288, value_parser = count(1, 1u64 << EXPONENT_MAX))]
    files: u64,
    /// How often each is measured
    #[arg(long, default_value_t = 3, value_parser = count(1, ROUNDS_MAX))]
    rounds: u32,
    /// How often the last conversion is killed
    #[arg(long, default_value_t = 5, value_parser = count(0, KILLS_MAX))]
    kills: u32,
    /// Write the tables into this file, as Markdown
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(options: &Options, machine: Machine<'_>) -> Result<()> {
    make_directory(&options.directory, machine)?;
    let args = ConvertArgs {
        directory: options.directory.clone(),
        program: this_program()?,
        file_system: chosen_one(&options.file_system)?,
        algorithm: options.algorithm,
        files: options.files,
        rounds: options.rounds,
        kills: options.kills,
        progress: true,
    };
    let report = usenetfs::convert(&args, machine)?;
    let tables = format!("{}\n{}", report.markdown(), goal_table(&report.goals()));
    if let Some(path) = &options.report {
        replace_file(machine.disk, path, tables.as_bytes())?;
    }
    match options.json {
        true => output::json(&serde_json::to_value(&report)?),
        false => output::text(&tables),
    }
}
