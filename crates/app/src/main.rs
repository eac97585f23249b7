//! newsreel, a complete Usenet news system in one binary: what was typed goes to its verb.

mod access;
mod active;
mod commands;
mod config;
mod control;
mod output;
mod server;

use std::process::ExitCode;

use clap::Parser as _;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[expect(clippy::print_stderr, reason = "errors end here")]
fn main() -> ExitCode {
    match commands::run(commands::Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<output::Quiet>() => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {}", output::chain(&error));
            ExitCode::FAILURE
        }
    }
}
