//! `newsreel usenetfs verify`: what no view finds, and what is left over.

use std::path::PathBuf;

use anyhow::{Result, bail};
use newsreel_layout::verify::{self, Summary};
use serde_json::json;

use crate::output;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Ends with 0 when all is well or was repaired, with 1 when something is not as it should be.\n\n\
                  Examples:\n  newsreel usenetfs verify --recursive /var/spool/news/articles\n  \
                  newsreel usenetfs verify --repair /var/spool/news/articles/alt/test"
)]
pub(crate) struct Args {
    /// Directories
    #[arg(value_name = "DIR", required = true)]
    directories: Vec<PathBuf>,
    /// All directories below them, too
    #[arg(long)]
    recursive: bool,
    /// Put right what can be put right; nothing is ever replaced
    #[arg(long)]
    repair: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let mut total = Summary::default();
    let mut findings = Vec::new();
    for folder in super::directories(&args.directories, args.recursive)? {
        if args.repair {
            super::not_mounted(&folder)?;
        }
        let mut lines = Vec::new();
        let summary = verify::verify(&folder, args.repair, &mut |finding| {
            let path = folder.path().join(&finding.path);
            lines.push((path, finding.what.to_string(), finding.repaired));
        })?;
        for (path, what, repaired) in lines {
            if args.json {
                findings.push(
                    json!({"path": path.to_string_lossy(), "what": what, "repaired": repaired}),
                );
            } else {
                let repaired = if repaired { " (repaired)" } else { "" };
                output::text(&format!("{}: {what}{repaired}\n", path.display()))?;
            }
        }
        total.entries += summary.entries;
        total.articles += summary.articles;
        total.buckets += summary.buckets;
        total.findings += summary.findings;
        total.repaired += summary.repaired;
    }
    let left = total.findings - total.repaired;
    if args.json {
        output::json(&json!({
            "entries": total.entries,
            "articles": total.articles,
            "buckets": total.buckets,
            "findings": findings,
            "repaired": total.repaired,
        }))?;
    } else {
        output::text(&format!(
            "{} entries in {} buckets, {} findings, {} of them repaired\n",
            total.entries, total.buckets, total.findings, total.repaired
        ))?;
    }
    if left > 0 {
        bail!("{left} things are not as they should be");
    }
    Ok(())
}
