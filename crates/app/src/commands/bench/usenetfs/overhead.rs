//! `newsreel bench usenetfs overhead`: a package is built natively and through a mount.

use std::path::{Path, PathBuf};

use anyhow::Result;
use newsreel_bench::compare::make_directory;
use newsreel_bench::load::Machine;
use newsreel_bench::usenetfs::{self, OverheadArgs, Package};
use newsreel_host::replace_file;

use super::{ROUNDS_MAX, chosen_one, file_systems, goal_table, this_program};
use crate::commands::bench::options::count;
use crate::output;

/// Sources of a generated package.
const SOURCES_MAX: u32 = 100_000;
/// More MiB than this no package needs.
pub(super) const ROOM_MAX: u64 = 1 << 20;

/// What is built.
#[derive(Debug, clap::Args)]
pub(super) struct PackageOptions {
    /// Build this package, which tar unpacks, instead of a generated one
    #[arg(long, value_name = "TAR")]
    package: Option<PathBuf>,
    /// What the shell runs where the package is unpacked
    #[arg(long, default_value = "sh ./configure && make", value_name = "COMMAND")]
    build: String,
    /// C sources of a generated package; it has half as many headers
    #[arg(long, default_value_t = 200, value_parser = count(1, SOURCES_MAX), conflicts_with = "package")]
    sources: u32,
    /// Decides what is in a generated package
    #[arg(long, default_value_t = 1, conflicts_with = "package")]
    seed: u64,
}

impl PackageOptions {
    /// What is to be built; generated in `directory`, if none is given.
    pub(super) fn package(&self, directory: &Path, machine: Machine<'_>) -> Result<Package> {
        Ok(match &self.package {
            Some(tar) => Package {
                tar: std::path::absolute(tar)?,
                build: self.build.clone(),
            },
            None => Package::generated(directory, machine, self.sources, self.seed, &self.build)?,
        })
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// An empty or new directory for the image file
    #[arg(long, value_name = "DIR")]
    directory: PathBuf,
    /// The file system
    #[arg(long, default_value = "ext4", value_parser = file_systems())]
    file_system: String,
    /// Its size in MiB
    #[arg(long, default_value_t = 1024, value_name = "MIB", value_parser = count(64, ROOM_MAX))]
    room: u64,
    /// How often it is built, natively and through the mount
    #[arg(long, default_value_t = 12, value_parser = count(1, ROUNDS_MAX))]
    rounds: u32,
    #[command(flatten)]
    package: PackageOptions,
    /// Write the table into this file, as Markdown
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(options: &Options, machine: Machine<'_>) -> Result<()> {
    make_directory(&options.directory, machine)?;
    let args = OverheadArgs {
        directory: options.directory.clone(),
        program: this_program()?,
        file_system: chosen_one(&options.file_system)?,
        octets: options.room << 20,
        package: options.package.package(&options.directory, machine)?,
        rounds: options.rounds,
        progress: true,
    };
    let mut told = Ok(());
    let report = usenetfs::overhead(&args, machine, &mut |round, mounted, cost| {
        if !options.json && told.is_ok() {
            let by = if mounted { "mounted" } else { "native" };
            told = output::text(&format!("round {round}, {by}: {}\n", cost.human()));
        }
    })?;
    told?;
    let table = format!("{}\n{}", report.markdown(), goal_table(&report.goals()));
    if let Some(path) = &options.report {
        replace_file(machine.disk, path, table.as_bytes())?;
    }
    match options.json {
        true => output::json(&serde_json::to_value(&report)?),
        false => output::text(&format!("\nThe least of all rounds:\n\n{table}")),
    }
}
