//! `newsreel bench usenetfs`: the figures of the Usenetfs paper, measured anew.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::builder::PossibleValuesParser;
use newsreel_bench::compare::make_directory;
use newsreel_bench::load::Machine;
use newsreel_bench::usenetfs::{self, Figure, FiguresArgs, FileSystem, Row};
use newsreel_host::OpenMode;

use super::options::count;
use crate::output;

/// The paper's largest directory has two to the power of 19 files; two more than that fit on a disk of today.
const EXPONENT_MAX: u32 = 21;
/// More rounds than this say nothing new.
const ROUNDS_MAX: u32 = 1000;
/// Articles of a measurement.
const ARTICLES_MAX: u64 = 1_000_000;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// What directories of growing size cost: figures 3 to 6 of the paper
    #[command(
        after_help = "Makes file systems in image files below the directory and mounts them: root is needed, mke2fs, and mkfs.xfs for \
                      XFS. Each layout is measured natively and through a mount, the least of all rounds counts; names are \
                      looked for with nothing known of them and the blocks of directories in memory. On ext2, whose \
                      directories are searched, large ones take hours. What is interrupted leaves its mounts below the directory: take \
                      them off (umount DIR/*), and start in another.\n\n\
                      Example:\n  newsreel bench usenetfs figures --directory /tmp/figures --exponent-max 13 --report /tmp/report"
    )]
    Figures(FiguresOptions),
}

#[derive(Debug, clap::Args)]
pub(crate) struct FiguresOptions {
    /// An empty or new directory for the image files
    #[arg(long, value_name = "DIR")]
    directory: PathBuf,
    /// File systems, separated by commas
    #[arg(long, value_delimiter = ',', default_value = "ext2,ext4,xfs", value_parser = file_systems())]
    file_systems: Vec<String>,
    /// The largest directory has two to this power of files
    #[arg(long, default_value_t = 13, value_name = "POWER", value_parser = count(0, EXPONENT_MAX))]
    exponent_max: u32,
    /// From one size to the next the power grows by so much
    #[arg(long, default_value_t = 1, value_name = "POWERS", value_parser = count(1, EXPONENT_MAX))]
    step: u32,
    /// How often each is measured
    #[arg(long, default_value_t = 3, value_parser = count(1, ROUNDS_MAX))]
    rounds: u32,
    /// Articles that are looked at, added and removed each time
    #[arg(long, default_value_t = 1000, value_parser = count(1, ARTICLES_MAX))]
    articles: u64,
    /// Write the figures (SVG) and a table of the largest directories (figures.md) into this directory
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn file_systems() -> PossibleValuesParser {
    PossibleValuesParser::new(FileSystem::ALL.map(FileSystem::name))
}

pub(super) fn run(verb: &Verb, machine: Machine<'_>) -> Result<()> {
    match verb {
        Verb::Figures(options) => figures(options, machine),
    }
}

fn figures(options: &FiguresOptions, machine: Machine<'_>) -> Result<()> {
    make_directory(&options.directory, machine)?;
    let chosen = |file_system: &FileSystem| {
        let named = &options.file_systems;
        named.iter().any(|name| name == file_system.name())
    };
    let args = FiguresArgs {
        directory: options.directory.clone(),
        program: std::env::current_exe().context("where is this program?")?,
        file_systems: FileSystem::ALL.into_iter().filter(chosen).collect(),
        exponent_max: options.exponent_max,
        step: options.step,
        rounds: options.rounds,
        articles: options.articles,
    };
    let mut told = Ok(());
    let rows = usenetfs::run(&args, machine, &mut |row| {
        if !options.json && told.is_ok() {
            told = output::text(&format!("{}\n", usenetfs::human(row)));
        }
    })?;
    told?;
    if let Some(report) = &options.report {
        write_report(report, &args, &rows, machine)?;
    }
    if options.json {
        output::json(&serde_json::to_value(&rows)?)?;
    }
    Ok(())
}

fn write_report(
    directory: &Path,
    args: &FiguresArgs,
    rows: &[Row],
    machine: Machine<'_>,
) -> Result<()> {
    let write = |name: &str, text: &str| -> Result<()> {
        let path = directory.join(name);
        let file = machine.disk.open(&path, OpenMode::CreateOrOpen)?;
        file.set_len(0)?;
        Ok(file.write_at(text.as_bytes(), 0)?)
    };
    machine.disk.create_dir_all(directory)?;
    let largest = rows.iter().map(|row| row.files).max().unwrap_or_default();
    let mut page = String::new();
    for file_system in &args.file_systems {
        let name = file_system.name();
        for figure in Figure::ALL {
            let picture = usenetfs::svg(figure, name, rows)?;
            write(&format!("{name}-{}.svg", figure.name()), &picture)?;
        }
        page.push_str(&format!("{name}, microseconds:\n\n"));
        page.push_str(&usenetfs::markdown(name, largest, rows));
        page.push('\n');
    }
    write("figures.md", &page)
}
