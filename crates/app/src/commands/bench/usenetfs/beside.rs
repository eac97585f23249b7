//! `newsreel bench usenetfs beside`: builds beside a news server, without and with its largest groups managed.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::builder::PossibleValuesParser;
use newsreel_bench::compare::make_directory;
use newsreel_bench::load::Machine;
use newsreel_bench::rivals::{INN_PROGRAMS, Inn};
use newsreel_bench::usenetfs::{self, BESIDE_TITLES, BesideArgs, Server};
use newsreel_host::replace_file;

use super::overhead::{PackageOptions, ROOM_MAX};
use super::{ARTICLES_MAX, chosen_one, file_systems, this_program};
use crate::commands::bench::options::{GROUPS_MAX, above_zero, count};
use crate::output;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// An empty or new directory for the image file and the servers
    #[arg(long, value_name = "DIR")]
    directory: PathBuf,
    /// Servers, separated by commas
    #[arg(long, value_delimiter = ',', default_value = "inn,newsreel", value_parser = servers())]
    servers: Vec<String>,
    /// The file system
    #[arg(long, default_value = "ext2", value_parser = file_systems())]
    file_system: String,
    /// Its size in MiB
    #[arg(long, default_value_t = 4096, value_name = "MIB", value_parser = count(64, ROOM_MAX))]
    room: u64,
    #[command(flatten)]
    package: PackageOptions,
    /// Groups, the first by far the largest
    #[arg(long, default_value_t = 20, value_parser = count(1, GROUPS_MAX))]
    groups: usize,
    /// How many of them, the largest, are managed
    #[arg(long, default_value_t = 6, value_parser = count(1, GROUPS_MAX))]
    managed: usize,
    /// Articles that are there before the first build
    #[arg(long, default_value_t = 200_000, value_parser = count(1, ARTICLES_MAX))]
    articles: u64,
    /// Articles that newsreel keeps of a group (INN keeps half of all, by their dates)
    #[arg(long, default_value_t = 10_000, value_parser = count(1, ARTICLES_MAX))]
    kept: u64,
    /// Articles fed a second
    #[arg(long, default_value_t = 50.0, value_parser = above_zero)]
    rate: f64,
    /// How long at least, in seconds, for each server and each way
    #[arg(long, default_value_t = 600.0, value_name = "SECONDS", value_parser = above_zero)]
    duration: f64,
    /// From one expiry and one sending to the next
    #[arg(long, default_value_t = 120.0, value_name = "SECONDS", value_parser = above_zero)]
    cycle: f64,
    /// Where servers listen, on 127.0.0.1
    #[arg(long, default_value_t = 11_951)]
    port: u16,
    /// Where INN's programs are
    #[arg(long, value_name = "DIR", default_value = INN_PROGRAMS)]
    inn: PathBuf,
    /// Write the table into this file, as Markdown, and the figure beside it, as SVG
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn servers() -> PossibleValuesParser {
    PossibleValuesParser::new(Server::ALL.map(Server::name))
}

pub(super) fn run(options: &Options, machine: Machine<'_>) -> Result<()> {
    let is_asked = |server: &Server| options.servers.iter().any(|name| name == server.name());
    let servers: Vec<Server> = Server::ALL.into_iter().filter(is_asked).collect();
    if servers.contains(&Server::Inn) && !Inn::is_installed(&options.inn) {
        bail!(
            "INN is not installed in {} (--inn, or --servers newsreel)",
            options.inn.display()
        );
    }
    make_directory(&options.directory, machine)?;
    let args = BesideArgs {
        directory: std::path::absolute(&options.directory)?,
        program: this_program()?,
        inn: options.inn.clone(),
        servers,
        file_system: chosen_one(&options.file_system)?,
        octets: options.room << 20,
        package: options.package.package(&options.directory, machine)?,
        groups: options.groups,
        managed: options.managed,
        articles: options.articles,
        kept: options.kept,
        rate: options.rate,
        seconds: options.duration,
        cycle_seconds: options.cycle,
        port: options.port,
        progress: true,
    };
    let mut told = Ok(());
    let rows = usenetfs::beside(&args, machine, &mut |server, is_managed, build| {
        if !options.json && told.is_ok() {
            let way = if is_managed { "managed" } else { "flat" };
            let line = format!(
                "{}, {way}: after {:.0} s a build of {:.2} s\n",
                server.name(),
                build.at_seconds,
                build.seconds
            );
            told = output::text(&line);
        }
    })?;
    told?;
    let lines = rows.iter().map(|row| row.markdown());
    let table: String = [BESIDE_TITLES.to_owned()]
        .into_iter()
        .chain(lines)
        .collect();
    if let Some(report) = &options.report {
        replace_file(machine.disk, report, table.as_bytes())?;
        let figure = usenetfs::beside_svg(&rows)?;
        replace_file(
            machine.disk,
            &report.with_extension("svg"),
            figure.as_bytes(),
        )?;
    }
    match options.json {
        true => output::json(&serde_json::to_value(&rows)?),
        false => output::text(&format!("\n{table}")),
    }
}
