//! `newsreel bench toaster`: the benchmark of "The Brave Little Toaster Meets Usenet".

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::builder::PossibleValuesParser;
use newsreel_bench::corpus::CorpusArgs;
use newsreel_bench::load::Machine;
use newsreel_bench::rivals::Inn;
use newsreel_bench::toaster::{self, Place, Report, ToasterArgs, Told, Variant};
use newsreel_host::replace_file;

use super::options::{CLONES_MAX, GROUPS_MAX, count};
use super::storage::methods;
use crate::output;

/// Articles of all passes.
const ARTICLES_MAX: u64 = 1_000_000_000;
const PASSES_MAX: u32 = 1000;
const BATCH_ARTICLES_MAX: u64 = 1_000_000;

pub(super) const HELP: &str = "A pass is: unbatch (batches through rnews into a running server), batch (in every third pass, what came in the pass before goes out to a \
     backlogged feed), expire (what came six passes ago goes). A pass is half a day of the server's clock. Between phases everything is \
     written, and the caches of the whole machine are emptied where that is allowed (root).\n\n\
     Places: directory (one that is there, --at), ext4, xfs, btrfs, ext2 (without indexes of directories), tmpfs, joined (four file systems \
     joined by a mount, links and a directory as in the paper's figure 1), stripe and mirror (btrfs on four disks), usenetfs (managed \
     directories through a mount). All but `directory` need root and the programs that make file systems. Log and views are on a file \
     system of their own. What is interrupted leaves its mounts below the directory: take them off, and start in another.\n\n\
     Examples:\n  newsreel bench toaster --directory /tmp/toaster --places directory --articles 9000 --methods cnfs\n  \
     newsreel bench toaster --directory /tmp/toaster --places ext4,xfs --inn /usr/lib/news/bin\n  \
     newsreel bench toaster --directory /tmp/toaster --from feed.rnews.zst --passes 10";

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// An empty or new directory for image files and servers
    #[arg(long, value_name = "DIR")]
    directory: PathBuf,
    /// Where articles lie, separated by commas
    #[arg(long, value_delimiter = ',', default_value = "ext4", value_parser = places())]
    places: Vec<String>,
    /// The directory that the place `directory` is [default: one in --directory]
    #[arg(long, value_name = "DIR")]
    at: Option<PathBuf>,
    /// What is done otherwise, each in runs of its own that are held against the plain ones, separated by commas
    #[arg(long, value_delimiter = ',', default_value = "plain", value_parser = variants())]
    variants: Vec<String>,
    /// Storage methods, separated by commas [default: all]
    #[arg(long, value_delimiter = ',', value_parser = methods())]
    methods: Vec<String>,
    /// INN too, an article a file; where its programs are, in Debian /usr/lib/news/bin
    #[arg(long, value_name = "DIR")]
    inn: Option<PathBuf>,
    /// Real articles as originals: rnews batches (packed: .zst), articles, or directories of them; else generated ones
    #[arg(long, value_name = "PATH")]
    from: Vec<PathBuf>,
    /// Articles of all passes together, clones included; of real ones there are as many clones as that takes
    #[arg(long, default_value_t = 900_000, value_parser = count(1, ARTICLES_MAX))]
    articles: u64,
    /// Clones of each generated original
    #[arg(long, default_value_t = 2, value_parser = count(0, CLONES_MAX))]
    clones: u64,
    /// Passes
    #[arg(long, default_value_t = 14, value_parser = count(1, PASSES_MAX))]
    passes: u32,
    /// Articles of a batch
    #[arg(long, default_value_t = 109, value_name = "N", value_parser = count(1, BATCH_ARTICLES_MAX))]
    batch_articles: u64,
    /// Groups of generated articles
    #[arg(long, default_value_t = 3000, value_parser = count(1, GROUPS_MAX))]
    groups: usize,
    /// Decides everything about generated articles
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// What the server may have in memory, its share of the page cache included
    #[arg(long, value_name = "MIB", value_parser = count(64, 1_u64 << 20))]
    memory: Option<u64>,
    /// Do not empty the caches of the machine between phases
    #[arg(long)]
    warm: bool,
    /// Where the server listens, on 127.0.0.1
    #[arg(long, default_value_t = 11_950)]
    port: u16,
    /// Write the figures (SVG), their tables (figures.md) and all of it (report.json) into this directory
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn places() -> PossibleValuesParser {
    PossibleValuesParser::new(Place::ALL.map(Place::name))
}

fn variants() -> PossibleValuesParser {
    PossibleValuesParser::new(Variant::ALL.map(Variant::name))
}

pub(super) fn run(options: &Options, machine: Machine<'_>) -> Result<()> {
    if let Some(inn) = &options.inn
        && !Inn::is_installed(inn)
    {
        bail!("INN is not installed in {} (--inn)", inn.display());
    }
    let args = asked_for(options)?;
    let mut told = Ok(());
    let report = toaster::run(&args, machine, &mut |done| {
        if options.json || told.is_err() {
            return;
        }
        told = output::text(&match done {
            Told::Run(run) => toaster::human(run),
            Told::Skip(skip) => {
                let so = if skip.is_failure { "failed" } else { "skipped" };
                format!("{}: {so}: {}\n", skip.what, skip.why)
            }
        });
    })?;
    told?;
    if let Some(directory) = &options.report {
        write_report(directory, &report, machine)?;
    }
    if options.json {
        output::json(&serde_json::to_value(&report)?)?;
    } else if let Some(why) = &report.warm {
        output::text(&format!("caches were not emptied between phases: {why}\n"))?;
    }
    verdict(&report)
}

fn write_report(directory: &Path, report: &Report, machine: Machine<'_>) -> Result<()> {
    let write =
        |name: &str, text: &str| replace_file(machine.disk, &directory.join(name), text.as_bytes());
    machine.disk.create_dir_all(directory)?;
    for (figure, picture) in toaster::pictures(report)? {
        write(&format!("{figure}.svg"), &picture)?;
    }
    write("report.json", &serde_json::to_string_pretty(report)?)?;
    Ok(write("figures.md", &toaster::markdown(report))?)
}

fn asked_for(options: &Options) -> Result<ToasterArgs> {
    let chosen = |place: &Place| options.places.iter().any(|name| name == place.name());
    let program = std::env::current_exe().context("where is this program?")?;
    let args = ToasterArgs::new(std::path::absolute(&options.directory)?, program);
    Ok(ToasterArgs {
        inn: options.inn.clone(),
        places: Place::ALL.into_iter().filter(chosen).collect(),
        at: options.at.as_ref().map(std::path::absolute).transpose()?,
        methods: options.methods.clone(),
        variants: Variant::ALL
            .into_iter()
            .filter(|one| options.variants.iter().any(|name| name == one.name()))
            .collect(),
        warm: options.warm,
        memory_octets: options.memory.map(|mib| mib << 20),
        corpus: CorpusArgs {
            from: options.from.clone(),
            groups: options.groups,
            seed: options.seed,
            ..args.corpus
        },
        articles: options.articles,
        clones: options.clones,
        passes: options.passes,
        batch_articles: options.batch_articles,
        port: options.port,
        progress: true,
        ..args
    })
}

/// What makes the command fail.
fn verdict(report: &Report) -> Result<()> {
    let failures: Vec<_> = report
        .skipped
        .iter()
        .filter(|skip| skip.is_failure)
        .collect();
    if let Some(first) = failures.first() {
        bail!(
            "{} runs failed: {}: {}",
            failures.len(),
            first.what,
            first.why
        );
    }
    let wrong = report
        .runs
        .iter()
        .filter(|run| !run.complaints.is_empty())
        .count();
    if wrong > 0 {
        bail!(
            "{wrong} of {} runs are no measurement: see their complaints",
            report.runs.len()
        );
    }
    if report.runs.is_empty() {
        bail!("nothing could be measured: see what was skipped");
    }
    Ok(())
}
