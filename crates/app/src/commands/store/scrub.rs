//! `newsreel store scrub`: the checksums of everything that is alive.

use anyhow::{Result, bail};
use serde_json::Value;

use crate::access::{self, LookArgs};
use crate::control::request::Request;
use crate::output;

pub(super) fn run(buffers: &[String], rate: Option<u64>, spool: &LookArgs) -> Result<()> {
    let request = Request::Scrub {
        buffers: buffers.to_vec(),
        octets_per_s: rate,
    };
    let report = access::ask(spool, request)?;
    let list = |key: &str| report[key].as_array().cloned().unwrap_or_default();
    let (damaged, unreadable) = (list("damaged"), list("unreadable"));
    if spool.json {
        output::json(&report)?;
    } else {
        for damage in &damaged {
            output::text(&format!("{}\n", said(damage)))?;
        }
        for what in list("headers") {
            output::text(&format!("{}\n", output::cell(&what)))?;
        }
        for why in &unreadable {
            output::text(&format!("{}\n", output::cell(why)))?;
        }
        for buffer in list("buffers") {
            output::text(&format!(
                "{}: {}, {} damaged\n",
                output::cell(&buffer["name"]),
                counts(&buffer),
                buffer["damaged"]
            ))?;
        }
        let seconds = output::duration(&report["seconds"]);
        output::text(&format!("in all {} in {seconds}\n", counts(&report)))?;
        if report["unknown"].as_u64().is_some_and(|count| count > 0) {
            output::text(
                "what the log does not know came behind it: a log that is older than its buffers was put back; `newsreel store attach` of \
                 copies of the buffers brings it back, and docs/buffers.md, \"From elsewhere\", says with which numbers\n",
            )?;
        }
    }
    let more = report["damaged_omitted"].as_u64().unwrap_or(0);
    let count = damaged.len() as u64 + more;
    let listed = match more {
        0 => String::new(),
        more => format!(", {more} of them not listed"),
    };
    match (count, unreadable.len()) {
        _ if report["is_cut"] == true => bail!("it was ended early"),
        (0, 0) => Ok(()),
        (0, _) => bail!("not everything could be read"),
        (count, _) => bail!("{}{listed}", output::count(count, "damaged place")),
    }
}

fn counts(report: &Value) -> String {
    let more = |key: &str, what: &str| match report[key].as_u64() {
        None | Some(0) => String::new(),
        Some(count) => format!(", {count} {what}"),
    };
    format!(
        "{} sound{}{}, {} read",
        output::count(report["articles"].as_u64().unwrap_or(0), "article"),
        more("withdrawn", "withdrawn"),
        more("unknown", "that the log does not know"),
        output::octets(&report["octets"])
    )
}

/// One damaged place, with what it means.
fn said(damage: &Value) -> String {
    format!(
        "{}; {}",
        output::cell(&damage["said"]),
        output::cell(&damage["means"])
    )
}
