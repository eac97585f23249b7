//! `newsreel check`: whether store, log and views agree.

use anyhow::{Result, bail};

use crate::access::{self, LookArgs};
use crate::control::request::Request;
use crate::output;

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
            let (count, why) = (output::cell(&left["articles"]), output::cell(&left["why"]));
            output::text(&format!("not compared: {count} articles: {why}\n"))?;
        }
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
        bail!("{count} problems ({omitted} of them not listed)");
    }
    if !args.spool.json {
        output::text("store, log and views agree\n")?;
    }
    Ok(())
}
