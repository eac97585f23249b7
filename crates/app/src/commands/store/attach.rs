//! `newsreel store attach`: the articles of buffers and segments from elsewhere.
//!
//! Whoever has the spool open reads the files: paths are made absolute here.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use newsreel_service::Reject;
use serde_json::Value;

use crate::access::{self, SpoolArgs};
use crate::control::request::Request;
use crate::output;

/// Groups that are named; a spool may have a hundred thousand.
const GROUPS_SHOWN_MAX: usize = 10;

pub(super) fn run(
    paths: &[PathBuf],
    [make_groups, withdrawn, in_place, oldest_may_go]: [bool; 4],
    dry_run: bool,
    spool: &SpoolArgs,
) -> Result<()> {
    let absolute = |path: &PathBuf| {
        let found = Path::canonicalize(path);
        found.with_context(|| format!("{} cannot be attached", path.display()))
    };
    let paths: Result<Vec<PathBuf>> = paths.iter().map(absolute).collect();
    let request = Request::StoreAttach {
        paths: paths?,
        make_groups,
        withdrawn,
        in_place,
        oldest_may_go,
        dry_run,
    };
    let mut report = access::change(spool, request)?;
    report["make_groups"] = make_groups.into();
    if spool.json {
        output::json(&report)?;
    } else {
        output::text(&said(&report))?;
    }
    for warning in report["warnings"].as_array().into_iter().flatten() {
        output::warning(&output::cell(warning));
    }
    let refused = report["refused"].as_object();
    let refused = refused.is_some_and(|refused| !refused.is_empty());
    let damaged = report["damaged"].as_u64().unwrap_or(0);
    let unreadable = report["unreadable"]
        .as_array()
        .is_some_and(|it| !it.is_empty());
    let has_room = report["shortages"].as_array().is_none_or(Vec::is_empty);
    match (report["is_cut"] == true, unreadable, damaged, refused) {
        (true, ..) => bail!("it was ended early; the same again goes on where it was"),
        (_, true, ..) => bail!("not everything could be read"),
        (.., damaged @ 1.., _) => bail!("{}", output::count(damaged, "damaged place")),
        (.., true) => bail!("some articles were not taken"),
        _ if report["cards_lost"] != 0 => bail!("some articles are not there"),
        _ if !has_room => bail!("there is no room for all of them"),
        _ => Ok(()),
    }
}

/// What became of those whose cards were lost.
fn cards(report: &Value) -> String {
    let count = |key: &str| report[key].as_u64().unwrap_or(0);
    let mut said = String::new();
    if count("cards_made") > 0 {
        let again = match report["dry_run"] == true {
            true => "would be there again",
            false => "there again",
        };
        said.push_str(&format!(
            "{again}: {} whose cards in the catalogue were lost, under the same numbers\n",
            output::count(count("cards_made"), "article")
        ));
    }
    if count("cards_lost") > 0 {
        said.push_str(&format!(
            "not there: {} whose cards in the catalogue are lost; put the `file` of their set in its place and attach it with --in-place\n",
            output::count(count("cards_lost"), "article")
        ));
    }
    said
}

/// The groups that were made.
fn made(report: &Value) -> String {
    let made = report["groups_made"]
        .as_array()
        .map_or(&[][..], Vec::as_slice);
    if made.is_empty() {
        return String::new();
    }
    let shown: Vec<String> = made
        .iter()
        .take(GROUPS_SHOWN_MAX)
        .map(output::cell)
        .collect();
    let what = match report["dry_run"] == true {
        true => "would be made",
        false => "made",
    };
    let more = match made.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more (all with --json)"),
    };
    let many = output::count(made.len() as u64, "group");
    format!("{many} {what}: {}{more}\n", shown.join(", "))
}

/// The report for people.
fn said(report: &Value) -> String {
    let count = |key: &str| report[key].as_u64().unwrap_or(0);
    let would = match report["dry_run"] == true {
        true => "would be taken in",
        false => "taken in",
    };
    let mut said = format!(
        "{} {would}, {} of them under other numbers; {} more names of them, or known here already\n",
        output::count(count("taken"), "article"),
        count("renumbered"),
        count("known")
    );
    if count("renumbered") > 0 {
        said.push_str(
            "under other numbers: their groups had given those numbers, or passed them at a start behind a kill, or they are near the last \
             that there is\n",
        );
    }
    if count("later") > 0 {
        said.push_str(&format!(
            "{} had come there later than now, and count as come now\n",
            output::count(count("later"), "article")
        ));
    }
    said.push_str(&cards(report));
    if count("withdrawn") > 0 {
        said.push_str(&format!(
            "not taken: {} that had been cancelled, expired or moved there; --withdrawn takes them too\n",
            output::count(count("withdrawn"), "article")
        ));
    }
    for key in ["jumps", "makes_room", "shortages"] {
        for what in report[key].as_array().into_iter().flatten() {
            said.push_str(&format!("{}\n", output::cell(what)));
        }
    }
    for (why, count) in report["refused"].as_object().into_iter().flatten() {
        let hint = match why == Reject::UnknownGroups.label() {
            true if report["make_groups"] != true => "; --make-groups makes their groups",
            _ => "",
        };
        said.push_str(&format!("not taken: {count} ({why}){hint}\n"));
    }
    let list = |key: &str| report[key].as_array().cloned().unwrap_or_default();
    said.push_str(&made(report));
    let places = list("places");
    for place in &places {
        said.push_str(&format!("{}\n", output::cell(place)));
    }
    let more = count("damaged").saturating_sub(places.len() as u64);
    if more > 0 {
        said.push_str(&format!("and {more} damaged places more\n"));
    }
    for key in ["doubtful", "passed_over", "unreadable"] {
        for why in list(key) {
            said.push_str(&format!("{}\n", output::cell(&why)));
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// That a start behind a kill passes numbers was said nowhere.
    #[test]
    fn why_numbers_are_others_is_told_where_some_are() {
        let told = |renumbered: u64| said(&json!({"taken": 3, "renumbered": renumbered}));
        assert!(told(2).contains("or passed them at a start behind a kill"));
        assert_eq!(told(0).lines().count(), 1);
    }

    /// A spool of 40,000 groups had been told with all their names, on one line.
    #[test]
    fn some_groups_are_named_and_all_are_counted() {
        let told = |many: usize| {
            let names: Vec<String> = (0..many).map(|n| format!("g{n}")).collect();
            said(&json!({"groups_made": names, "dry_run": true}))
        };
        assert!(
            told(2).ends_with("\n2 groups would be made: g0, g1\n"),
            "{}",
            told(2)
        );
        assert!(
            told(40).ends_with(", g9 and 30 more (all with --json)\n"),
            "{}",
            told(40)
        );
    }
}
