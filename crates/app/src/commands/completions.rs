//! `newsreel completions`: the completion script of a shell.

use anyhow::Result;
use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::output;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  newsreel completions bash > ~/.local/share/bash-completion/completions/newsreel"
)]
pub(crate) struct Args {
    /// Which shell
    shell: Shell,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(
        args.shell,
        &mut super::Cli::command(),
        "newsreel",
        &mut script,
    );
    output::text(&String::from_utf8_lossy(&script))
}
