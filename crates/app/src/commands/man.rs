//! `newsreel man`: the manual page, or one for every verb.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use clap::CommandFactory as _;
use newsreel_host::{Disk as _, RealDisk, replace_file};

use crate::output;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  newsreel man | man -l -")]
pub(crate) struct Args {
    /// Write newsreel.1, newsreel-serve.1 and so on into this directory
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let mut command = super::Cli::command();
    let Some(directory) = &args.directory else {
        return output::text(&page(&command)?);
    };
    command = command.disable_help_subcommand(true);
    command.build();
    RealDisk.create_dir_all(directory)?;
    write(&command, directory)?;
    output::text(&format!(
        "manual pages written to {}\n",
        directory.display()
    ))
}

/// Writes the page of a command and those of the commands below it.
fn write(command: &clap::Command, directory: &Path) -> Result<()> {
    for below in command.get_subcommands() {
        write(below, directory)?;
    }
    let name = command.get_display_name().unwrap_or(command.get_name());
    let path = directory.join(format!("{name}.1"));
    replace_file(&RealDisk, &path, page(command)?.as_bytes())?;
    Ok(())
}

/// The page of a command.  What its help says below the options gets the sections that pages have.
fn page(command: &clap::Command) -> Result<String> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone())
        .source(concat!("newsreel ", env!("CARGO_PKG_VERSION")))
        .render(&mut page)
        .context("cannot make the page")?;
    let page = String::from_utf8_lossy(&page);
    let Some((above, extra)) = page.split_once(".SH EXTRA\n") else {
        return Ok(page.into_owned());
    };
    let (notes, examples) = match extra.split_once("Examples:\n") {
        Some(found) => found,
        None => extra.split_once("Example:\n").unwrap_or((extra, "")),
    };
    let section = |title: &str, text: &str| match text.trim() {
        "" => String::new(),
        _ => format!(".SH {title}\n{}\n", text.trim_matches('\n')),
    };
    Ok(format!(
        "{above}{}{}",
        section("NOTES", notes),
        section("EXAMPLES", examples)
    ))
}
