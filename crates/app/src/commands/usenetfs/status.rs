//! `newsreel usenetfs status`: what is mounted, and what was asked of it.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Error, Result};
use newsreel_host::mounts::{self, MountPoint};
use newsreel_host::{Folder, process};
use newsreel_usenetfs::STATUS_ATTRIBUTE;
use serde_json::{Value, json};

use crate::output;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Counted is what reaches the server; the kernel answers much from its own memory. A mount that a user made who is not root \
                  tells only them; of any other one, and of one that lies under another mount, SERVES is `-`, and PROCESS is there where the kernel tells it to root.\n\n\
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
        (
            "set-uid bit last kept of inode",
            fact("suid_kept_last_inode"),
        ),
        ("memory", output::octets(&status["memory_bytes"])),
    ]))?;
    output::text("\n")?;
    output::text(&output::table(
        &[
            ("BY NAME", "name"),
            ("COUNT", "count"),
            ("PERCENT", "percent"),
        ],
        &by_name(&status["operations"]),
    ))?;
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

/// Operations that use a name, in the rows of the paper's table 1.
fn by_name(operations: &Value) -> Vec<Value> {
    const ROWS: [(&str, &[&str]); 5] = [
        ("readdir", &["readdir", "readdirplus"]),
        ("lookup", &["lookup"]),
        ("unlink", &["unlink"]),
        ("create", &["create"]),
        (
            "all other",
            &[
                "mkdir", "rmdir", "rename", "link", "symlink", "readlink", "mknod",
            ],
        ),
    ];
    let count = |names: &[&str]| -> u64 {
        let counts = names.iter().map(|name| operations[*name].as_u64());
        counts.map(Option::unwrap_or_default).sum()
    };
    let total: u64 = ROWS.iter().map(|(_, names)| count(names)).sum();
    let row = |name: &str, count: u64| {
        let percent = count as f64 * 100.0 / total.max(1) as f64;
        json!({"name": name, "count": count, "percent": (percent * 100.0).round() / 100.0})
    };
    let rows = ROWS.iter().map(|(name, names)| row(name, count(names)));
    rows.chain([row("total", total)]).collect()
}

/// The status of a mount, as its server tells it, if it does so in time.
pub(super) fn of(at: &Path) -> Result<Value> {
    let path = at.to_path_buf();
    super::in_time(move || asked(&path)).with_context(|| {
        format!(
            "the server of the mount on {} does not answer: it is stopped, or waits for its disk",
            at.display()
        )
    })?
}

fn asked(at: &Path) -> Result<Value> {
    let folder = match Folder::open(at) {
        Err(error) if error.is_denied() => return Err(kept_from_us(error.into(), at)),
        folder => folder.context("the server of the mount may have died")?,
    };
    let text = folder
        .attribute(STATUS_ATTRIBUTE)?
        .context("the server of the mount tells no status")?;
    serde_json::from_slice(&text).context("the server's status is not understood")
}

/// Why one cannot be asked that another user mounted.
fn kept_from_us(error: Error, at: &Path) -> Error {
    let pid = super::mounted_at(at).ok();
    let pid = pid.and_then(|mounted| process::serving(&mounted.device));
    let lives = match pid {
        Some(pid) => format!("its server lives (process {pid})"),
        None => {
            "no process that serves it is to be seen (root sees it, from Linux 6.9 on)".to_owned()
        }
    };
    error.context(format!(
        "{} was mounted by a user for themselves alone, and shows nothing to others, root included; {lives}: ask as that user",
        at.display()
    ))
}

/// Whether the kernel let us not ask.
fn is_kept_from_us(error: &Error) -> bool {
    let mut causes = error.chain();
    causes.any(|cause| {
        let cause = cause.downcast_ref::<newsreel_host::Error>();
        cause.is_some_and(newsreel_host::Error::is_denied)
    })
}

/// Whether a mount is the last at its place.
fn is_on_top(mounted: &MountPoint, all: &[MountPoint]) -> bool {
    let last = all.iter().rfind(|other| other.at == mounted.at);
    last.is_none_or(|last| last.device == mounted.device)
}

fn list(json: bool) -> Result<()> {
    let mut rows = Vec::new();
    let all = mounts::mount_points()?;
    for mounted in super::all_mounted()? {
        let (lower, at) = (
            mounted.source.to_string_lossy(),
            mounted.at.to_string_lossy(),
        );
        // By its place only the one on top can be asked.
        let status = is_on_top(&mounted, &all).then(|| of(&mounted.at));
        let serves = match &status {
            None => Value::Null,
            Some(Err(error)) if is_kept_from_us(error) => Value::Null,
            Some(status) => status.is_ok().into(),
        };
        let pid = match status {
            Some(Ok(status)) => status["pid"].clone(),
            _ => process::serving(&mounted.device).into(),
        };
        rows.push(json!({"lower": lower, "mountpoint": at, "pid": pid, "serves": serves}));
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Two mounts at one place had the same process, that of the one on top.
    #[test]
    fn of_two_mounts_at_one_place_the_later_is_on_top() {
        let line = |device: &str| format!("1 0 {device} / /mnt rw - fuse.newsreel /spool rw\n");
        let table =
            line("0:50") + &line("0:51") + "1 0 0:52 / /other rw - fuse.newsreel /spool rw\n";
        let all = mounts::mounts_in(table.as_bytes());
        let on_top: Vec<bool> = all.iter().map(|it| is_on_top(it, &all)).collect();
        assert_eq!(on_top, [false, true, true]);
    }

    #[test]
    fn the_rows_of_table_1() {
        let operations = json!({
            "readdir": 1, "readdirplus": 2, "lookup": 90, "unlink": 4, "create": 2, "rename": 1, "read": 1000,
        });
        let rows = by_name(&operations);
        let text: Vec<_> = rows
            .iter()
            .map(|row| {
                format!(
                    "{} {} {}",
                    row["name"].as_str().unwrap(),
                    row["count"],
                    row["percent"]
                )
            })
            .collect();
        assert_eq!(
            text,
            [
                "readdir 3 3.0",
                "lookup 90 90.0",
                "unlink 4 4.0",
                "create 2 2.0",
                "all other 1 1.0",
                "total 100 100.0"
            ]
        );
        assert_eq!(by_name(&json!({})).last().unwrap()["percent"], 0.0);
    }
}
