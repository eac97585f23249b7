//! The binary's parts: command line, configuration, control socket, server; and the doors for fuzzers.
//!
//! This is a library so that fuzz targets reach the parsers; nobody else should depend on it.

mod access;
mod active;
mod commands;
mod config;
mod control;
pub mod fuzz;
mod input;
mod output;
mod server;
mod strip;

use std::process::ExitCode;

use clap::Parser as _;

/// Runs what was typed; what the process ends with.
#[must_use]
pub fn main() -> ExitCode {
    match commands::run(commands::Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<output::Quiet>() => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(&format!("error: {}\n", output::chain(&error)));
            ExitCode::FAILURE
        }
    }
}
