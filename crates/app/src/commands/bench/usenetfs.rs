//! `newsreel bench usenetfs`: the figures of the Usenetfs paper, measured anew, and a soak.

mod beside;
mod convert;
mod overhead;
mod parallel;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::builder::PossibleValuesParser;
use newsreel_bench::compare::make_directory;
use newsreel_bench::load::Machine;
use newsreel_bench::rivals::{INN_PROGRAMS, Inn};
use newsreel_bench::usenetfs::{
    self, Figure, FiguresArgs, FileSystem, GOAL_TITLES, Goal, Layout, Row, SoakArgs, SoakReport,
};
use newsreel_host::OpenMode;

use super::options::{GROUPS_MAX, above_zero, count};
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
                      looked for with nothing known of them and the blocks of directories in memory; with --cold also with nothing in \
                      memory, for which the caches of the whole machine are emptied and a view is mounted anew each time. The largest \
                      directory is emptied in the end and listed once more. On ext2, whose directories are searched, flat ones \
                      are filled with an index (tune2fs, debugfs, e2fsck), which is taken off again. What is interrupted leaves its mounts below the directory: take \
                      them off (umount DIR/*), and start in another.\n\n\
                      Example:\n  newsreel bench usenetfs figures --directory /tmp/figures --exponent-max 13 --report /tmp/report\n  \
                      newsreel bench usenetfs figures --directory /tmp/figures --file-systems ext4 --layouts flat,range1024 --exponent-max \
                      19 --step 19 --cold"
    )]
    Figures(FiguresOptions),
    /// How long a full directory takes to become managed, and flat again
    #[command(
        after_help = "Makes a file system in an image file below the directory and mounts it: root is needed, mke2fs or mkfs.xfs. Each \
                      conversion is measured with blocks in memory and with nothing, until it is durable; the least of all rounds counts. In the \
                      end one is killed over and over and resumed, and its result compared with what was there before: names, inodes \
                      and lengths. What is interrupted leaves its mount below the directory: take it off (umount DIR/*), and start in \
                      another.\n\n\
                      Example:\n  newsreel bench usenetfs convert --directory /tmp/convert --files 10000"
    )]
    Convert(convert::Options),
    /// What clients cost each other that add to one directory, and remove from it, at the same time
    #[command(
        after_help = "Makes file systems in image files below the directory and mounts them: root is needed, mke2fs, and mkfs.xfs for \
                      XFS. Natively and through a mount by turns, the least of all rounds counts; the times are those of all clients \
                      together, divided by the number of articles. What is interrupted leaves its mounts below the directory: take \
                      them off (umount DIR/*), and start in another.\n\n\
                      Example:\n  newsreel bench usenetfs parallel --directory /tmp/parallel --clients 1,2 --articles 10000"
    )]
    Parallel(parallel::Options),
    /// What a mount itself costs a package that is unpacked and built: Table 2 of the paper
    #[command(
        after_help = "Makes a file system in an image file below the directory and mounts it: root is needed, mke2fs or mkfs.xfs, tar, and \
                      what the build needs (a C compiler and make). Natively and through a mount by turns, in a directory that is \
                      not managed; the least of all rounds counts. Processors are counted with all they do, so nothing else should run.\n\n\
                      Examples:\n  newsreel bench usenetfs overhead --directory /tmp/overhead --report /tmp/table-2.md\n  \
                      newsreel bench usenetfs overhead --directory /tmp/overhead --package am-utils-6.2.tar.gz --rounds 4"
    )]
    Overhead(overhead::Options),
    /// How long builds take beside a news server, without and with its largest groups managed: figure 7 of the paper
    #[command(
        after_help = "Makes a file system in an image file below the directory and mounts it: root is needed, mke2fs or mkfs.xfs, tar, \
                      what the build needs (a C compiler and make), and INN. A package is built over and over on the file system that holds \
                      the articles, while the server takes a feed, lets articles go and sends them to a peer that does nothing. INN's largest \
                      groups are managed behind a mount, newsreel's natively. It goes on until everything has happened at least once.\n\n\
                      Examples:\n  newsreel bench usenetfs beside --directory /tmp/beside --report /tmp/figure-7.md\n  \
                      newsreel bench usenetfs beside --directory /tmp/beside --servers newsreel --articles 20000 --duration 60 --cycle 20"
    )]
    Beside(beside::Options),
    /// Run INN on a mount, with a feed, readers and expiry at the same time
    #[command(
        after_help = "INN must be installed, and root runs it: it is made anew in the directory, with every directory of its articles managed. \
                      Every article that is read is compared octet for octet; at the end the whole directory is verified. With --continue a \
                      soak goes on where an earlier run ended or was killed (take off what a killed one left mounted), and soak.json in the \
                      directory has the sum of all runs and when each was.\n\n\
                      Examples:\n  newsreel bench usenetfs soak --directory /tmp/soak --duration 14400\n  \
                      newsreel bench usenetfs soak --directory /tmp/soak --duration 7200 --continue"
    )]
    Soak(SoakOptions),
}

#[derive(Debug, clap::Args)]
pub(crate) struct SoakOptions {
    /// An empty or new directory for INN and its articles
    #[arg(long, value_name = "DIR")]
    directory: PathBuf,
    /// Go on with the soak of that directory; its report says all runs together
    #[arg(long = "continue")]
    continues: bool,
    /// How long, in seconds
    #[arg(long, default_value_t = 120.0, value_name = "SECONDS", value_parser = above_zero)]
    duration: f64,
    /// From one expiry to the next
    #[arg(long, default_value_t = 15.0, value_name = "SECONDS", value_parser = above_zero)]
    cycle: f64,
    /// Articles fed a second, and as many read
    #[arg(long, default_value_t = 100.0, value_parser = above_zero)]
    rate: f64,
    /// Groups
    #[arg(long, default_value_t = 20, value_parser = count(1, GROUPS_MAX))]
    groups: usize,
    /// Where INN listens, on 127.0.0.1
    #[arg(long, default_value_t = 11_950)]
    port: u16,
    /// Where INN's programs are
    #[arg(long, value_name = "DIR", default_value = INN_PROGRAMS)]
    inn: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FiguresOptions {
    /// An empty or new directory for the image files
    #[arg(long, value_name = "DIR")]
    directory: PathBuf,
    /// File systems, separated by commas
    #[arg(long, value_delimiter = ',', default_value = "ext2,ext4,xfs", value_parser = file_systems())]
    file_systems: Vec<String>,
    /// Layouts, separated by commas: flat, or an algorithm (yyy, 34/56, 56/34, 456, range1024 or any other range)
    #[arg(long, value_delimiter = ',', default_values_t = Layout::all(), value_name = "LAYOUTS")]
    layouts: Vec<Layout>,
    /// Measure each with nothing in memory, too
    #[arg(long)]
    cold: bool,
    /// The largest directory has two to this power of files
    #[arg(long, default_value_t = 13, value_name = "POWER", value_parser = count(0, EXPONENT_MAX))]
    exponent_max: u32,
    /// From one size to the next the power grows by so much; 1024 files are measured in any case
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
        Verb::Convert(options) => convert::run(options, machine),
        Verb::Parallel(options) => parallel::run(options, machine),
        Verb::Overhead(options) => overhead::run(options, machine),
        Verb::Beside(options) => beside::run(options, machine),
        Verb::Soak(options) => soak(options, machine),
    }
}

fn chosen(named: &[String]) -> Vec<FileSystem> {
    let all = FileSystem::ALL.into_iter();
    all.filter(|file_system| named.iter().any(|name| name == file_system.name()))
        .collect()
}

fn chosen_one(name: &str) -> Result<FileSystem> {
    let mut all = FileSystem::ALL.into_iter();
    let found = all.find(|file_system| file_system.name() == name);
    found.with_context(|| format!("there is no file system {name}"))
}

fn this_program() -> Result<PathBuf> {
    std::env::current_exe().context("where is this program?")
}

/// What is asked, and what was measured; nothing where nothing can be said.
fn goal_table(goals: &[Goal]) -> String {
    if goals.is_empty() {
        return String::new();
    }
    let lines = goals.iter().map(Goal::markdown);
    [GOAL_TITLES.to_owned()].into_iter().chain(lines).collect()
}

fn soak(options: &SoakOptions, machine: Machine<'_>) -> Result<()> {
    if !Inn::is_installed(&options.inn) {
        bail!("INN is not installed in {} (--inn)", options.inn.display());
    }
    if !options.continues {
        make_directory(&options.directory, machine)?;
    }
    let args = SoakArgs {
        directory: std::path::absolute(&options.directory)?,
        continues: options.continues,
        program: this_program()?,
        inn: options.inn.clone(),
        port: options.port,
        seconds: options.duration,
        cycle_seconds: options.cycle,
        rate: options.rate,
        groups: options.groups,
    };
    let mut told = Ok(());
    let report = usenetfs::soak(&args, machine, &mut |so_far| {
        if !options.json && told.is_ok() {
            told = output::text(&said(so_far));
        }
    })?;
    told?;
    if options.json {
        output::json(&serde_json::to_value(&report)?)?;
    } else {
        output::text(&format!(
            "in {}: {}verified: {}\n",
            output::count(report.parts.len() as u64, "run"),
            said(&report),
            report.verified
        ))?;
    }
    if !report.is_sound() {
        bail!(
            "{} articles were refused, {} replies damaged or connections lost",
            report.refused,
            report.damaged
        );
    }
    Ok(())
}

fn said(report: &SoakReport) -> String {
    format!(
        "{:.0} s: {} articles fed, {} read, {} of those asked for expired, {} expiries, {} damaged\n",
        report.seconds, report.fed, report.read, report.expired, report.expiries, report.damaged
    )
}

fn figures(options: &FiguresOptions, machine: Machine<'_>) -> Result<()> {
    make_directory(&options.directory, machine)?;
    let program = this_program()?;
    let mut rows = Vec::new();
    for file_system in chosen(&options.file_systems) {
        let args = FiguresArgs {
            directory: options.directory.clone(),
            program: program.clone(),
            file_system,
            layouts: options.layouts.clone(),
            cold: options.cold,
            exponent_max: options.exponent_max,
            step: options.step,
            rounds: options.rounds,
            articles: options.articles,
            progress: true,
        };
        let mut told = Ok(());
        rows.extend(usenetfs::run(&args, machine, &mut |row| {
            if !options.json && told.is_ok() {
                told = output::text(&format!("{}\n", usenetfs::human(row)));
            }
        })?);
        told?;
        // The next one may take hours.
        if let Some(report) = &options.report {
            write_report(report, options, &rows, machine)?;
        }
    }
    match options.json {
        true => output::json(&serde_json::to_value(&rows)?),
        false => output::text(&format!("\n{}", goal_table(&usenetfs::goals(&rows)))),
    }
}

fn write_report(
    directory: &Path,
    options: &FiguresOptions,
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
    for file_system in chosen(&options.file_systems) {
        let name = file_system.name();
        if !rows.iter().any(|row| row.file_system == name) {
            continue;
        }
        for (cold, state) in [(false, ""), (true, "-cold")] {
            if cold && !options.cold {
                continue;
            }
            for figure in Figure::ALL {
                let picture = usenetfs::svg(figure, name, cold, rows)?;
                write(&format!("{name}-{}{state}.svg", figure.name()), &picture)?;
            }
        }
        page.push_str(&format!("{name}, microseconds:\n\n"));
        page.push_str(&usenetfs::markdown(name, largest, rows));
        page.push('\n');
    }
    page.push_str(&goal_table(&usenetfs::goals(rows)));
    write("figures.md", &page)
}
