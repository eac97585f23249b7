//! Tasks cargo lacks: `cargo xtask ci|tidy|bless|docs`.
//!
//! Everything daily is plain cargo; a task here belongs to the whole workspace and knows nothing of news.

mod bless;
mod ci;
mod docs;
mod source;
mod tidy;
mod tree;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", about = "Tasks cargo lacks")]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Run every step of the continuous integration, in order, up to the first failure
    Ci(ci::Args),
    /// Check the house rules
    Tidy {
        /// Only say what the rules demand
        #[arg(long)]
        list: bool,
    },
    /// Rewrite what tests expect: transcripts' replies, refusals of configurations, golden texts, generated pages
    Bless,
    /// Make the generated documents anew
    Docs,
}

#[expect(clippy::print_stderr, reason = "errors end here")]
fn main() -> ExitCode {
    let done = match Args::parse().task {
        Task::Ci(args) => ci::run(&args),
        Task::Tidy { list } => tidy_task(list),
        Task::Bless => bless::run(),
        Task::Docs => docs::run(),
    };
    if let Err(error) = done {
        eprintln!("error: {error:#}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

#[expect(clippy::print_stdout, reason = "the task's result")]
fn tidy_task(list: bool) -> Result<()> {
    if list {
        for (name, demand) in tidy::rules() {
            println!("{name:14} {demand}");
        }
        return Ok(());
    }
    let findings = tidy::check(&tree::Tree::load(&root())?);
    for finding in &findings {
        println!("{finding}");
    }
    if !findings.is_empty() {
        bail!("{} findings", findings.len());
    }
    Ok(())
}

/// The root of the workspace, where this crate was built.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}
