//! `newsreel usenetfs advise`: whether managing a directory pays, from what was measured.

use std::path::{Path, PathBuf};

use anyhow::Result;
use newsreel_host::Folder;
use newsreel_layout::advise::{Census, Day, Mix, Verdict, advise, census};
use newsreel_layout::set_at_or_above;
use serde_json::{Value, json};

use crate::output;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "An estimate of a day's work in seconds, from measurements on such file systems and a day's operations: those of a news \
                  server of 1998, or what a mount has counted since it began. FLAT is the directory without a mount. NATIVE is one that is \
                  managed, for a program that uses the layout itself, as newsreel's tradspool does; MOUNTED is the same through a mount, where each \
                  operation is a request to its server: all that other programs have, INN among them. The first three are with everything in memory, those ON DISK \
                  with nothing. ext2, ext3, ext4 and XFS were measured; of any other file system nothing is said.\n\n\
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
    let mut counted: Vec<(PathBuf, Census, bool)> = Vec::new();
    super::each(
        &args.directories,
        args.recursive,
        &mut |path, folder| match folder.and_then(counted_in) {
            Err(error) if !args.recursive => Err(error),
            Err(error) => {
                output::warning(&output::printable(&format!("not weighed: {error:#}")));
                Ok(false)
            }
            Ok((census, is_of_set)) => {
                if census.entries >= args.entries_min {
                    counted.push((path.to_path_buf(), census, is_of_set));
                }
                Ok(true)
            }
        },
    )?;
    let counts = match &args.counts {
        Some(at) => Some(super::status::of(&super::mounted_at(at)?.at)?),
        None => None,
    };
    let all: u64 = counted.iter().map(|(_, census, _)| census.entries).sum();
    let mut rows = Vec::new();
    for (path, census, is_of_set) in &counted {
        let mix = match &counts {
            Some(counts) => mix_of(&counts["operations"], census, all, counted.len()),
            None => Mix::of_1998(census.entries),
        };
        rows.push(row(path, census, mix, *is_of_set));
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
            ("NATIVE S", "managed_s"),
            ("MOUNTED S", "mounted_s"),
            ("FLAT ON DISK S", "flat_disk_s"),
            ("NATIVE ON DISK S", "managed_disk_s"),
            ("MOUNTED ON DISK S", "mounted_disk_s"),
            ("NATIVELY", "advice"),
            ("THROUGH A MOUNT", "advice_mounted"),
        ],
        &rows,
    ))
}

/// What is said of one directory.
fn row(path: &Path, census: &Census, mix: Mix, is_of_set: bool) -> Value {
    let advice = advise(census, mix);
    let (memory, disk) = (advice.in_memory, advice.on_disk);
    let seconds =
        |day: Option<Day>, of: fn(Day) -> f64| day.map(|day| (of(day) * 10.0).round() / 10.0);
    let said = |verdict: Verdict| match is_of_set {
        true => OF_SET.to_owned(),
        false => verdict.said(census.layout),
    };
    json!({
        "directory": path.to_string_lossy(),
        "is": census.layout.to_string(),
        "entries": census.entries,
        "flat_s": seconds(memory, |day| day.flat),
        "managed_s": seconds(memory, |day| day.managed),
        "mounted_s": seconds(memory, |day| day.mounted),
        "flat_disk_s": seconds(disk, |day| day.flat),
        "managed_disk_s": seconds(disk, |day| day.managed),
        "mounted_disk_s": seconds(disk, |day| day.mounted),
        "advice": said(advice.natively),
        "advice_mounted": said(advice.mounted),
    })
}

/// What is said of a directory of newsreel's own spool.
const OF_SET: &str = "newsreel's own server lays it out (`layouts` of its [[set]])";

/// What is in a directory, as it lies; and whether a server of ours lays it out.
fn counted_in(folder: &Folder) -> Result<(Census, bool)> {
    super::not_seen_through(folder)?;
    Ok((census(folder)?, set_at_or_above(folder)?.is_some()))
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
