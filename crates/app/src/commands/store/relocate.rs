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
    outcome(&report)
}

/// Whether all moved, or would.
fn outcome(report: &Value) -> Result<()> {
    match report["stopped"].as_str() {
        Some(why) => bail!("it was ended early: {why}; the same again goes on where it was"),
        None if report["is_cut"] == true => {
            bail!("it was ended early; the same again goes on where it was")
        }
        None => {}
    }
    match report["left"].as_u64() {
        _ if keeps_less(report).is_some() => bail!("there is no room for all of them"),
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
    if report["room"].is_object() {
        said.push_str(&room(report, to));
    }
    if count("gone") > 0 {
        let gone = output::count(count("gone"), "article");
        said.push_str(&format!(
            "{gone} gone: the files are not there; `newsreel store scrub` takes out what somebody removed\n"
        ));
    }
    if let Some(why) = report["first_left"].as_str() {
        let left = output::count(count("left"), "article");
        said.push_str(&format!("{left} stay, the first because: {why}\n"));
    }
    said
}

/// What the set has for them.
fn room(report: &Value, to: &str) -> String {
    let (room, taken) = (&report["room"], &report["taken_octets"]);
    let mut said = format!("they take up to {} there", output::octets(taken));
    if room["free_octets"].is_u64() {
        let free = output::octets(&room["free_octets"]);
        said.push_str(&format!(", {free} are free"));
    }
    said.push('\n');
    if let Some(keep_s) = room["keep_s"].as_u64() {
        said.push_str(&format!(
            "what arrived more than {keep_s} s ago stays where it is: {to} drops what is older (`set.keep_s`)\n"
        ));
    }
    let overwritten = &room["overwritten_octets"];
    if overwritten.as_u64().is_some_and(|octets| octets > 0) {
        let overwritten = output::octets(overwritten);
        let alive = match room["alive_octets"].is_u64() {
            true => format!(
                "; {} of all that it has is alive",
                output::octets(&room["alive_octets"])
            ),
            false => String::new(),
        };
        said.push_str(&format!(
            "about {overwritten} of what {to} has now, the oldest, goes to make room{alive}\n"
        ));
    }
    if let Some(keeps) = keeps_less(report) {
        let keeps = output::octets(&keeps.into());
        said.push_str(&format!(
            "{to} keeps {keeps} of what moves, and overwrites the rest: it would be refused\n"
        ));
    }
    said
}

/// What the set keeps of what would move, octets, where that is not all.
fn keeps_less(report: &Value) -> Option<u64> {
    let keeps = report["room"]["keeps_octets"].as_u64()?;
    let taken = report["taken_octets"].as_u64()?;
    (taken > keeps).then_some(keeps)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// It ended with 0, where the move itself ends with 1.
    #[test]
    fn a_dry_run_of_what_has_no_room_does_not_end_well() {
        let would = |taken: u64| json!({"dry_run": true, "left": 0, "taken_octets": taken, "room": {"keeps_octets": 1000}});
        let refused = outcome(&would(1001)).unwrap_err().to_string();
        assert_eq!(refused, "there is no room for all of them");
        assert!(outcome(&would(1000)).is_ok());
    }
}
