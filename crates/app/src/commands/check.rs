//! `newsreel check`: whether store, log and views agree.

use anyhow::{Result, bail};

use super::group::leads_nowhere;
use crate::access::{self, LookArgs};
use crate::control::request::Request;
use crate::output;

/// Aliases that lead nowhere which are named.
const ALIASES_SHOWN_MAX: usize = 100;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Ends with 0 when all is well, with 1 when something does not agree.\n\n\
                  Examples:\n  newsreel check\n  newsreel check --spool /var/spool/newsreel --json"
)]
pub(crate) struct Args {
    #[command(flatten)]
    spool: LookArgs,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let report = access::ask(&args.spool, Request::Check)?;
    let problems = report["problems"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    if args.spool.json {
        output::json(&report)?;
    } else {
        for problem in problems {
            output::said(&format!("{}\n", output::cell(problem)))?;
        }
        let uncompared = report["uncompared"].as_array().into_iter().flatten();
        for left in uncompared {
            let count = output::count(left["articles"].as_u64().unwrap_or(0), "article");
            let why = output::cell(&left["why"]);
            output::text(&format!("not compared: {count}: {why}\n"))?;
        }
        aliases(&report)?;
        output::text(&output::facts(&[
            ("log records", output::cell(&report["records"])),
            ("articles compared", output::cell(&report["articles"])),
            ("overwritten since", output::cell(&report["overwritten"])),
            ("withdrawn since", output::cell(&report["withdrawn"])),
            ("overview rows", output::cell(&report["rows"])),
            ("groups", output::cell(&report["groups"])),
        ]))?;
    }
    let omitted = report["problems_omitted"].as_u64().unwrap_or(0);
    let count = problems.len() as u64 + omitted;
    if count > 0 {
        let listed = match omitted {
            0 => String::new(),
            omitted => format!(", {omitted} of them not listed"),
        };
        bail!("{}{listed}", output::count(count, "problem"));
    }
    if !args.spool.json {
        output::text("store, log and views agree\n")?;
    }
    Ok(())
}

/// Aliases that lead nowhere: store, log and views agree on them, but somebody should know.
fn aliases(report: &serde_json::Value) -> Result<()> {
    let aliases = report["aliases"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    for alias in aliases.iter().take(ALIASES_SHOWN_MAX) {
        let alias = output::cell(alias);
        let (name, why) = alias.split_once(": ").unwrap_or((&alias, ""));
        output::said(&format!("{}\n", leads_nowhere(name, why)))?;
    }
    match aliases.len().saturating_sub(ALIASES_SHOWN_MAX) {
        0 => Ok(()),
        more => output::text(&format!("and {more} more of these aliases\n")),
    }
}
