//! `newsreel store move`: articles of one set are kept by another from now on.
//!
//! The move is made by whoever has the spool; it may be ended at any time, and the same again goes on.

use anyhow::{Result, bail};
use serde_json::Value;

use crate::access::{self, SpoolArgs};
use crate::control::request::{Request, StoreMove};
use crate::output;

pub(super) fn run(
    (from, to): (&str, &str),
    groups: Option<&str>,
    dry_run: bool,
    spool: &SpoolArgs,
) -> Result<()> {
    let request = Request::StoreMove(StoreMove {
        from: from.to_owned(),
        to: to.to_owned(),
        groups: groups.map(str::to_owned),
        dry_run,
    });
    let report = access::change(spool, request)?;
    if spool.json {
        output::json(&report)?;
    } else {
        output::text(&said(&report, (from, to)))?;
    }
    if report["is_cut"] == true {
        bail!("it was ended early; the same again goes on where it was");
    }
    match report["left"].as_u64() {
        None | Some(0) => Ok(()),
        Some(left) => bail!("{} could not be moved", output::count(left, "article")),
    }
}

/// The report for people.
fn said(report: &Value, (from, to): (&str, &str)) -> String {
    let count = |key: &str| report[key].as_u64().unwrap_or(0);
    let would = match report["dry_run"] == true {
        true => "would move",
        false => "moved",
    };
    let (articles, octets) = (
        output::count(count("articles"), "article"),
        output::octets(&report["octets"]),
    );
    let mut said = format!("{articles} {would} from {from} to {to}, {octets}\n");
    if let Some(why) = report["first_left"].as_str() {
        let left = output::count(count("left"), "article");
        said.push_str(&format!("{left} stay, the first because: {why}\n"));
    }
    said
}
