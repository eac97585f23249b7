//! `newsreel post`: articles from files, posted to the server that runs here or to another.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::json;

use crate::{config, input, output, posting};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  newsreel post article.txt\n  newsreel post - < article.txt\n  \
                  newsreel post --server 192.0.2.1:119 one.txt two.txt\n\n\
                  A file has header fields, an empty line and the text, with LF or CRLF line ends. Message-ID, Date and\n\
                  Path are added where they are missing."
)]
pub(crate) struct Args {
    /// Files with one article each; `-`: the standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The server to post to [default: the one that runs on the spool]
    #[arg(long, value_name = "HOST[:PORT]")]
    server: Option<String>,
    /// The spool directory [default: what the configuration says, else ./newsreel-spool]
    #[arg(long, value_name = "DIR")]
    spool: Option<PathBuf>,
    /// The configuration file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let server = match &args.server {
        Some(name) => posting::find(name, None)?,
        None => posting::server_of(&spool(args.spool.as_deref(), args.config.as_deref())?)?,
    };
    let mut posted = Vec::new();
    for file in &args.files {
        let about = || format!("cannot post {}", file.display());
        let octets = input::read(file, posting::ARTICLE_OCTETS_MAX)?.octets;
        let said = posting::post(server, &posting::wire_of(&octets)).with_context(about)?;
        if args.json {
            posted.push(json!({"file": file, "answer": output::foreign(&said)}));
        } else {
            output::text(&format!("{}: {}\n", file.display(), output::foreign(&said)))?;
        }
    }
    if args.json {
        output::json(&json!(posted))?;
    }
    Ok(())
}

/// The spool that is meant.
pub(super) fn spool(given: Option<&Path>, file: Option<&Path>) -> Result<PathBuf> {
    match given {
        Some(spool) => Ok(spool.to_owned()),
        None => Ok(config::load(file)?.server.spool),
    }
}
