//! The binary's parts: command line, configuration, control socket, server; and the doors for fuzzers.
//!
//! This is a library so that fuzz targets reach the parsers; nobody else should depend on it.

mod access;
mod active;
mod batches;
mod called;
mod commands;
mod config;
mod control;
pub mod fuzz;
mod hidden;
mod imports;
mod input;
mod output;
mod policies;
mod posting;
mod pulling;
mod server;
mod strip;
mod typed;

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};

/// Runs what was typed; what the process ends with.
#[must_use]
pub fn main() -> ExitCode {
    let mut command = commands::Cli::command();
    let words = commands::usenetfs::arguments(std::env::args_os());
    let words = called::arguments(words);
    let understood = command.try_get_matches_from_mut(words);
    let understood = understood.and_then(|matches| {
        typed::note(&matches);
        let cli = commands::Cli::from_arg_matches(&matches);
        cli.map_err(|error| error.format(&mut command))
    });
    let cli = match understood {
        Ok(cli) => cli,
        Err(error) => return misunderstood(&error),
    };
    match commands::run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<output::Quiet>() => ExitCode::SUCCESS,
        Err(error) => {
            output::error(&output::chain(&error));
            ExitCode::FAILURE
        }
    }
}

/// Says why a command line cannot be obeyed, or prints the help that it asked for.
fn misunderstood(error: &clap::Error) -> ExitCode {
    typed::note_words(std::env::args_os());
    if error.use_stderr() && typed::is_json() {
        let said = error.render().to_string();
        output::error(said.strip_prefix("error: ").unwrap_or(&said).trim_end());
    } else {
        // Nobody may be listening.
        let _ = error.print();
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(u8::MAX))
}
