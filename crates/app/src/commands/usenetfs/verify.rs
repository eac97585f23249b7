//! `newsreel usenetfs verify`: what no view finds, and what is left over.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use newsreel_layout::verify::{self, Summary};
use serde_json::{Value, json};

use crate::output;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Ends with 0 when all is well or was repaired, with 1 when something is not as it should be, or could not be looked at. Empty buckets \
                  mean nothing, and a relative link is right in the view: they are told beside the findings.\n\n\
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
    let (mut findings, mut notes) = (Vec::new(), Vec::new());
    super::each(&args.directories, args.recursive, &mut |path, folder| {
        let mut lines = Vec::new();
        let verified = folder.and_then(|folder| {
            if args.repair {
                super::not_mounted(folder, super::Work::Repair)?;
            }
            super::not_seen_through(folder)?;
            Ok(verify::verify(folder, args.repair, &mut |finding| {
                let path = path.join(&finding.path);
                let is_note = finding.what.is_note();
                lines.push((path, finding.what.to_string(), finding.repaired, is_note));
            })?)
        });
        let is_seen = verified.is_ok();
        match verified {
            Ok(summary) => {
                total.entries += summary.entries;
                total.articles += summary.articles;
                total.buckets += summary.buckets;
                total.empty_buckets += summary.empty_buckets;
            }
            Err(error) if !args.recursive => return Err(error),
            Err(error) => lines.push((
                path.to_path_buf(),
                format!("not verified: {error:#}"),
                false,
                false,
            )),
        }
        for (path, what, repaired, is_note) in lines {
            if is_note {
                total.notes += 1;
                say(&path, (&what, " (note)"), repaired, &mut notes, args.json)?;
                continue;
            }
            total.findings += 1;
            total.repaired += u64::from(repaired);
            let said = if repaired { " (repaired)" } else { "" };
            say(&path, (&what, said), repaired, &mut findings, args.json)?;
        }
        Ok(is_seen)
    })?;
    end(&total, (&findings, &notes), args.json)?;
    let left = total.findings - total.repaired;
    if left > 0 {
        bail!("{left} things are not as they should be");
    }
    Ok(())
}

/// Tells all of it in short, or as JSON.
fn end(total: &Summary, (findings, notes): (&[Value], &[Value]), json: bool) -> Result<()> {
    if json {
        return output::json(&json!({
            "entries": total.entries,
            "articles": total.articles,
            "buckets": total.buckets,
            "empty_buckets": total.empty_buckets,
            "findings": findings,
            "notes": notes,
            "repaired": total.repaired,
        }));
    }
    let empty = match total.empty_buckets {
        0 => String::new(),
        empty => format!(" ({empty} of them empty)"),
    };
    let noted = match total.notes {
        0 => String::new(),
        notes => format!(", {notes} notes"),
    };
    output::text(&format!(
        "{} entries in {} buckets{empty}, {} findings, {} of them repaired{noted}\n",
        total.entries, total.buckets, total.findings, total.repaired
    ))
}

/// Tells a finding, now or with all others.
fn say(
    path: &Path,
    (what, said): (&str, &str),
    repaired: bool,
    findings: &mut Vec<Value>,
    json: bool,
) -> Result<()> {
    if json {
        findings.push(json!({"path": path.to_string_lossy(), "what": what, "repaired": repaired}));
        return Ok(());
    }
    let line = format!("{}: {what}{said}", path.display());
    // Names are of whoever made them.
    output::text(&format!(
        "{}\n",
        output::printable(&line).replace('\n', "?")
    ))
}
