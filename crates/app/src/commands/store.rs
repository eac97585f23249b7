//! `newsreel store inspect`: the buffers, with what lies in them.

use anyhow::Result;

use crate::access::{self, SpoolArgs};
use crate::control::request::Request;
use crate::output;

/// The columns of a table of buffers.
pub(super) const BUFFER_COLUMNS: &[(&str, &str)] = &[
    ("BUFFER", "name"),
    ("SET", "set"),
    ("OCTETS", "octets"),
    ("CYCLE", "cycle"),
    ("FREE", "free_offset"),
    ("RESERVED", "reserved_offset"),
    ("STATE", "state"),
    ("FILE", "path"),
];

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Verb {
    /// Show every buffer: size, cycle, free pointer, state
    #[command(after_help = "Example:\n  newsreel store inspect --spool /var/spool/newsreel")]
    Inspect {
        #[command(flatten)]
        spool: SpoolArgs,
    },
}

pub(crate) fn run(verb: &Verb) -> Result<()> {
    let Verb::Inspect { spool } = verb;
    let buffers = access::ask(spool, Request::Store)?;
    if spool.json {
        return output::json(&buffers);
    }
    let rows = buffers.as_array().map(Vec::as_slice).unwrap_or_default();
    output::text(&output::table(BUFFER_COLUMNS, rows))
}
