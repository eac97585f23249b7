//! `newsreel man`: the manual page, or one for every verb.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::CommandFactory as _;
use newsreel_host::{Disk as _, RealDisk};

use crate::output;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  newsreel man | man -l -")]
pub(crate) struct Args {
    /// Write newsreel.1, newsreel-serve.1 and so on into this directory
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let command = super::Cli::command();
    let Some(directory) = &args.directory else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command)
            .render(&mut page)
            .context("cannot make the page")?;
        return output::text(&String::from_utf8_lossy(&page));
    };
    RealDisk.create_dir_all(directory)?;
    clap_mangen::generate_to(command, directory)
        .with_context(|| format!("cannot write the pages into {}", directory.display()))?;
    output::text(&format!(
        "manual pages written to {}\n",
        directory.display()
    ))
}
