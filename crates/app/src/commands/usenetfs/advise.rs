//! `newsreel usenetfs advise`: whether managing a directory pays, from what was measured.

use std::path::PathBuf;

use anyhow::Result;
use newsreel_host::Folder;
use newsreel_layout::advise::{Census, Mix, advise, census};
use serde_json::{Value, json};

use crate::output;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "An estimate of a day's work, from measurements on such file systems and a day's operations: those of a news \
                  server of 1998, or what a mount has counted since it began.\n\n\
                  Examples:\n  newsreel usenetfs advise --recursive /var/spool/news/articles\n  \
                  newsreel usenetfs advise --counts /mnt /var/spool/news/articles/alt/test"
)]
pub(crate) struct Args {
    /// Directories
    #[arg(value_name = "DIR", required = true)]
    directories: Vec<PathBuf>,
    /// All directories below them, too
    #[arg(long)]
    recursive: bool,
    /// Take what this mount has counted, in place of the day of 1998
    #[arg(long, value_name = "MOUNTPOINT")]
    counts: Option<PathBuf>,
    /// Leave out directories with fewer entries
    #[arg(long, default_value_t = 0, value_name = "COUNT")]
    entries_min: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let mut counted = Vec::new();
    super::each(
        &args.directories,
        args.recursive,
        &mut |path, folder| match folder.and_then(counted_in) {
            Err(error) if !args.recursive => Err(error),
            Err(error) => {
                output::warning(&output::printable(&format!("not weighed: {error:#}")));
                Ok(false)
            }
            Ok(census) => {
                if census.entries >= args.entries_min {
                    counted.push((path.to_path_buf(), census));
                }
                Ok(true)
            }
        },
    )?;
    let counts = match &args.counts {
        Some(at) => Some(super::status::of(&super::mounted_at(at)?.at)?),
        None => None,
    };
    let all: u64 = counted.iter().map(|(_, census)| census.entries).sum();
    let mut rows = Vec::new();
    for (path, census) in &counted {
        let mix = match &counts {
            Some(counts) => mix_of(&counts["operations"], census, all, counted.len()),
            None => Mix::of_1998(census.entries),
        };
        let advice = advise(census, mix);
        let seconds = |day: f64| (day * 10.0).round() / 10.0;
        rows.push(json!({
            "directory": path.to_string_lossy(),
            "is": census.layout.to_string(),
            "entries": census.entries,
            "flat_s": advice.in_memory.map(|day| seconds(day.flat)),
            "managed_s": advice.in_memory.map(|day| seconds(day.managed)),
            "flat_disk_s": advice.on_disk.map(|day| seconds(day.flat)),
            "managed_disk_s": advice.on_disk.map(|day| seconds(day.managed)),
            "advice": advice.verdict.to_string(),
        }));
    }
    if args.json {
        return output::json(&Value::Array(rows));
    }
    output::text(&output::table(
        &[
            ("DIRECTORY", "directory"),
            ("IS", "is"),
            ("ENTRIES", "entries"),
            ("FLAT S", "flat_s"),
            ("MANAGED S", "managed_s"),
            ("FLAT ON DISK S", "flat_disk_s"),
            ("MANAGED ON DISK S", "managed_disk_s"),
            ("ADVICE", "advice"),
        ],
        &rows,
    ))
}

/// What is in a directory, as it lies.
fn counted_in(folder: &Folder) -> Result<Census> {
    super::not_seen_through(folder)?;
    Ok(census(folder)?)
}

/// A directory's share of what a mount counted: by its size, and of listings every one the same.
fn mix_of(operations: &Value, census: &Census, all: u64, directories: usize) -> Mix {
    let count = |names: &[&str]| -> f64 {
        let counts = names.iter().map(|name| operations[*name].as_f64());
        counts.map(|count| count.unwrap_or(0.0)).sum()
    };
    let share = census.entries as f64 / all.max(1) as f64;
    Mix {
        lookups: count(&["lookup"]) * share,
        adds: count(&["create", "link", "mknod", "symlink"]) * share,
        removes: count(&["unlink"]) * share,
        listings: count(&["opendir"]) / directories.max(1) as f64,
    }
}
