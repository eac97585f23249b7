//! `newsreel usenetfs status`: what is mounted, and what was asked of it.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use newsreel_host::Folder;
use newsreel_usenetfs::STATUS_ATTRIBUTE;
use serde_json::{Value, json};

use crate::output;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Counted is what reaches the server; the kernel answers much from its own memory.\n\n\
                  Examples:\n  newsreel usenetfs status\n  newsreel usenetfs status --json /mnt"
)]
pub(crate) struct Args {
    /// Where it is mounted; every mount, if it is not said
    #[arg(value_name = "MOUNTPOINT")]
    at: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let Some(at) = &args.at else {
        return list(args.json);
    };
    let mounted = super::mounted_at(at)?;
    let status = of(&mounted.at)?;
    if args.json {
        return output::json(&status);
    }
    let fact = |key: &str| output::cell(&status[key]);
    output::text(&output::facts(&[
        ("mounted on", mounted.at.display().to_string()),
        ("shows", fact("lower")),
        ("process", fact("pid")),
        ("algorithm of new ones", fact("algorithm")),
        ("shared with others", fact("shared")),
        ("inodes known", fact("inodes_known")),
        ("directories open", fact("directories_open")),
        ("files open", fact("files_open")),
        ("memory", output::octets(&status["memory_bytes"])),
    ]))?;
    let operations = status["operations"].as_object().into_iter().flatten();
    let rows: Vec<Value> = operations
        .filter(|(_, count)| count.as_u64() != Some(0))
        .map(|(name, count)| json!({"name": name, "count": count}))
        .collect();
    output::text("\n")?;
    output::text(&output::table(
        &[("OPERATION", "name"), ("COUNT", "count")],
        &rows,
    ))
}

/// The status of a mount, as its server tells it.
pub(super) fn of(at: &Path) -> Result<Value> {
    let folder = Folder::open(at).context("the server of the mount may have died")?;
    let text = folder
        .attribute(STATUS_ATTRIBUTE)?
        .context("the server of the mount tells no status")?;
    serde_json::from_slice(&text).context("the server's status is not understood")
}

fn list(json: bool) -> Result<()> {
    let mut rows = Vec::new();
    for mounted in super::all_mounted()? {
        let (lower, at) = (
            mounted.source.to_string_lossy(),
            mounted.at.to_string_lossy(),
        );
        let status = of(&mounted.at).ok();
        rows.push(json!({
            "lower": lower,
            "mountpoint": at,
            "pid": status.as_ref().map(|status| status["pid"].clone()),
            "serves": status.is_some(),
        }));
    }
    if json {
        return output::json(&Value::Array(rows));
    }
    output::text(&output::table(
        &[
            ("LOWER", "lower"),
            ("MOUNTPOINT", "mountpoint"),
            ("PROCESS", "pid"),
            ("SERVES", "serves"),
        ],
        &rows,
    ))
}
