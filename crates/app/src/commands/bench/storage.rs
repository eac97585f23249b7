//! `newsreel bench storage`: figures 8 and 9 of the paper on cyclic buffers, measured anew.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::builder::PossibleValuesParser;
use newsreel_bench::compare::make_directory;
use newsreel_bench::corpus::{CorpusArgs, Size};
use newsreel_bench::load::Machine;
use newsreel_bench::storage::{
    self, DURABILITY, Figure, Line, METHODS, Row, SceneArgs, Scenes, StorageArgs,
};
use newsreel_bench::usenetfs::{FileSystem, GOAL_TITLES};
use newsreel_host::replace_file;

use super::options::{GROUPS_MAX, count, size};
use crate::output;

/// Articles of a batch, or of the run of small ones.
const ARTICLES_MAX: u64 = 100_000_000;
/// So small a part of what is asked for still is something.
const PART_MAX: u64 = 10_000;
/// Of all buffers together, in MiB: from the least that two buffers can have to a large disk.
const BUFFERS_MIB: (u64, u64) = (16, 16 << 20);

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// An empty or new directory for the image files
    #[arg(long, value_name = "DIR")]
    directory: PathBuf,
    /// File systems, separated by commas; ext2 is made without indexes of directories
    #[arg(long, value_delimiter = ',', default_value = "ext4,ext2", value_parser = file_systems())]
    file_systems: Vec<String>,
    /// Storage methods, separated by commas [default: all]
    #[arg(long, value_delimiter = ',', value_parser = methods())]
    methods: Vec<String>,
    /// INN too, with each of its methods that are measured; this script starts and stops it (what it must do: docs/reports/beside-inn.md)
    #[arg(long, value_name = "SCRIPT")]
    inn: Option<PathBuf>,
    /// Articles of each of the four batches
    #[arg(long, default_value_t = 5400, value_parser = count(1, ARTICLES_MAX))]
    articles: u64,
    /// Articles fed before anything is counted, but to bare calls: a server in use has been around its buffers and its log
    #[arg(long, default_value_t = 0, value_parser = count(0, ARTICLES_MAX))]
    warming: u64,
    /// Articles of at most 4 KB fed after them
    #[arg(long, default_value_t = 20_000, value_parser = count(0, ARTICLES_MAX))]
    small: u64,
    /// Groups, as busy as each other: so most articles of a batch are in groups of their own, as in the paper
    #[arg(long, default_value_t = 6000, value_parser = count(1, GROUPS_MAX))]
    groups: usize,
    /// Octets of an article of the batches, or `text`: as in real text groups, 2.65 KB in the mean
    #[arg(long, default_value = "text", value_parser = size)]
    size: Size,
    /// Decides everything about the articles but their dates
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Articles under way
    #[arg(long, default_value_t = 1000, value_parser = count(1, 1_usize << 20))]
    window: usize,
    /// Cyclic buffers of a server together
    #[arg(long, default_value_t = 512, value_name = "MIB", value_parser = count(BUFFERS_MIB.0, BUFFERS_MIB.1))]
    buffers: u64,
    /// When this program makes articles durable; with none it syncs as little as INN
    #[arg(long, default_value = DURABILITY, value_parser = ["group-commit", "each", "none"])]
    durability: String,
    /// Behind the figures everything else that is asked of storage, and a table of what was asked and seen (goals.md)
    #[arg(long)]
    goals: bool,
    /// INN's fastrm, against which removal is held; Debian has it as /usr/lib/news/bin/fastrm
    #[arg(long, value_name = "PROGRAM", requires = "goals")]
    fastrm: Option<PathBuf>,
    /// One in so many of the articles that the goals ask for: to see that all of it runs, nothing is judged then
    #[arg(long, default_value_t = 1, value_name = "N", requires = "goals", value_parser = count(1, PART_MAX))]
    part: u64,
    /// Where servers listen, on 127.0.0.1
    #[arg(long, default_value_t = 11_930)]
    port: u16,
    /// Write the figures (SVG) and their tables (figures.md) into this directory
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn file_systems() -> PossibleValuesParser {
    PossibleValuesParser::new(FileSystem::ALL.map(FileSystem::name))
}

pub(super) fn methods() -> PossibleValuesParser {
    PossibleValuesParser::new(METHODS.map(|method| method.name))
}

pub(super) fn run(options: &Options, machine: Machine<'_>) -> Result<()> {
    make_directory(&options.directory, machine)?;
    let chosen = |file_system: &FileSystem| {
        let named = &options.file_systems;
        named.iter().any(|name| name == file_system.name())
    };
    let program = std::env::current_exe().context("where is this program?")?;
    let default = StorageArgs::new(options.directory.clone(), program);
    let args = StorageArgs {
        inn: options.inn.clone(),
        file_systems: FileSystem::ALL.into_iter().filter(chosen).collect(),
        methods: options.methods.clone(),
        articles: options.articles,
        warming_articles: options.warming,
        short_articles: options.small,
        window: options.window,
        buffers_octets: options.buffers << 20,
        durability: options.durability.clone(),
        corpus: CorpusArgs {
            seed: options.seed,
            groups: options.groups,
            size: options.size,
            ..default.corpus
        },
        port: options.port,
        progress: true,
        ..default
    };
    let mut told = Ok(());
    let rows = storage::run(&args, machine, &mut |row| {
        if !options.json && told.is_ok() {
            told = output::text(&format!("{}\n", storage::human(row)));
        }
    })?;
    told?;
    if let Some(report) = &options.report {
        write_report(report, &args, &rows, machine)?;
    }
    let wrong = rows.iter().filter(|row| !row.complaints.is_empty()).count();
    if options.goals {
        rest(options, args, &rows, machine)?;
    } else if options.json {
        output::json(&serde_json::to_value(&rows)?)?;
    }
    if wrong > 0 {
        bail!(
            "{wrong} of {} rows are no measurement: see their complaints",
            rows.len()
        );
    }
    Ok(())
}

/// What is asked beside the figures, and all of it in one table.
fn rest(options: &Options, figures: StorageArgs, rows: &[Row], machine: Machine<'_>) -> Result<()> {
    let args = SceneArgs {
        storage: figures,
        fastrm: options.fastrm.clone(),
        part: options.part,
    };
    let mut told = Ok(());
    let scenes = Scenes::run(&args, machine, &mut |line| {
        if !options.json && told.is_ok() {
            told = output::text(&format!("{line}\n"));
        }
    });
    told?;
    let goals = storage::goals(rows, &scenes, options.part);
    let lines = goals.iter().map(Line::markdown);
    let table: String = [GOAL_TITLES.to_owned()].into_iter().chain(lines).collect();
    if let Some(report) = &options.report {
        replace_file(machine.disk, &report.join("goals.md"), table.as_bytes())?;
    }
    match options.json {
        true => output::json(&serde_json::json!({ "figures": rows, "goals": goals }))?,
        false => output::text(&format!("\n{table}"))?,
    }
    let failures = scenes.failures();
    if !failures.is_empty() {
        bail!("not everything could be measured: {}", failures.join("; "));
    }
    Ok(())
}

fn write_report(
    directory: &Path,
    args: &StorageArgs,
    rows: &[Row],
    machine: Machine<'_>,
) -> Result<()> {
    let write =
        |name: &str, text: &str| replace_file(machine.disk, &directory.join(name), text.as_bytes());
    machine.disk.create_dir_all(directory)?;
    let mut page = String::new();
    for file_system in &args.file_systems {
        let name = file_system.name();
        for figure in Figure::ALL {
            let picture = storage::svg(figure, name, rows)?;
            write(&format!("{name}-{}.svg", figure.name()), &picture)?;
        }
        let durability = match args.durability.as_str() {
            DURABILITY => String::new(),
            other => format!(", newsreel with durability = \"{other}\""),
        };
        let tables = storage::markdown(name, rows);
        page.push_str(&format!("{name}{durability}:\n\n{tables}\n"));
    }
    Ok(write("figures.md", &page)?)
}
