//! `newsreel expire`: what the rules let go, now; or what they would.

use anyhow::{Result, bail};
use serde_json::Value;

use crate::access::{self, LookArgs};
use crate::control::request::Request;
use crate::output;

/// What goes, as far as it is listed.
const GOING_COLUMNS: &[(&str, &str)] = &[
    ("GROUP", "group"),
    ("NUMBER", "number"),
    ("OCTETS", "octets"),
    ("ARRIVED", "arrived"),
    ("RULE", "rule"),
    ("WHY", "why"),
    ("", "stays"),
    ("MESSAGE-ID", "message_id"),
];

/// What goes by each rule.
const RULE_COLUMNS: &[(&str, &str)] = &[
    ("RULE", "rule"),
    ("ARTICLES", "articles"),
    ("OCTETS", "octets"),
    ("LEFT A GROUP", "left"),
];

#[derive(Debug, clap::Args)]
#[command(
    after_help = "A server does this all the time, a little at once ([expiry] in the configuration); this does it now, as fast as it goes, \
                  also without a server. The rules are those of [[expire]], counted from 1, see docs/expiry.md. With --dry-run the first \
                  thousand of what would go are listed, each with its rule and why; WHY is age, Expires, articles_max or octets_max.\n\n\
                  Examples:\n  newsreel expire --dry-run\n  newsreel expire --json"
)]
pub(crate) struct Args {
    /// Only say what would go, and why
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    spool: LookArgs,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let dry_run = args.dry_run;
    let report = access::ask(&args.spool, Request::Expire { dry_run })?;
    if args.spool.json {
        output::json(&report)?;
    } else {
        output::text(&said(&report, dry_run))?;
    }
    if report["is_cut"] == true {
        bail!("it was ended early");
    }
    match report["unreadable"].as_array().map_or(0, Vec::len) as u64 {
        0 => Ok(()),
        groups => {
            let groups = groups + report["unreadable_omitted"].as_u64().unwrap_or(0);
            bail!("{} could not be read", output::count(groups, "group"))
        }
    }
}

fn said(report: &Value, dry_run: bool) -> String {
    let list = |key: &str| report[key].as_array().cloned().unwrap_or_default();
    let number = |key: &str| report[key].as_u64().unwrap_or(0);
    let mut out = String::new();
    if dry_run {
        let mut going = list("going");
        for one in &mut going {
            if one["group"] == "" {
                (one["group"], one["number"]) = ("-".into(), "-".into());
            }
            one["arrived"] = output::date(&one["arrival"]).into();
            let stays = if one["stays"] == true {
                "stays elsewhere"
            } else {
                "goes"
            };
            one["stays"] = stays.into();
        }
        if !going.is_empty() {
            out.push_str(&output::table(GOING_COLUMNS, &going));
        }
        match number("going_omitted") {
            0 => {}
            more => out.push_str(&format!("and {more} more\n")),
        }
    }
    let mut rules = list("rules");
    for rule in &mut rules {
        rule["octets"] = output::octets(&rule["octets"]).into();
    }
    if !rules.is_empty() {
        out.push_str(&output::table(RULE_COLUMNS, &rules));
    }
    for why in list("unreadable") {
        out.push_str(&format!("passed over: {}\n", output::cell(&why)));
    }
    let (would, left) = match dry_run {
        true => (" would go", "would leave"),
        false => (" went", "left"),
    };
    out.push_str(&format!(
        "{}{would}, {}; {} {left} groups and stay in others; {} looked at in {}\n",
        output::count(number("articles"), "article"),
        output::octets(&report["octets"]),
        output::count(number("left"), "crosspost"),
        output::count(number("rows"), "row"),
        output::count(number("groups"), "group"),
    ));
    out
}
