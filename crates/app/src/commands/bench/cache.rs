//! `newsreel bench cache`: what a reader waits for at a caching server.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::builder::PossibleValuesParser;
use newsreel_bench::cache::{self, CacheArgs, LINKS, LeavesArgs};
use newsreel_bench::compare::make_directory;
use newsreel_bench::load::Machine;
use newsreel_bench::rivals::Inn;
use newsreel_host::replace_file;

use super::options::{GROUPS_MAX, count};
use crate::output;

/// Articles of a group.
const ARTICLES_MAX: u64 = 1_000_000;

/// A day.
const RIVAL_SECONDS_MAX: u64 = 86_400;

pub(super) const HELP: &str = "An origin (this program, and with --inn INN) has a long list of groups and a few with many articles; a cache with nothing in it stands \
     in front of it. Each operation of the paper's tables is done at the origin, at the cache for the first time (miss), and again (hit), over each \
     link: none, 20ms (a round trip), 56k (56 kbit/s, where a run of full size takes most of an hour). Readers are near the cache; what goes over \
     the link is not compressed. leafnode and sn, where Debian's packages are installed, fetch the same with their own programs into directories of \
     their own, and the same is read from them; who is not there, fails or lacks a command is told with the reason (leafnode needs root; the \
     packages exclude each other, so that they may have been unpacked below --rivals: dpkg -x leafnode.deb DIR).\n\n\
     Examples:\n  newsreel bench cache --directory /tmp/cache --report /tmp/report\n  \
     newsreel bench cache --directory /tmp/cache --links none,20ms --groups 5000 --articles 500\n  \
     newsreel bench cache --directory /tmp/cache --small";

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// An empty or new directory for the servers' files
    #[arg(long, value_name = "DIR")]
    directory: PathBuf,
    /// INN as an origin, too; where its programs are, in Debian /usr/lib/news/bin
    #[arg(long, value_name = "DIR")]
    inn: Option<PathBuf>,
    /// Groups that the origin lists
    #[arg(long, default_value_t = 50_000, value_parser = count(350, GROUPS_MAX))]
    groups: usize,
    /// Articles in each of five groups; up to a thousand of the first are read one by one
    #[arg(long, default_value_t = 2000, value_parser = count(1, ARTICLES_MAX))]
    articles: u64,
    /// The links between cache and origin, separated by commas
    #[arg(long, value_delimiter = ',', default_values = LINKS, value_parser = PossibleValuesParser::new(LINKS))]
    links: Vec<String>,
    /// Only whether all of it works, within a minute: 400 groups, 40 articles in each of five, links none and 20ms
    #[arg(long, conflicts_with_all = ["groups", "articles", "links"])]
    small: bool,
    /// Where leafnode and sn are looked for: the root of the file system, or a directory into which their packages were unpacked
    #[arg(long, value_name = "DIR", default_value = "/")]
    rivals: PathBuf,
    /// Each of them may take so many seconds, the fetching included; 0 leaves them out
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = count(0, RIVAL_SECONDS_MAX))]
    rival_seconds: u64,
    /// The origin's port on 127.0.0.1; the cache has the next
    #[arg(long, default_value_t = 11_960, value_parser = clap::value_parser!(u16).range(1..65535))]
    port: u16,
    /// Write the tables (tables.md), pictures (SVG) and all of it (report.json) into this directory
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(options: &Options, machine: Machine<'_>) -> Result<()> {
    if let Some(inn) = &options.inn
        && !Inn::is_installed(inn)
    {
        bail!("INN is not installed in {} (--inn)", inn.display());
    }
    make_directory(&options.directory, machine)?;
    let (groups, articles) = match options.small {
        true => (400, 40),
        false => (options.groups, options.articles),
    };
    let links = match options.small {
        true => ["none", "20ms"].map(str::to_owned).to_vec(),
        false => options.links.clone(),
    };
    let args = CacheArgs {
        program: std::env::current_exe().context("where is this program?")?,
        directory: std::path::absolute(&options.directory)?,
        inn: options.inn.clone(),
        groups,
        articles,
        links,
        leaves: LeavesArgs {
            root: std::path::absolute(&options.rivals)?,
            limit: (options.rival_seconds > 0).then(|| Duration::from_secs(options.rival_seconds)),
        },
        port: options.port,
    };
    let mut told = Ok(());
    let report = cache::run(&args, machine, &mut |figure| {
        if !options.json && told.is_ok() {
            told = output::text(&figure.human());
        }
    })?;
    told?;
    if let Some(directory) = &options.report {
        machine.disk.create_dir_all(directory)?;
        let write = |name: &str, text: &str| {
            replace_file(machine.disk, &directory.join(name), text.as_bytes())
        };
        for (name, picture) in report.pictures()? {
            write(&format!("{name}.svg"), &picture)?;
        }
        write("report.json", &serde_json::to_string_pretty(&report)?)?;
        write("tables.md", &report.markdown())?;
    }
    match options.json {
        true => output::json(&serde_json::to_value(&report)?),
        false => output::text(&report.markdown()),
    }
}
