//! `newsreel bench`: the load generator.

use anyhow::Result;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {}

pub(crate) fn run(verb: &Verb) -> Result<()> {
    match *verb {}
}
